"""What brokers know of their cluster, as their own disks tell it."""

from pathlib import Path

import pytest

from streaming.disk.logdirs import list_partitions, open_log_dirs
from streaming.kafka.names import METADATA_TOPIC, DirState
from streaming.rest.metadata import read_metadata
from tests.frozen import NAMES, Frozen, unpack


@pytest.fixture(params=NAMES)
def cluster(request: pytest.FixtureRequest, tmp_path: Path) -> Frozen:
    return unpack(request.param, tmp_path)


def test_the_broker_that_has_heard_most_is_believed(cluster: Frozen) -> None:
    log_dirs, doubts = open_log_dirs(cluster.log_dirs), list[str]()
    metadata = read_metadata(log_dirs, doubts.append)
    heard = {broker: image.next_offset for broker, image in metadata.images.items() if image is not None}
    assert set(heard) == {log_dir.broker for log_dir in log_dirs}
    assert metadata.newest is not None
    assert metadata.newest.next_offset == max(heard.values())
    assert (metadata.told_ms > 0, doubts) == (True, [])


def test_every_log_is_where_the_newest_metadata_has_it(cluster: Frozen) -> None:
    log_dirs = open_log_dirs(cluster.log_dirs)
    metadata = read_metadata(log_dirs, pytest.fail)
    partitions = [each for log_dir in log_dirs for each in list_partitions(log_dir) if each.state is DirState.LIVE]
    for partition in partitions:
        state = metadata.state(partition)
        assert (state is None) == (partition.topic == METADATA_TOPIC)
        assert state is None or partition.log_dir.broker in state.replicas


def test_a_metadata_log_that_is_gone_is_told_and_the_others_stand(cluster: Frozen) -> None:
    log_dirs, doubts = open_log_dirs(cluster.log_dirs), list[str]()
    first = min(log_dir.broker for log_dir in log_dirs)
    for log_dir in log_dirs:
        metadata = log_dir.path / "__cluster_metadata-0"
        if log_dir.broker == first and metadata.is_dir():
            metadata.rename(log_dir.path / "elsewhere")
    found = read_metadata(log_dirs, doubts.append)
    assert found.images[first] is None
    assert [doubt.partition(":")[0] for doubt in doubts] == [f"broker {first}"]
    assert (found.newest is None) == (len(found.images) == 1)
