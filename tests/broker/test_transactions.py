"""What is said of transactions, offline and by running jobs, held against brokers' own answers step by step, whatever is killed between."""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException
from confluent_kafka import TopicPartition as Offset
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from streaming.common.settings import Settings
from tests.broker.clients import create_topic, send
from tests.broker.kafka import Kafka
from tests.broker.oracle import TopicPartition, run_tool
from tests.broker.running import running
from tests.broker.transactions import Markers, Reported, Topics, Writer, find_hanging, load, markers, opened, reported_by
from tests.broker.wire import UNSTABLE_OFFSET_COMMIT, OpenProducer, ProducerId, Wire
from tests.commands import into
from tests.job_without_spark import WITHOUT_SPARK
from tests.limits import SECONDS
from tests.offline import lists
from tests.processes import WATCHED, Page, Segtail, read_page, segtail, until, values

pytestmark = pytest.mark.spark

TOPICS: Topics = {"pay": 3, "ghost": 3, "plain": 1}
QUICK = ("hanging_after=1s", "late_after=0s", "late_limit=100000", "state_shards=4")
TICK_MS = 20
SMALL = ("--spark", "spark.driver.memory=512m")  # several run at once
_LATER_SECONDS = 180  # nothing hangs that was not silent for a minute

Hanging = set[tuple[str, int, int, int]]


