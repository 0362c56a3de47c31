"""A micro-batch of a shard: by columns where it is ordinary, row by row where it is not, and the same either way."""

from collections.abc import Iterator, Sequence
from dataclasses import fields
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from streaming.broker.journal.range_values import cut, overwritten_from
from streaming.common.column_types import MOST_SUM
from streaming.common.event_row import EVENTS, EventRow
from streaming.common.rows import SEGMENTS, Change, Kind, Step, unpack_entries, unpack_rows
from streaming.common.state_row import STATES
from streaming.rules import shard as rule
from streaming.rules.fold import LogChange, ShardFold
from streaming.rules.log_state import LogState
from streaming.rules.shard import fold_shard
from streaming.rules.shard_state import ShardState
from tests.events import Shard, appended, census_end, row
from tests.rules.histories import entries, histories, packed, steps, tellings
from tests.tables import each_row

FIELDS = [field.name for field in fields(LogState)]
SHOWN = [name for name in STATES.names if name != "change"]


class Columnar:
    """A shard as it is kept between micro-batches."""

    def __init__(self) -> None:
        self.value: bytes | None = None
        self.lists: bytes | None = None

    def fold(self, *packs: Sequence[EventRow]) -> list[dict[str, Any]]:
        before = ShardState(self.value, lambda: self.lists)
        folded = fold_shard(7, before, list(map(packed, packs)), cut=cut, overwritten_from=overwritten_from)
        self.value = self.value if folded.value is None else folded.value
        self.lists = self.lists if folded.lists is None else folded.lists
        return [] if folded.changed_rows is None else unpack_rows(folded.changed_rows, STATES).to_pylist()

    @property
    def state(self) -> ShardState:
        found = ShardState(self.value, lambda: self.lists)
        found.lists.open()
        return found


LARGE = 1 << 50  # the most that a row of an agent may count
LARGE_ROWS = 1 << 13


def large(seq: int, offset: int, **values: Any) -> EventRow:
    counts = {"records": LARGE, "batches": LARGE, "codec_bytes": (LARGE,) * 5, "leads": 1}
    return appended(seq, offset, offset + 1, LARGE, **counts, **values)


