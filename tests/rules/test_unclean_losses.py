"""What unclean elections lose: worked out where all replicas of a partition are folded, in whatever order their agents are read."""

from collections.abc import Iterator
from typing import Any

import pytest

from streaming.common.event_row import EventRow
from streaming.common.rows import Kind
from streaming.rules.log_state import LogState
from tests.events import Shard, appended, row

Rows = tuple[EventRow, ...]

OLD, NEW = {"broker": 1, "agent": "a1", "topic_id": "t"}, {"broker": 2, "agent": "a2", "topic_id": "t"}


def written(seq: int, start: int, end: int, epoch: int, columns: dict[str, Any], **values: Any) -> EventRow:
    return appended(seq, start, end, **{"log_epoch": epoch, "leads": 1, **columns, **values})


def cut(seq: int, end: int, columns: dict[str, Any] = OLD) -> EventRow:
    return row(Kind.TRUNCATED, seq, next_offset=end, bytes=10, **columns)


def unclean(seq: int, epoch: int, start: int, in_sync: str = "1", at: int = 1_000, columns: dict[str, Any] = NEW) -> EventRow:
    return row(Kind.UNCLEAN, seq, leader_epoch=epoch, next_offset=start, seen_at=at, reason=in_sync, **columns)


def checkpoint(seq: int, high_watermark: int, columns: dict[str, Any] = OLD) -> EventRow:
    return row(Kind.FOUND, seq, high_watermark=high_watermark, log_start_offset=0, **columns)


def leader_of(shard: Shard, broker: int = 2) -> LogState:
    (found,) = (state for state in shard.states.values() if state.broker == broker)
    return found


def lost(shard: Shard, broker: int = 2) -> tuple[int, int, int]:
    state = leader_of(shard, broker)
    return state.unclean_elections, state.unclean_lost_acknowledged, state.unclean_lost_upper


BEGINNING = (written(1, 0, 32, 0, OLD), written(1, 0, 32, 0, NEW))
"""Both have the same; then broker 2 falls behind."""


def test_what_the_old_leader_had_behind_the_new_epoch_s_start_is_lost_and_what_was_replicated_of_it_was_acknowledged() -> None:
    shard = Shard()
    shard.fold(*BEGINNING, written(2, 32, 86, 0, OLD), checkpoint(3, 77))
    shard.fold(unclean(2, 1, 32))
    assert lost(shard) == (1, 77 - 32, 86 - 32)
    assert (leader_of(shard).unclean_from, leader_of(shard).unclean_ms) == (1, 1_000)


OLD_S = (written(2, 32, 86, 0, OLD), checkpoint(3, 77), cut(4, 32), checkpoint(5, 32), written(6, 32, 40, 1, OLD), checkpoint(7, 40))
NEW_S = (unclean(2, 1, 32), written(3, 32, 40, 1, NEW), written(4, 40, 50, 1, NEW))


def orders(old: Rows = OLD_S, new: Rows = NEW_S) -> Iterator[Rows]:
    """Each agent's rows in their own order, mixed in every way."""
    if not old or not new:
        yield old + new
        return
    for rest in orders(old[1:], new):
        yield (old[0], *rest)
    for rest in orders(old, new[1:]):
        yield (new[0], *rest)


def test_it_does_not_matter_in_which_order_the_agents_are_read() -> None:
    for order in orders():
        shard = Shard()
        shard.fold(*BEGINNING)
        for each in order:
            shard.fold(each)
        assert lost(shard) == (1, 77 - 32, 86 - 32), [each.kind for each in order]


def test_an_election_that_is_reported_again_counts_once_also_by_another_journal() -> None:
    shard = Shard()
    shard.fold(*BEGINNING, written(2, 32, 86, 0, OLD))
    for again in (unclean(2, 1, 32), unclean(3, 1, 32), unclean(1, 1, 32, columns={**NEW, "journal": "another"})):
        shard.fold(again)
    assert lost(shard)[0] == 1


def test_several_elections_add_up_and_each_counts_for_itself() -> None:
    shard = Shard()
    shard.fold(*BEGINNING, written(2, 32, 86, 0, OLD), checkpoint(3, 86))
    shard.fold(unclean(2, 1, 32), written(3, 32, 40, 1, NEW))
    shard.fold(cut(4, 32), written(5, 32, 40, 1, OLD), written(6, 40, 45, 3, OLD), checkpoint(7, 42))
    shard.fold(unclean(4, 4, 40, at=2_000))
    assert lost(shard) == (2, 54 + 2, 54 + 5)
    assert leader_of(shard).unclean_ms == 2_000


