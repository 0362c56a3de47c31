"""What one row does to one log."""

import pytest

from streaming.common.rows import SKIP_REASONS, Kind
from streaming.rules.log_state import LogState
from tests.events import Item, Shard, appended, range_of, row

APPEARED = row(Kind.APPEARED, 1, next_offset=0)


def lost(state: LogState, reason: str) -> int:
    return state.skipped_bytes[SKIP_REASONS.index(reason)]


def test_an_append_is_counted_in_full() -> None:
    shard = Shard()
    items = [Item(0, 5, 500, 5, codec=2, timestamp=70), Item(5, 6, 80, 1, control=True, timestamp=90), Item(6, 8, 300, 2, magic=1)]
    shard.fold(APPEARED, range_of(2, items, seen_at=1000, log_dir="/d1"))
    log = shard.log()
    assert (log.appended_bytes, log.appended_batches, log.appended_records, log.old_format_batches) == (880, 2, 7, 1)
    assert (log.log_end_offset, log.max_timestamp_ms, log.last_append_ms, log.log_dir) == (8, 90, 1000, "/d1")
    assert (log.share_codec_bytes, log.share_records) == ((300, 0, 500, 0, 0), 7)
    assert sum(log.share_batch_bytes_buckets) == sum(log.share_batch_records_buckets) == 2
    assert not any(log.skipped_bytes)


@pytest.mark.parametrize(("leads", "share"), [(1, 3), (-1, 3), (0, 0)])
def test_only_a_replica_that_is_known_to_follow_has_no_share_of_its_topic(leads: int, share: int) -> None:
    shard = Shard()
    shard.fold(APPEARED, appended(2, 0, 3, leads=leads))
    assert (shard.log().share_records, shard.log().appended_records) == (share, 3)


def test_a_log_that_is_first_seen_in_the_middle_counts_from_there() -> None:
    shard = Shard()
    shard.fold(appended(9, 500, 510))
    assert (shard.log().appended_records, shard.log().log_end_offset, shard.log().skipped_bytes) == (10, 510, (0,) * 3)


def test_a_gap_that_compaction_left_is_no_loss() -> None:
    shard = Shard()
    shard.fold(APPEARED, appended(2, 0, 10), appended(3, 50, 60))
    assert (shard.log().appended_records, shard.log().skipped_bytes) == (20, (0,) * 3)


def test_what_another_journal_no_longer_has_is_lost_by_its_mean_size() -> None:
    shard = Shard()
    shard.fold(APPEARED, appended(2, 0, 10))
    shard.fold(row(Kind.APPEARED, 1, journal="j2", next_offset=50), appended(2, 50, 60, journal="j2"), appended(3, 80, 90, journal="j2"))
    assert (shard.log().appended_records, lost(shard.log(), "agent_lost")) == (30, 400)


def test_a_hole_before_a_loss_that_another_journal_shows_counts_too() -> None:
    shard = Shard()
    shard.fold(APPEARED, appended(2, 0, 10))
    deleted = row(Kind.SKIPPED, 2, journal="j2", base_offset=50, next_offset=60, bytes=100, reason="deleted")
    shard.fold(row(Kind.APPEARED, 1, journal="j2", next_offset=50), deleted, appended(3, 60, 70, journal="j2"))
    assert (lost(shard.log(), "agent_lost"), lost(shard.log(), "deleted")) == (400, 100)


@pytest.mark.parametrize(
    ("columns", "followed"),
    [
        ({"leader": 2, "leader_epoch": 5}, 100),
        ({"leads": 0}, 100),
        ({"leader": 1, "leader_epoch": 5}, 0),
        ({"leader": 2, "leader_epoch": 6}, 0),
        ({"leader": -1, "leader_epoch": 5}, 0),
        ({}, 0),
    ],
)
def test_bytes_are_of_a_follower_s_copy_where_another_broker_led_from_the_last_range_on(columns: dict[str, int], followed: int) -> None:
    """Where the epoch has changed since, this broker may have led in between."""
    shard = Shard()
    deleted = row(Kind.SKIPPED, 3, base_offset=10, next_offset=20, bytes=100, reason="deleted", **columns)
    shard.fold(APPEARED, appended(2, 0, 10, log_epoch=5, leads=0), deleted)
    assert (shard.log().skipped_bytes[0], shard.log().follower_skipped_bytes[0]) == (100, followed)


