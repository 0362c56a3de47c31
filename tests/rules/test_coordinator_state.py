"""The newest entry of each transactional id, kept from range to range."""

from typing import Any

import pyarrow as pa
import pytest

from streaming.common.event_row import EventRow
from streaming.common.rows import COORDINATOR, Kind, pack_rows, unpack_rows
from streaming.rules.log_state import LogState
from tests.events import Shard, appended, row
from tests.tables import each_row


def entries(*rows: tuple[str, int, str]) -> bytes:
    """Rows of (transactional id, offset, state)."""
    made: list[dict[str, Any]] = [
        {"transactional_id": name, "offset": offset, "state": state, "producer_id": 7, "partitions": ["orders-0"]}
        for name, offset, state in rows
    ]
    return pack_rows(pa.RecordBatch.from_pylist(made, COORDINATOR))


TOPIC = "__transaction_state"


def reported(seq: int, base: int, end: int, *rows: tuple[str, int, str], follows: int | None = None, **more: Any) -> EventRow:
    packed = entries(*rows) if rows else None
    return appended(seq, base, end, topic=TOPIC, coordinator=packed, follows=base if follows is None else follows, **more)


def begins(seq: int, offset: int, *rows: tuple[str, int, str], **more: Any) -> EventRow:
    """All entries that stand before an offset."""
    return row(Kind.APPEARED, seq, topic=TOPIC, next_offset=offset, segment=0, coordinator=entries(*rows), **more)


def goes_on(seq: int, offset: int, follows: int) -> EventRow:
    return row(Kind.APPEARED, seq, topic=TOPIC, next_offset=offset, segment=0, follows=follows)


def kept(state: LogState) -> dict[str, tuple[int, str]]:
    rows = unpack_rows(state.coordinator or b"", COORDINATOR).to_pylist()
    return {row["transactional_id"]: (row["offset"], row["state"]) for row in rows}


def folded(*rows: EventRow) -> LogState:
    shard = Shard()
    for each in rows:
        shard.fold(each)
    return shard.log(TOPIC)


START = (begins(1, 0), reported(2, 0, 5, ("a", 1, "Ongoing"), ("b", 4, "Empty")))


def test_the_newest_entry_counts_and_others_stay() -> None:
    state = folded(*START, reported(3, 5, 9, ("a", 8, "CompleteCommit")))
    assert kept(state) == {"a": (8, "CompleteCommit"), "b": (4, "Empty")}
    assert state.coordinator_upto == state.log_end_offset == 9


def test_ranges_without_entries_and_offsets_that_were_cleaned_away_are_no_gap() -> None:
    state = folded(*START, reported(3, 7, 9, follows=5), reported(4, 20, 30, ("a", 22, "Empty"), follows=9))
    assert (kept(state)["a"], state.coordinator_upto) == ((22, "Empty"), 30)


def test_what_has_expired_is_gone() -> None:
    state = folded(*START, reported(3, 5, 9, ("a", 8, "")))
    assert kept(state) == {"b": (4, "Empty")}
    assert kept(folded(begins(1, 0), reported(2, 0, 5, ("a", 1, "")))) == {}


def test_a_range_that_was_counted_changes_nothing() -> None:
    again = reported(3, 0, 5, ("a", 1, "Empty"))
    assert kept(folded(begins(1, 0), reported(2, 0, 9, ("a", 8, "Ongoing")), again)) == {"a": (8, "Ongoing")}


@each_row(
    "broken",
    [
        reported(3, 7, 9, ("a", 8, "Empty"), follows=7),  # a row before it never came
        reported(3, 5, 9, ("a", 8, "Empty"), follows=-1),  # of an agent that does not say what came before
        row(Kind.SKIPPED, 3, topic=TOPIC, base_offset=5, next_offset=9, bytes=10, reason="deleted", follows=5),
        row(Kind.CORRUPT, 3, topic=TOPIC, start_position=50, base_offset=5, next_offset=5, follows=5),
        row(Kind.TRUNCATED, 3, topic=TOPIC, next_offset=3, bytes=20, follows=5),
        goes_on(3, 9, 7),
    ],
)
def test_behind_whatever_is_missing_nothing_is_known_until_all_entries_are_reported_again(broken: EventRow) -> None:
    assert folded(*START, broken).coordinator_upto == -1
    assert folded(*START, broken, reported(4, 9, 12, ("c", 9, "Empty"))).coordinator_upto == -1
    state = folded(*START, broken, reported(4, 9, 12, ("c", 9, "Empty")), begins(5, 12, ("c", 9, "Empty")))
    assert (kept(state), state.coordinator_upto) == ({"c": (9, "Empty")}, 12)  # what has expired meanwhile has left nothing
    assert folded(*START, broken, begins(4, 12), reported(5, 12, 14)).coordinator_upto == 14


def test_a_log_that_is_met_in_its_midst_is_not_known() -> None:
    assert folded(reported(1, 5, 9, ("a", 8, "Empty"))).coordinator_upto == -1
    assert folded(goes_on(1, 5, -1), reported(2, 5, 9)).coordinator_upto == -1


def test_a_log_that_goes_on_where_it_was_read_is_known() -> None:
    assert folded(*START, goes_on(3, 5, 5), reported(4, 5, 9)).coordinator_upto == 9
    assert folded(*START, goes_on(3, 7, 5), reported(4, 8, 9, follows=7)).coordinator_upto == -1  # reported offsets that nobody has read


def test_what_is_reported_for_another_reader_takes_nothing_back() -> None:
    state = folded(*START, begins(3, 0), reported(4, 0, 3, ("a", 1, "Ongoing")))
    assert (kept(state), state.coordinator_upto) == ({"a": (1, "Ongoing"), "b": (4, "Empty")}, 5)


def test_another_journal_shows_all_of_it_again() -> None:
    again = (begins(1, 0, journal="j2"), reported(2, 0, 3, ("a", 1, "Ongoing"), journal="j2"))
    state = folded(*START, *again)
    assert (kept(state), state.coordinator_upto) == ({"a": (1, "Ongoing")}, 3)
    assert state.log_end_offset == 5  # nothing is counted twice, and until it has come so far nothing is known
    after = folded(*START, *again, reported(3, 3, 9, ("a", 2, "Dead"), ("c", 7, "Empty"), journal="j2"))
    assert (sorted(kept(after)), after.coordinator_upto) == (["a", "c"], 9)


def test_of_a_range_that_was_reported_in_part_only_the_rest_counts() -> None:
    state = folded(*START, reported(3, 5, 9, ("b", 8, "")), reported(4, 3, 12, ("b", 4, "Empty"), ("c", 11, "Empty"), follows=3))
    assert (sorted(kept(state)), state.coordinator_upto) == (["a", "c"], 12)


def test_entries_that_are_damaged_are_stated_and_make_the_log_unknown(caplog: pytest.LogCaptureFixture) -> None:
    broken = appended(3, 5, 9, topic=TOPIC, coordinator=b"what", follows=5)
    state = folded(*START, broken)
    assert (kept(state), state.coordinator_upto) == ({"a": (1, "Ongoing"), "b": (4, "Empty")}, -1)
    assert "not understood" in caplog.text
