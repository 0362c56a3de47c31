"""What a job is reported about consumer groups, over HTTP."""

from dataclasses import replace
from pathlib import Path

import google_crc32c
import pytest

from streaming.broker.protocol.group_json import BatchCheck
from streaming.broker.protocol.group_messages import BatchRequest, GroupsRequest, KnownLog
from streaming.broker.protocol.group_stream import GroupsAnswer
from streaming.common.short_names import PREFIX, redacted
from streaming.errors import AgentError
from streaming.kafka.formats.layout import CHECKED_FROM, HEADER_BYTES
from streaming.simulator.batch_writer import Batch, Codec, Record
from streaming.simulator.coordinators import SimulatedMember, classic_group_record
from streaming.simulator.log import PartitionLog
from streaming.spark.client.agent_client import AgentClient
from tests.agent.followed import OFFSETS, TOPIC_ID, committed
from tests.agents import Agent, Reader
from tests.builders import CLUSTER_ID, NOW, batch, log_dir, partition
from tests.legacy_messages import Messages, encode_message


def asked(agent: Agent, request: GroupsRequest | None = None) -> GroupsAnswer:
    """The answer of an agent that stands still."""
    with agent.served() as address:
        client = AgentClient(address)
        try:
            return client.groups(request)
        finally:
            client.close()


def test_groups_are_reported_with_an_end_of_the_journal_that_covers_them(tmp_path: Path) -> None:
    log = partition(log_dir(tmp_path), OFFSETS, 3)
    log.append(committed("g", 5), committed("h", 6, producer=8))
    agent = Agent(log.directory.parent)
    Reader(agent).begin()
    agent.follow_groups()
    answer = asked(agent)
    (changes,) = answer.changes
    assert (changes.broker, changes.topic, changes.topic_id, changes.coordinator, changes.upto) == (1, OFFSETS, TOPIC_ID, 3, 2)
    assert [(row["group"], row["offset"]) for row in changes.commits.to_pylist()][:1] == [("g", 5)]
    assert [(row["group"], row["offset"], row["producer_id"]) for row in changes.pending.to_pylist()] == [("h", 6, 8)]
    assert (answer.journal, answer.seq) == (agent.journal.id, agent.journal.end().seq)

    known = KnownLog(broker=1, topic=OFFSETS, topic_id=TOPIC_ID, coordinator=3, edition=changes.edition, version=changes.version)
    (same,) = asked(agent, GroupsRequest([known])).changes
    assert (same.whole, same.commits.num_rows, same.version) == (False, 0, changes.version)
    agent.close()


def test_names_of_groups_do_not_leave_the_host_if_they_may_not(tmp_path: Path) -> None:
    log = partition(log_dir(tmp_path), OFFSETS)
    log.append(committed("secret", 5), committed("secret too", 6, producer=8), committed("secret", 7, number=1))
    agent = Agent(log.directory.parent, redact=lambda name: redacted(name, CLUSTER_ID))
    Reader(agent).begin()
    agent.follow_groups()
    (changes,) = asked(agent).changes
    names = {row["group"] for rows in (changes.commits, changes.pending, changes.groups) for row in rows.to_pylist()}
    assert names == {redacted("secret", CLUSTER_ID), redacted("secret too", CLUSTER_ID)}
    assert all(name.startswith(PREFIX) for name in names)
    agent.close()


def test_clients_and_hosts_of_a_group_do_not_leave_the_host_either(tmp_path: Path) -> None:
    log = partition(log_dir(tmp_path), OFFSETS)
    members = [SimulatedMember("m1", "client-1", (0,)), SimulatedMember("m2", "client-2", (1,))]
    for generation, there in ((4, members[:1]), (5, members), (6, members[:1])):
        log.append(Batch(records=(classic_group_record("secret", generation, "orders", there, NOW + generation),)))
    agent = Agent(log.directory.parent, redact=lambda name: redacted(name, CLUSTER_ID))
    Reader(agent).begin()
    agent.follow_groups()
    (row,) = asked(agent).changes[0].groups.to_pylist()
    assert (row["clients"], row["hosts"]) == ([redacted("client-1", CLUSTER_ID)], [redacted("/127.0.0.1", CLUSTER_ID)])
    assert (row["type"], row["members"]) == ("Classic", 1)
    assert row["rebalance_clients"] == 2 * [redacted("client-2", CLUSTER_ID)], "who has joined, and left"
    assert row["rebalance_hosts"] == 2 * [redacted("/127.0.0.1", CLUSTER_ID)]
    agent.close()


