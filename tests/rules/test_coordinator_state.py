"""The newest entry of each transactional id, kept from range to range."""

from typing import Any

import pyarrow as pa
import pytest

from streaming.rows import COORDINATOR, EventRow, Kind, pack_rows, unpack_rows
from streaming.rules.log_state import LogState
from tests.events import Shard, appended, row


def entries(*rows: tuple[str, int, str]) -> bytes:
    """Rows of (transactional id, offset, state)."""
    made: list[dict[str, Any]] = [
        {"transactional_id": name, "offset": offset, "state": state, "producer_id": 7, "partitions": ["orders-0"]}
        for name, offset, state in rows
    ]
    return pack_rows(pa.RecordBatch.from_pylist(made, COORDINATOR))


def told(seq: int, base: int, end: int, *rows: tuple[str, int, str]) -> EventRow:
    return appended(seq, base, end, topic="__transaction_state", coordinator=entries(*rows))


def kept(state: LogState) -> dict[str, tuple[int, str]]:
    rows = unpack_rows(state.coordinator or b"", COORDINATOR).to_pylist()
    return {row["transactional_id"]: (row["offset"], row["state"]) for row in rows}


def folded(*rows: EventRow) -> LogState:
    shard = Shard()
    for each in rows:
        shard.fold(each)
    return shard.log("__transaction_state")


def test_the_newest_entry_counts_and_others_stay() -> None:
    state = folded(told(1, 0, 5, ("a", 1, "Ongoing"), ("b", 4, "Empty")), told(2, 5, 9, ("a", 8, "CompleteCommit")))
    assert kept(state) == {"a": (8, "CompleteCommit"), "b": (4, "Empty")}


def test_what_was_lost_still_tells_its_entries() -> None:
    lost = row(
        Kind.SKIPPED,
        2,
        topic="__transaction_state",
        base_offset=5,
        next_offset=9,
        bytes=10,
        reason="journal_trimmed",
        coordinator=entries(("a", 8, "Empty")),
    )
    assert kept(folded(told(1, 0, 5, ("a", 1, "Ongoing")), lost)) == {"a": (8, "Empty")}


def test_what_has_expired_is_gone() -> None:
    state = folded(told(1, 0, 5, ("a", 1, "Ongoing"), ("b", 4, "Empty")), told(2, 5, 9, ("a", 8, "")))
    assert kept(state) == {"b": (4, "Empty")}
    assert kept(folded(told(1, 0, 5, ("a", 1, "")))) == {}


def test_a_range_that_was_counted_changes_nothing() -> None:
    again = told(2, 0, 5, ("a", 1, "Empty"))
    assert kept(folded(told(1, 0, 9, ("a", 8, "Ongoing")), again)) == {"a": (8, "Ongoing")}


def test_entries_that_are_damaged_are_said_and_passed_over(caplog: pytest.LogCaptureFixture) -> None:
    broken = appended(2, 5, 9, topic="__transaction_state", coordinator=b"what")
    assert kept(folded(told(1, 0, 5, ("a", 1, "Ongoing")), broken)) == {"a": (1, "Ongoing")}
    assert "not understood" in caplog.text