@pytest.mark.parametrize("values", [{"in_sync": "7"}, {"in_sync": ""}, {"start": -1}])
def test_where_nobody_saw_a_replica_that_was_in_sync_nothing_is_known_to_be_lost(values: dict[str, Any]) -> None:
    shard = Shard()
    shard.fold(*BEGINNING, written(2, 32, 86, 0, OLD))
    shard.fold(unclean(2, 1, **{"start": 32, **values}))
    assert lost(shard) == (1, -1, -1)


def test_a_new_leader_that_lacks_nothing_loses_nothing() -> None:
    shard = Shard()
    shard.fold(*BEGINNING, checkpoint(2, 32))
    shard.fold(unclean(2, 1, 32))
    assert lost(shard) == (1, 0, 0)


def itself(seq: int, start: int) -> EventRow:
    """The last replica in sync leads again, behind a crash: Kafka takes it out of the eligible ones and asks it to recover."""
    return unclean(seq, 1, start, columns=OLD)


def test_the_last_replica_in_sync_that_leads_again_with_all_that_it_had_is_no_unclean_election() -> None:
    shard = Shard()
    shard.fold(written(1, 0, 1_000, 0, OLD), checkpoint(2, 990), itself(3, 1_000), written(4, 1_000, 1_010, 1, OLD), itself(5, 1_000))
    assert lost(shard, broker=1) == (0, -1, -1)


@pytest.mark.parametrize("known", [(itself(1, 1_000),), (written(1, 1_000, 1_010, 1, OLD), itself(2, 1_000)), (itself(1, -1),)])
def test_the_last_replica_in_sync_that_nobody_saw_before_or_whose_end_is_not_known_counts_no_loss(known: Rows) -> None:
    shard = Shard()
    shard.fold(row(Kind.APPEARED, 0, next_offset=1_000, **OLD), *known)
    assert lost(shard, broker=1) == (0, -1, -1)


CRASHED = (written(1, 0, 1_000, 0, OLD), checkpoint(2, 990))


@pytest.mark.parametrize(
    "after", [(itself(4, 900), cut(5, 900)), (cut(4, 900), itself(5, 900)), (cut(4, 900), written(5, 900, 905, 1, OLD), itself(6, 900))]
)
def test_the_last_replica_in_sync_that_leads_again_with_a_shorter_log_counts_what_that_lost(after: Rows) -> None:
    shard = Shard()
    shard.fold(*CRASHED, *after)
    shard.fold(written(7, 905, 910, 1, OLD), itself(8, 900))
    assert lost(shard, broker=1) == (1, 90, 100)
    assert leader_of(shard, 1).unclean_from == 1


def test_what_others_had_before_does_not_count_where_the_last_replica_in_sync_leads_again() -> None:
    shard = Shard()
    shard.fold(*BEGINNING, written(2, 32, 86, 0, OLD), written(3, 32, 40, 0, NEW))
    shard.fold(unclean(4, 1, 40, in_sync="1,2"))
    assert lost(shard) == (0, -1, -1)


def test_what_was_cut_off_long_ago_is_not_lost_by_an_election_of_today() -> None:
    shard = Shard()
    shard.fold(*BEGINNING, written(2, 32, 900, 0, OLD), cut(3, 40), written(4, 40, 60, 1, OLD))
    shard.fold(unclean(2, 5, 50))
    assert lost(shard)[2] == 10


def test_a_follower_that_drops_what_was_not_replicated_loses_nothing_that_was_acknowledged() -> None:
    shard = Shard()
    shard.fold(written(1, 0, 100, 0, OLD), checkpoint(2, 90))
    shard.fold(cut(3, 90), written(4, 90, 120, 1, OLD))
    state = leader_of(shard, 1)
    assert (state.truncations, state.truncated_committed) == (1, 0)


def test_what_is_cut_off_below_the_high_watermark_was_acknowledged() -> None:
    shard = Shard()
    shard.fold(written(1, 0, 100, 0, OLD), checkpoint(2, 90))
    shard.fold(cut(3, 60))
    assert (leader_of(shard, 1).truncated_committed, leader_of(shard, 1).high_watermark) == (30, 60)
    shard.fold(cut(4, 60))
    assert leader_of(shard, 1).truncated_committed == 30


def test_a_log_that_has_left_its_broker_keeps_what_it_counted() -> None:
    shard = Shard()
    shard.fold(*BEGINNING, written(2, 32, 86, 0, OLD))
    shard.fold(unclean(2, 1, 32))
    shard.fold(row(Kind.GONE, 3, reason="moved", **NEW))
    assert lost(shard)[::2] == (1, 54)
    shard.fold(row(Kind.APPEARED, 4, next_offset=0, **NEW), unclean(5, 1, 32))
    assert lost(shard)[::2] == (1, 54)
