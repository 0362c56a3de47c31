"""The stateful processor, run as Spark runs it but without Spark."""

from collections.abc import Sequence

import pandas as pd
import pytest
from pyspark.sql.streaming.tws_tester import TwsTester

from streaming.common.event_row import EventRow
from streaming.common.rows import ROWS, SHARD, Kind, pack_rows, unpack_rows
from streaming.common.state_row import STATES
from streaming.spark.query.processor import ShardProcessor
from tests.events import Item, Shard, appended, batch_of, range_of, row
from tests.rules.histories import listing

HISTORY = [
    row(Kind.APPEARED, 1, next_offset=0),
    appended(2, 0, 10, max_timestamp=77, seen_at=99),
    row(Kind.APPEARED, 3, next_offset=0, topic="bills"),
    row(Kind.TRUNCATED, 4, next_offset=6, bytes=40),
    range_of(5, [Item(6, 9, 90, 3, codec=2)]),
    row(Kind.SKIPPED, 6, topic="bills", base_offset=0, next_offset=5, bytes=5, reason="deleted"),
    row(Kind.GONE, 7, topic="bills", reason="deleted"),
    row(Kind.FOUND, 8, settled=True, log_start_offset=1, leader=1, leader_epoch=2),
    row(Kind.CENSUS, 9),
    row(Kind.CENSUS_END, 9, part=1, topic=""),
]


def frame(rows: Sequence[EventRow]) -> pd.DataFrame:
    """As Spark's worker hands it over: lists are arrays."""
    return pd.DataFrame({SHARD: [7], ROWS: [pack_rows(batch_of(rows))]})


def states(produced: pd.DataFrame) -> list[dict[str, object]]:
    return [row for packed in produced[ROWS] for row in unpack_rows(packed, STATES).to_pylist()]


@pytest.fixture
def tester() -> TwsTester:
    return TwsTester(ShardProcessor())


def fold(tester: TwsTester, *rows: EventRow, shard: int = 7) -> list[dict[str, object]]:
    produced = tester.testInPandas(shard, frame(rows))
    return states(produced) if len(produced) else []


def test_a_shard_hands_out_what_the_rules_say(tester: TwsTester) -> None:
    found = {(each["change"], each["topic"]): each for each in fold(tester, *HISTORY)}
    assert set(found) == {("log", "orders"), ("removed", "bills"), ("residue", "")}
    log = found["log", "orders"]
    expected = Shard()
    expected.fold(*HISTORY)
    state = expected.log()
    assert {name: log[name] for name in STATES.names if name != "change"} == {
        name: list(value) if isinstance(value := getattr(state, name), tuple) else value for name in STATES.names if name != "change"
    }
    assert found["residue", ""]["partition"] == 7


def test_state_goes_on_from_one_micro_batch_to_the_next(tester: TwsTester) -> None:
    fold(tester, *HISTORY[:2])
    (log,) = fold(tester, *HISTORY[3:5])
    assert (log["appended_records"], log["log_end_offset"], log["truncations"]) == (13, 9, 1)


def test_rows_that_come_again_change_nothing_and_are_not_reported(tester: TwsTester) -> None:
    fold(tester, *HISTORY)
    kept = tester.peekValueState("shard", 7)
    assert fold(tester, *reversed(HISTORY)) == []
    assert tester.peekValueState("shard", 7) == kept


def test_a_shard_that_is_recalled_hands_out_all_it_has_and_keeps_its_state(tester: TwsTester) -> None:
    fold(tester, *HISTORY)
    kept = tester.peekValueState("shard", 7)
    for _ in range(2):  # no mark covers it
        recalled = {(each["change"], each["topic"]) for each in fold(tester, row(Kind.RECALL, 0, agent="", journal="", topic=""))}
        assert recalled == {("log", "orders"), ("residue", ""), ("recalled", "")}
    assert tester.peekValueState("shard", 7) == kept


def test_lists_of_segments_are_kept_apart_and_written_when_one_changes(tester: TwsTester) -> None:
    fold(tester, *HISTORY[:3])
    assert tester.peekValueState("segments", 7) is None
    fold(tester, row(Kind.FOUND, 4, segments=listing(0)))
    kept = tester.peekValueState("segments", 7)
    assert kept is not None
    fold(tester, appended(5, 10, 3))
    assert tester.peekValueState("segments", 7) == kept
    recalled = fold(tester, row(Kind.RECALL, 0, agent="", journal="", topic=""))
    assert {each["topic"]: each["segments"] for each in recalled if each["change"] == "log"} == {"orders": listing(0), "bills": None}
    fold(tester, row(Kind.GONE, 6, reason="deleted"))
    assert tester.peekValueState("segments", 7) != kept


def test_a_shard_without_a_state_is_recalled_too_and_gets_none(tester: TwsTester) -> None:
    assert [each["change"] for each in fold(tester, row(Kind.RECALL, 0, agent="", journal="", topic=""))] == ["recalled"]
    assert tester.peekValueState("shard", 7) is None


def test_shards_are_apart(tester: TwsTester) -> None:
    fold(tester, *HISTORY[:2], shard=1)
    (log,) = fold(tester, *HISTORY[:2], shard=2)
    assert log["appended_records"] == 10


def test_rows_may_come_in_several_frames_and_in_any_order() -> None:
    processor = ShardProcessor()
    once, tester = fold(TwsTester(ShardProcessor()), *HISTORY), TwsTester(processor)
    tester.handle.setGroupingKey(7)
    frames = [frame(HISTORY[5:]), frame(HISTORY[:5])]
    (produced,) = processor.handleInputRows((7,), iter(frames), None)
    assert sorted(map(str, states(produced))) == sorted(map(str, once))


def test_a_micro_batch_without_changes_leaves_the_state_as_it_is(tester: TwsTester) -> None:
    assert fold(tester, row(Kind.FOUND, 3)) == []
    assert fold(tester, row(Kind.FOUND, 3)) == []