@pytest.mark.parametrize("at_once", [1 << 12, 1])
def test_sums_of_rows_that_lie_stay_at_their_end(at_once: int) -> None:
    """By columns and row by row. The sum of all of them is twice what a column holds."""
    shard = Columnar()
    shard.fold([row(Kind.APPEARED, 1, next_offset=0)])
    known, first = next(iter(shard.state.table.to_pylist())), LARGE_ROWS
    assert known["appended_bytes"] == 0
    if at_once == 1:  # one row each, on top of a sum that is near its end
        shard.fold([large(seq, seq) for seq in range(2, LARGE_ROWS // 2)])
        first = LARGE_ROWS // 2
    for begin in range(first, first + 2 * at_once + 2, at_once):
        (reported,) = shard.fold([large(seq, seq) for seq in range(begin, begin + at_once)])
    assert [reported[name] for name in ("appended_bytes", "appended_records", "share_codec_bytes")] == [MOST_SUM, MOST_SUM, [MOST_SUM] * 5]


def test_a_hole_that_rows_make_up_is_no_more_than_a_column_holds() -> None:
    shard = Columnar()
    shard.fold([row(Kind.APPEARED, 1, next_offset=0)], [large(2, 0)])
    for turn in range(3):
        (reported,) = shard.fold([large(3, (1 << 60) * (turn + 1), journal=f"another {turn}")])
        assert reported["skipped_bytes"] == [0, 0, MOST_SUM]


def reported(changes: Sequence[LogChange]) -> list[dict[str, Any]]:
    return [{"change": str(each.change)} | {name: getattr(each.state, name) for name in SHOWN} for each in changes]


def values(state: LogState) -> dict[str, Any]:
    return {name: getattr(state, name) for name in FIELDS}


def plain(values: dict[str, Any]) -> str:
    """What compares by content: packed entries may differ in their padding."""
    coordinator = values["coordinator"]
    entries = None if coordinator is None else unpack_entries(coordinator).to_pylist()
    return str({name: list(value) if isinstance(value, tuple) else value for name, value in values.items()} | {"coordinator": entries})


@pytest.fixture(autouse=True, scope="module")
def few_are_enough() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rule, "FEW", 0)
        yield


# --- columns and rows


class Both:
    """A shard that is folded either way."""

    def __init__(self) -> None:
        self.by_rows, self.columns = Shard(), Columnar()

    def fold(self, *packs: Sequence[EventRow]) -> None:
        """Fold a micro-batch; what comes out must be the same."""
        batch = [each for pack in packs for each in pack]
        expected, found = reported(list(self.by_rows.look(batch).changes())), self.columns.fold(*packs)
        self.by_rows.fold(*batch)
        assert sorted(map(plain, found)) == sorted(map(plain, expected))
        after = self.columns.state
        states = {key: plain(values(state)) for key in after.known() if (state := after.find(key)) is not None}
        assert states == {key: plain(values(state)) for key, state in self.by_rows.states.items()}
        assert after.marks == self.by_rows.marks


plans = st.lists(st.tuples(st.integers(0, 3), st.integers(1, 20)), min_size=1, max_size=8)


@given(histories, plans, st.integers(0, 2**32))
@example([(0, "append", 0, 5), (0, "append", 0, 5), (0, "census", 0, 1), (0, "recall", 0, 1)], [(0, 3), (0, 99)], 1)
def test_columns_lead_to_what_rows_lead_to(history: list[Any], plan: list[Any], seed: int) -> None:
    """With holes, overlaps, epochs, transactions, truncations, censuses, recalls, other journals; in any order, some of it twice."""
    random = Random(seed)
    both = Both()
    events, reached = tellings(history, random), [0, 0]
    for back, more in [*plan, (0, 999)]:
        batch = []
        for agent, reported_by_it in enumerate(events):
            begin, reached[agent] = max(0, reached[agent] - back), min(len(reported_by_it), reached[agent] + more)
            batch += [each for rows in reported_by_it[begin : reached[agent]] for each in rows]
        batch += batch[: len(batch) // 4] if back else []
        random.shuffle(batch)
        half = random.randrange(len(batch) + 1)
        both.fold(batch[:half], batch[half:])


THERE = [row(Kind.APPEARED, 1, next_offset=0), appended(2, 0, 10, leads=1, log_epoch=3, segment=20, max_timestamp=50)]
BACK = [*THERE, row(Kind.GONE, 3, reason="moved"), row(Kind.APPEARED, 4, next_offset=0)]
OTHER = {"agent": "a2", "journal": "j2", "broker": 2, "leads": 1}
UNCLEAN = [row(Kind.APPEARED, 1, **OTHER, next_offset=0), row(Kind.UNCLEAN, 2, **OTHER, leader_epoch=5, next_offset=4, reason="1")]


@each_row(
    "batches",
    [
        pytest.param([BACK, [appended(5, 0, 10, leads=1, log_epoch=3)]], id="a log that is back: what counted before counts no more"),
        pytest.param([BACK, [appended(5, 0, 5, leads=1, log_epoch=3), appended(6, 5, 15, leads=1, log_epoch=4)]], id="some of it"),
        pytest.param([THERE, UNCLEAN, [appended(3, 10, 15, leads=0, log_epoch=4)]], id="a follower behind an unclean election"),
        pytest.param(
            [THERE, UNCLEAN, [appended(3, 10, 15, leads=0, log_epoch=4), appended(3, 0, 9, **OTHER, log_epoch=5)]], id="its leader too"
        ),
        pytest.param([THERE, [appended(3, 10, 15, leads=1, segment=20, max_timestamp=7)]], id="the segment goes on"),
        pytest.param([THERE, [appended(3, 10, 15, leads=1, segment=30, max_timestamp=7)]], id="another segment"),
        pytest.param(
            [THERE, [appended(3, 10, 15, leads=1, segment=0), appended(4, 15, 20, leads=1, segment=20, max_timestamp=7)]],
            id="an earlier segment, and back",
        ),
        pytest.param(
            [
                THERE,
                [
                    appended(3 + item, 10 + item, 11 + item, leads=1, segment=20 + 10 * (item % 2), max_timestamp=90 - item)
                    for item in range(3)
                ],
            ],
            id="back from a later segment",
        ),
    ],
)
def test_what_random_histories_seldom_hold_is_the_same_too(batches: list[list[EventRow]]) -> None:
    both = Both()
    for batch in batches:
        both.fold(batch)


# --- what is ordinary


class Watched:
    """What the row fold was given."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.rows: list[EventRow] = []
        fold = ShardFold

        class Fold(fold):  # type: ignore[misc,valid-type]
            def fold(_, rows: Any) -> None:  # noqa: N805
                self.rows += rows
                super().fold(rows)

        monkeypatch.setattr(rule, "ShardFold", Fold)


LOGS = 6


@pytest.fixture
def columns() -> Columnar:
    made = Columnar()
    made.fold([row(Kind.APPEARED, 1, part=log, partition=log, next_offset=0) for log in range(LOGS)])
    return made


def appends(seq: int, **values: Any) -> list[EventRow]:
    return [appended(seq, 10 * seq - 20, 10 * seq - 10, part=log, partition=log, leads=1, **values) for log in range(LOGS)]


UNUSUAL = {
    "transactions": steps((Step.DATA, 1, 0, 10)),
    "coordinator": entries(0),
    "base_offset": 4,
    "log_dir": "/moved",
    "leads": -1,
    "kind": Kind.SKIPPED,
    "codec_bytes": (0,) * 5,
}


@pytest.mark.parametrize("name", ["transactions", "coordinator", "base_offset", "log_dir", "leads", "kind"])
def test_an_unusual_row_takes_its_own_log_the_slow_way_and_no_other(columns: Columnar, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    slow = Watched(monkeypatch)
    rows = appends(2)
    rows[3] = EventRow(**{column: getattr(rows[3], column) for column in EVENTS.names} | {name: UNUSUAL[name]})
    columns.fold([*rows, *appends(3)])
    assert [(each.partition, each.seq) for each in slow.rows] == [(3, 2), (3, 3)]
    assert {columns.state.find(key).appended_records for key in columns.state.known() if key.partition != 3} == {20}  # type: ignore[union-attr]


@pytest.mark.parametrize(("few", "slow"), [(LOGS, 0), (LOGS + 1, LOGS)])
def test_few_rows_are_folded_as_rows(columns: Columnar, few: int, slow: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rule, "FEW", few)
    watched = Watched(monkeypatch)
    assert len(columns.fold(appends(2))) == LOGS
    assert len(watched.rows) == slow


def test_logs_of_which_nothing_changed_are_no_rows_for_python(columns: Columnar, monkeypatch: pytest.MonkeyPatch) -> None:
    columns.fold(appends(2))
    slow = Watched(monkeypatch)
    reported = [row(Kind.FOUND, 3 + log, partition=log, log_start_offset=4, high_watermark=9, leader=1) for log in range(LOGS)]
    census = [row(Kind.CENSUS, 3 + LOGS, part=log, partition=log) for log in range(LOGS)]
    found = columns.fold([*reported, *census, census_end("1:/data", seq=3 + LOGS, part=LOGS)])
    assert [each.kind for each in slow.rows] == [Kind.CENSUS_END]
    assert [each["change"] for each in found] == [str(Change.LOG)] * LOGS
    state = columns.state.find(next(columns.state.known()))
    assert isinstance(state, LogState)
    assert (state.log_start_offset, state.high_watermark, state.leader) == (4, 9, 1)


@pytest.mark.parametrize("few", [0, 1_000])
def test_lists_of_segments_are_neither_read_nor_written_by_appends(columns: Columnar, few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rule, "FEW", few)
    segments = np.array([(0, 100, 5, 6)], SEGMENTS).tobytes()
    columns.fold([row(Kind.FOUND, 2, segments=segments)])
    assert columns.lists is not None
    before = ShardState(columns.value, lambda: pytest.fail("read"))
    folded = fold_shard(7, before, [packed(appends(3))], cut=cut, overwritten_from=overwritten_from)
    assert (folded.value is None, folded.lists) == (False, None)
    again = ShardState(columns.value, lambda: columns.lists)
    reported = [packed([row(Kind.FOUND, 4, segments=segments, log_start_offset=4)])]
    folded = fold_shard(7, again, reported, cut=cut, overwritten_from=overwritten_from)
    assert (folded.value is None, folded.lists) == (False, None)


def test_a_census_of_which_nothing_is_new_changes_nothing_but_the_mark(columns: Columnar) -> None:
    columns.fold(appends(2))
    before = columns.state.table.replace_schema_metadata()
    census = [row(Kind.CENSUS, 3, part=log, partition=log, log_dir="/elsewhere") for log in range(LOGS)]
    assert columns.fold([*census, census_end("1:/data", seq=3, part=LOGS)]) == []
    assert columns.state.table.replace_schema_metadata().equals(before)
    assert {mark.seq for mark in columns.state.marks.values()} == {3}


def test_what_is_recalled_is_no_row_for_python(columns: Columnar, monkeypatch: pytest.MonkeyPatch) -> None:
    columns.fold(appends(2))
    before = columns.value
    slow = Watched(monkeypatch)
    found = columns.fold([row(Kind.RECALL, 0, agent="", journal="", topic="", partition=-1)])
    assert slow.rows == []
    assert [each["change"] for each in found] == [str(Change.LOG)] * LOGS + [str(Change.RECALLED)]
    assert columns.value == before


def test_a_log_that_a_census_lacks_leaves_and_the_others_are_not_looked_at(columns: Columnar, monkeypatch: pytest.MonkeyPatch) -> None:
    columns.fold(appends(2))
    slow = Watched(monkeypatch)
    census = [row(Kind.CENSUS, 3, part=log, partition=log) for log in range(LOGS) if log != 4]
    found = columns.fold([*census, census_end("1:/data", seq=3, part=LOGS)])
    assert [each.kind for each in slow.rows] == [Kind.CENSUS_END]
    assert [each["partition"] for each in found if each["change"] == str(Change.DEPARTED)] == [4]
