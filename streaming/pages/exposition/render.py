"""The page of the exporter as bytes, in Prometheus' text format 0.0.4 or in OpenMetrics 1.0; packed or not."""

from collections.abc import Callable, Sequence
from functools import cache

from prometheus_client import Metric as Samples
from prometheus_client.exposition import generate_latest as write_text
from prometheus_client.openmetrics.exposition import generate_latest as write_openmetrics

from streaming.broker.protocol.restart_json import SAFE, UNKNOWN
from streaming.cluster.consumers.group_snapshot import GroupBoard
from streaming.cluster.verdicts.circumstances import Circumstances
from streaming.cluster.verdicts.restart_check import RestartCheck
from streaming.cluster.view.disk_forecasts import ByDir
from streaming.cluster.view.disk_use import full_now
from streaming.cluster.view.observer import AgentStatus, Families, Observer
from streaming.cluster.view.table import Table
from streaming.cluster.view.view import View, view
from streaming.common.definitions import broker_metrics
from streaming.common.definitions.client_family import client_family
from streaming.common.definitions.metric import Metric, Type
from streaming.pages.exposition.costs import Costs
from streaming.pages.exposition.group_families import NO_GROUPS, ShownGroups, shown_groups
from streaming.pages.exposition.kept_lines import GzipPiece, KeptLines, join, lines_of, pack, text_of
from streaming.pages.exposition.series import Choice, choose

GROUPS_WAIT_SECONDS = 0.5
"""A page waits for so long for what the last micro-batch means to consumer groups."""


def render_packed(
    store: KeptLines,
    table: Table,
    observer: Observer,
    now: float,
    openmetrics: bool = False,
    groups: GroupBoard | None = None,
    look: Callable[[], View] | None = None,
    costs: Costs | None = None,
) -> bytes:
    """Make the same page as one gzip member. What the last page from ``store``, in either format, had like this one is not made again."""
    choice, own = _content(table, observer, now, groups, look)
    lines = store.packed(choice.families)
    pieces: list[GzipPiece] = []
    sizes = []
    for family, packed in zip(choice.families, lines, strict=True):
        whole = (_packed_head(family.metric, openmetrics), *packed)
        sizes.append(sum(piece.size for piece in whole))
        pieces += whole
    pieces.append(pack(last := _own(own, openmetrics)))
    if costs is not None:
        costs.note(choice, sizes, last, sum(sizes) + len(last), now)
    return join(pieces)


def _content(
    table: Table, observer: Observer, now: float, groups: GroupBoard | None, look: Callable[[], View] | None
) -> tuple[Choice, Families]:
    """What a page is made of: the table's families, then the observer's own."""
    now_ms = round(now * 1000)
    group_part = NO_GROUPS if groups is None else shown_groups_of(groups, table, now_ms, GROUPS_WAIT_SECONDS)
    current = view(table.snapshot(now)) if look is None else look()
    choice = choose(current, table.series_limit, table.export, group_part, label_limit=table.label_limit)
    observer.dropped(
        partition_series=choice.partition_series_dropped,
        topic_series=choice.topic_series_dropped,
        largest_topic=choice.largest_topic,
    )
    observer.unlabelled(choice.label_series_dropped, choice.label_dropped)

    def full(up: Sequence[AgentStatus]) -> ByDir:
        return full_now(table, current, up, now_ms)

    restarts = RestartCheck(
        circumstances=Circumstances(
            view=current,
            topics=(),
            now_ms=now_ms,
            agents=observer.agents,
            lags=observer.lags(now),
            stale=observer.is_stale(now),
            start=None if table.ready else observer.start_progress(now),
        ),
        limits_of=table.limiter.now(),
    )
    skipped = current.skipped_bytes if current.restored else None
    own = observer.families(skipped, now, table.export, table.limiter.min_isr, full, [_restart_family(restarts)])
    return choice, own


def shown_groups_of(board: GroupBoard, table: Table, now_ms: int, wait_seconds: float = 0.0) -> ShownGroups:
    """What a page shows of consumer groups."""
    return shown_groups(board.latest(now_ms, wait_seconds), board.listing, table.export, now_ms)


def _restart_family(restarts: RestartCheck) -> Samples:
    verdicts = ((broker, *restarts.verdict_of(broker)) for broker in restarts.brokers)
    rows = (((broker, reason), verdict == SAFE) for broker, verdict, reason in verdicts if verdict != UNKNOWN)
    return client_family(broker_metrics.RESTART_SAFE, rows)


@cache
def _packed_head(metric: Metric, openmetrics: bool) -> GzipPiece:
    return pack(_head(metric, openmetrics))


def _head(metric: Metric, openmetrics: bool) -> bytes:
    # OpenMetrics names a counter's family without the suffix that its samples have.
    name = metric.name.removesuffix("_total") if openmetrics and metric.type == Type.COUNTER else metric.name
    return f"# HELP {name} {metric.help}\n# TYPE {name} {metric.type}\n".encode()


def _own(families: Families, openmetrics: bool) -> bytes:
    """The observer's part of the page; in OpenMetrics with the line that ends a page."""
    page: bytes = write_openmetrics(families) if openmetrics else write_text(families)  # type: ignore[no-untyped-call]
    return page


def render(
    table: Table,
    observer: Observer,
    now: float,
    openmetrics: bool = False,
    groups: GroupBoard | None = None,
    look: Callable[[], View] | None = None,
    costs: Costs | None = None,
) -> bytes:
    """Make the page as it is at ``now``, in Unix seconds.

    The table is locked while it is copied, no longer.

    Args:
        look: makes the view of the table; None for one that nothing else needs.
        costs: records what the page costs.
    """
    choice, own = _content(table, observer, now, groups, look)
    pieces: list[bytes | memoryview] = []
    for family in choice.families:
        pieces += (_head(family.metric, openmetrics), text_of(lines_of(family)))
    sizes = [len(head) + len(lines) for head, lines in zip(pieces[::2], pieces[1::2], strict=True)]
    pieces.append(last := _own(own, openmetrics))
    page = b"".join(pieces)
    if costs is not None:
        costs.note(choice, sizes, last, len(page), now)
    return page
