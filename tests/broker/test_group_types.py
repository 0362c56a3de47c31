"""Groups of each type on a live broker: what is said of them, and each command that is printed for them, run against it."""

import shlex
from collections.abc import Iterator

import pytest
from confluent_kafka import TopicPartition as Partition
from confluent_kafka.admin import AdminClient  # type: ignore[attr-defined]

from streaming.broker.disk.logdirs import open_log_dirs
from streaming.broker.protocol.group_json import GroupDetail, GroupFinding
from streaming.cluster.verdicts.commands import Commands
from streaming.common.settings import Settings
from streaming.terminal.offline.group_reading import read_groups
from tests.broker.clients import create_topic
from tests.broker.kafka import Kafka
from tests.broker.kafka_tools import run_tool
from tests.broker.lab import Lab, lab
from tests.broker.observed import now_ms
from tests.group_answers import detailed
from tests.limits import SECONDS

TOOLS = {"kafka-consumer-groups.sh": "groups", "kafka-share-groups.sh": "share-groups"}
RESETS = {"simple": "assign", "classic": "classic", "consumer": "consumer"}


@pytest.fixture(scope="module")
def clients(kafka: Kafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with lab(kafka.bootstrap, tmp_path_factory.mktemp("lab") / "lab.log") as started:
        yield started


def why(kafka: Kafka, group: str) -> GroupDetail:
    """What the disk shows of a group now."""
    settings = Settings(server_properties=(kafka.broker(1).properties,))
    (found,) = detailed(read_groups(open_log_dirs(kafka.log_dirs), [group], settings, now_ms())).groups
    return found


def finding(group: GroupDetail, verdict: str) -> GroupFinding:
    return next(each for each in group.findings if each.verdict == verdict)


def run(command: str) -> str:
    """What a printed command prints."""
    program, *arguments = shlex.split(command)
    return run_tool(TOOLS[program], *arguments)


def delete(kafka: Kafka, topic: str, before: int) -> None:
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    for answer in admin.delete_records([Partition(topic, 0, before)]).values():
        answer.result(SECONDS)


def lost(kafka: Kafka, group: str) -> GroupDetail:
    """The group, once the disk shows its loss."""
    kafka.until(lambda: why(kafka, group).summary.verdict == "lost", f"{group} has lost records")
    return why(kafka, group)


@pytest.mark.parametrize(("group", "kind"), RESETS.items())
def test_the_command_for_what_a_group_has_lost_lets_it_begin_at_the_log_start(kafka: Kafka, clients: Lab, group: str, kind: str) -> None:
    create_topic(kafka.bootstrap, group)
    clients.produce(group, 0, [[(None, 100, None)]] * 20)
    clients.commit(group, kind, [(group, 0, 2)])
    left_ms = now_ms()
    if kind != "assign":
        clients.ask("leave", group=group)
    delete(kafka, group, 12)
    found = lost(kafka, group)
    if kind != "assign":
        assert left_ms <= found.summary.state_ms <= now_ms(), "no member since then"
    about = finding(found, "lost")
    assert about.text.startswith("already deleted: 10 records between the committed offset 2 and the log start 12")
    assert ("go on where they seek to" in about.text) == (kind == "assign")
    run(about.command)
    assert [(each.group, each.offset) for each in clients.commits() if each.group == group] == [(group, 12)]


def test_a_share_group_has_lost_what_it_was_not_done_with_and_goes_on_by_itself(kafka: Kafka, clients: Lab) -> None:
    create_topic(kafka.bootstrap, "shared")
    clients.produce("shared", 0, [[(None, 100, None)]] * 20)
    clients.ask("share", group="shared", topic="shared", answers="r" + 11 * "a" + 8 * "r")
    assert [(each.offset, each.lag) for each in clients.commits() if each.group == "shared"] == [(0, 9)]
    left_ms = now_ms()
    clients.ask("leave", group="shared")
    delete(kafka, "shared", 12)
    found = lost(kafka, "shared")
    (of,) = found.partitions
    assert (of.committed, of.lost_records, of.lost_offsets, of.lag_offsets, of.records_left) == (0, 1, 1, 9, 8)
    assert left_ms <= found.summary.state_ms <= now_ms()
    about = finding(found, "lost")
    assert about.text.endswith("Its consumers go on with what is left, without a reset")
    assert (about.command, bool(about.no_command)) == ("", True)
    came = clients.ask("share", group="shared", topic="shared", answers=8 * "a")
    assert [offset for _, offset in came] == list(range(12, 20)), "without a reset"
    clients.ask("leave", group="shared")
    kafka.until(lambda: why(kafka, "shared").summary.lag == 0, "the disk shows that everything is done")
    (of,) = why(kafka, "shared").partitions
    assert (of.lag_offsets, of.lag_bytes, of.lost_offsets) == (0, 0, 0)
    printed = run(Commands(server=kafka.bootstrap).of_group("shared", "Share").reset_to_earliest("shared", 0, by_itself=False).line)
    assert printed.splitlines()[-1].split() == ["shared", "shared", "0", "12"], "from the log start, so that nothing is skipped"


@pytest.mark.parametrize("kind", ["classic", "consumer"])
def test_partitions_that_are_assigned_and_not_committed_are_those_that_kafka_shows_without_a_lag(
    kafka: Kafka, clients: Lab, kind: str
) -> None:
    group = topic = f"partly-{kind}"
    create_topic(kafka.bootstrap, topic, 3)
    for partition in range(3):
        clients.produce(topic, partition, [[(None, 100, None)]] * (10 + partition))
    clients.commit(group, kind, [(topic, 0, 10)])
    kafka.until(lambda: why(kafka, group).summary.uncommitted == 2, "the disk shows the assignment", saw=lambda: why(kafka, group))
    found = why(kafka, group)
    printed = [
        line.split() for line in run_tool("groups", "--bootstrap-server", kafka.bootstrap, "--describe", "--group", group).splitlines()
    ]
    printed_rows = {int(row[2]): (row[3], row[4], row[5]) for row in printed if row[:2] == [group, topic]}
    assert printed_rows == {0: ("10", "10", "0"), 1: ("-", "11", "-"), 2: ("-", "12", "-")}
    assert {each.partition: each.uncommitted_records for each in found.partitions} == {0: -1, 1: 11, 2: 12}
    assert (found.summary.verdict, found.summary.lag, found.summary.uncommitted_records) == ("not_committed", 0, 23)
    about = [each.text for each in found.findings if each.partition == 1]
    assert about == ["nothing committed; at most 11 records in the log; auto.offset.reset decides where its consumers begin"]


def test_groups_that_are_shown_are_those_of_the_broker(kafka: Kafka, clients: Lab) -> None:
    listed = {name: (kind, protocol) for name, kind, protocol, _ in clients.ask("groups")}
    for name, (kind, protocol) in listed.items():
        summary = why(kafka, name).summary
        assert (summary.type, summary.protocol) == (kind, protocol), name
