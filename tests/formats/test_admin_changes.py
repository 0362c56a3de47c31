"""What admins did, from records of the metadata log: each once, whatever else the records say."""

from uuid import UUID

from streaming.kafka.formats.admin_changes import MOST_CHANGES
from streaming.kafka.formats.cluster_image import ClusterImage
from streaming.simulator.batch_writer import encode
from streaming.simulator.metadata_writer import (
    ConfigResource,
    Listener,
    ReplicaSet,
    begin_transaction_record,
    config_record,
    end_transaction_record,
    feature_level_record,
    frame,
    metadata_batch,
    no_op_record,
    partition_change_record,
    partition_record,
    register_broker_record,
    snapshot_footer_batch,
    snapshot_header_batch,
    tagged,
    topic_record,
    unfence_record,
)
from tests.formats.real_clusters import DATA, log_of
from tests.record_batches import image_of_snapshot

ORDERS, OTHER = UUID(int=1), UUID(int=2)
TOPIC, BROKER = ConfigResource.TOPIC, ConfigResource.BROKER
Batches = list[list[bytes]]


def replicas(topic: UUID, partition: int, *brokers: int) -> bytes:
    return partition_record(ReplicaSet(partition=partition, topic_id=topic, replicas=brokers, isr=brokers, leader=brokers[0]))


def remove_topic(topic: UUID) -> bytes:
    return frame(9, 0) + topic.bytes + tagged([])


def moving(partition: int, *, to: list[int] | None = None, adding: list[int] | None = None, removing: list[int] | None = None) -> bytes:
    return partition_change_record(partition, ORDERS, replicas=to, adding=adding, removing=removing)


def register(broker: int) -> bytes:
    return register_broker_record(broker, UUID(int=broker), 1, Listener("PLAINTEXT", "here", 9092), (), ())


def unregister(broker: int) -> bytes:
    return frame(1, 0) + broker.to_bytes(4, "big") + (1).to_bytes(8, "big") + tagged([])


def written(batches: Batches, base: int = 0) -> bytes:
    out = b""
    for values in batches:
        out += encode(metadata_batch(values, 1_000 + base), base, 1)
        base += len(values)
    return out


def image_of(*batches: list[bytes]) -> ClusterImage:
    image = ClusterImage()
    image.apply(memoryview(written(list(batches))))
    return image


def found(image: ClusterImage) -> list[tuple[object, ...]]:
    return [
        (each.kind, each.offset, each.topic, each.partition, each.count, each.broker, each.name, each.before, each.now)
        for each in image.admin.changes
    ]


CREATED = [topic_record("orders", ORDERS), config_record(TOPIC, "orders", "retention.ms", "1000"), replicas(ORDERS, 0, 1, 2)]


def test_what_belongs_together_is_one_change() -> None:
    image = image_of(
        [
            topic_record("orders", ORDERS),
            replicas(ORDERS, 0, 1),
            replicas(ORDERS, 1, 1),
            topic_record("b", OTHER),
            replicas(OTHER, 0, 1),
        ],
        [config_record(TOPIC, "third", "segment.ms", "5"), topic_record("third", UUID(int=3)), replicas(UUID(int=3), 0, 1)],
        [replicas(ORDERS, 2, 1), replicas(ORDERS, 3, 1)],
    )
    assert found(image) == [
        ("topic_created", 0, "orders", -1, 2, -1, "", None, None),
        ("topic_created", 3, "b", -1, 1, -1, "", None, None),
        ("topic_created", 6, "third", -1, 1, -1, "", None, "segment.ms=5"),
        ("partitions_added", 8, "orders", -1, 2, -1, "", "2", "4"),
    ]


def test_a_topic_of_the_same_name_is_another_one() -> None:
    image = image_of(CREATED, [remove_topic(ORDERS)], [topic_record("orders", OTHER), replicas(OTHER, 0, 1)])
    assert [(each.kind, each.topic, each.topic_id[-2:]) for each in image.admin.changes] == [
        ("topic_created", "orders", "AQ"),
        ("topic_deleted", "orders", "AQ"),
        ("topic_created", "orders", "Ag"),
    ]
    assert image.topic_configs("orders") == ()


def test_configurations_have_the_values_before_and_after() -> None:
    image = image_of(
        CREATED,
        [config_record(TOPIC, "orders", "retention.ms", "60"), config_record(TOPIC, "orders", "segment.ms", "7")],
        [config_record(TOPIC, "orders", "retention.ms", "60")],  # as it was
        [config_record(TOPIC, "orders", "retention.ms", None)],
        [config_record(BROKER, "3", "log.retention.ms", "9"), config_record(BROKER, "", "log.retention.ms", "8")],
        [config_record(TOPIC, "orders", "retention.ms", None)],  # it is not set
    )
    assert found(image)[1:] == [
        ("config_changed", 3, "orders", -1, 0, -1, "retention.ms", "1000", "60"),
        ("config_changed", 4, "orders", -1, 0, -1, "segment.ms", None, "7"),
        ("config_changed", 6, "orders", -1, 0, -1, "retention.ms", "60", None),
        ("config_changed", 7, "", -1, 0, 3, "log.retention.ms", None, "9"),
        ("config_changed", 8, "", -1, 0, -1, "log.retention.ms", None, "8"),
    ]


def test_values_that_may_be_secret_are_never_read() -> None:
    names = ["ssl.keystore.password", "listener.name.a.plain.sasl.jaas.config", "sasl.jaas.config", "advertised.listeners"]
    image = image_of(
        [config_record(BROKER, "1", name, "hunter2") for name in names],
        [config_record(BROKER, "1", names[0], "hunter2")],
        [config_record(BROKER, "1", names[0], None)],
        [config_record(BROKER, "1", names[0], None)],
    )
    expected = [*((name, True, None, "") for name in names), (names[0], True, "", ""), (names[0], True, "", None)]
    assert [(each.name, each.hidden, each.before, each.now) for each in image.admin.changes] == expected
    assert "hunter2" not in repr(image.admin.changes)


