"""The fold of a shard: whatever is delivered, however often and in whatever order, is counted once."""

from dataclasses import dataclass, field, replace
from itertools import pairwise
from random import Random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from streaming.common.event_row import EventRow
from streaming.common.log_key import LogKey
from streaming.common.rows import SKIP_REASONS, Change, Kind
from streaming.rules.log_state import LogState
from tests.events import Item, Shard, appended, census_end, range_of, row
from tests.rules.histories import listing

APPEARED = row(Kind.APPEARED, 1, next_offset=0)
LISTED = listing(0)
RECALL = row(Kind.RECALL, 0, agent="", journal="", broker=-1, topic="", partition=-1)


# --- a log, the journals that have it, and what was delivered of them


@dataclass
class Disk:
    """A log, with the batches that it holds now."""

    items: list[Item] = field(default_factory=list)
    epoch: int = 0
    log_start: int = 0
    end: int = 0

    def append(self, records: int, size: int, gap: int) -> None:
        base = self.end + gap
        self.items.append(Item(base, base + records, size, records, self.epoch))
        self.end = base + records

    def truncate(self, keep: int) -> None:
        self.items = self.items[:keep]
        self.end = self.items[-1].next_offset if self.items else self.log_start
        self.epoch += 1


@dataclass
class FoundPublisher:
    """A journal and the tail that writes it: reported rows, and how many batches of the log it has reported."""

    name: str
    rows: list[EventRow] = field(default_factory=list)
    reported: list[Item] = field(default_factory=list)
    items: dict[int, list[Item]] = field(default_factory=dict)  # by seq
    frontier: int = 0
    settled: bool = False

    def write(self, item: EventRow) -> None:
        self.rows.append(replace(item, seq=len(self.rows) + 1, journal=self.name))

    def look(self, disk: Disk, cuts: list[int]) -> None:
        """Publish what has changed on disk, in as many ranges as ``cuts`` says."""
        shared = 0
        while shared < min(len(self.reported), len(disk.items)) and self.reported[shared] == disk.items[shared]:
            shared += 1
        if shared < len(self.reported):
            gone = sum(item.size for item in self.reported[shared:])
            self.write(row(Kind.TRUNCATED, next_offset=disk.items[shared - 1].next_offset if shared else disk.log_start, bytes=gone))
            self.frontier = 0  # what comes now it never reported
        new = disk.items[shared:]
        bounds = sorted({0, len(new), *(cut % (len(new) + 1) for cut in cuts)})
        for begin, end in pairwise(bounds):
            batches = new[begin:end]
            again = batches[0].base_offset < self.frontier
            self.items[len(self.rows) + 1] = batches
            self.write(range_of(0, batches, detailed=again, settled=self.settled or end == len(new)))
        self.reported, self.frontier, self.settled = list(disk.items), disk.end, True


counts = st.integers(1, 4)
appends = st.tuples(st.just("append"), counts, st.integers(62, 5000), st.sampled_from([0, 0, 0, 3]))
truncations = st.tuples(st.just("truncate"), st.integers(1, 3))
looks = st.tuples(st.just("look"), st.lists(st.integers(0, 12), max_size=3))
deliveries = st.tuples(st.just("deliver"), st.integers(0, 6), st.integers(1, 9), st.randoms(use_true_random=False))
all_reported = st.tuples(st.just("look and deliver"), st.lists(st.integers(0, 12), max_size=2))
losses = st.tuples(st.just("journal lost"))
steps = st.lists(st.one_of(appends, appends, looks, deliveries, all_reported, all_reported, truncations, losses), min_size=5, max_size=40)


