"""What a client may write as a name: 32 KiB of it. Ten such groups, each with commits in twenty topics, all the way to the page."""

import json
import shlex
import tracemalloc
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest

from streaming.broker.agent.group_answers import waiting_groups
from streaming.broker.disk.segment_files import list_segments
from streaming.broker.journal.range_values import encode_entries
from streaming.broker.protocol.group_messages import GroupsRequest
from streaming.broker.protocol.group_stream import GroupsAnswer
from streaming.cluster.verdicts.commands import Commands, GroupCommands
from streaming.common.rows import unpack_entries
from streaming.common.short_names import LONGEST_NAME, SHORT_CHARS, is_short_form, possible_names, short_name
from streaming.kafka.formats.consumer_offsets import GroupKey
from streaming.kafka.formats.stored_groups import ConsumerGroupMember, ConsumerGroupMemberKey, GroupMember, GroupMetadata, KeyType
from streaming.kafka.groups.group_rows import GroupChanges
from streaming.kafka.scan.coordinator_entries import CoordinatorEntry
from streaming.kafka.scan.group_records import GroupRecord
from streaming.rules.coordinator_state import Coordinators, newest
from streaming.simulator.batch_writer import Batch
from streaming.simulator.coordinators import offset_commit_record
from tests.agent.followed import beside
from tests.builders import NOW, batch, log_dir, partition
from tests.commands import run_command
from tests.consumers.group_agents import FakeAgent, Records
from tests.consumers.group_world import GroupJob, world
from tests.exposition.reading import page, samples
from tests.groups.coordinator import Log
from tests.scan.coordinator import entries, holding, state
from tests.tables import each_row
from tests.view.rows import new_observer, new_table

HOUR = 3_600_000
LONG = [f"group-{number}-" + "n" * 29_996 for number in range(10)]
TWINS = ["t" * 30_000 + "a", "t" * 30_000 + "b"]
TOPICS = [f"orders-{number}" for number in range(20)]


@dataclass
class AgentBeside(FakeAgent):
    """Answers about groups as the agent of a real log dir does."""

    changed: tuple[GroupChanges, ...] = ()

    def groups(self, request: GroupsRequest | None = None) -> GroupsAnswer:
        return GroupsAnswer(journal=self.journal, seq=self.seq, changes=list(self.changed), others=[])