@pytest.fixture(scope="module")
def kafka_with_ghosts(kafka_jars: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    """A broker that believes every producer to be in a transaction, as those did that were older than verification."""
    settings = {
        "transaction.partition.verification.enable": "false",
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": 500,
    }
    yield from running(Kafka(tmp_path_factory.mktemp("kafka-with-ghosts"), settings=settings))


@dataclass(frozen=True)
class Runner:
    """Starts jobs on the log dirs of a cluster."""

    kafka: Kafka
    directory: Path

    def job(self, name: str, start_from: str, *more: object) -> tuple[object, ...]:
        dirs = ",".join(map(str, self.kafka.log_dirs))
        sets = [word for setting in QUICK for word in ("--set", setting)]
        return ("run", "--log-dirs", dirs, "--from", start_from, "--checkpoint", self.directory / name, *SMALL, *sets, *more)

    def start(self, running: ExitStack, name: str, start_from: str, *more: object, before: Sequence[str] = ()) -> Segtail:
        arguments = self.job(name, start_from, "--listen", "127.0.0.1:0", *more)
        return running.enter_context(segtail(*arguments, stated=self.directory / f"{name}.said", before=before))


def reported_of(page: Page, topics: Topics) -> dict[TopicPartition, Reported]:
    """What a page says, in a broker's words: all open transactions are late ones, so each has its own line."""
    ends, stable = (values(page, f"segtail_partition_{name}") for name in ("high_watermark", "last_stable_offset"))
    lags, counts = (values(page, f"segtail_partition_{name}") for name in ("last_stable_offset_lag", "open_transactions"))
    found: dict[TopicPartition, set[tuple[int, int, int]]] = {}
    for series in page:
        if series.name == "segtail_late_transaction_info":
            labels = dict(series.labels)
            key = (labels["topic"], int(labels["partition"]))
            row = (int(labels["producer_id"]), int(labels["producer_epoch"]), int(labels["first_offset"]))
            found.setdefault(key, set()).add(row)
    reported = {}
    for topic, count in topics.items():
        for key in ((topic, partition) for partition in range(count)):
            opened = found.get(key, set())
            if key not in ends or len(opened) != counts.get(key, 0) or lags[key] != ends[key] - stable[key]:
                return {}  # between two micro-batches, or not begun yet
            reported[key] = (ends[key], stable[key], opened)
    return reported  # type: ignore[return-value]


def as_page(reported: Mapping[TopicPartition, Reported]) -> Mapping[TopicPartition, object]:
    """A broker's answer in the form of `told_of`: timestamps are no labels."""
    return {
        key: (
            each.high_watermark,
            each.last_stable_offset,
            {without_time(one) for one in each.opened},
        )
        for key, each in reported.items()
    }


def ended_of(page: Page) -> dict[TopicPartition, Markers]:
    """The markers that a page counts."""
    committed, aborted, empty = (
        values(page, f"segtail_partition_{name}_total")
        for name in ("committed_transactions", "aborted_transactions", "empty_transaction_markers")
    )
    every = {key: Markers(committed=int(committed[key]), aborted=int(aborted[key]), empty=int(empty[key])) for key in committed}
    return {key: each for key, each in every.items() if each != Markers()}


def hanging_of(page: Page) -> Hanging:
    """What a page calls hanging, line by line; the counts must be of the same."""
    found = set()
    for series in page:
        if series.name == "segtail_late_transaction_info":
            labels = dict(series.labels)
            if labels["verdict"] == "hanging":
                found.add((labels["topic"], int(labels["partition"]), int(labels["producer_id"]), int(labels["first_offset"])))
    counts = values(page, "segtail_partition_hanging_transactions")
    assert sum(counts.values()) == len(found)
    return found


def offline(kafka: Kafka, later_ms: int = 0) -> lists.Opened:
    """What lies on disk, as it will be judged in so many milliseconds if nothing comes to it."""
    settings = Settings(hanging_after=timedelta(milliseconds=1))
    answer = lists.opened(kafka.log_dirs, settings, time.time_ns() // 1_000_000 + later_ms)
    assert not answer.doubts
    return answer


def assert_offline(kafka: Kafka, reported: Mapping[TopicPartition, Reported]) -> None:
    """What lies on disk says the same as the broker, in one look."""
    answer = offline(kafka)
    found: dict[TopicPartition, list[OpenProducer]] = {}
    held: dict[TopicPartition, int] = {}
    starts: dict[tuple[TopicPartition, tuple[int, int, int]], int] = {}
    for one in answer.transactions:
        key = (one.topic, one.partition)
        found.setdefault(key, []).append(OpenProducer(one.producer_id, one.producer_epoch, one.first_offset, one.last_append_ms))
        starts[key, without_time(found[key][-1])] = one.start_ms
        held[key] = max(held.get(key, 0), one.holds_offsets)
    assert {key: [without_time(one) for one in sorted(each)] for key, each in found.items()} == {
        key: [without_time(one) for one in each.opened] for key, each in reported.items() if each.opened
    }
    for key, ours in found.items():  # the clock that files get their times from is a few milliseconds late
        for mine, theirs in zip(sorted(ours), reported[key].opened, strict=True):
            stated = max(theirs.last_timestamp, starts[key, without_time(mine)])  # a record may be dated before its transaction's start
            assert 0 <= stated - mine.last_timestamp <= TICK_MS
    assert held == {key: reported[key].high_watermark - reported[key].last_stable_offset for key in found}


def without_time(one: OpenProducer) -> tuple[int, int, int]:
    return one.producer_id, one.producer_epoch, one.first_offset


def at_rest(port: int, topics: Topics, opened: int) -> dict[TopicPartition, Reported]:
    """What the broker says when so many transactions are open, each partition's counted: a client does not wait for its markers."""

    def reported() -> dict[TopicPartition, Reported] | None:
        found = reported_by(port, topics)
        return found if sum(len(each.opened) for each in found.values()) == opened else None

    return until(f"{opened} are open", reported, saw=lambda: reported_by(port, topics))


def agree(kafka: Kafka, jobs: Mapping[str, Segtail], *, opened: int) -> None:
    """The broker, the disk and every running job say the same of every partition."""
    (node,) = kafka.nodes
    reported = at_rest(node.port, TOPICS, opened)
    assert_offline(kafka, reported)
    expected = as_page(reported)
    for name, job in jobs.items():
        await_page(f"{name} says what the broker does", job, lambda page: reported_of(page, TOPICS), expected)


def await_page(what: str, job: Segtail, look: Callable[[Page], object], wanted: object) -> None:
    """Until a job's page shows that; what it showed last is reported beside it if it does not."""
    until(f"{what}, {wanted}", lambda: look(job.page()) == wanted, saw=lambda: look(job.page()))


def begins_at_end(kafka: Kafka, *, opened: int) -> dict[TopicPartition, int]:
    (node,) = kafka.nodes
    return {key: each.high_watermark for key, each in at_rest(node.port, TOPICS, opened).items()}


def begins_in_active_segment(kafka: Kafka) -> dict[TopicPartition, int]:
    segments = [path for each in kafka.log_dirs for path in each.glob("*-*/*.log")]
    found: dict[TopicPartition, int] = {}
    for path in segments:
        topic, _, partition = path.parent.name.rpartition("-")
        key = (topic, int(partition))
        found[key] = max(found.get(key, 0), int(path.stem))
    return found


def test_disk_and_jobs_say_what_the_broker_says_whenever_they_started_and_whatever_is_killed(
    kafka_with_ghosts: Kafka, tmp_path: Path
) -> None:
    kafka, runner = kafka_with_ghosts, Runner(kafka_with_ghosts, tmp_path)
    for topic, count in TOPICS.items():
        create_topic(kafka.bootstrap, topic, count, config={"internal.segment.bytes": "20000"})
    with ExitStack() as running:
        before = runner.start(running, "before", "earliest")
        until("it serves", lambda: ("plain", 0) in values(before.page(), "segtail_partition_log_end_offset"))
        agree(kafka, {"before": before}, opened=0)

        # commits and aborts of both versions, one left open in two partitions, one that times out, and two that nobody will end
        older = opened(kafka, "older", [("pay", 0, 2), ("pay", 1, 1)])  # the first one: librdkafka has the coordinators' topic made
        ghost = Writer(kafka, "ghost")
        ghost.hang("ghost", 0, 3, producer=ProducerId(777_777, 0))
        ghost.write("ghost", 1, 2)
        ghost.end(commit=True)
        kafka.until(lambda: not reported_by(kafka.nodes[0].port, {"ghost": 3})["ghost", 1].opened, "its marker is written")
        ghost.hang("ghost", 1, 4)
        short = Writer(kafka, "short", timeout_ms=1_000)
        short.write("pay", 1, 2)
        short.write("ghost", 2, 1)
        with load(kafka, "pay", 3, "one"):
            for _ in range(3):
                looked = offline(kafka)
                assert looked.transactions
        agree(kafka, {"before": before}, opened=4)  # the short one has been aborted
        assert_markers(kafka, {"before": (before, {})})

        before.kill()
        before.wait()
        newer = Writer(kafka, "newer")
        newer.write("pay", 2, 5)
        older.commit_transaction(SECONDS)
        left = opened(kafka, "left", [("pay", 0, 1), ("pay", 2, 2)])
        with load(kafka, "pay", 3, "two"):
            pass
        begins = {"latest": begins_at_end(kafka, opened=5), "active": begins_in_active_segment(kafka)}
        jobs = {
            "before": runner.start(running, "before", "earliest"),
            "latest": runner.start(running, "latest", "latest", before=WITHOUT_SPARK),
            "active": runner.start(running, "active", "active", before=WITHOUT_SPARK),
        }
        agree(kafka, jobs, opened=5)

        killed = jobs["before"].agent
        assert killed is not None
        jobs["before"].kill(killed)
        newer.end(commit=False)
        newer.write("pay", 0, 1)
        with load(kafka, "pay", 3, "three"):
            until("another agent is started", lambda: jobs["before"].agent not in (None, killed))
        left.abort_transaction(SECONDS)
        agree(kafka, jobs, opened=3)
        assert_markers(kafka, {name: (job, begins.get(name, {})) for name, job in jobs.items()})

        hangs = find_hanging(kafka)
        assert {each[:2] for each in hangs} == {("ghost", 0), ("ghost", 1)}
        out = tmp_path / "earliest.prom"
        later = ("--once", "--at", int(time.time()) + _LATER_SECONDS)  # the others have to wait for that
        once = running.enter_context(segtail(*runner.job("once", "earliest", *later), stated=tmp_path / "once.said", before=into(out)))
        for name, job in jobs.items():
            await_page(f"{name} says what hangs", job, hanging_of, hangs)
        answer = offline(kafka)
        assert {(one.topic, one.partition, one.producer_id, one.first_offset) for one in answer.hanging} == hangs
        assert once.wait() == 0, once.stated
        page = read_page(out.read_text())
        assert hanging_of(page) == hangs
        assert reported_of(page, TOPICS) == as_page(reported_by(kafka.nodes[0].port, TOPICS))
        assert totals_of(page) == totals_of(jobs["before"].page())

        end_what_hangs(kafka)
        agree(kafka, jobs, opened=1)
        assert find_hanging(kafka) == set()
        for name, job in jobs.items():
            await_page(f"{name} says that nothing hangs", job, hanging_of, set())


def _answers(reader: Consumer) -> bool:
    try:
        reader.committed([Offset("read", 0)], timeout=SECONDS)
    except KafkaException:  # the topic of the offsets has just been made
        return False
    return True


def open_in_offsets(port: int) -> set[OpenProducer]:
    """What is open in the topic of groups' offsets, as the broker says."""
    return {one for reported in reported_by(port, {"__consumer_offsets": 4}).values() for one in reported.opened}


def test_commits_that_hang_in_the_offsets_name_their_groups_until_they_are_aborted(kafka_with_ghosts: Kafka) -> None:
    kafka = kafka_with_ghosts
    port = kafka.nodes[0].port
    create_topic(kafka.bootstrap, "read", 1)
    opened(kafka, "warm", [("read", 0, 1)]).abort_transaction(SECONDS)  # the coordinators' topics are there
    reader = Consumer({"bootstrap.servers": kafka.bootstrap, "group.id": "warm"})
    until("the groups have a coordinator", lambda: _answers(reader))
    reader.close()
    before, opened_before = find_hanging(kafka), open_in_offsets(port)
    writer = Writer(kafka, "commits")
    for group in ("billing", "stock"):
        writer.hang_offsets(group, "read", 0)
    with Wire(port) as wire:
        assert wire.stable_offset_error("billing", "read", 0) == UNSTABLE_OFFSET_COMMIT
    hangs = find_hanging(kafka) - before
    assert {each[0] for each in hangs} == {"__consumer_offsets"}

    own = [one for one in offline(kafka, _LATER_SECONDS * 1000).hanging if one.topic == "__consumer_offsets"]
    assert {(one.topic, one.partition, one.producer_id, one.first_offset) for one in own} == hangs
    assert {group for one in own for group in one.groups} == {"billing", "stock"}
    for one in own:
        assert one.command
        run_tool("transactions", *one.command.split()[1:])
    kafka.until(lambda: not open_in_offsets(port) - opened_before, "nothing is open in the offsets", lambda: open_in_offsets(port))
    assert find_hanging(kafka) == before
    assert not [one for one in offline(kafka).transactions if one.topic == "__consumer_offsets"]
    with Wire(port) as wire:
        assert wire.stable_offset_error("billing", "read", 0) == 0


def assert_markers(kafka: Kafka, jobs: Mapping[str, tuple[Segtail, Mapping[TopicPartition, int]]]) -> None:
    """Every job counts the markers that lie on disk from where it began."""
    for name, (job, begins) in jobs.items():
        expected = markers(kafka.log_dirs, TOPICS, begins)
        assert sum(each.committed for each in expected.values())
        assert sum(each.aborted for each in expected.values())
        await_page(f"{name} counts the markers", job, lambda page: of_topics(ended_of(page)), expected)


def totals_of(page: Page) -> Page:
    """What was counted of these topics from their first byte on; not what is counted only while somebody looks, as segments that begin."""
    totals = {series: value for series, value in page.items() if series.name.endswith("_total") and "_segments_" not in series.name}
    return {
        series: value for series, value in totals.items() if not WATCHED.search(series.name) and dict(series.labels).get("topic") in TOPICS
    }


def of_topics(found: Mapping[TopicPartition, Markers]) -> dict[TopicPartition, Markers]:
    return {key: each for key, each in found.items() if key[0] in TOPICS}


def end_what_hangs(kafka: Kafka) -> None:
    """Runs the commands that `segtail transactions` prints, by the tool they name."""
    dirs = ",".join(map(str, kafka.log_dirs))
    command = [
        sys.executable,
        "-m",
        "streaming.terminal.cli",
        "transactions",
        "--log-dirs",
        dirs,
        "--hanging-after",
        "1s",
        "--format",
        "json",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (3, "")
    commands = [one["command"] for one in json.loads(done.stdout)["rows"] if one["verdict"] == "hanging"]
    assert len(commands) == 2
    for line in commands:
        program, *arguments = line.split()
        assert program == "kafka-transactions.sh"
        run_tool("transactions", *arguments)


def test_every_replica_is_reported_as_the_leader_shows_it_over_changes_of_leader_and_a_truncation(
    kafka_with_quorum: Kafka, tmp_path: Path
) -> None:
    kafka = kafka_with_quorum
    runner = Runner(kafka, tmp_path)
    if kafka.down:
        kafka.start(*kafka.down)
    with ExitStack() as running:
        create_on(kafka, "moved", [1, 2])
        opened(kafka, "warm", [("moved", 0, 1)]).abort_transaction(SECONDS)  # the coordinators' topic is there
        job = runner.start(running, "job", "earliest", "--set", "replicas=all", before=WITHOUT_SPARK)
        first = opened(kafka, "first", [("moved", 0, 3)])
        agree_on(kafka, job, leader=1, replicas=(1, 2), opened=1)

        kafka.kill(2)
        await_led(kafka, (1, [1]), "node 1 is alone in sync")
        send(first, "moved", 0, 1, 2)
        lost = opened(kafka, "lost", [("moved", 0, 4)])
        opened(kafka, "done", [("moved", 0, 2)]).commit_transaction(SECONDS)
        agree_on(kafka, job, leader=1, replicas=(1,), opened=2)

        kafka.kill(1)
        kafka.start(2)
        await_led(kafka, (2, [2]), "node 2 leads without what it had not heard of")
        opened(kafka, "later", [("moved", 0, 1)])
        agree_on(kafka, job, leader=2, replicas=(2,), opened=2)

        kafka.start(1)
        await_led(kafka, (2, [1, 2]), "node 1 is in sync again")
        agree_on(kafka, job, leader=2, replicas=(1, 2), opened=2)
        assert "log truncated" in job.stated

        kafka.kill(2)
        await_led(kafka, (1, [1]), "node 1 leads again")
        agree_on(kafka, job, leader=1, replicas=(1,), opened=2)
        del first, lost


def create_on(kafka: Kafka, topic: str, replicas: list[int]) -> None:
    """A partition on these nodes, of which any may lead, whatever it has missed."""
    new = NewTopic(topic, num_partitions=1, replica_assignment=[replicas], config={"unclean.leader.election.enable": "true"})
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    admin.create_topics([new])[topic].result(SECONDS)


def in_sync(kafka: Kafka, topic: str) -> tuple[int, list[int]]:
    """Leader and in-sync replicas of the one partition, as any node that is up knows them."""
    try:
        reported = AdminClient({"bootstrap.servers": kafka.bootstrap}).list_topics(topic, timeout=SECONDS).topics[topic].partitions[0]
    except KafkaException:
        return -1, []
    return reported.leader, sorted(reported.isrs)


def await_led(kafka: Kafka, wanted: tuple[int, list[int]], what: str) -> None:
    """Until the one partition has this leader and these replicas in sync."""
    kafka.until(lambda: in_sync(kafka, "moved") == wanted, what, lambda: in_sync(kafka, "moved"))


def agree_on(kafka: Kafka, job: Segtail, *, leader: int, replicas: tuple[int, ...], opened: int) -> None:
    """The leader, the disks and the job say the same, the job of each of these replicas."""
    topics: Topics = {"moved": 1}
    reported = at_rest(kafka.broker(leader).port, topics, opened)
    assert_offline(kafka, reported)
    expected = as_page(reported)
    for replica in replicas:
        await_page(f"it says of {replica}", job, lambda page, replica=replica: reported_of(of_broker(page, replica), topics), expected)  # type: ignore[misc]


def of_broker(page: Page, broker: int) -> Page:
    return {series: value for series, value in page.items() if ("broker", str(broker)) in series.labels}
