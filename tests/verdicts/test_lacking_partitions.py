"""Topics that lack replicas because a broker is down: all of their partitions decide what follows from it, shown or not."""

from typing import Any
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from streaming.broker.agent.cluster_view import PartitionCounter
from streaming.broker.agent.service import unreadable_logs
from streaming.broker.protocol.cluster_messages import Registered
from streaming.broker.protocol.status_messages import UnreadableLog
from streaming.cluster.verdicts.cases import all_cases
from streaming.cluster.verdicts.incidents import problems
from streaming.common.log_key import LogKey
from streaming.kafka.formats.cluster_image import ClusterImage
from streaming.kafka.formats.metadata_records import Phase
from streaming.simulator.batch_writer import Batch, Record, encode
from streaming.simulator.metadata_writer import ReplicaSet, partition_record, topic_record
from tests.view.rows import log, new_table
from tests.worlds.problems import OLD, agent, around, well

TOPIC = UUID(int=1 << 70 | 7)
REPLICAS = (1, 2, 3)


def packed(*in_sync: tuple[int, ...], min_isr: int = 1) -> str:
    """The counts of a topic whose partitions have these replicas in sync; without one that is up, nobody leads."""
    values = [topic_record("wide", TOPIC)]
    for number, isr in enumerate(in_sync):
        leader = next((each for each in isr if each != 2), -1)
        values.append(partition_record(ReplicaSet(partition=number, topic_id=TOPIC, replicas=REPLICAS, isr=isr, leader=leader)))
    image = ClusterImage()
    image.apply(memoryview(encode(Batch(records=tuple(Record(value=value, timestamp=1) for value in values)), 0, 1)))
    return PartitionCounter(lambda _: min_isr).count(image).pack()


def world(counts: str, *logs: Any) -> Any:
    gone = Registered(broker=2, fenced=True, epoch=5, phase=Phase.DOWN, since_ms=OLD, replicas=True)
    status = well(registered=[Registered(broker=1, fenced=False), gone, Registered(broker=3, fenced=False)], counts=counts)
    return around(agent(status), table=new_table(*logs))


@given(st.lists(st.sampled_from([(1, 3), (1,), (2,), (1, 2), (1, 2, 3)]), min_size=1, max_size=30), st.sampled_from([1, 2, 3]))
def test_a_topic_s_problem_follows_from_the_broker_if_no_partition_lacks_anything_else(isrs: list[tuple[int, ...]], min_isr: int) -> None:
    every = {each.kind: each for each in problems(world(packed(*isrs, min_isr=min_isr)))}
    lacking = {
        "partition_offline": [{2} for isr in isrs if isr == (2,)],
        "under_min_isr": [{*REPLICAS} - {*isr} for isr in isrs if len(isr) < min_isr],
        "under_replicated": [{*REPLICAS} - {*isr} for isr in isrs if len(isr) < 3],
    }
    root = every["broker_down"]
    for kind, some in lacking.items():
        assert (kind in every) == bool(some)
        if some:
            assert every[kind].topic == "wide"
            assert (every[kind].because == root.id) == all(each == {2} for each in some)


def test_a_dead_broker_is_one_incident_with_topics_of_thousands_of_partitions() -> None:
    (root, follows) = problems(world(packed(*[(1, 3)] * 3_000)))
    assert (root.kind, follows.kind, follows.because) == ("broker_down", "under_replicated", root.id)
    assert "partition 4, in sync 1, 3, not in sync 2; 2,995 more" in follows.what


def test_one_partition_with_another_cause_is_not_hidden_behind_the_broker() -> None:
    every = problems(world(packed(*[(1, 3)] * 2_999, (1,))))
    assert [(each.kind, each.because) for each in every] == [("broker_down", ""), ("under_replicated", "")]


def test_the_rows_of_all_lacking_partitions_are_marked() -> None:
    logs = [log(topic="wide", partition=number, broker=1) for number in range(20)]
    of = world(packed(*[(1, 3)] * 20), *logs)
    (cases,) = (each for each in all_cases(of) if each.kind.name == "under_replicated")
    assert len(cases.items) == 20


def test_logs_that_cannot_be_read_are_marked_however_few_are_told_with_a_reason() -> None:
    keys = [LogKey(1, topic, partition, "id") for topic in ("wide", "thin") for partition in range(9)]
    told = UnreadableLog(1, "wide", 3, "id", "/d/wide-3", "gone")
    one = agent(well(), unreadable=tuple(unreadable_logs(keys)), unreadable_logs=(told,))
    (of_broker,) = one.unreadable
    assert (of_broker.broker, of_broker.logs, one.unreadable_keys) == (1, 18, {*keys})
    logs = [log(topic="wide", partition=number, topic_id="id", broker=1) for number in range(12)]
    (cases,) = (each for each in all_cases(around(one, table=new_table(*logs))) if each.kind.name == "log_unreadable" and len(each.items))
    assert len(cases.items) == 9
