"""Whose word counts about where a log is: agents that are renamed, split, merged, and that share a broker."""

from itertools import chain, permutations
from typing import Any

import pytest

from streaming.common.event_row import EventRow
from streaming.common.log_key import LogKey
from streaming.common.rows import Kind
from tests.events import Item, Shard, appended, census_end, range_of, row

OLD, NEW = {"agent": "a1", "journal": "j1", "log_dir": "/d0"}, {"agent": "a2", "journal": "j2", "log_dir": "/d1"}
BATCHES = [Item(offset, offset + 1, 100, 1) for offset in range(10)]


def copied(batches: list[Item], **at: Any) -> list[EventRow]:
    """What an agent publishes of a log that comes with data: each range with its batches, cut otherwise than before."""
    return [
        row(Kind.APPEARED, 1, next_offset=0, **at),
        *(range_of(2 + number, [*batches[part]], detailed=True, **at) for number, part in HALVES),
    ]


HALVES = ((0, slice(0, 4)), (1, slice(4, None)))


def in_all_orders(*streams: list[EventRow]) -> list[list[list[EventRow]]]:
    """The rows of two agents as micro-batches of one event each, in each order that keeps that of each agent."""
    numbers = [number for number, rows in enumerate(streams) for _ in rows]
    found = []
    for order in sorted(set(permutations(numbers))):
        left = [iter(rows) for rows in streams]
        found.append([[next(left[number])] for number in order])
    return found


@pytest.mark.parametrize("names", [("a1", "a2"), ("a2", "a1")], ids=["old first", "new first"])
@pytest.mark.parametrize("at_once", [False, True], ids=["one by one", "in one micro-batch"])
def test_a_replica_that_moves_to_the_log_dir_of_another_agent_is_there_and_nothing_is_lost(names: tuple[str, str], at_once: bool) -> None:
    old, new = ({**at, "agent": name} for at, name in zip((OLD, NEW), names, strict=True))
    was = [row(Kind.APPEARED, 1, next_offset=0, **old), range_of(2, BATCHES[:6], **old)]
    leaves = [range_of(3, BATCHES[6:8], **old), row(Kind.GONE, 4, reason="moved", **old)]
    for order in in_all_orders(leaves, copied(BATCHES, **new)):
        shard = Shard()
        shard.fold(*was)
        for batch in [list(chain(*order))] if at_once else order:
            shard.fold(*batch)
        log = shard.log()
        assert (log.departed, log.log_dir, log.log_end_offset, log.share_records) == (False, "/d1", 10, 10)
        assert not any(log.skipped_bytes)


def test_a_log_that_was_seen_in_both_log_dirs_is_gone_when_it_is_gone_from_both() -> None:
    gone = [row(Kind.GONE, 9, reason="moved", **OLD), row(Kind.GONE, 9, reason="moved", **NEW)]
    for rows in permutations(gone):
        shard = Shard()
        shard.fold(row(Kind.APPEARED, 1, next_offset=0, **OLD))
        shard.fold(row(Kind.APPEARED, 1, next_offset=0, **NEW))
        shard.fold(rows[0])
        assert not shard.log().departed
        shard.fold(rows[1])
        assert shard.log().departed


def test_an_agent_that_watches_both_log_dirs_follows_a_log_from_one_into_the_other() -> None:
    shard = Shard()
    shard.fold(row(Kind.APPEARED, 1, next_offset=0, **OLD), appended(2, 0, 5, **OLD), appended(3, 5, 9, **{**OLD, "log_dir": "/d1"}))
    assert (shard.log().log_dir, shard.log().elsewhere) == ("/d1", "")
    shard.fold(row(Kind.GONE, 4, reason="moved", **{**OLD, "log_dir": "/d1"}))
    assert shard.log().departed


@pytest.mark.parametrize("journal", ["j1", "j2"])
def test_a_renamed_agent_says_that_a_log_is_gone(journal: str) -> None:
    shard, renamed = Shard(), {"agent": "a2", "journal": journal}
    shard.fold(row(Kind.APPEARED, 1, next_offset=0), appended(2, 0, 5))
    shard.fold(row(Kind.GONE, 3, reason="moved", **renamed))
    assert shard.log().departed


