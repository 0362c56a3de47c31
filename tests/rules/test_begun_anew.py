"""A log that comes back to its broker without the records that it had: what is gone from the partition is counted."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from streaming.common.event_row import EventRow
from streaming.common.rows import Kind
from tests.events import Shard, appended, row


class Broker:
    """The only replica of a partition on one broker, as its agent publishes it."""

    def __init__(self) -> None:
        self.shard, self.seq = Shard(), 0

    def log(self, **values: Any) -> None:
        self.seq += 1
        self.shard.fold(row(Kind.APPEARED, self.seq, agent="a1", journal="j1", **values))

    def append(self, base_offset: int, next_offset: int, **values: Any) -> None:
        self.seq += 1
        given: dict[str, Any] = {"agent": "a1", "broker": 1, "journal": "j1", "leads": 1, "settled": True, "high_watermark": next_offset}
        each: EventRow = appended(self.seq, base_offset, next_offset, **given | values)
        self.shard.fold(each)

    def leave(self) -> None:
        self.seq += 1
        self.shard.fold(row(Kind.GONE, self.seq, agent="a1", journal="j1", reason="moved"))

    @property
    def gone(self) -> tuple[int, int]:
        log = self.shard.log()
        return log.truncated_committed, log.truncations


def lost(log_epoch: int, *, watermark: int = 80) -> Broker:
    """A log of 80 offsets leaves, and comes back empty."""
    broker = Broker()
    broker.append(0, 80, log_epoch=log_epoch, high_watermark=watermark)
    broker.leave()
    broker.log(next_offset=0)
    return broker


def test_an_only_replica_that_begins_anew_has_lost_what_was_committed() -> None:
    broker = lost(0)
    assert broker.gone == (0, 0)
    broker.append(0, 70, log_epoch=1)
    assert broker.gone == (80, 1)
    broker.append(70, 100, log_epoch=2)
    assert broker.gone == (80, 1), "it counts once"


def test_what_was_not_committed_is_no_loss() -> None:
    broker = lost(0, watermark=50)
    broker.append(0, 70, log_epoch=1)
    assert broker.gone == (50, 1)


def test_where_another_broker_leads_nothing_is_lost_by_that() -> None:
    broker = lost(0)
    broker.append(0, 70, log_epoch=1, leads=0)
    broker.append(70, 90, log_epoch=2)
    assert broker.gone == (0, 0)


def test_a_range_of_a_backlog_that_lists_no_batches_loses_what_is_certainly_gone() -> None:
    broker = lost(0)
    broker.append(0, 70, log_epoch=1, settled=False)
    assert broker.gone == (10, 1)


@given(st.integers(1, 200), st.integers(0, 200), st.integers(0, 80), st.booleans())
def test_a_log_that_is_copied_back_loses_nothing_and_an_older_copy_what_it_lacks(ended: int, kept: int, more: int, older: bool) -> None:
    """It comes back with ``kept`` of its offsets, by a copy of the disk, or with all of them, and goes on in a later epoch."""
    kept = min(kept, ended) if older else ended
    broker = Broker()
    broker.append(0, ended, log_epoch=3)
    broker.leave()
    broker.log(next_offset=0)
    if kept:
        broker.append(0, kept, log_epoch=3)
    broker.append(kept, kept + more + 1, log_epoch=4)
    assert broker.gone == ((ended - kept, 1) if ended > kept else (0, 0))
