"""Which groups wait for an open transaction in a log of ``__consumer_offsets``, and what an agent answers of them."""

import logging
from pathlib import Path

import pytest

from streaming.broker.agent.group_answers import MOST_GROUPS, READ_BYTES, PendingGroups, answer, waiting_groups
from streaming.broker.disk.segment_files import list_segments
from streaming.broker.protocol.status_messages import PendingCommits, StatusRequest
from streaming.simulator.batch_writer import Batch, Record
from streaming.simulator.coordinators import offset_commit_record
from streaming.simulator.log import LogDir, PartitionLog
from tests.builders import NOW, abort, batch, partition
from tests.watcher.station import Station

P, Q = 4000, 4001
TOPIC = "__consumer_offsets"


def commits(producer: int, *groups: str) -> Batch:
    """What `TxnOffsetCommit` writes: offsets of some groups, in a transaction."""
    records = tuple(offset_commit_record(group, "orders", number, 7, NOW) for number, group in enumerate(groups))
    return Batch(records=records, producer_id=producer, producer_epoch=0, base_sequence=-1, transactional=True)


@pytest.fixture
def log(disk: LogDir) -> PartitionLog:
    made = partition(disk, TOPIC)
    made.append(commits(P, "before"), abort(P), batch(1), commits(P, "billing", "stock"), commits(Q, "other"), commits(P, "billing", "new"))
    return made


def waiting(log: PartitionLog, producer: int, first_offset: int) -> PendingGroups:
    return waiting_groups(list_segments(log.directory), producer, first_offset)


def test_groups_are_named_by_the_keys_of_their_commits_in_order_and_once(log: PartitionLog) -> None:
    assert waiting(log, P, 3) == PendingGroups(("billing", "stock", "new"), False)
    assert waiting(log, Q, 5) == PendingGroups(("other",), False)
    assert waiting(log, 9, 3) == PendingGroups((), False)


def test_only_so_many_are_named(log: PartitionLog) -> None:
    log.append(commits(P, *(f"g{number}" for number in range(MOST_GROUPS))))
    found = waiting(log, P, 3)
    assert (len(found.groups), found.groups[:2], found.more) == (MOST_GROUPS, ("billing", "stock"), True)


def test_as_many_as_may_be_named_are_all_there_are(log: PartitionLog) -> None:
    log.append(commits(P, *(f"g{number}" for number in range(MOST_GROUPS - 3))))
    found = waiting(log, P, 3)
    assert (len(found.groups), found.more) == (MOST_GROUPS, False)


def test_only_so_many_bytes_are_read(log: PartitionLog) -> None:
    log.append(*[batch(1, value_bytes=200_000)] * (READ_BYTES // 200_000 + 3), commits(P, "far"))
    assert waiting(log, P, 3) == PendingGroups(("billing", "stock", "new"), True)


def test_behind_a_flaw_there_may_be_others_and_behind_half_a_batch_there_are_not_yet(log: PartitionLog) -> None:
    whole = log.active.path("log").read_bytes()
    for behind, more in ((whole[:40], False), (b"\x07" * 100, True)):
        log.active.path("log").write_bytes(whole + behind)
        assert waiting(log, P, 3) == PendingGroups(("billing", "stock", "new"), more)


def test_what_is_damaged_or_no_commit_names_nobody(log: PartitionLog) -> None:
    odd = Batch(records=(Record(b"\0", b"", NOW),), producer_id=P, producer_epoch=0, base_sequence=-1, transactional=True)
    log.append(odd)
    assert waiting(log, P, 3) == PendingGroups(("billing", "stock", "new"), True)


def asked(topic: str = TOPIC, number: int = 0, **values: int) -> PendingCommits:
    given = {"producer_id": P, "first_offset": 3} | values
    return PendingCommits(broker=1, topic=topic, partition=number, topic_id="", **given)


def test_an_agent_answers_for_its_own_logs_with_names_that_may_be_reported(
    station: Station, log: PartitionLog, caplog: pytest.LogCaptureFixture
) -> None:
    station.look()
    tails = station.watcher.tails()
    (tail,) = (each for each in tails if each.cursor.log.topic == TOPIC)
    mine = PendingCommits(
        broker=tail.cursor.log.broker, topic=TOPIC, partition=0, topic_id=tail.cursor.log.topic_id, producer_id=P, first_offset=3
    )
    (found,) = answer([mine, asked(number=9), asked("orders")], tails, str.upper)
    assert (found.groups, found.more, found.first_offset) == (["BILLING", "STOCK", "NEW"], False, 3)
    request = StatusRequest.decode(StatusRequest([], [found]).encode())
    assert request.pending == [found]
    assert StatusRequest.decode(b'{"counts": []}').pending == []
    caplog.set_level(logging.WARNING)
    tail.partition = type(tail.partition)(**{**_fields(tail.partition), "path": Path("/nowhere")})
    assert list(answer([mine], tails, str)) == []
    assert "cannot be read" in caplog.text


def _fields(value: object) -> dict[str, object]:
    return {name: getattr(value, name) for name in value.__dataclass_fields__}  # type: ignore[attr-defined]
