"""Since when committed offsets have not moved."""

from streaming.kafka.scan.group_records import Commit, EndMarker
from streaming.terminal.offline.coordinator_logs import UnmovedOffsets
from tests.groups.coordinator import record

KEY = ("g", "t", 0)


def commit(at: int, offset: int | None, *, producer: int = -1) -> Commit | EndMarker:
    """Times are 1000 ms after the offset."""
    word = "~" if offset is None else f"{offset}" if producer < 0 else f"{offset}^{producer}"
    return record(f"{word}@{1000 + (offset or 0)}", at)  # type: ignore[return-value]


def since(*records: Commit | EndMarker) -> tuple[int, int] | None:
    """The offset that counts, and when it was first committed; times are 1000 ms after the offset."""
    made = UnmovedOffsets()
    made.note(records)
    return made.since().get(KEY)


def test_an_offset_that_is_committed_again_has_not_moved() -> None:
    first = commit(0, 10)
    assert since(first, commit(1, 10)) == (10, 1010)
    assert since(first, commit(1, 11)) == (11, 1011)
    assert since(first, commit(1, 11), commit(2, 10)) == (10, 1010)


def test_a_commit_in_a_transaction_counts_if_it_is_committed_and_no_later_commit_came_before_its_end() -> None:
    waits = commit(1, 20, producer=7)
    assert since(commit(0, 10), waits) == (10, 1010)
    assert since(commit(0, 10), waits, EndMarker(2, 7, committed=True, at_ms=5000)) == (20, 5000)
    assert since(commit(0, 10), waits, EndMarker(2, 7, committed=False, at_ms=5000)) == (10, 1010)
    assert since(waits, commit(2, 30), EndMarker(3, 7, committed=True, at_ms=5000)) == (30, 1030)


def test_a_marker_moves_an_offset_not_before_it_was_committed_and_moves_none_that_counts_already() -> None:
    waits = commit(1, 20, producer=7)
    for at_ms in (900, -1):  # the clocks of two brokers differ; the time is not known
        assert since(commit(0, 10), waits, EndMarker(2, 7, committed=True, at_ms=at_ms)) == (20, 1020)
    assert since(commit(0, 20), waits, EndMarker(2, 7, committed=True, at_ms=5000)) == (20, 1020)


def test_a_tombstone_deletes_what_waits_too() -> None:
    assert since(commit(0, 10), commit(1, None)) is None
    assert since(commit(0, 10), commit(1, 20, producer=7), commit(2, None), EndMarker(3, 7, True)) is None
