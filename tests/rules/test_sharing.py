"""What counts for a topic where its agents alone do not settle it."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.common.event_row import EventRow
from streaming.common.rows import Kind
from tests.events import Shard, appended, row


def of(broker: int, seq: int, base_offset: int, next_offset: int, **values: Any) -> EventRow:
    return appended(seq, base_offset, next_offset, **{"agent": f"a{broker}", "broker": broker, "journal": f"j{broker}", **values})


def shares(shard: Shard) -> list[int]:
    return [state.share_records for _, state in sorted(shard.states.items())]


def test_a_log_that_is_copied_back_to_its_broker_counts_only_what_is_new() -> None:
    shard = Shard()
    shard.fold(of(1, 1, 0, 100, leads=1, log_epoch=3), row(Kind.GONE, 2, agent="a1", journal="j1", reason="moved"))
    back = row(Kind.APPEARED, 3, agent="a1", journal="j1", next_offset=0)
    shard.fold(
        back, of(1, 4, 0, 60, leads=1, log_epoch=2), of(1, 5, 60, 110, leads=1, log_epoch=3), of(1, 6, 110, 120, leads=0, log_epoch=4)
    )
    assert (shares(shard), shard.log().appended_records) == ([110], 120)
    shard.fold(of(1, 7, 120, 130, leads=1, log_epoch=5))
    assert shares(shard) == [120]


def test_what_replaced_the_end_of_a_log_before_it_came_back_is_new() -> None:
    shard = Shard()
    shard.fold(of(1, 1, 0, 100, leads=1, log_epoch=3), row(Kind.GONE, 2, agent="a1", journal="j1", reason="moved"))
    back = row(Kind.APPEARED, 3, agent="a1", journal="j1", next_offset=0)
    shard.fold(back, of(1, 4, 0, 50, leads=1, log_epoch=3), of(1, 5, 50, 70, leads=1, log_epoch=5))
    assert shares(shard) == [120]


@given(st.lists(st.tuples(st.integers(1, 3), st.integers(1, 30)), max_size=20))
def test_where_nobody_knows_who_leads_every_offset_counts_once(reads: list[tuple[int, int]]) -> None:
    """Three replicas of which each is read at its own pace, in ranges of its own."""
    shard, ends, seqs = Shard(), dict.fromkeys((1, 2, 3), 0), dict.fromkeys((1, 2, 3), 0)
    for broker, more in reads:
        seqs[broker] += 1
        shard.fold(of(broker, seqs[broker], ends[broker], ends[broker] + more))
        ends[broker] += more
    assert sum(shares(shard)) == max(ends.values())


@pytest.mark.parametrize(("leader", "share"), [(1, 50), (2, 0), (3, 0)])
def test_another_agents_word_on_who_leads_counts(leader: int, share: int) -> None:
    shard = Shard()
    shard.fold(of(2, 1, 0, 100, leads=0), row(Kind.FOUND, 2, agent="a2", journal="j2", broker=2, leader=leader, leader_epoch=4))
    shard.fold(of(1, 1, 0, 50))
    assert shares(shard) == [share, 0]


def test_what_is_known_is_not_asked_of_others() -> None:
    shard = Shard()
    shard.fold(of(2, 1, 0, 100, leads=1), of(1, 1, 0, 100, leads=1))
    assert shares(shard) == [100, 100]