@pytest.fixture(scope="module")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The log dir of a broker on which ten groups have names of 30,004 characters, and two more differ in the last one alone."""
    made = log_dir(tmp_path_factory.mktemp("names"))
    coordinator = partition(made, "__consumer_offsets", topic_id=7, segment_bytes=64 << 20)
    for number, topic in enumerate(TOPICS):
        partition(made, topic, topic_id=8 + number).append(batch(10, timestamp=NOW - HOUR))
    for group in LONG:
        coordinator.append(*(Batch(records=(offset_commit_record(group, topic, 0, 3, NOW - 60_000),)) for topic in TOPICS))
    for offset, group in enumerate(TWINS):
        coordinator.append(Batch(records=(offset_commit_record(group, TOPICS[0], 0, offset, NOW - 60_000),)))
    made.write_high_watermarks()
    return made.path


@pytest.fixture(scope="module")
def changed(disk: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[GroupChanges, ...]:
    """What the agent beside these log dirs sends of groups."""
    with beside(tmp_path_factory.mktemp("journal"), disk) as agent:
        agent.settle()
        return tuple(each for each in agent.following.changes([]) if isinstance(each, GroupChanges))


def job_of(changed: tuple[GroupChanges, ...]) -> GroupJob:
    """A job that has asked this agent."""
    logs = {(topic, 0): Records(["data"] * 10) for topic in TOPICS}
    job = GroupJob(new_table(), {"a1": AgentBeside(logs=logs, changed=changed)}, now=NOW / 1000)
    job.put("__consumer_offsets", end=10_000)
    for topic in TOPICS:
        job.put(topic, end=10)
    job.reach()
    job.round()
    return job


@pytest.fixture(scope="module")
def job(changed: tuple[GroupChanges, ...]) -> GroupJob:
    return job_of(changed)


def test_a_name_of_32_kib_is_in_no_series_of_a_page(job: GroupJob) -> None:
    text = page(job.table, now=job.now, groups=job.board)
    assert max(map(len, text.splitlines())) < 1000
    assert text.count(short_name(LONG[3])) > len(TOPICS)
    assert len(text) < 2_000_000


def test_names_are_short_before_agent_and_job_keep_them(changed: tuple[GroupChanges, ...], job: GroupJob) -> None:
    assert sum(rows.nbytes for each in changed for rows in (each.commits, each.pending, each.groups)) < 100_000  # were 7 MB
    page(job.table, now=job.now, groups=job.board)  # what is made once, such as compiled patterns, is not counted
    tracemalloc.start()
    try:
        other = job_of(changed)
        page(other.table, now=other.now, groups=other.board)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 10_000_000


def test_two_names_with_the_same_beginning_stay_two(job: GroupJob) -> None:
    offsets = [detail.partitions[0].committed for name in TWINS if (detail := job.detail(short_name(name)))]
    assert offsets == [0, 1]


@each_row("given", [LONG[0], short_name(LONG[0])])
def test_urls_take_a_name_as_it_is_shown_and_the_whole_one(job: GroupJob, given: str) -> None:
    shown = job.detail(given)
    assert shown is not None
    assert shown.summary.group == short_name(LONG[0])


@each_row("command", ["groups", "why"])
@each_row("given", [LONG[4], short_name(LONG[4])])
def test_commands_take_a_name_as_it_is_shown_and_the_whole_one(disk: Path, command: str, given: str) -> None:
    done = run_command(command, given, "--log-dirs", str(disk), "--at", str(NOW), "--json")
    (group,) = json.loads(done.stdout)["rows"]
    assert group["summary"]["group"] == short_name(LONG[4])
    assert "there is no group" not in done.stderr


def test_a_short_form_that_stands_for_nothing_is_no_group(disk: Path) -> None:
    done = run_command("why", short_name("n" * 999), "--log-dirs", str(disk), "--at", str(NOW))
    assert "no group nnnn" in done.stderr


def test_a_table_shows_names_so_that_they_can_be_copied(disk: Path) -> None:
    done = run_command("groups", "--log-dirs", str(disk), "--at", str(NOW))
    shown = [line.split()[0] for line in done.stdout.partition("\n\n")[0].splitlines()[1:]]
    assert sorted(shown) == sorted(map(short_name, [*LONG, *TWINS]))


def test_a_command_of_segtail_takes_a_short_form_and_one_of_kafka_is_refused() -> None:
    group = short_name(LONG[0])
    commands = GroupCommands(group=group, server="kafka-1:9092")
    assert shlex.split(commands.why(group).line) == ["segtail", "why", group]
    refused = "a name is too long to be shown whole, as Kafka's tools need it"
    assert (commands.reset_to("orders", 0, 1).line, commands.reset_to("orders", 0, 1).reason) == ("", refused)
    assert Commands().describe_transaction(group).reason == refused


def test_a_short_form_is_stable_and_never_another_name() -> None:
    assert short_name("n" * LONGEST_NAME) == "n" * LONGEST_NAME
    form = short_name("n" * (LONGEST_NAME + 1))
    assert form == "n" * 79 + "~64091ef053a17b180bb5"
    assert (len(form), is_short_form(form)) == (SHORT_CHARS, True)
    assert short_name(form) != form  # a group whose name is written like a short form
    assert possible_names(form) == (form, short_name(form))
    assert possible_names("billing") == ("billing",)


@each_row("name", ["\x03\n" * 200, "\udc80" * 300, "\u202e" * 251, "\U0001f600" * 251])
def test_any_text_has_a_short_form(name: str) -> None:
    assert is_short_form(short_name(name))
    assert short_name(name).startswith(name[:79])


def test_clients_hosts_and_protocols_of_members_are_short() -> None:
    name, short = LONG[0], short_name(LONG[0])
    of = GroupMember(member_id=name, client_id=name, client_host=name, session_timeout_ms=1, subscription=b"", assignment=b"")
    value = GroupMetadata(protocol_type=name, generation=1, protocol=name, leader=name, members=(of,))
    log = Log()
    log.take(GroupRecord(0, GroupKey("g"), value))
    row = log.row
    assert (row["protocol"], row["clients"], row["hosts"]) == (short, [short], [short])
    member = ConsumerGroupMember(
        instance_id=name,
        rack_id=None,
        client_id=name,
        client_host=name,
        topics=(name,),
        topic_regex=name,
        rebalance_timeout_ms=1,
        server_assignor=name,
    )
    log = Log()
    log.take(GroupRecord(0, ConsumerGroupMemberKey(KeyType.CONSUMER_GROUP_MEMBER_METADATA, "h", name), member))
    row = log.row
    assert (row["clients"], row["hosts"], row["topics"]) == ([short], [short], [short])


def table_of(found: Iterable[CoordinatorEntry]) -> pa.Table:
    packed = encode_entries(list(found), str)
    assert packed is not None
    return pa.Table.from_batches([unpack_entries(packed)])


def test_transactional_ids_are_short_where_a_log_is_read() -> None:
    names = [LONG[0], *TWINS, "billing"]
    found = entries(*(holding(state(name, producer=number)) for number, name in enumerate(names)))
    assert [each.transactional_id for each in found.entries] == [*map(short_name, names[:3]), "billing"]
    assert Coordinators.of(newest([table_of(found.entries)]), complete=True).shortened == 3


def test_an_entry_of_an_earlier_agent_ends_with_that_of_the_next_one() -> None:
    """Else its transaction would be open for ever in the state of a job that was started again with a later version."""
    before = table_of([CoordinatorEntry(transactional_id=LONG[0], offset=1, state="Ongoing", producer_id=4)])
    after = table_of([CoordinatorEntry(transactional_id=short_name(LONG[0]), offset=2, state="CompleteCommit", producer_id=4)])
    assert newest([before, after])["state"].to_pylist() == ["CompleteCommit"]
    assert newest([before])["transactional_id"].to_pylist() == [short_name(LONG[0])]


def test_groups_that_wait_for_a_transaction_have_short_names(tmp_path: Path) -> None:
    log = partition(log_dir(tmp_path), "__consumer_offsets", segment_bytes=1 << 20)
    record = offset_commit_record(LONG[0], "orders", 0, 3, NOW)
    log.append(Batch(records=(record,), producer_id=9, producer_epoch=0, base_sequence=0, transactional=True))
    assert waiting_groups(list_segments(log.directory), 9, 0).groups == (short_name(LONG[0]),)


def test_names_that_were_shortened_are_counted(job: GroupJob) -> None:
    assert job.page()["groups_shortened{}"] == len(LONG) + len(TWINS)


def test_a_page_is_bounded_also_where_an_earlier_agent_sends_long_names(caplog: pytest.LogCaptureFixture) -> None:
    job = world()
    for name in LONG:
        job.agents["a1"].commit(3, group=name)
    job.round()
    whole = page(job.table, now=job.now, groups=job.board)
    assert len(whole) > 5_000_000
    job.table.label_limit = 3 << 20
    observer = new_observer()
    bounded = page(job.table, observer, now=job.now, groups=job.board)
    assert len(bounded) < (3 << 20) + 200_000
    dropped = len(samples(whole)) - len(samples(bounded))
    assert values(page(job.table, observer, now=job.now, groups=job.board), "label_bytes") == [2 * dropped]  # at every page
    assert [each.message for each in caplog.records].count("more bytes of labels than label_limit: whole metrics are left out") == 1
    assert "segtail_group_unread_records{" in bounded  # alerts look at it
    assert "segtail_group_lag_bytes{" not in bounded


def values(text: str, reason: str) -> list[float]:
    return [
        value for (name, labels), value in samples(text).items() if name == "segtail_series_dropped_total" and ("reason", reason) in labels
    ]
