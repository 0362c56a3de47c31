"""What is left for consumer groups on three brokers, held against really consuming it, while one is killed and when it is back."""

from contextlib import ExitStack
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient  # type: ignore[attr-defined]

from tests.broker import group_world
from tests.broker.dumped_logs import dumped
from tests.broker.group_comparing import agree, reported_by_job, reported_offline
from tests.broker.group_consuming import COMMITTED, UNCOMMITTED, consumed, leading
from tests.broker.group_oracle import Arithmetic
from tests.broker.kafka import Kafka
from tests.broker.lab import Lab, lab
from tests.job_without_spark import WITHOUT_SPARK
from tests.limits import SECONDS
from tests.processes import Segtail, segtail, until

_GROUPS = 6
_VICTIM = 2


def await_in_sync(kafka: Kafka, count: int, what: str) -> None:
    """Until every partition that is replicated has so many replicas in sync, and a leader."""

    def others() -> list[tuple[str, int, list[int]]]:
        topics = AdminClient({"bootstrap.servers": kafka.bootstrap}).list_topics(timeout=SECONDS).topics
        states = [(name, state) for name, topic in topics.items() for state in topic.partitions.values() if len(state.replicas) > 1]
        return [(name, state.leader, state.isrs) for name, state in states if len(state.isrs) != count or state.leader < 0]

    kafka.until(lambda: not others(), what, others)


def agreed(kafka: Kafka, clients: Lab, job: Segtail) -> int:
    """Whatever counts, counts the same: consumers, kafka-dump-log, segtail on the disks and a job. Returns how many pairs were compared."""
    arithmetic = Arithmetic(dumped(leading(kafka, group_world.TOPICS)))
    left = consumed(clients)
    for each in left:
        assert each.committed == arithmetic.consumed(each, COMMITTED), each
        assert each.uncommitted == arithmetic.consumed(each, UNCOMMITTED), each
    agree("segtail groups", left, arithmetic, lambda: reported_offline(kafka))
    agree("the job", left, arithmetic, lambda: reported_by_job(job.url or ""))
    return len(left)


@pytest.mark.long
def test_groups_have_left_what_they_consume_though_a_broker_is_killed(kafka_jars: None, tmp_path: Path) -> None:
    kafka = Kafka(tmp_path / "kafka", nodes=3, settings=group_world.SETTINGS)
    with ExitStack() as stack:
        stack.callback(kafka.kill)
        kafka.start()
        group_world.create(kafka)
        dirs, properties = (",".join(map(str, each)) for each in (kafka.log_dirs, [node.properties for node in kafka.brokers]))
        where = ("--log-dirs", dirs, "--server-properties", properties, "--checkpoint", tmp_path / "c", "--listen", "127.0.0.1:0")
        options = ("--from", "latest", "--set", "state_shards=4")
        job = stack.enter_context(segtail("run", *where, *options, stated=tmp_path / "said", before=WITHOUT_SPARK))
        clients = stack.enter_context(lab(kafka.bootstrap, tmp_path / "lab.log"))
        filling = group_world.Filling(kafka, clients, seed=2)
        filling.fill()
        group_world.commit_everywhere(filling, clients, leading(kafka, group_world.TOPICS), groups=_GROUPS)
        until("the job listens", lambda: job.url)
        assert agreed(kafka, clients, job) > 150

        kafka.kill(_VICTIM)
        await_in_sync(kafka, 2, "the others lead")
        filling.trade("after the kill")
        group_world.commit_in_transactions(clients)
        group_world.commit_by_assign(filling, clients, leading(kafka, group_world.TOPICS), groups=_GROUPS)
        assert agreed(kafka, clients, job) > 250

        kafka.start(_VICTIM)
        await_in_sync(kafka, 3, "all of them are in sync")
        assert agreed(kafka, clients, job) > 250
