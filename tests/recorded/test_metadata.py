"""The metadata log on a node's disk against what the brokers reported their clients when another node was lost."""

from pathlib import Path

from streaming.kafka.formats.checkpoint_files import parse_leader_epochs
from streaming.kafka.formats.cluster_image import ClusterImage
from tests.broker.install import KAFKA_VERSION
from tests.recorded.recordings import Disk, replay
from tests.recorded.worlds.metadata import PARTITIONS, TOPIC, VICTIM


def test_leaders_after_the_loss_of_a_node_are_on_the_disk_of_the_others(tmp_path: Path) -> None:
    replayed = replay("metadata", KAFKA_VERSION, tmp_path)
    disk, reported = replayed.disk(), dict(replayed.json("leaders"))

    image = ClusterImage()  # with one node of three gone, nothing is decided that the other two do not have on disk
    image.apply(memoryview((disk.log_dirs[0] / "__cluster_metadata-0" / f"{0:020}.log").read_bytes()))

    topic_id = image.topic_id(TOPIC)
    assert topic_id is not None
    assert sorted(reported) == list(range(PARTITIONS))
    for number, leader in reported.items():
        state = image.partition(topic_id, number)
        assert state is not None
        assert state.leader == leader
        assert state.leader_epoch == leader_epoch_on_disk(disk, leader, number)
    assert VICTIM in {broker.broker_id for broker in image.brokers() if broker.fenced}


def leader_epoch_on_disk(disk: Disk, node_id: int, partition: int) -> int:
    """A new leader writes its epoch down before it takes the first record."""
    (directory,) = (disk.directory / f"n{node_id}").glob(f"d*/{TOPIC}-{partition}")
    return parse_leader_epochs((directory / "leader-epoch-checkpoint").read_bytes())[-1].epoch
