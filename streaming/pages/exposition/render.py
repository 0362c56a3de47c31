"""The page of the exporter as bytes, in Prometheus' text format 0.0.4 or in OpenMetrics 1.0.

Arrow's compute functions format a million series one column at a time, and other threads can use the interpreter meanwhile. Every line of
a family is joined into one array of texts. The data of this array, one text after the other, is the page.
"""

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from prometheus_client.exposition import generate_latest as write_text
from prometheus_client.openmetrics.exposition import generate_latest as write_openmetrics

from streaming.cluster.consumers.group_snapshot import GroupBoard
from streaming.cluster.view.disk_use import full_by_dir
from streaming.cluster.view.family import TEXT, Family, Samples, text
from streaming.cluster.view.full_times import ByDir
from streaming.cluster.view.observer import AgentStatus, Families, Observer
from streaming.cluster.view.table import Table
from streaming.cluster.view.view import View, view
from streaming.common.arrays import Longs
from streaming.common.definitions.metric import Metric, Type
from streaming.pages.exposition.costs import Costs
from streaming.pages.exposition.group_families import NO_GROUPS, ShownGroups, shown_groups
from streaming.pages.exposition.series import choose

_UNIT_DIGITS = {"seconds": 3, "ratio": 6}
"""Times are counted in milliseconds, ratios in millionths."""


GROUPS_WAIT_SECONDS = 0.5
"""A page waits for so long for what the last micro-batch means to consumer groups."""


def render(
    table: Table,
    observer: Observer,
    now: float,
    openmetrics: bool = False,
    groups: GroupBoard | None = None,
    look: Callable[[], View] | None = None,
    costs: Costs | None = None,
) -> bytes:
    """Make the page as it is at ``now``, in Unix seconds: the table's families, then the observer's own.

    The table is locked while it is copied, no longer.

    Args:
        look: makes the view of the table; None for one that nobody else needs.
        costs: where it is noted what the page costs.
    """
    group_part = NO_GROUPS if groups is None else shown_groups_of(groups, table, round(now * 1000), GROUPS_WAIT_SECONDS)
    current = view(table.snapshot(now)) if look is None else look()
    choice = choose(current, table.series_limit, table.export, group_part, label_limit=table.label_limit)
    observer.dropped(
        partition_series=choice.partition_series_dropped,
        topic_series=choice.topic_series_dropped,
        largest_topic=choice.largest_topic,
    )
    observer.unlabelled(choice.label_series_dropped, choice.label_dropped)
    now_ms = round(now * 1000)

    def full(up: Sequence[AgentStatus]) -> ByDir:
        return table.full_times.of(lambda: full_by_dir(current, up, now_ms), now_ms)

    own = observer.families(current.skipped_bytes, now, table.export, table.min_isr, full)
    pieces: list[bytes | memoryview] = []
    for family in choice.families:
        pieces += (_head(family.metric, openmetrics), _text(lines_of(family)))
    sizes = [len(head) + len(lines) for head, lines in zip(pieces[::2], pieces[1::2], strict=True)]
    pieces.append(last := _own(own, openmetrics))
    page = b"".join(pieces)
    if costs is not None:
        costs.note(choice, sizes, last, len(page), now)
    return page


def shown_groups_of(board: GroupBoard, table: Table, now_ms: int, wait_seconds: float = 0.0) -> ShownGroups:
    """What a page shows of consumer groups."""
    return shown_groups(board.latest(now_ms, wait_seconds), board.listing, table.export, now_ms)


def _own(families: Families, openmetrics: bool) -> bytes:
    """The observer's part of the page; in OpenMetrics with the line that ends a page."""
    page: bytes = write_openmetrics(families) if openmetrics else write_text(families)  # type: ignore[no-untyped-call]
    return page


def _head(metric: Metric, openmetrics: bool) -> bytes:
    # OpenMetrics names a counter's family without the suffix that its samples have.
    name = metric.name.removesuffix("_total") if openmetrics and metric.type == Type.COUNTER else metric.name
    return f"# HELP {name} {metric.help}\n# TYPE {name} {metric.type}\n".encode()


def lines_of(family: Family) -> pa.LargeStringArray:
    """The lines of a family, those of one subject together, as OpenMetrics requires."""
    parts: list[pa.Array | pa.Scalar] = []
    end_of_line = ""
    for samples in family.samples:
        more = f",{samples.label}}} " if samples.label else "} "
        parts += (
            text(f"{end_of_line}{family.metric.name}{samples.suffix}{{"),
            family.labels,
            text(more),
            _numbers(samples.values, _digits(family.metric, samples)),
        )
        end_of_line = "\n"
    return pc.binary_join_element_wise(*parts, text("\n"), text(""))


def _text(lines: pa.LargeStringArray) -> memoryview:
    """Lines below each other."""
    _, ends, data = lines.buffers()
    return memoryview(data)[: np.frombuffer(ends, np.int64)[len(lines)]]


def _digits(metric: Metric, samples: Samples) -> int:
    """How many digits of a whole number are after the decimal point."""
    if metric.type == Type.HISTOGRAM:
        return 3 if samples.thousandths else 0
    return _UNIT_DIGITS.get(metric.unit, 0)


def _numbers(values: Longs, digits: int) -> pa.LargeStringArray:
    """Whole numbers as texts, the last ``digits`` of each after the decimal point."""
    numbers = pa.array(values)
    if digits:
        wide = numbers.cast(pa.decimal128(22, 0))
        # The same integers, declared as thousandths or millionths. This is exact; a division would go through floats.
        numbers = pa.Array.from_buffers(pa.decimal128(22, digits), len(wide), wide.buffers())
    return numbers.cast(TEXT)