@given(steps)
def test_every_batch_that_was_delivered_is_counted_once(steps: list[Any]) -> None:
    """With rows that come again, ranges that are cut otherwise by another journal, truncations that somebody or nobody reported."""
    disk, shard, reached, counted, number = Disk(), Shard(), 0, set[Item](), 1
    publisher = FoundPublisher("j1", [row(Kind.APPEARED, 1, next_offset=0)])

    def deliver(again: int, more: int, random: Random) -> None:
        nonlocal reached
        before, reached = max(0, reached - again), min(len(publisher.rows), reached + more)
        batch = publisher.rows[before:reached]
        random.shuffle(batch)
        once = shard.look(batch)
        twice = shard.look(batch)
        assert (once.touched, once.marks, list(once.changes())) == (twice.touched, twice.marks, list(twice.changes()))
        shard.fold(*batch)
        counted.update(item for each in batch for item in publisher.items.get(each.seq, ()))

    for step in steps:
        match step:
            case ("append", records, size, gap):
                disk.append(records, size, gap)
            case ("truncate", count) if count <= len(disk.items):
                disk.truncate(len(disk.items) - count)
            case ("look", cuts):
                publisher.look(disk, cuts)
            case ("look and deliver", cuts):
                publisher.look(disk, cuts)
                deliver(1, 99, Random(reached))
            case ("deliver", again, more, random):
                deliver(again, more, random)
            case ("journal lost",):
                number += 1
                publisher = FoundPublisher(f"j{number}", [row(Kind.APPEARED, 1, next_offset=0, journal=f"j{number}")], frontier=2**63 - 1)
                reached = 0
    publisher.look(disk, [2])
    while reached < len(publisher.rows):
        deliver(2, 3, Random(reached))
    log = shard.log()
    assert log.appended_bytes == sum(item.size for item in counted)
    assert log.appended_records == log.share_records == sum(item.records for item in counted)
    assert log.appended_batches == len(counted) == sum(log.share_batch_bytes_buckets) == sum(log.share_batch_records_buckets)
    assert not any(log.skipped_bytes)


@given(steps=st.lists(st.tuples(counts, st.integers(0, 3), st.booleans(), st.booleans()), min_size=1, max_size=12))
def test_every_byte_is_counted_or_skipped(steps: list[tuple[int, int, bool, bool]]) -> None:
    """Batches of ten bytes an offset, so that what the fold can only estimate comes out exactly."""
    shard, offset, seq, journal, reasons = Shard(), 0, 1, 1, set[str]()
    shard.fold(APPEARED)
    for records, missing, reported, lost in steps:
        if lost:  # what is missing was deleted while nobody watched
            journal, seq = journal + 1, 0
        seq, rows = seq + 1, []
        if missing and not lost and reported:
            loss = {"base_offset": offset, "next_offset": offset + missing, "bytes": 10 * missing, "reason": "deleted"}
            rows.append(row(Kind.SKIPPED, seq, journal=f"j{journal}", **loss))
            reasons.add("deleted")
            seq += 1
        elif missing and lost:
            rows.append(row(Kind.APPEARED, 0, journal=f"j{journal}", next_offset=offset + missing))
            reasons.add("agent_lost")
        else:
            missing = 0
        offset += missing
        rows.append(appended(seq, offset, offset + records, journal=f"j{journal}"))
        offset += records
        shard.fold(*rows)
        shard.fold(*rows)
    log = shard.log()
    assert log.appended_bytes + sum(log.skipped_bytes) == 10 * offset
    assert {reason for reason, size in zip(SKIP_REASONS, log.skipped_bytes, strict=True) if size} == reasons


# --- lifecycles of several logs and two agents: again is like once


def reported(number: int, seq: int, agent: str, kind: str, log: int) -> list[EventRow]:
    """What an agent publishes in one event about one log, or in a census about all of them but one."""
    where = {"agent": agent, "journal": f"of {agent}", "broker": int(agent[1:]), "partition": log, "seq": seq}
    match kind:
        case "census":
            rest = [row(Kind.CENSUS, **{**where, "partition": each, "part": each}) for each in range(3) if each != log]
            return [*rest, census_end(f"{agent[1:]}:/data", **{**where, "part": 9})]
        case "append":
            return [appended(base_offset=number * 10, next_offset=number * 10 + 5, leads=1, **where)]
        case "skip":
            return [row(Kind.SKIPPED, base_offset=number * 10, next_offset=number * 10 + 5, bytes=9, reason="deleted", **where)]
        case "truncate":
            return [row(Kind.TRUNCATED, next_offset=number * 10 - 4, bytes=3, **where)]
        case "appear":
            return [row(Kind.APPEARED, next_offset=number * 10, **where)]
        case _:
            return [row(Kind.GONE, reason=kind, **where)]


