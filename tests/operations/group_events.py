"""The events about consumer groups and their transactions: everyday life, of which nobody has to know, and what somebody is told."""

from collections import defaultdict
from collections.abc import Container, Iterator
from contextlib import ExitStack
from uuid import uuid4

from streaming.kafka.formats.names import OFFSETS_TOPIC
from streaming.rules.expired_arrivals import DAY_MS
from tests.broker.kafka_tools import run_tool
from tests.operations import actions
from tests.operations.cluster import Cluster
from tests.operations.consumers import (
    Leaving,
    Member,
    fill,
    late,
    read_more,
    read_once,
    reading_in_transactions,
    restarting,
    topic,
    writing,
)
from tests.operations.day import Step

RATE = 20
"""Records a second that are appended to each topic."""

ABANDONED = 8
EXACTLY_ONCE = ("eos-in", "eos-out", "eos-copy")
"""What an application with exactly-once reads, and to which topics it writes."""
HOUR = 60
"""In minutes, as what follows."""

_KNOWN = 21
"""Minutes that no factor shortens: for so long after its start a job may have to find out which groups have stopped."""

_LATELY = 11
"""Minutes that no factor shortens: a group rebalances on until its last rebalance is ten minutes old."""

_SETTLE = 25
"""GroupStopped fires on for 20 minutes."""


def consumers_deployed(cluster: Cluster) -> Iterator[Step]:
    with topic(cluster.kafka, "deployed") as name, writing(cluster.kafka, name, RATE):
        members = [Member(cluster.kafka, "deployment", name) for _ in range(3)]
        with ExitStack() as old, ExitStack() as new:
            stacks = [old.enter_context(ExitStack()) for _ in members]
            for stack, member in zip(stacks, members, strict=True):
                stack.enter_context(member)
            for stack in stacks:
                stack.close()
                new.enter_context(Member(cluster.kafka, "deployment", name))
                cluster.idle(60)
            yield Step(name="Each member of a group is stopped, and a new one started, one after the other", minutes=15)


def groups_thrown_away(cluster: Cluster) -> Iterator[Step]:
    with topic(cluster.kafka, "looked-at", _ms(cluster, HOUR / 2)) as name, writing(cluster.kafka, name, RATE):
        for number in range(ABANDONED):
            read_once(cluster.kafka, f"anonymous.{uuid4()}" if number % 2 else f"console-consumer-{10_000 + number}", name)
        yield Step(name="Somebody looks at a topic with short retention, each time as another group", minutes=HOUR)


def job_each_half_hour(cluster: Cluster) -> Iterator[Step]:
    with topic(cluster.kafka, "batches") as name:
        for _ in range(3):  # from two pauses its rhythm is known; until then there is nothing to read in them
            fill(cluster.kafka, name, 1, RATE)
            read_once(cluster.kafka, "half-hourly", name, RATE)
            cluster.idle(HOUR / 2 * 60)
        with writing(cluster.kafka, name, RATE):
            read_once(cluster.kafka, "half-hourly", name)
            yield Step(name="It runs every half hour, and what it reads is written all the time", minutes=HOUR / 2 - 3)
            read_once(cluster.kafka, "half-hourly", name)
            yield Step(name="It is not started for two hours", minutes=2 * HOUR)
            with Member(cluster.kafka, "half-hourly", name) as member:
                member.await_read()
                yield Step(name="It runs again", minutes=_SETTLE)


def poison_pill(cluster: Cluster) -> Iterator[Step]:
    with topic(cluster.kafka, "pills") as name, writing(cluster.kafka, name, RATE), Member(cluster.kafka, "mailer", name) as member:
        member.await_read(RATE)
        member.stands = True
        yield Step(name="Its consumer lives and commits, and does not get beyond a record", minutes=20)
        member.stands = False
        yield Step(name="The record is skipped", minutes=_SETTLE)


def read_from_earliest(cluster: Cluster) -> Iterator[Step]:
    kept_ms = _ms(cluster, HOUR)
    with topic(cluster.kafka, "history", kept_ms) as name:
        fill(cluster.kafka, name, 0.9 * kept_ms / 1000, RATE)
        with writing(cluster.kafka, name, RATE), Member(cluster.kafka, "newcomer", name, pace=5 * RATE) as member:
            yield Step(name="A new group begins at earliest, and reads five times as fast as is written", minutes=HOUR / 2)
            member.read_again()
            yield Step(name="It is reset to earliest, and reads everything again", minutes=HOUR / 2)