def test_the_census_of_a_renamed_agent_ends_what_its_former_name_had_in_its_log_dirs_and_nothing_else() -> None:
    shard, renamed = Shard(), {"agent": "a2", "journal": "j2"}
    places = [(1, "/data"), (1, "/data"), (1, "/other"), (2, "/data"), (1, "/unseen")]
    for number, (broker, log_dir) in enumerate(places):
        shard.fold(row(Kind.APPEARED, 1 + number, next_offset=0, partition=number, broker=broker, log_dir=log_dir))
    census = row(Kind.CENSUS, 1, partition=0, **renamed)
    shard.fold(census, census_end("1:/data", "1:/gone", seq=1, part=1, reason="/unseen", **renamed))
    assert {key.partition: state.departed for key, state in shard.states.items()} == {0: False, 1: True, 2: False, 3: False, 4: False}


def test_of_a_log_that_was_seen_elsewhere_too_a_census_ends_only_its_part() -> None:
    shard = Shard()
    shard.fold(row(Kind.APPEARED, 1, next_offset=0, **OLD))
    shard.fold(row(Kind.APPEARED, 1, next_offset=0, **NEW))
    shard.fold(census_end("1:/d1", seq=2, agent="a2", journal="j2"))
    assert (shard.log().departed, shard.log().log_dir, shard.log().agent) == (False, "/d0", "a1")
    shard.fold(census_end("1:/d0", seq=2, agent="a1", journal="j1"))
    assert shard.log().departed


# --- topics that are no more


def departed(shard: Shard, *topic_ids: str, broker: int = 1) -> None:
    for seq, topic_id in enumerate(topic_ids):
        of_log = {"topic_id": topic_id, "broker": broker, "agent": f"of {broker}", "journal": f"j{broker}"}
        shard.fold(row(Kind.APPEARED, 10 * seq + 1, next_offset=0, **of_log), appended(10 * seq + 2, 0, 5, leads=1, **of_log))
        shard.fold(row(Kind.GONE, 10 * seq + 3, reason="moved", **of_log))
        assert shard.log(topic_id=topic_id, broker=broker).departed


def test_a_census_ends_what_departed_replicas_of_its_broker_left_of_topics_that_are_no_more() -> None:
    shard = Shard()
    departed(shard, "deleted", "there", "")
    departed(shard, "deleted", broker=2)
    shard.fold(census_end("1:/data", seq=90, topics=["there"], agent="any"))
    assert set(shard.states) == {LogKey(1, "orders", 0, "there"), LogKey(1, "orders", 0, ""), LogKey(2, "orders", 0, "deleted")}


def test_where_topics_are_not_known_what_departed_replicas_left_stays() -> None:
    shard = Shard()
    departed(shard, "perhaps")
    shard.fold(census_end("1:/data", seq=90, agent="any"))
    assert shard.log(topic_id="perhaps").departed


def test_a_live_log_leaves_with_its_topic_only_from_log_dirs_that_a_census_covers() -> None:
    """Of another log dir an agent that watches that one may have published what is newer than the census."""
    shard = Shard()
    for partition, log_dir in enumerate(("/data", "/away", "/another")):
        shard.fold(row(Kind.APPEARED, 1 + partition, next_offset=0, partition=partition, topic_id="deleted", log_dir=log_dir))
    shard.fold(census_end("1:/data", seq=90, topics=["there"], reason="/away"))
    assert {key.partition: state.departed for key, state in shard.states.items()} == {1: False, 2: False}


def test_the_losses_of_what_goes_with_its_topic_stay_with_the_broker() -> None:
    shard = Shard()
    skipped = row(Kind.SKIPPED, 2, base_offset=0, next_offset=5, bytes=50, reason="deleted", topic_id="deleted")
    shard.fold(row(Kind.APPEARED, 1, next_offset=0, topic_id="deleted"), skipped, row(Kind.GONE, 3, reason="moved", topic_id="deleted"))
    shard.fold(census_end("1:/data", seq=4, topics=[]))
    assert {key: state.skipped_bytes for key, state in shard.states.items()} == {LogKey(1, "", 7, ""): (50, 0, 0)}


def test_a_deleted_log_takes_departed_replicas_along_only_if_the_topic_is_known_to_be_no_more() -> None:
    for log_dir, left in (("/data", {1}), ("", set[int]())):
        shard = Shard()
        departed(shard, "t")
        other = {"topic_id": "t", "broker": 2, "agent": "of 2", "journal": "j2"}
        shard.fold(row(Kind.APPEARED, 1, next_offset=0, **other))
        shard.fold(row(Kind.GONE, 2, reason="deleted", **{**other, "log_dir": log_dir}))
        assert {key.broker for key in shard.states} == left