@pytest.mark.parametrize(("epoch", "leads", "followed"), [(5, 0, 400), (5, 1, 0), (6, 0, 0)])
def test_a_hole_is_a_follower_s_where_the_ranges_on_both_sides_are_of_one_epoch(epoch: int, leads: int, followed: int) -> None:
    shard = Shard()
    shard.fold(APPEARED, appended(2, 0, 10, log_epoch=5, leads=0))
    shard.fold(appended(2, 50, 60, journal="j2", log_epoch=epoch, leads=leads))
    assert (lost(shard.log(), "agent_lost"), sum(shard.log().follower_skipped_bytes)) == (400, followed)


def test_offsets_that_a_log_never_held_are_no_loss() -> None:
    """A follower that begins anew further on; but what another journal no longer has of the time before is lost."""
    shard = Shard()
    anew = row(Kind.SKIPPED, 3, base_offset=10, next_offset=60, bytes=0, reason="deleted")
    shard.fold(APPEARED, appended(2, 0, 10), anew, appended(4, 60, 70))
    assert (shard.log().appended_records, shard.log().log_end_offset, shard.log().skipped_bytes) == (20, 70, (0,) * 3)
    again = row(Kind.SKIPPED, 2, journal="j2", base_offset=80, next_offset=100, bytes=0, reason="deleted")
    shard.fold(row(Kind.APPEARED, 1, journal="j2", next_offset=80), again, appended(3, 100, 110, journal="j2"))
    assert (lost(shard.log(), "agent_lost"), lost(shard.log(), "deleted")) == (100, 0)


def test_a_range_that_straddles_what_was_counted_is_cut_between_its_batches() -> None:
    shard = Shard()
    shard.fold(APPEARED, range_of(2, [Item(0, 5, 500, 5), Item(5, 10, 700, 5, codec=1)]))
    again = [Item(0, 5, 500, 5), Item(5, 10, 700, 5, codec=1), Item(10, 13, 90, 3, codec=3, timestamp=77)]
    shard.fold(range_of(1, again, detailed=True, journal="j2"))
    log = shard.log()
    assert (log.appended_bytes, log.appended_batches, log.appended_records, log.log_end_offset) == (1290, 3, 13, 13)
    assert (log.share_codec_bytes, log.max_timestamp_ms, log.skipped_bytes) == ((500, 700, 0, 90, 0), 77, (0,) * 3)


def test_a_gap_behind_the_cut_is_no_loss_even_from_another_journal() -> None:
    shard = Shard()
    shard.fold(APPEARED, appended(2, 0, 10))
    shard.fold(range_of(1, [Item(0, 10, 100, 10), Item(40, 50, 100, 10)], detailed=True, journal="j2"))
    assert (shard.log().appended_records, shard.log().skipped_bytes) == (20, (0,) * 3)


@pytest.mark.parametrize("detail", [None, b"\x02nonsense"])
def test_a_range_that_straddles_and_cannot_be_cut_counts_as_lost_behind_what_was_counted(detail: bytes | None) -> None:
    shard = Shard()
    shard.fold(APPEARED, appended(2, 0, 10))
    shard.fold(appended(1, 5, 15, journal="j2", detail=detail), appended(2, 15, 20, journal="j2"))
    assert (shard.log().appended_records, shard.log().log_end_offset, lost(shard.log(), "agent_lost")) == (15, 20, 50)


