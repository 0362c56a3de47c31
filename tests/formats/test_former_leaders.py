"""Who led in which leader epoch, as read from the metadata log."""

from uuid import UUID

from streaming.kafka.formats.cluster_image import IDLE_BYTES, ClusterImage, idle_run
from streaming.kafka.formats.metadata_partitions import MOST_EPOCHS, MOST_TOPICS
from streaming.kafka.formats.wire import check_uuid
from streaming.simulator.batch_writer import Batch, Record, encode
from streaming.simulator.metadata_writer import (
    ReplicaSet,
    metadata_batch,
    no_op_record,
    partition_change_record,
    partition_record,
    topic_record,
)
from streaming.simulator.segment_writer import uuid_text
from tests.builders import NOW
from tests.simulated import remove_topic_record
from tests.tables import each_row

TOPIC = UUID(int=77)
ID = check_uuid(uuid_text(TOPIC))


def registered(*, leader: int = 1, epoch: int = 0, topic: UUID = TOPIC) -> list[bytes]:
    partition = ReplicaSet(
        partition=0, topic_id=topic, replicas=(1, 2), isr=(1, 2), leader=leader, leader_epoch=epoch, directories=(UUID(int=5), UUID(int=6))
    )
    return [topic_record(f"t{topic.int}", topic), partition_record(partition)]


def log(*batches: list[bytes], base_offset: int = 0) -> bytes:
    out = b""
    for values in batches:
        out += encode(metadata_batch(values, NOW), base_offset, 1)
        base_offset += len(values)
    return out


def image_of(*batches: list[bytes]) -> ClusterImage:
    image = ClusterImage()
    data = log(*batches)
    assert image.apply(memoryview(data)) == len(data)
    return image


def elected(*leaders: int) -> list[bytes]:
    return [partition_change_record(0, TOPIC, leader=leader) for leader in leaders]


def led(image: ClusterImage, *epochs: int) -> list[int | None]:
    return [image.leader_in(ID, 0, epoch) for epoch in epochs]


def test_each_leader_that_is_named_is_a_new_epoch() -> None:
    image = image_of(registered(leader=1), elected(2, -1, 2, 2), [partition_change_record(0, TOPIC, isr=(2,))], elected(1))
    assert led(image, -1, 0, 1, 2, 3, 4, 5, 6) == [None, 1, 2, -1, 2, 2, 1, None]
    assert image.leader_in(ID, 1, 0) is None


def test_what_lies_before_the_first_record_is_not_known() -> None:
    assert led(image_of(registered(leader=2, epoch=7), elected(1)), 6, 7, 8) == [None, 2, 1]


def test_leaders_of_a_deleted_topic_are_known_for_what_is_left_of_its_logs() -> None:
    image = image_of(registered(), elected(2), [remove_topic_record(TOPIC)])
    assert (image.partition(ID, 0), led(image, 0, 1, 2)) == (None, [1, 2, None])
    others = [
        value for n in range(1, MOST_TOPICS + 1) for value in (*registered(topic=UUID(int=n << 32)), remove_topic_record(UUID(int=n << 32)))
    ]
    image.apply(memoryview(log(others, base_offset=image.next_offset)))
    assert led(image, 0, 1) == [None, None]


def test_only_so_many_leaders_are_remembered() -> None:
    image = image_of(registered(), elected(*[2, 1] * MOST_EPOCHS))
    assert led(image, 2 * MOST_EPOCHS, MOST_EPOCHS, MOST_EPOCHS - 1) == [1, 1, None]


@each_row("overlap", [0, 1, 2, 4])
def test_an_older_image_shows_who_led_before(overlap: int) -> None:
    """Also one that was brought further than to where the newer one begins."""
    newer = image_of(registered(leader=2, epoch=3), elected(1, 2, 1))
    leaders = (2, 1, 2, 1, 2, 1)
    older = image_of(registered(leader=1), elected(*leaders[: 3 + min(overlap, 3)]))
    newer.recall(older)
    assert led(newer, 0, 1, 2, 3, 4, 5, 6, 7) == [1, 2, 1, 2, 1, 2, 1, None]


def test_an_older_image_that_ends_before_the_newer_one_begins_shows_nothing() -> None:
    newer = image_of(registered(leader=2, epoch=9))
    newer.recall(image_of(registered(leader=1), elected(2)))
    newer.recall(ClusterImage())
    assert led(newer, 0, 1, 8, 9) == [None, None, None, 2]


def test_idle_batches_are_passed_by_their_bytes() -> None:
    data = log(*[[no_op_record()]] * 50, elected(1), *[[no_op_record()]] * 3)
    assert idle_run(memoryview(data), 0) == (50, 0)
    assert idle_run(memoryview(data), 7 * IDLE_BYTES) == (43, 7)
    assert idle_run(memoryview(data), 50 * IDLE_BYTES)[0] == 0
    assert idle_run(memoryview(data), len(data) - 3 * IDLE_BYTES) == (3, 51)
    assert idle_run(memoryview(data[:-1]), len(data) - 3 * IDLE_BYTES) == (2, 51)
    assert idle_run(memoryview(data), len(data))[0] == 0


@each_row("at", [0, 8, 16, 21, 24, 44, 58, 63, 70])
def test_a_batch_that_differs_ends_the_run(at: int) -> None:
    data = bytearray(log(*[[no_op_record()]] * 40))
    data[30 * IDLE_BYTES + at] ^= 1
    assert idle_run(memoryview(data), 0).batches == 30


def test_an_image_comes_as_far_over_idle_batches_as_batch_by_batch() -> None:
    batches = [[no_op_record()]] * 20
    image = image_of(registered(), *batches, elected(2), *batches)
    assert (image.next_offset, led(image, 1)) == (43, [2])
    again = log(registered(), *batches, elected(2), *batches, elected(1))
    assert image.apply(memoryview(again)) == len(again)  # from the start of the segment: passed over
    assert (image.next_offset, led(image, 2)) == (44, [1])


def test_two_idle_records_in_one_batch_are_read_as_any_other() -> None:
    data = encode(Batch(records=(Record(None, no_op_record(), NOW),) * 2), 0, 1)
    assert idle_run(memoryview(data), 0).batches == 0
    image = ClusterImage()
    image.apply(memoryview(data))
    assert image.next_offset == 2


def test_when_epochs_began_is_known_of_what_was_read_in_the_log() -> None:
    older = image_of(registered(), elected(2))
    assert older.epochs_begun(ID, 0) == ((0, NOW), (1, NOW))
    there_before = image_of(registered(epoch=4), elected(2))
    assert there_before.epochs_begun(ID, 0) == ((5, NOW),), "a cluster that has left ZooKeeper writes down what was there"
    there_before.recall(older)
    assert there_before.epochs_begun(ID, 0) == ((0, NOW), (1, NOW), (5, NOW))
    gone = image_of(registered(), elected(2), [remove_topic_record(TOPIC)])
    assert gone.epochs_begun(ID, 0) == ()