# --- a batch as it is on disk


@pytest.fixture
def orders(tmp_path: Path) -> PartitionLog:
    log = partition(log_dir(tmp_path), "orders")
    log.append(batch(3), batch(2, codec=Codec.GZIP, producer=9, sequence=0))
    log.roll()
    log.append(batch(4))
    return log


def check(tmp_path: Path, log: PartitionLog, offset: int) -> BatchCheck:
    agent = Agent(log.directory.parent)
    Reader(agent).begin()
    try:
        with agent.served() as address:
            client = AgentClient(address)
            try:
                return client.batch(BatchRequest(broker=1, topic="orders", topic_id=TOPIC_ID, partition=0, offset=offset))
            finally:
                client.close()
    finally:
        agent.close()


@pytest.mark.parametrize(("offset", "found"), [(0, 0), (2, 0), (3, 3), (4, 3), (5, 5), (8, 5)])
def test_the_batch_that_holds_an_offset_is_checked(tmp_path: Path, orders: PartitionLog, offset: int, found: int) -> None:
    checked = check(tmp_path, orders, offset)
    (entry, segment, position) = next(
        (entry, segment, position)
        for segment in orders.segments
        for entry, position in zip(segment.entries, segment.positions, strict=True)
        if entry.base_offset == found
    )
    assert checked == BatchCheck(
        sound=True,
        base_offset=found,
        last_offset=entry.last_offset,
        size=entry.size,
        codec="gzip" if found == 3 else "none",
        records=entry.records,
        producer_id=entry.producer_id,
        position=position,
        segment=segment.base_offset,
        file=checked.file,
        format=2,
        record_offset=offset,
        record_bytes=100,
        neighbors=1 if found < 5 else 0,
    )
    assert checked.file.endswith(f"/{segment.base_offset:020}.log")


def test_after_the_end_there_is_nothing_to_check(tmp_path: Path, orders: PartitionLog) -> None:
    assert check(tmp_path, orders, 9) == BatchCheck(sound=True, error="the log ends there")


def unlike(tmp_path: Path, odd: Batch, *, old: bool = False) -> list[str]:
    """How a batch differs from thirty others, behind which it lies. ``old``: they are messages of format 1."""
    log = partition(log_dir(tmp_path), "orders")
    sound = [batch(1, value_bytes=400 + each, producer=5, sequence=each) for each in range(30)]
    log.append(*([Messages(magic=1, records=30 * (Record(b"k", b"v" * 300, NOW),))] if old else sound), odd)
    checked = check(tmp_path, log, 30)
    assert (checked.sound, checked.base_offset, checked.record_offset, checked.neighbors) == (True, 30, 30, 30)
    return checked.unlike


@pytest.mark.parametrize(
    ("odd", "found"),
    [
        (batch(2, producer=5, sequence=30), []),
        (batch(2, value_bytes=5000, producer=5, sequence=30), ["largest"]),
        (batch(2, producer=6), ["producer"]),
        (batch(2, producer=5, sequence=30, codec=Codec.ZSTD), ["codec"]),
        (replace(batch(20, producer=5, sequence=30), records=(Record(b"k", None, NOW), *batch(19).records)), ["largest", "only_tombstone"]),
        (replace(batch(20, producer=5), records=(Record(b"k", b"v" * 900, NOW), *batch(19).records)), ["largest", "largest_record"]),
    ],
)
def test_a_batch_that_differs_from_those_around_it_says_how(tmp_path: Path, odd: Batch, found: list[str]) -> None:
    assert unlike(tmp_path, odd) == found


def test_the_first_batch_behind_messages_of_an_old_format_differs(tmp_path: Path) -> None:
    assert unlike(tmp_path, batch(2), old=True) == ["format"]