def test_a_truncation_sets_the_log_back_and_what_was_counted_stays_counted() -> None:
    shard = Shard()
    shard.fold(APPEARED, appended(2, 0, 10), row(Kind.TRUNCATED, 3, next_offset=4, bytes=60), appended(4, 4, 6))
    log = shard.log()
    assert (log.appended_records, log.log_end_offset, log.truncations, log.truncated_bytes) == (12, 6, 1, 60)


def test_a_log_that_was_dropped_as_a_whole_goes_on_where_it_begins_anew() -> None:
    shard = Shard()
    shard.fold(APPEARED, appended(2, 0, 10), row(Kind.TRUNCATED, 3, next_offset=100, bytes=100))
    assert (shard.log().log_end_offset, shard.log().skipped_bytes) == (100, (0,) * 3)
    assert (shard.log().truncations, shard.log().truncated_bytes) == (1, 100)


def test_a_truncation_counts_whose_bytes_nobody_knows() -> None:
    shard = Shard()
    shard.fold(APPEARED, appended(2, 0, 10), row(Kind.TRUNCATED, 3, next_offset=4))
    assert (shard.log().log_end_offset, shard.log().truncations, shard.log().truncated_bytes) == (4, 1, 0)


def test_two_agents_that_cut_a_log_otherwise_lose_nothing_while_both_publish_it() -> None:
    shard, other = Shard(), {"agent": "a2", "journal": "j2"}
    shard.fold(APPEARED, appended(2, 0, 10), appended(2, 0, 7, **other), appended(3, 7, 13, **other))
    shard.fold(appended(3, 10, 20), appended(4, 13, 18, **other), appended(5, 18, 22, **other))
    shard.fold(appended(4, 20, 22))
    assert (shard.log().appended_records, sum(shard.log().skipped_bytes)) == (22, 0)


def test_what_the_first_of_two_agents_publishes_no_more_is_lost_once_the_other_one_goes_on() -> None:
    shard, other = Shard(), {"agent": "a2", "journal": "j2"}
    shard.fold(APPEARED, appended(2, 0, 10), appended(2, 0, 7, **other), appended(3, 7, 13, **other))
    shard.fold(appended(4, 13, 18, **other), appended(5, 18, 22, **other))
    assert (shard.log().appended_records, lost(shard.log(), "agent_lost"), shard.log().log_end_offset) == (19, 30, 22)


def test_an_end_behind_which_another_agent_has_counted_is_not_moved_by_one_that_has_read_less() -> None:
    """Two agents watch the log for a while: what the slower one has read was counted already, and then it says where its reading ended."""
    shard, slower = Shard(), {"agent": "a2", "journal": "j2"}
    shard.fold(APPEARED, appended(2, 0, 10, log_epoch=3))
    end = row(Kind.TRUNCATED, 3, next_offset=6, **slower)
    shard.fold(row(Kind.APPEARED, 1, next_offset=0, **slower), appended(2, 0, 6, log_epoch=3, **slower), end)
    log = shard.log()
    assert (log.log_end_offset, log.truncations, log.truncated_committed) == (10, 0, 0)
    shard.fold(appended(4, 6, 10, log_epoch=3, **slower), appended(3, 10, 12, log_epoch=3))
    assert (shard.log().appended_records, sum(shard.log().skipped_bytes)) == (12, 0)


def test_what_another_agent_has_counted_and_is_gone_shows_with_the_next_append() -> None:
    shard, other = Shard(), {"agent": "a2", "journal": "j2", "settled": True}
    shard.fold(APPEARED, appended(2, 0, 10, log_epoch=3))
    shard.fold(
        appended(2, 0, 6, log_epoch=3, **other), row(Kind.TRUNCATED, 3, next_offset=6, **other), appended(4, 6, 9, log_epoch=4, **other)
    )
    assert (shard.log().log_end_offset, shard.log().appended_records, shard.log().truncations) == (9, 13, 1)