def slow_consumer(cluster: Cluster) -> Iterator[Step]:
    kept_ms = _ms(cluster, HOUR / 2)
    with topic(cluster.kafka, "overtaken", kept_ms) as name:
        fill(cluster.kafka, name, 0.7 * kept_ms / 1000, RATE)
        with writing(cluster.kafka, name, RATE), Member(cluster.kafka, "slow", name, pace=RATE / 4) as member:
            yield Step(name="It reads a quarter of what is written, until retention overtakes it", minutes=HOUR)
            member.pace = 1e6
            yield Step(name="It reads faster", minutes=40)


def exactly_once_dies(cluster: Cluster) -> Iterator[Step]:
    kafka = cluster.kafka
    with ExitStack() as stack:
        source, *outputs = (stack.enter_context(topic(kafka, each)) for each in EXACTLY_ONCE)
        stack.enter_context(writing(kafka, source, RATE))
        reader = reading_in_transactions(kafka, "eos", source)
        application = Leaving(kafka, "eos-1", 2 * _KNOWN * 60_000)
        application.commit(*outputs, reads=reader)
        read_more(reader)
        application.leave_open(*outputs, reads=reader)
        for each in outputs:
            stack.enter_context(writing(kafka, each, 1))
        reader.close()
        yield Step(name="It dies in a transaction that holds its offsets and its output to two topics", minutes=_KNOWN * cluster.factor)
        reported = _notifications(cluster, "TransactionStuck", {*outputs, OFFSETS_TOPIC})
        assert set(map(frozenset, reported)) == {frozenset(outputs)}, f"one transaction is reported in {reported}"
        actions.end_by_force(kafka, "eos-1")
        with Member(kafka, "eos", source):
            yield Step(name="The transaction is ended by force, and the application starts again", minutes=40)


def _notifications(cluster: Cluster, alert: str, topics: Container[str]) -> list[list[str]]:
    """The topics, of some, that each notification has of an alert that fires."""
    found: dict[int, list[str]] = defaultdict(list)
    for page in cluster.pages:
        if (page.status, page.labels["alertname"]) == ("firing", alert) and page.labels["topic"] in topics:
            found[page.notification].append(page.labels["topic"])
    return [*found.values()]


def flink_restarts(cluster: Cluster) -> Iterator[Step]:
    kafka = cluster.kafka
    with topic(kafka, "sink") as name:
        Leaving(kafka, "flink-1", _ms(cluster, 15)).leave_open(name)
        with writing(kafka, name, RATE), Member(kafka, "sink-reader", name):
            yield Step(name="It takes new transactional ids, and its old transaction stays open until its timeout", minutes=30)


def late_records(cluster: Cluster) -> Iterator[Step]:
    with topic(cluster.kafka, "dead-letters", 7 * DAY_MS) as name:
        fill(cluster.kafka, name, 1, RATE)
        with late(cluster.kafka, name, 30 * DAY_MS):
            yield Step(name="Its records are thirty days old when they come, and the topic keeps seven", minutes=15)


def skipped_by_hand(cluster: Cluster) -> Iterator[Step]:
    with topic(cluster.kafka, "invoiced") as name:
        fill(cluster.kafka, name, 5, RATE)
        read_once(cluster.kafka, "ledger", name, 5 * RATE)
        fill(cluster.kafka, name, 5, RATE)
        cluster.idle(120)
        place = ("--bootstrap-server", cluster.kafka.bootstrap, "--group", "ledger", "--topic", name)
        run_tool("groups", *place, "--reset-offsets", "--to-latest", "--execute")
        yield Step(name="Somebody resets a group without members to latest", minutes=20)
        run_tool("groups", *place, "--reset-offsets", "--to-offset", str(5 * RATE), "--execute")
        with Member(cluster.kafka, "ledger", name):
            yield Step(name="Its offset is set back to where it was", minutes=20)


def consumer_crashes(cluster: Cluster) -> Iterator[Step]:
    with topic(cluster.kafka, "crashing") as name, writing(cluster.kafka, name, RATE), ExitStack() as stack:
        for _ in range(2):
            stack.enter_context(Member(cluster.kafka, "crashes", name))
        with restarting(cluster.kafka, "crashes", name):
            yield Step(name="One of three members ends and starts again every few seconds", minutes=24)
        stack.enter_context(Member(cluster.kafka, "crashes", name))
        yield Step(name="It stays", minutes=_LATELY * cluster.factor)


def _ms(cluster: Cluster, minutes: float) -> int:
    """So many minutes, shortened, in milliseconds."""
    return round(minutes * 60_000 / cluster.factor)