def test_the_next_record_of_a_compacted_batch_is_behind_the_offset_that_was_asked_for(tmp_path: Path) -> None:
    log = partition(log_dir(tmp_path), "orders")
    whole = batch(6)
    log.append(replace(whole, records=whole.records[:1], last_offset_delta=5), batch(1, value_bytes=7))
    gap, next_one = check(tmp_path, log, 3), check(tmp_path, log, 6)
    assert (gap.base_offset, gap.record_offset, gap.record_bytes) == (0, -1, -1), "the batch is there, and has no such record any more"
    assert (next_one.record_offset, next_one.record_bytes) == (6, 7)


def test_no_content_of_a_record_leaves_the_host(tmp_path: Path) -> None:
    log = partition(log_dir(tmp_path), "orders")
    log.append(Batch(records=(Record(b"secret key", b"secret value", NOW),)))
    checked = check(tmp_path, log, 0)
    assert checked.record_bytes == len(b"secret key" + b"secret value")
    assert b"secret" not in checked.encode()


def test_a_batch_whose_records_cannot_be_opened_is_not_called_damaged(tmp_path: Path) -> None:
    log = partition(log_dir(tmp_path), "orders")
    log.append(batch(3))
    path = log.segments[0].path("log")
    data = bytearray(path.read_bytes())
    data[HEADER_BYTES] = 1  # the length of the first record
    data[CHECKED_FROM - 4 : CHECKED_FROM] = google_crc32c.value(bytes(data[CHECKED_FROM:])).to_bytes(4)
    path.write_bytes(data)
    checked = check(tmp_path, log, 1)
    assert (checked.sound, checked.record_offset) == (True, -1)
    assert checked.error.startswith("its records cannot be opened: ")


@pytest.mark.parametrize(("at", "error"), [(90, "bad CRC"), (16, "bad magic byte")])
def test_a_damaged_batch_is_found_with_its_place(tmp_path: Path, orders: PartitionLog, at: int, error: str) -> None:
    path = orders.segments[0].path("log")
    position = orders.segments[0].entries[0].size
    data = bytearray(path.read_bytes())
    data[position + at] ^= 0x40
    path.write_bytes(data)
    checked = check(tmp_path, orders, 4)
    assert (checked.sound, checked.segment, checked.position) == (False, 0, position)
    assert checked.error.startswith(error)


def test_an_old_message_is_checked_too(tmp_path: Path) -> None:
    log = partition(log_dir(tmp_path), "orders")
    log.active.write(encode_message(1, 0, Record(b"k", b"one", NOW)) + encode_message(1, 1, Record(b"k", b"two", NOW)))
    checked = check(tmp_path, log, 1)
    assert (checked.sound, checked.error, checked.base_offset, checked.records, checked.producer_id) == (True, "", 1, 1, -1)


def test_a_log_that_is_not_here_is_an_error(tmp_path: Path) -> None:
    log = partition(log_dir(tmp_path), "others")
    with pytest.raises(AgentError, match="orders-0 is not here"):
        check(tmp_path, log, 0)


def test_nothing_is_checked_in_a_log_dir_that_does_not_answer_or_whose_logs_the_watcher_has_not_found_again(
    tmp_path: Path, orders: PartitionLog
) -> None:
    agent = Agent(orders.directory.parent)
    Reader(agent).begin()
    asked, answers = BatchRequest(broker=1, topic="orders", topic_id=TOPIC_ID, partition=0, offset=0), agent.service.about_groups
    assert answers is not None
    assert answers.check_batch(asked).sound
    agent.log_dirs.bar(orders.directory.parent, "it does not answer")
    with pytest.raises(AgentError, match="orders-0 is not here"):
        answers.check_batch(asked)
    agent.look()
    agent.log_dirs.unbar(orders.directory.parent)
    agent.log_dirs.check()
    assert not agent.log_dirs.unavailable
    with pytest.raises(AgentError, match="orders-0 is not here"):
        answers.check_batch(asked)
    agent.look()
    assert answers.check_batch(asked).sound
    agent.close()