def test_what_two_agents_see_cut_off_is_cut_off_once() -> None:
    """Both watch the log: the first one has published the truncation and what replaces the rest."""
    shard, second = Shard(), {"agent": "a2", "journal": "j2"}
    shard.fold(APPEARED, appended(2, 0, 10, log_epoch=3), row(Kind.APPEARED, 1, next_offset=0, **second))
    shard.fold(appended(2, 0, 10, log_epoch=3, **second))
    cut = {"next_offset": 6, "bytes": 40, "leader_epoch": 4}
    shard.fold(row(Kind.TRUNCATED, 3, **cut), appended(4, 6, 9, log_epoch=4))
    shard.fold(row(Kind.TRUNCATED, 3, **cut, **second), appended(4, 6, 9, log_epoch=4, **second))
    assert (shard.log().log_end_offset, shard.log().appended_records, shard.log().truncations) == (9, 13, 1)


def test_a_journal_that_reads_again_may_show_a_truncation_of_what_an_earlier_one_reported() -> None:
    """Its tail stands before what was counted; what it reads from there on is new."""
    shard = Shard()
    shard.fold(APPEARED, appended(2, 0, 80))
    again = [appended(1, 0, 30, journal="j2"), row(Kind.TRUNCATED, 2, journal="j2", next_offset=20, bytes=100)]
    shard.fold(*again, appended(3, 20, 50, journal="j2"))
    assert (shard.log().appended_records, shard.log().log_end_offset) == (110, 50)


def test_a_truncation_that_nobody_reported_shows_by_the_leader_epoch() -> None:
    shard = Shard()
    shard.fold(APPEARED, range_of(2, [Item(0, 10, 100, 10, epoch=1), Item(10, 30, 200, 20, epoch=2)]))
    now = [Item(0, 10, 100, 10, epoch=1), Item(10, 15, 50, 5, epoch=2), Item(15, 25, 77, 10, epoch=4)]
    shard.fold(range_of(1, now, detailed=True, journal="j2"))
    log = shard.log()
    assert (log.appended_bytes, log.log_end_offset, log.truncations, log.log_epoch) == (377, 25, 1, 4)


def test_a_truncation_before_a_journal_made_anew_shows_with_the_first_append_behind_it() -> None:
    shard = Shard()
    shard.fold(APPEARED, appended(2, 0, 100, log_epoch=1))
    shard.fold(appended(1, 0, 50, journal="j2", log_epoch=1, settled=True))
    assert shard.log().log_end_offset == 100
    shard.fold(appended(2, 50, 120, journal="j2", log_epoch=2, settled=True))
    assert (shard.log().appended_records, shard.log().log_end_offset, shard.log().truncations) == (170, 120, 1)
    assert not any(shard.log().skipped_bytes)


def test_a_later_epoch_behind_what_was_counted_is_no_truncation() -> None:
    shard = Shard()
    shard.fold(APPEARED, range_of(2, [Item(0, 10, 100, 10, epoch=1)]))
    shard.fold(range_of(1, [Item(0, 10, 100, 10, epoch=1), Item(10, 20, 100, 10, epoch=5)], detailed=True, journal="j2"))
    assert (shard.log().appended_records, shard.log().truncations) == (20, 0)


def test_bytes_that_were_deleted_unread_are_skipped_once() -> None:
    shard = Shard()
    skipped = {"base_offset": 10, "next_offset": 30, "bytes": 200, "reason": "deleted"}
    shard.fold(APPEARED, appended(2, 0, 10), row(Kind.SKIPPED, 3, **skipped), appended(4, 30, 40))
    shard.fold(row(Kind.SKIPPED, 1, journal="j2", **skipped))
    assert (shard.log().appended_records, lost(shard.log(), "deleted"), lost(shard.log(), "agent_lost")) == (20, 200, 0)


def test_of_a_loss_that_was_counted_in_part_the_rest_is_skipped() -> None:
    shard = Shard()
    shard.fold(APPEARED, appended(2, 0, 10), row(Kind.SKIPPED, 3, base_offset=0, next_offset=40, bytes=400, reason="deleted"))
    assert (shard.log().log_end_offset, lost(shard.log(), "deleted")) == (40, 300)


