"""A page of which something was kept is the page that is made anew."""

import gzip
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from streaming.cluster.view.family import TEXT, Export, Family, Samples
from streaming.cluster.view.table import Table
from streaming.common.definitions.sections import METRICS
from streaming.pages.exposition import kept_lines
from streaming.pages.exposition.kept_lines import GzipPiece, KeptLines, join, lines_of, pack, text_of
from streaming.pages.exposition.render import render, render_packed
from tests.consumers.group_agents import GROUP
from tests.consumers.group_world import GroupJob, world
from tests.view.rows import departed, log, new_observer, new_table, removed, states

BYTES, SECONDS, DURATIONS = (
    next(metric for metric in METRICS if metric.name == name)
    for name in (
        "segtail_partition_size_bytes",
        "segtail_partition_last_append_timestamp_seconds",
        "segtail_topic_transaction_duration_seconds",
    )
)


def family(metric: Any, subjects: list[str], *samples: Samples) -> Family:
    return Family(metric=metric, labels=pa.array(subjects, TEXT), samples=samples)


def of(values: list[int], **more: Any) -> Samples:
    return Samples(values=np.array(values, np.int64), **more)


def unpacked(lines: list[tuple[GzipPiece, ...]]) -> list[bytes]:
    return [gzip.decompress(join(pieces)) for pieces in lines]


def anew(families: list[Family]) -> list[bytes]:
    return [bytes(text_of(lines_of(each))) for each in families]


FAMILIES = st.lists(
    st.builds(
        lambda metric, subjects, columns: family(
            metric,
            [f'topic="{name}"' for name in subjects],
            *(
                of([values[at % len(values)] for at in range(len(subjects))], suffix=suffix, thousandths=thousandths)
                for suffix, values, thousandths in columns
            ),
        ),
        st.sampled_from((BYTES, SECONDS, DURATIONS)),
        st.lists(st.sampled_from("abcdefgh"), unique=True, min_size=1, max_size=8),
        st.lists(
            st.tuples(st.sampled_from(("", "_sum")), st.lists(st.integers(0, 2), min_size=1, max_size=4), st.booleans()),
            min_size=1,
            max_size=3,
        ),
    ),
    unique_by=lambda each: each.metric,
    max_size=3,
)


@given(pages=st.lists(FAMILIES, max_size=6), piece_series=st.integers(1, 9))
def test_whatever_families_follow_each_other(pages: list[list[Family]], piece_series: int) -> None:
    kept = KeptLines(piece_series)
    for families in pages:
        assert unpacked(kept.packed(families)) == anew(families)


@given(
    pages=st.lists(st.lists(st.integers(0, 2), min_size=12, max_size=12), min_size=2, max_size=6),
    piece_series=st.integers(1, 14),
)
def test_whichever_values_change(pages: list[list[int]], piece_series: int) -> None:
    kept, subjects = KeptLines(piece_series), list("abcdef")
    for values in pages:
        families = [family(DURATIONS, subjects, of(values[:6], suffix="_sum"), of(values[6:], suffix="_count"))]
        assert unpacked(kept.packed(families)) == anew(families)


