"""Follow the metadata log of a broker: as it grows, rolls, is cut off, and from its snapshots."""

from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest

from streaming.broker.disk.logdirs import open_log_dirs
from streaming.broker.disk.metadata_log import MetadataLog, load_metadata_snapshot
from streaming.errors import FormatError
from streaming.kafka.formats.cluster_image import ClusterImage
from streaming.kafka.formats.metadata_records import MetadataFrame, MetadataKind, read_metadata_frame
from streaming.kafka.formats.names import MetadataSnapshot
from streaming.simulator.batch_writer import encode
from streaming.simulator.log import PartitionLog
from streaming.simulator.metadata_writer import metadata_batch, snapshot_footer_batch, snapshot_header_batch, topic_record
from tests.builders import NOW, log_dir, partition
from tests.formats.vectors import FORMATTED_4_4, UNREGISTER_CONTROLLER
from tests.simulated import write_part


def topic(name: str) -> bytes:
    return topic_record(name, UUID(int=sum(name.encode()) + 1000))


@pytest.fixture
def log(tmp_path: Path) -> Iterator[PartitionLog]:
    made = partition(log_dir(tmp_path), "__cluster_metadata")
    yield made
    made.close()


@pytest.fixture
def follower(log: PartitionLog) -> MetadataLog:
    return MetadataLog(open_log_dirs([log.directory.parent]))


def write(log: PartitionLog, *names: str, epoch: int = 1) -> None:
    for name in names:
        log.append(metadata_batch([topic(name)], NOW), leader_epoch=epoch)


def snapshot(log: PartitionLog, *names: str) -> None:
    """A snapshot of everything up to the end of the log."""
    header, footer = encode(snapshot_header_batch(NOW), 0), encode(snapshot_footer_batch(NOW), 1 + len(names))
    content = header + encode(metadata_batch([topic(name) for name in names], NOW), 1) + footer
    (log.directory / f"{log.log_end_offset:020d}-{1:010d}.checkpoint").write_bytes(content)


def topics(image: ClusterImage) -> set[str]:
    return {topic.name for topic in image.topics()}


def test_it_goes_on_where_the_last_look_ended(log: PartitionLog, follower: MetadataLog) -> None:
    write(log, "first")
    image = follower.advance(None)
    write(log, "second", "third")
    again = follower.advance(image)
    assert (again is image, topics(image), image.next_offset) == (True, {"first", "second", "third"}, 3)
    assert follower.advance(image) is image


def test_a_batch_that_is_not_whole_yet_waits(log: PartitionLog, follower: MetadataLog) -> None:
    write(log, "first")
    image = follower.advance(None)
    write_part(log, metadata_batch([topic("second")], NOW), size=40, leader_epoch=1)
    assert topics(follower.advance(image)) == {"first"}
    write(log, "second")
    assert topics(follower.advance(image)) == {"first", "second"}


@pytest.mark.parametrize("looked", [False, True])
def test_it_follows_into_the_next_segment_also_when_it_was_at_the_end_before_the_roll(
    log: PartitionLog, follower: MetadataLog, looked: bool
) -> None:
    write(log, "first")
    image = follower.advance(None)
    if looked:
        image = follower.advance(image)
    log.roll()
    image = follower.advance(image)
    write(log, "second")
    log.roll()
    write(log, "third")
    assert topics(follower.advance(image)) == {"first", "second", "third"}


def test_what_was_appended_right_before_a_roll_is_read(log: PartitionLog, follower: MetadataLog) -> None:
    write(log, "first")
    image = follower.advance(None)
    write(log, "second")
    log.roll()
    write(log, "third")
    assert topics(follower.advance(image)) == {"first", "second", "third"}


def test_a_log_that_was_cut_off_is_read_anew(log: PartitionLog, follower: MetadataLog) -> None:
    write(log, "first", "lost")
    image = follower.advance(None)
    log.truncate(1)
    assert topics(follower.advance(image)) == {"first"}


def test_a_log_that_was_cut_off_and_has_grown_past_its_old_end_is_read_anew(log: PartitionLog, follower: MetadataLog) -> None:
    write(log, "first", "lost")
    image = follower.advance(None)
    log.truncate(1)
    write(log, "won", "more", epoch=2)
    assert topics(follower.advance(image)) == {"first", "won", "more"}


def test_a_log_that_was_replaced_as_a_whole_is_read_anew(log: PartitionLog, follower: MetadataLog) -> None:
    write(log, "first", "second")
    image = follower.advance(None)
    segment = log.directory / f"{0:020d}.log"
    content = segment.read_bytes()
    segment.unlink()
    segment.write_bytes(content[: len(content) // 2])
    assert topics(follower.advance(image)) == {"first"}


def test_it_begins_with_the_newest_snapshot(log: PartitionLog, follower: MetadataLog) -> None:
    write(log, "first")
    snapshot(log, "first")
    write(log, "second")
    snapshot(log, "first", "second")
    write(log, "third")
    image = follower.advance(None)
    assert (topics(image), image.next_offset) == ({"first", "second", "third"}, 3)


def test_a_log_whose_beginning_is_deleted_needs_its_snapshot(log: PartitionLog, follower: MetadataLog) -> None:
    write(log, "first", "second")
    log.roll()
    write(log, "third")
    (log.directory / f"{0:020d}.log").unlink()
    with pytest.raises(FormatError, match="0 is missing"):
        follower.advance(None)
    follower.restart()
    (log.directory / f"{2:020d}-{1:010d}.checkpoint").write_bytes(
        encode(snapshot_header_batch(NOW), 0)
        + encode(metadata_batch([topic("first"), topic("second")], NOW), 1)
        + encode(snapshot_footer_batch(NOW), 3)
    )
    assert topics(follower.advance(None)) == {"first", "second", "third"}


def test_a_broker_without_a_metadata_log_is_reported_by_name(tmp_path: Path) -> None:
    directory = log_dir(tmp_path)
    with pytest.raises(FileNotFoundError, match="no __cluster_metadata-0 in"):
        MetadataLog(open_log_dirs([directory.path])).advance(None)


def test_the_snapshot_that_a_node_is_formatted_with_is_not_needed(log: PartitionLog, follower: MetadataLog) -> None:
    """Kafka 4.4 writes it for the broker's user alone; the first leader appends what is in it."""
    formatted = log.directory / "00000000000000000000-0000000000.checkpoint"
    formatted.write_bytes(FORMATTED_4_4)
    write(log, "first")
    assert follower.can_begin_again()
    assert topics(follower.advance(None)) == {"first"}
    assert follower.past() is None
    assert load_metadata_snapshot(log.directory, MetadataSnapshot(0, 0)).next_offset == 0  # it can be read all the same
    formatted.write_bytes(b"cut off")
    assert topics(follower.advance(None)) == {"first"}


def test_a_controller_that_was_unregistered_changes_nothing_that_is_shown(log: PartitionLog, follower: MetadataLog) -> None:
    assert read_metadata_frame(UNREGISTER_CONTROLLER) == MetadataFrame(MetadataKind.UNREGISTER_CONTROLLER, 0)
    write(log, "first")
    log.append(metadata_batch([UNREGISTER_CONTROLLER], NOW), leader_epoch=1)
    write(log, "second")
    assert topics(follower.advance(None)) == {"first", "second"}
