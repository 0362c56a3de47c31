"""What is known of directories that brokers have set aside, or will: whether their records are anywhere else."""

from pathlib import Path
from typing import Any
from unittest.mock import create_autospec
from uuid import UUID

import pytest

from streaming.broker.agent.cluster_view import ClusterView
from streaming.broker.agent.strays import stray_sentences, strays_in
from streaming.broker.disk.logdirs import open_log_dirs
from streaming.kafka.formats.metadata_partitions import PartitionState
from streaming.rules.limits import limits_of
from streaming.simulator.log import LogDir
from streaming.simulator.segment_writer import uuid_text
from tests.builders import batch, log_dir, partition

ID = uuid_text(UUID(int=1))


def cluster(isr: tuple[int, ...] = (1,), *, known: bool = True, policy: str = "delete") -> Any:
    """Of one live topic, s, with one partition."""
    view = create_autospec(ClusterView, instance=True)
    state = PartitionState(replicas=(1, 2), isr=isr, leader=1, leader_epoch=0, partition_epoch=0)
    view.known = known
    view.topic_ids.return_value = [ID]
    view.topic_name.side_effect = {ID: "s"}.get
    view.partition.side_effect = lambda key: state if (key.topic, key.topic_id) in (("s", ""), ("s", ID)) else None
    view.limits.return_value = limits_of("s", f'{{"topic":{{"cleanup.policy":"{policy}"}}}}')
    return view


def kinds(view: Any, *disks: LogDir) -> dict[str, str]:
    found = strays_in(open_log_dirs([disk.path for disk in disks]), view)
    return {each.partition.path.name: str(each.kind) for each in found}


@pytest.fixture
def disk(tmp_path: Path) -> LogDir:
    return log_dir(tmp_path)


def stray(disk: LogDir, topic_id: int | None = None, topic: str = "s") -> str:
    log = partition(disk, topic, topic_id=topic_id, name=f"{topic}-0.{1:032x}-stray")
    log.append(batch(3), batch(2))
    return log.directory.name


def test_a_stray_of_a_live_topic_whose_log_has_other_records_is_the_only_copy(disk: LogDir) -> None:
    name = stray(disk)
    live = partition(disk, "s")
    assert kinds(cluster(), disk) == {name: "stray_only"}
    live.append(batch(7))
    assert kinds(cluster(), disk) == {name: "stray_only"}, "it has as many by now, and others"
    assert kinds(cluster(policy="compact"), disk) == {name: "stray_unknown"}
    assert kinds(cluster(known=False), disk) == {name: "stray_unknown"}
    (sentence,) = stray_sentences(open_log_dirs([disk.path]), cluster(), lambda topic, number: (topic, number) == ("s", 0))
    assert sentence.startswith("1 log of live topics set aside by their brokers, with records that no replica in sync has")
    assert not list(stray_sentences(open_log_dirs([disk.path]), cluster(), lambda topic, _: topic == "t"))


def test_what_a_replica_in_sync_has_may_go_and_of_what_nobody_saw_nothing_is_known(tmp_path: Path, disk: LogDir) -> None:
    name = stray(disk)
    partition(disk, "s")
    other = log_dir(tmp_path, "other", broker=2)
    assert kinds(cluster((1, 2)), disk) == {name: "stray_unknown"}
    whole = partition(other, "s")
    whole.append(batch(3), batch(2))
    whole.roll()
    whole.append(batch(4))
    assert kinds(cluster((1, 2)), disk, other) == {name: "stray"}
    assert kinds(cluster((1,)), disk, other) == {name: "stray_only"}, "that one is not in sync"


def test_a_stray_of_a_deleted_topic_may_go(disk: LogDir) -> None:
    partition(disk, "s").append(batch(1))
    assert kinds(cluster(), disk) == {}
    names = stray(disk, topic_id=9), stray(disk, topic="gone")
    assert kinds(cluster(), disk) == dict.fromkeys(names, "stray")


def test_a_log_of_a_live_topic_without_its_id_is_named_before_the_next_start(disk: LogDir) -> None:
    log = partition(disk, "s", topic_id=None)
    assert kinds(cluster(), disk) == {}, "its broker is making it"
    log.append(batch(1))
    assert kinds(cluster(), disk) == {"s-0": "unnamed"}
    (sentence,) = stray_sentences(open_log_dirs([disk.path]), cluster(), lambda *_: True)
    assert "without partition.metadata: the next start of their brokers sets them aside" in sentence
