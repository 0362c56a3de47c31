"""What an observer learns about the cluster from what the controller writes."""

from pathlib import Path
from uuid import UUID

from streaming.kafka.formats.cluster_image import ClusterImage
from streaming.simulator.broker import Controller
from streaming.simulator.segment_writer import uuid_text
from tests.builders import NOW, log_dir
from tests.record_batches import image_of_snapshot

TOPIC_ID = UUID(int=77)
FIRST, SECOND = UUID(int=101), UUID(int=102)


def controller_in(path: Path) -> Controller:
    return Controller(log_dir(path), 1, UUID(int=9), [FIRST, SECOND], 9092, NOW)


def image(controller: Controller) -> ClusterImage:
    found = ClusterImage()
    found.apply(memoryview((controller.log.directory / f"{0:020d}.log").read_bytes()))
    return found


def test_one_broker_with_its_log_dirs_is_registered_and_serves(tmp_path: Path) -> None:
    found = image(controller_in(tmp_path))
    assert [(broker.broker_id, broker.fenced, broker.log_dirs) for broker in found.brokers()] == [
        (1, False, (uuid_text(FIRST), uuid_text(SECOND)))
    ]


def test_created_topic_is_led_by_it(tmp_path: Path) -> None:
    controller = controller_in(tmp_path)
    controller.create_topic("orders", TOPIC_ID, [("retention.ms", "60000")], [FIRST, SECOND], NOW)
    found = image(controller)
    assert found.topic_id("orders") == uuid_text(TOPIC_ID)
    states = [found.partition(uuid_text(TOPIC_ID), number) for number in range(2)]
    assert [(one.replicas, one.isr, one.leader, one.leader_epoch) for one in states if one is not None] == [((1,), (1,), 1, 0)] * 2
    assert [one.directory(1) for one in states if one is not None] == [uuid_text(FIRST), uuid_text(SECOND)]
    assert found.topic_configs("orders") == (("retention.ms", "60000"),)


def test_bootstrap_file_is_a_whole_snapshot(tmp_path: Path) -> None:
    controller_in(tmp_path)
    data = (tmp_path / "d0" / "bootstrap.checkpoint").read_bytes()
    assert image_of_snapshot(data, 0).brokers() == ()


def test_producer_ids_come_in_blocks_that_are_recorded_first(tmp_path: Path) -> None:
    controller = controller_in(tmp_path)
    before = controller.log.log_end_offset
    assert [controller.new_producer_id(NOW) for _ in range(1001)] == list(range(1001))
    assert controller.log.log_end_offset == before + 2


def test_heartbeat_is_one_small_batch(tmp_path: Path) -> None:
    controller = controller_in(tmp_path)
    size = controller.log.active.size
    controller.heartbeat(NOW)
    assert controller.log.active.size == size + 72