kinds = st.sampled_from(["appear", "append", "append", "append", "skip", "truncate", "deleted", "moved", "census"])
histories = st.lists(st.tuples(st.sampled_from(["a1", "a2"]), kinds, st.integers(0, 2)), max_size=25)


@given(histories, st.lists(st.tuples(st.integers(0, 8), st.integers(1, 6), st.randoms(use_true_random=False)), min_size=25, max_size=25))
def test_rows_that_come_again_lead_to_what_they_led_to_the_first_time(history: list[Any], plan: list[Any]) -> None:
    seqs = dict.fromkeys(("a1", "a2"), 0)
    events: dict[str, list[list[EventRow]]] = {"a1": [], "a2": []}
    for number, (agent, kind, log) in enumerate(history, 1):
        seqs[agent] += 1
        events[agent].append(reported(number, seqs[agent], agent, kind, log))
    once, again = Shard(), Shard()
    for agent in events:
        for rows in events[agent]:
            once.fold(*rows)
    reached = dict.fromkeys(events, 0)
    for back, more, random in [*plan, (0, 99, plan[0][2])]:
        batch = []
        for agent in events:
            begin, reached[agent] = max(0, reached[agent] - back), min(len(events[agent]), reached[agent] + more)
            batch += [each for rows in events[agent][begin : reached[agent]] for each in rows]
        batch += batch[: len(batch) // 2]
        random.shuffle(batch)
        again.fold(*batch)
    assert again.states == once.states
    assert again.marks == once.marks


# --- leaving and coming back


def test_a_deleted_log_is_removed_and_its_losses_stay_with_its_broker() -> None:
    shard = Shard()
    deleted = row(Kind.SKIPPED, 2, base_offset=0, next_offset=5, bytes=50, reason="deleted")
    shard.fold(APPEARED, deleted, appended(3, 5, 10))
    gone = row(Kind.GONE, 4, reason="deleted")
    changes = shard.fold(gone)
    assert {each.change for each in changes} == {Change.REMOVED, Change.RESIDUE}
    assert [each.state.key for each in changes if each.change is Change.REMOVED] == [LogKey(1, "orders", 0, "")]
    assert [each.state for each in changes if each.change is Change.RESIDUE] == [
        LogState(agent="a1", broker=1, topic="", partition=7, topic_id="", skipped_bytes=(50, 0, 0))
    ]
    assert shard.fold(gone) == []


def test_what_a_replica_left_behind_goes_with_its_topic_and_its_losses_stay() -> None:
    shard = Shard()
    skipped = row(Kind.SKIPPED, 2, base_offset=0, next_offset=5, bytes=50, reason="deleted")
    shard.fold(APPEARED, skipped, row(Kind.GONE, 3, reason="moved"))
    elsewhere = {"agent": "a2", "broker": 2}
    shard.fold(row(Kind.APPEARED, 1, next_offset=5, **elsewhere), row(Kind.APPEARED, 2, next_offset=0, topic_id="anew", **elsewhere))
    assert shard.log().departed
    changes = shard.fold(row(Kind.GONE, 3, reason="deleted", log_dir="", **elsewhere))
    assert {each.state.key for each in changes if each.change is Change.REMOVED} == {LogKey(1, "orders", 0, ""), LogKey(2, "orders", 0, "")}
    assert {key: state.skipped_bytes for key, state in shard.states.items()} == {
        LogKey(1, "", 7, ""): (50, 0, 0),
        LogKey(2, "orders", 0, "anew"): (0, 0, 0),
    }


def test_rows_of_a_deleted_log_that_come_again_do_not_bring_it_back() -> None:
    shard = Shard()
    rows = [APPEARED, row(Kind.SKIPPED, 2, base_offset=0, next_offset=5, bytes=50, reason="deleted"), row(Kind.GONE, 3, reason="deleted")]
    shard.fold(*rows)
    before = dict(shard.states)
    shard.fold(*rows[:2])
    assert shard.states == before
    assert [state.skipped_bytes for state in shard.states.values()] == [(50, 0, 0)]


def test_a_topic_made_anew_under_its_name_is_another_log() -> None:
    shard = Shard()
    first, second = {"topic_id": "first"}, {"topic_id": "second"}
    shard.fold(row(Kind.APPEARED, 1, next_offset=0, **first), appended(2, 0, 100, **first))
    shard.fold(row(Kind.GONE, 3, reason="deleted", **first), row(Kind.APPEARED, 4, next_offset=0, **second), appended(5, 0, 3, **second))
    assert [state.key.topic_id for state in shard.states.values()] == ["second"]
    assert shard.log(topic_id="second").appended_records == 3


def test_a_log_that_moves_to_another_broker_leaves_its_share_and_its_losses() -> None:
    shard = Shard()
    shard.fold(APPEARED, appended(2, 0, 10), row(Kind.SKIPPED, 3, base_offset=10, next_offset=12, bytes=20, reason="deleted"))
    (change,) = shard.fold(row(Kind.GONE, 4, reason="moved"))
    assert change.change is Change.DEPARTED
    assert (change.state.share_records, change.state.skipped_bytes[0], change.state.appended_records) == (10, 20, 0)


def test_a_log_that_comes_back_counts_from_there_and_keeps_its_share() -> None:
    shard = Shard()
    shard.fold(APPEARED, appended(2, 0, 10), row(Kind.GONE, 3, reason="moved"))
    (change,) = shard.fold(row(Kind.APPEARED, 4, next_offset=50), appended(5, 50, 51))
    assert change.change is Change.LOG
    assert (change.state.share_records, change.state.appended_records, change.state.log_end_offset) == (11, 1, 51)


def test_a_log_that_comes_back_with_its_batches_shares_the_very_ones_that_are_new() -> None:
    """They are of different sizes: a part of the offsets says nothing of records and bytes."""
    items = [Item(0, 10, 1000, 10), Item(10, 11, 80, 0, control=True), Item(11, 13, 50, 2)]
    shard = Shard()
    shard.fold(APPEARED, range_of(2, items[:1]), row(Kind.GONE, 3, reason="moved"))
    (change,) = shard.fold(row(Kind.APPEARED, 4, next_offset=0), range_of(5, items, detailed=True))
    assert (change.state.appended_bytes, change.state.appended_records) == (1130, 12)
    assert (sum(change.state.share_codec_bytes), change.state.share_records) == (1050, 12)
    assert sum(change.state.share_batch_records_buckets) == 2


def test_a_log_of_which_the_first_that_is_reported_is_where_it_was_cut_off_begins_there() -> None:
    shard = Shard()
    shard.fold(row(Kind.TRUNCATED, 1, next_offset=6), appended(2, 6, 10))
    assert (shard.log().appended_bytes, sum(shard.log().skipped_bytes)) == (40, 0)


def test_a_log_that_another_agent_has_taken_over_does_not_leave_with_the_first() -> None:
    shard = Shard()
    shard.fold(APPEARED, appended(2, 0, 10))
    shard.fold(row(Kind.APPEARED, 1, agent="a2", journal="of a2", log_dir="/other", next_offset=10))
    shard.fold(row(Kind.GONE, 3, reason="moved"))
    assert (shard.log().agent, shard.log().departed) == ("a2", False)


# --- a census, and what is recalled


def test_the_end_of_a_census_drops_what_it_lacks_and_nothing_of_another_agent() -> None:
    shard = Shard()
    other = {"agent": "a2", "journal": "of a2", "broker": 2}
    shard.fold(*(row(Kind.APPEARED, 1 + number, next_offset=0, partition=number) for number in range(3)))
    shard.fold(row(Kind.APPEARED, 1, next_offset=0, **other))
    before = shard.log(partition=0)
    census = [row(Kind.CENSUS, 9, part=0, partition=0, log_start_offset=5), row(Kind.CENSUS, 9, part=1, partition=2)]
    changes = shard.fold(census_end(seq=9, part=2), *census)
    assert {(each.state.broker, each.state.partition): each.change for each in changes} == {(1, 1): Change.DEPARTED}
    assert shard.log(partition=0) == before
    assert not shard.log(broker=2).departed


def test_a_log_that_appears_behind_a_census_is_not_missed_by_it() -> None:
    shard = Shard()
    shard.fold(census_end(seq=5), row(Kind.APPEARED, 6, next_offset=0))
    assert not shard.log().departed


def test_a_census_brings_no_log_that_was_not_published() -> None:
    shard = Shard()
    assert shard.fold(row(Kind.CENSUS, 5, partition=4)) == []
    assert shard.states == {}


def test_a_recall_says_all_values_again_with_what_is_large_however_often_it_comes() -> None:
    """After a restart of the driver its table is empty: only the states know what it held."""
    shard = Shard()
    shard.fold(APPEARED, appended(2, 0, 10), row(Kind.FOUND, 3, segments=LISTED), row(Kind.APPEARED, 4, next_offset=0, partition=1))
    shard.fold(row(Kind.SKIPPED, 5, partition=2, base_offset=0, next_offset=3, bytes=5, reason="deleted"))
    shard.fold(row(Kind.GONE, 6, partition=1, reason="moved"), row(Kind.GONE, 6, part=1, partition=2, reason="deleted"))
    before = (dict(shard.states), dict(shard.marks))
    for _ in range(2):
        changes = shard.fold(RECALL)
        assert [(each.change, each.state.partition) for each in changes] == [
            (Change.LOG, 0),
            (Change.DEPARTED, 1),
            (Change.RESIDUE, 7),
            (Change.RECALLED, 7),
        ]
        assert (changes[0].state.appended_records, changes[0].state.segments) == (10, LISTED)
        assert (shard.states, shard.marks) == before


def test_what_comes_with_a_recall_is_in_what_it_says() -> None:
    shard = Shard()
    shard.fold(APPEARED, appended(2, 0, 10), row(Kind.FOUND, 3, segments=LISTED))
    changes = shard.fold(RECALL, appended(4, 10, 15))
    assert [(each.change, each.state.appended_records, each.state.segments) for each in changes] == [
        (Change.LOG, 15, LISTED),
        (Change.RECALLED, 0, None),
    ]


# --- losses without a log, and strangers


def test_what_a_census_lacks_stays_where_its_log_dir_could_not_be_looked_into() -> None:
    shard = Shard()
    shard.fold(row(Kind.APPENDED, 1, next_offset=3, bytes=300, log_dir="/d1"))
    shard.fold(census_end("1:/d0", "1:/d1", seq=2, reason="/d0\n/d1"))
    assert not shard.log().departed
    shard.fold(census_end("1:/d0", "1:/d1", seq=3, reason="/d0"))
    assert shard.log().departed


def test_an_event_of_a_kind_of_the_future_is_passed_over() -> None:
    shard = Shard()
    later = replace(appended(3, 10, 20), kind="levitated")
    shard.fold(APPEARED, appended(2, 0, 10), later, appended(4, 20, 30))
    assert shard.log().appended_records == 20


def test_each_agent_has_its_own_mark() -> None:
    shard = Shard()
    shard.fold(APPEARED, appended(50, 0, 10))
    shard.fold(row(Kind.APPEARED, 1, agent="a2", journal="of a2", broker=2, next_offset=0))
    assert shard.log(broker=2).log_end_offset == 0


# --- how far an agent's journal has come


def test_that_all_has_arrived_is_handed_on_and_changes_nothing() -> None:
    shard = Shard()
    shard.fold(appended(3, 0, 5))
    before = (dict(shard.states), dict(shard.marks))
    (reported,) = shard.fold(row(Kind.ARRIVED, 9, broker=-1, topic="", partition=-1, bytes=1234))
    assert (reported.change, reported.state.agent, reported.state.topic_id) == (Change.ARRIVED, "a1", "j1")
    assert (reported.state.log_end_offset, reported.state.appended_bytes) == (9, 1234)
    assert (shard.states, shard.marks) == before
    assert (
        len(shard.fold(row(Kind.ARRIVED, 2, topic="", bytes=10), row(Kind.ARRIVED, 9, topic="", bytes=1234))) == 2
    )  # reported again, reported late


def test_bytes_that_are_skipped_for_a_reason_of_a_later_version_are_skipped() -> None:
    shard = Shard()
    shard.fold(row(Kind.SKIPPED, 1, base_offset=0, next_offset=3, bytes=10, reason="eaten"))
    assert sum(shard.log().skipped_bytes) == 10


def test_an_event_of_unknown_kind_is_passed_over_whether_or_not_it_names_a_log() -> None:
    shard = Shard()
    unknown = replace(row(Kind.SKIPPED, 1), kind="hummed")
    assert shard.fold(unknown, replace(unknown, seq=2, topic="")) == []