def test_a_reassignment_begins_with_its_first_partition_and_ends_with_its_last() -> None:
    image = image_of(
        [topic_record("orders", ORDERS), replicas(ORDERS, 0, 1, 2), replicas(ORDERS, 1, 1, 2)],
        [moving(each, to=[2, 3, 1], adding=[3], removing=[1]) for each in (0, 1)],
        [partition_change_record(0, ORDERS, isr=[1, 2, 3])],
        [moving(0, to=[2, 3], adding=[], removing=[])],
        [moving(1, to=[2, 3], adding=[], removing=[])],
        [moving(0, to=[3, 4, 2], adding=[4], removing=[2])],
        [moving(0, to=[3, 2], adding=[], removing=[])],  # cancelled
        [moving(0, to=[2, 3])],  # another order, at once
    )
    assert found(image)[1:] == [
        ("reassignment_began", 3, "orders", -1, 2, -1, "", "1", "3"),
        ("reassignment_ended", 7, "orders", -1, 2, -1, "", None, None),
        ("reassignment_began", 8, "orders", 0, 1, -1, "", "2", "4"),
        ("reassignment_ended", 9, "orders", 0, 1, -1, "", "3,2", "3,2"),
        ("reassignment_ended", 10, "orders", 0, 1, -1, "", "3,2", "2,3"),
    ]


def test_features_and_brokers_are_changed_once_and_restarts_and_elections_are_nothing() -> None:
    image = image_of(
        [begin_transaction_record("bootstrap")],
        [feature_level_record("metadata.version", 20)],
        [end_transaction_record()],
        [register(1)],
        [unfence_record(1, 1), no_op_record()],
        [register(1)],
        [topic_record("orders", ORDERS), replicas(ORDERS, 0, 1, 2)],
        [partition_change_record(0, ORDERS, isr=[1], leader=1)],
        [feature_level_record("metadata.version", 25)],
        [feature_level_record("metadata.version", 25)],
        [unregister(1)],
        [feature_level_record("metadata.version", 0)],
    )
    assert [each for each in found(image) if each[0] != "topic_created"] == [
        ("feature_changed", 1, "", -1, 0, -1, "metadata.version", None, "20"),
        ("broker_added", 3, "", -1, 0, 1, "", None, None),
        ("feature_changed", 10, "", -1, 0, -1, "metadata.version", "20", "25"),
        ("broker_removed", 12, "", -1, 0, 1, "", None, None),
        ("feature_changed", 13, "", -1, 0, -1, "metadata.version", "25", None),
    ]


def test_what_a_snapshot_holds_was_there_and_nothing_is_known_before_it() -> None:
    state = [feature_level_record("metadata.version", 20), register(1), *CREATED]
    snapshot = b"".join(encode(each, 0, 1) for each in (snapshot_header_batch(1), metadata_batch(state, 1), snapshot_footer_batch(1)))
    image = image_of_snapshot(memoryview(snapshot), 50)
    assert (image.admin.changes, image.admin.from_offset, image.admin.from_ms) == ((), 50, -1)
    image.apply(memoryview(written([[config_record(TOPIC, "orders", "retention.ms", "60")], [register(1)]], 50)))
    assert found(image) == [("config_changed", 50, "orders", -1, 0, -1, "retention.ms", "1000", "60")]


def test_what_was_before_a_snapshot_is_recalled_once_and_from_a_log_that_goes_beyond_it() -> None:
    changes = [[config_record(TOPIC, "orders", "retention.ms", str(value))] for value in range(10)]
    whole = image_of(CREATED, *changes)
    snapshot = b"".join(encode(each, 0, 1) for each in (snapshot_header_batch(1), metadata_batch(CREATED, 1), snapshot_footer_batch(1)))
    image = image_of_snapshot(memoryview(snapshot), 8)
    image.apply(memoryview(written(changes[5:], 8)))
    image.recall(whole)
    assert [each.offset for each in image.admin.changes] == [each.offset for each in whole.admin.changes]
    assert image.admin.from_offset == 0
    image.recall(ClusterImage())  # nothing older lies on the disk
    assert image.admin.from_offset == 0


def test_of_many_changes_the_newest_are_kept_and_it_is_said_since_when() -> None:
    image = image_of(CREATED, *[[config_record(TOPIC, "orders", "retention.ms", str(value))] for value in range(MOST_CHANGES)])
    first, last = image.admin.changes[0], image.admin.changes[-1]
    assert (len(image.admin.changes), last.now) == (MOST_CHANGES, str(MOST_CHANGES - 1))
    assert (image.admin.from_offset, image.admin.from_ms) == (first.offset, first.at_ms) == (3, 1_003)


def test_real_clusters_change_in_the_order_of_their_offsets() -> None:
    image = ClusterImage()
    image.apply(log_of("with_snapshots"))
    changes = image.admin.changes
    assert [each.offset for each in changes] == sorted({each.offset for each in changes})
    assert {each.topic for each in changes if each.kind == "topic_deleted"} == {"meta-A-2"}
    snapshot = image_of_snapshot(memoryview((DATA / "with_snapshots" / f"{103:020}-0000000001.checkpoint").read_bytes()), 103)
    snapshot.apply(log_of("with_snapshots"))
    assert snapshot.admin.changes == tuple(each for each in changes if each.offset >= 103)
    assert changes[-4].at_ms <= snapshot.admin.from_ms <= changes[-3].at_ms