def test_what_lies_behind_a_flaw_is_skipped_as_it_grows_and_once_for_all_journals() -> None:
    shard, where = Shard(), {"base_offset": 10, "next_offset": 10}

    def flaw(seq: int, journal: str) -> list[object]:
        reported = row(Kind.CORRUPT, seq, journal=journal, start_position=100, reason="bad length", **where)
        return [
            reported,
            row(Kind.SKIPPED, seq + 1, journal=journal, start_position=100, end_position=150, bytes=50, reason="corrupt", **where),
        ]

    shard.fold(APPEARED, appended(2, 0, 10), *flaw(3, "j1"))
    shard.fold(row(Kind.SKIPPED, 5, start_position=150, end_position=180, bytes=30, reason="corrupt", **where))
    assert (lost(shard.log(), "corrupt"), shard.log().corrupt_batches, shard.log().settled) == (80, 1, True)
    shard.fold(appended(1, 0, 10, journal="j2"), *flaw(2, "j2"))
    assert (lost(shard.log(), "corrupt"), shard.log().corrupt_batches) == (80, 1)
    shard.fold(row(Kind.SKIPPED, 4, journal="j2", start_position=150, end_position=190, bytes=40, reason="corrupt", **where))
    assert lost(shard.log(), "corrupt") == 90


def test_another_flaw_is_another_corrupt_batch() -> None:
    shard = Shard()
    flaws = [row(Kind.CORRUPT, seq, base_offset=at, next_offset=at, start_position=at * 10) for seq, at in ((3, 10), (5, 20))]
    shard.fold(APPEARED, appended(2, 0, 10), flaws[0], appended(4, 10, 20), flaws[1])
    assert shard.log().corrupt_batches == 2


def test_facts_set_starts_and_leaders_and_no_counter() -> None:
    shard = Shard()
    shard.fold(APPEARED, appended(2, 0, 10, log_epoch=3))
    before = shard.log()
    shard.fold(row(Kind.FOUND, 3, log_start_offset=4, leader=2, leader_epoch=7, settled=True, log_dir="/moved", next_offset=99, bytes=99))
    log = shard.log()
    assert (log.log_start_offset, log.leader, log.leader_epoch, log.settled, log.log_dir) == (4, 2, 7, True, "/moved")
    assert (log.appended_bytes, log.log_end_offset, log.log_epoch) == (before.appended_bytes, before.log_end_offset, 3)


def test_a_log_start_ahead_of_what_was_read_is_kept_for_when_it_is_read_or_skipped() -> None:
    """The look at the files may be ahead, and it is not published again when the rest was deleted unread."""
    shard = Shard()
    shard.fold(APPEARED, appended(2, 0, 10), row(Kind.FOUND, 3, log_start_offset=25))
    skipped = row(Kind.SKIPPED, 4, base_offset=10, next_offset=25, bytes=150, reason="deleted")
    shard.fold(skipped, appended(5, 25, 30))
    assert (shard.log().log_start_offset, shard.log().log_end_offset) == (25, 30)


def test_a_log_settles_with_the_row_that_ends_its_backlog_and_stays_so() -> None:
    shard = Shard()
    shard.fold(APPEARED, appended(2, 0, 10))
    assert not shard.log().settled
    shard.fold(appended(3, 10, 20, settled=True))
    shard.fold(appended(4, 20, 30, settled=False))
    assert shard.log().settled


def test_the_end_of_a_log_that_was_reported_again_is_no_truncation() -> None:
    shard = Shard()
    shard.fold(APPEARED, appended(2, 0, 10))
    shard.fold(appended(1, 0, 10, journal="j2"), row(Kind.TRUNCATED, 2, journal="j2", next_offset=10))
    log = shard.log()
    assert (log.appended_records, log.log_end_offset, log.truncations) == (10, 10, 0)