@pytest.fixture
def packed(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The texts that are packed."""
    found: list[bytes] = []

    def noted(text: bytes | memoryview) -> GzipPiece:
        found.append(bytes(text))
        return pack(text)

    monkeypatch.setattr(kept_lines, "pack", noted)
    return found


def test_only_what_has_changed_is_packed_anew(packed: list[bytes]) -> None:
    kept = KeptLines(2)
    still = family(BYTES, ["a", "b", "c"], of([1, 2, 3]))
    moving = [family(SECONDS, ["a", "b", "c", "d", "e"], of(values)) for values in ([1, 2, 3, 4, 5], [1, 2, 3, 4, 5], [1, 2, 9, 4, 5])]
    kept.packed([still, moving[0]])
    assert len(packed) == 2 + 3
    packed.clear()
    kept.packed([replace(still, labels=pa.array(["a", "b", "c"], TEXT)), moving[1]])
    assert packed == []
    kept.packed([still, moving[2]])
    name = SECONDS.name
    assert packed == [f"{name}{{c}} 0.009\n{name}{{d}} 0.004\n".encode()]


@pytest.mark.parametrize(
    "change",
    [
        lambda was: replace(was, labels=pa.array(["a", "c"], TEXT)),
        lambda was: replace(was, samples=(replace(was.samples[0], suffix="_sum"),)),
        lambda was: replace(was, samples=(replace(was.samples[0], label='le="1"'),)),
        lambda was: replace(was, samples=(replace(was.samples[0], thousandths=True),)),
        lambda was: replace(was, samples=(replace(was.samples[0], values=np.array([True, False])),)),
        lambda was: replace(was, samples=was.samples * 2),
    ],
    ids=["labels", "suffix", "label", "unit", "type", "samples"],
)
def test_all_that_a_line_is_made_of_counts(change: Callable[[Family], Family]) -> None:
    kept, was = KeptLines(), family(DURATIONS, ["a", "b"], of([1, 0]))
    kept.packed([was])
    assert unpacked(kept.packed([change(was)])) == anew([change(was)])


def test_values_that_are_overwritten_later_were_copied() -> None:
    kept, values = KeptLines(), np.array([1, 2], np.int64)
    for value in (1, 7):
        values[0] = value
        families = [family(BYTES, ["a", "b"], Samples(values=values))]
        assert unpacked(kept.packed(families)) == anew(families)


def test_nothing_is_kept_of_a_family_that_the_last_page_had_not(packed: list[bytes]) -> None:
    kept, families = KeptLines(), [family(BYTES, ["a"], of([1]))]
    kept.packed(families)
    kept.packed([])
    kept.packed(families)
    assert len(packed) == 2


# --- pages


@dataclass
class Twins:
    """Two tables that are given the same: the pages of one are made by what was kept, those of the other anew."""

    tables: tuple[Table, Table]
    groups: GroupJob
    now: float = 1_700_000_000.0

    def __post_init__(self) -> None:
        self.observers = new_observer(), new_observer()
        self.kept = KeptLines(4)

    def check(self, *, openmetrics: bool) -> None:
        (table, other), (observer, another) = self.tables, self.observers
        board = self.groups.board
        page = gzip.decompress(render_packed(self.kept, table, observer, self.now, openmetrics, board))
        assert page.decode() == render(other, another, self.now, openmetrics, board).decode()

    def apply(self, *rows: dict[str, Any]) -> None:
        for table in self.tables:
            table.apply(states(*rows))


def twins(limit: int, export: Export) -> Twins:
    groups = world()
    groups.agents["a1"].groups_ = [GROUP]
    return Twins((new_table(series_limit=limit, export=export), new_table(series_limit=limit, export=export)), groups)


Step = Callable[[Twins], None]


def grows(topic: str, partition: int, records: int) -> Step:
    """A log has so many records, and a transaction of the last of them."""

    def step(pair: Twins) -> None:
        at_ms = round(pair.now * 1000)
        counts = {"appended_records": records, "appended_bytes": 100 * records, "log_end_offset": records, "last_append_ms": at_ms}
        shares = {"share_records": records, "share_codec_bytes": [100 * records, 0, 0, 0, 0], "transactional": records % 2 == 1}
        pair.apply(log(topic, partition, leader=1, leader_epoch=0, settled=records > 0, **counts, **shares))

    return step


def leaves(topic: str, partition: int, share: int) -> Step:
    return lambda pair: pair.apply(departed(topic, partition, share_records=share) if share else removed(topic, partition))


def passes(seconds: float) -> Step:
    def step(pair: Twins) -> None:
        pair.now += seconds

    return step


def commits(offset: int) -> Step:
    """A group commits, and what that means is worked out."""

    def step(pair: Twins) -> None:
        pair.groups.now = pair.now
        pair.groups.agents["a1"].commit(offset)
        pair.groups.put(end=10)
        pair.groups.round()

    return step


def limits(series: int) -> Step:
    def step(pair: Twins) -> None:
        for table in pair.tables:
            table.series_limit = series

    return step


NAMES, NUMBERS = st.sampled_from(("a", "b")), st.integers(0, 6)
STEPS: st.SearchStrategy[Step] = st.one_of(
    st.builds(grows, NAMES, NUMBERS, st.integers(0, 5)),
    st.builds(leaves, NAMES, NUMBERS, st.integers(0, 1)),
    st.builds(passes, st.sampled_from((0.0, 0.001, 15.0, 400.0, -60.0))),
    st.builds(commits, st.integers(0, 10)),
    st.builds(limits, st.sampled_from((0, 30, 90, 1_000_000))),
)
EXPORTS = (Export(), Export(partitions=False), Export(groups={"throughput", "consumers"}))


@pytest.mark.slow
@given(
    steps=st.lists(st.tuples(STEPS, st.booleans(), st.booleans()), max_size=6),
    export=st.sampled_from(EXPORTS),
)
@example(steps=[(grows("a", number, 3), True, True) for number in range(6)] + [(limits(30), True, False)], export=Export())
def test_whatever_happens_between_two_pages(steps: list[tuple[Step, bool, bool]], export: Export) -> None:
    pair = twins(1_000_000, export)
    for step, looks, openmetrics in steps:
        step(pair)
        if looks:
            pair.check(openmetrics=openmetrics)
    pair.check(openmetrics=False)
