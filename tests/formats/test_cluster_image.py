"""The cluster as read from its metadata log, against what Kafka's tools printed of the same clusters."""

import csv
from contextlib import suppress
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.errors import FormatError
from streaming.kafka.formats.cluster_image import ClusterImage, Topic
from streaming.kafka.formats.metadata_partitions import PartitionState, without_elr
from streaming.kafka.formats.metadata_records import BrokerState
from streaming.kafka.formats.names import parse_metadata_snapshot
from streaming.simulator.batch_writer import Batch, Record, encode
from streaming.simulator.metadata_writer import partition_change_record
from tests.formats.real_clusters import CLUSTERS, DATA, Row, expected, log_of
from tests.formats.vectors import METADATA_RECORDS, OTHER_ID, TOPIC_ID
from tests.record_batches import image_of_snapshot
from tests.tables import each_row

SNAPSHOTS = ["00000000000000000035-0000000001.checkpoint", "00000000000000000103-0000000001.checkpoint"]

TOPIC, PARTITION, CHANGE, NO_OP = (METADATA_RECORDS[name] for name in ("topic", "partition", "partition change", "no-op"))
REMOVE_TOPIC = bytes.fromhex("010900000102030405060708090a0b0c0d0e0f00")
BEGIN, END, ABORT = (bytes([1, key, 0, 0]) for key in (23, 24, 25))
DIRECTORY = "AAAAAAAAAAAAAAAAAAAAZQ"
CREATED = PartitionState(replicas=(1, 2), isr=(1,), leader=1, leader_epoch=5, partition_epoch=6, directories=(DIRECTORY, DIRECTORY))


def snapshot_of(name: str) -> ClusterImage:
    snapshot = parse_metadata_snapshot(name)
    assert snapshot is not None
    return image_of_snapshot(memoryview((DATA / "with_snapshots" / name).read_bytes()), snapshot.end_offset)


def applied(*batches: list[bytes], base_offset: int = 0, epoch: int = 1) -> ClusterImage:
    image = ClusterImage()
    image.apply(memoryview(log(*batches, base_offset=base_offset, epoch=epoch)))
    return image


def log(*batches: list[bytes], base_offset: int = 0, epoch: int = 1) -> bytes:
    out = b""
    for values in batches:
        out += encode(Batch(records=tuple(Record(value=value, timestamp=1) for value in values)), base_offset, epoch)
        base_offset += len(values)
    return out


def rows(image: ClusterImage) -> list[Row]:
    found = []
    for topic in image.topics():
        for number in image.partition_numbers(topic.topic_id):
            state = image.partition(topic.topic_id, number)
            assert state is not None
            nodes = (",".join(map(str, state.replicas)), ",".join(map(str, state.isr)))
            found.append((topic.name, topic.topic_id, number, state.leader, state.leader_epoch, *nodes))
    return sorted(found)


@each_row("cluster", CLUSTERS)
def test_topics_leaders_epochs_and_in_sync_replicas_are_what_kafka_says(cluster: str) -> None:
    image, data = ClusterImage(), log_of(cluster)
    assert image.apply(data) == len(data)
    assert rows(image) == expected(cluster)


@pytest.mark.parametrize("name", SNAPSHOTS)
def test_a_snapshot_and_the_log_from_there_say_the_same_as_the_whole_log(name: str) -> None:
    image, whole = snapshot_of(name), ClusterImage()
    for each in (image, whole):
        each.apply(log_of("with_snapshots"))
    assert rows(image) == rows(whole) == expected("with_snapshots")
    assert image.brokers() == whole.brokers()
    for topic in image.topics():
        assert set(image.topic_configs(topic.name)) == set(whole.topic_configs(topic.name))
    assert set(image.broker_configs(1)) == set(whole.broker_configs(1))
    assert set(image.default_broker_configs()) == set(whole.default_broker_configs())
    assert image.next_offset == whole.next_offset


@given(st.lists(st.integers(0, 400), max_size=200))
def test_a_log_that_arrives_in_pieces_says_the_same(steps: list[int]) -> None:
    data, image, position, end = log_of("unclean_election"), ClusterImage(), 0, 0
    for step in [*steps, 1 << 20]:
        end = min(end + step, len(data))
        position += image.apply(data[position:end])
    assert position == len(data)
    assert rows(image) == expected("unclean_election")


def test_an_unclean_election_of_a_real_cluster_is_found_with_who_was_in_sync() -> None:
    image, data = ClusterImage(), log_of("unclean_election")
    image.apply(data)
    (found,) = image.take_unclean_elections()
    assert (found.topic, found.partition, found.leader, found.leader_epoch, found.in_sync) == ("tr", 0, 2, 1, (1,))
    assert found.timestamp == 1795145867169
    assert image.take_unclean_elections() == []


@each_row("cluster", [cluster for cluster in CLUSTERS if cluster != "unclean_election"])
def test_clean_elections_of_real_clusters_are_none(cluster: str) -> None:
    image = ClusterImage()
    image.apply(log_of(cluster))
    assert image.take_unclean_elections() == []


@each_row(
    ("before", "change", "unclean"),
    [
        ({"isr": (1,)}, {"leader": 2, "isr": (2,), "recovering": True}, True),
        ({"isr": (1, 2)}, {"leader": 2, "isr": (2,)}, False),
        ({"isr": (), "eligible": (2,)}, {"leader": 2, "isr": (2,)}, False),  # an eligible leader replica has everything
        ({"isr": (1,)}, {"leader": -1}, False),
        ({"isr": (2,), "recovering": True}, {"leader": 2}, False),  # the same leader in another epoch
        ({"isr": (2,), "recovering": True}, {"leader": 1, "isr": (1,)}, True),  # again, before the first one has recovered
        ({"isr": (2,), "recovering": True}, {"recovering": False}, False),
    ],
)
def test_an_election_is_unclean_where_recovery_is_asked_of_one_that_may_lack_something(
    before: dict[str, Any], change: dict[str, Any], unclean: bool
) -> None:
    topic = UUID(bytes=bytes(range(16)))
    image = applied([TOPIC, PARTITION], [partition_change_record(0, topic, leader=1, **before)])
    image.take_unclean_elections()
    image.apply(memoryview(log([partition_change_record(0, topic, **change)], base_offset=image.next_offset)))
    assert len(image.take_unclean_elections()) == unclean


@pytest.mark.parametrize(
    ("before", "in_sync"),
    [
        ({"isr": (), "leader": -1, "last_eligible": (1,)}, (1,)),
        ({"isr": (), "leader": -1, "eligible": (2,), "last_eligible": (1,)}, (2, 1)),  # the last leader had everything too
        ({"isr": (2,), "leader": 2, "last_eligible": (1,)}, (2,)),  # led before the one that is in sync
    ],
)
def test_in_sync_before_were_those_of_the_isr_and_the_eligible_ones_and_where_nobody_is_in_sync_who_led_last(
    before: dict[str, Any], in_sync: tuple[int, ...]
) -> None:
    topic = UUID(bytes=bytes(range(16)))
    image = applied([TOPIC, PARTITION], [partition_change_record(0, topic, **before)])
    change = partition_change_record(0, topic, leader=1, isr=(1,), recovering=True, eligible=(), last_eligible=())
    image.apply(memoryview(log([change], base_offset=image.next_offset)))
    assert [each.in_sync for each in image.take_unclean_elections()] == [in_sync]


def test_brokers() -> None:
    image = ClusterImage()
    image.apply(log_of("node_down"))
    assert [(broker.broker_id, broker.fenced, len(broker.log_dirs)) for broker in sorted(image.brokers(), key=lambda b: b.broker_id)] == [
        (1, False, 2),
        (2, False, 2),
        (3, True, 2),
    ]


def test_every_configuration_is_what_kafka_says() -> None:
    image = ClusterImage()
    image.apply(log_of("with_snapshots"))
    with (DATA / "with_snapshots" / "configs.tsv").open(newline="") as file:
        reported = {(row["level"], row["resource"], row["key"], row["value"]) for row in csv.DictReader(file, delimiter="\t")}
    topics = {("topic", topic.name, *config) for topic in image.topics() for config in image.topic_configs(topic.name)}
    brokers = {("broker", "", *config) for config in image.broker_configs(1)}
    assert {row for row in reported if row[0] == "topic"} == topics
    everywhere = {("default", "", *config) for config in image.default_broker_configs()}
    assert {row for row in reported if row[0] != "topic"} <= brokers | everywhere


def test_a_configuration_is_set_changed_and_removed() -> None:
    def config(value: bytes) -> bytes:
        return bytes.fromhex("0104000204666f6f0d726574656e74696f6e2e6d73") + value + b"\0"

    image = applied([TOPIC, METADATA_RECORDS["topic config"]])
    assert image.topic_configs("foo") == (("retention.ms", "60000"),)
    image.apply(memoryview(log([config(b"\x027")], base_offset=2)))
    assert image.topic_configs("foo") == (("retention.ms", "7"),)
    image.apply(memoryview(log([config(b"\0")], base_offset=3)))
    assert image.topic_configs("foo") == ()


def test_configurations_go_with_their_topic_alone() -> None:
    image = applied([TOPIC, METADATA_RECORDS["topic config"], METADATA_RECORDS["broker config"], REMOVE_TOPIC])
    assert (image.broker_configs(1), image.broker_configs(2)) == ((("log.retention.ms", "5"),), ())
    assert image.default_broker_configs() == ()
    assert image.topic_configs("foo") == ()


def test_nothing_is_kept_of_secrets_and_of_other_resources() -> None:
    client_metrics = bytes.fromhex("01040010" + "0261" + "0d726574656e74696f6e2e6d73" + "0237" + "00")
    image = applied([METADATA_RECORDS["secret config"], client_metrics])
    assert (image.broker_configs(1), image.default_broker_configs(), image.topic_configs("a")) == ((), (), ())


def test_a_partition_that_moves_and_recovers() -> None:
    image = applied([TOPIC, METADATA_RECORDS["partition with everything"]])
    before = image.partition(TOPIC_ID, 1)
    assert before is not None
    assert (before.recovering, before.eligible_leader_replicas, before.last_known_elr) == (True, (2,), (3,))
    assert [before.directory(broker) for broker in (1, 2, 4)] == [TOPIC_ID, OTHER_ID, None]
    image.apply(memoryview(log([METADATA_RECORDS["partition change with everything"]], base_offset=2)))
    assert image.partition(TOPIC_ID, 1) == PartitionState(
        replicas=(1, 2), isr=(1, 2), leader=2, leader_epoch=5, partition_epoch=10, directories=(TOPIC_ID, OTHER_ID)
    )


@pytest.mark.parametrize("record", ["clear elr", "clear all elr"])
def test_cleared_eligible_leader_replicas_are_a_change_where_there_are_any(record: str) -> None:
    created = [TOPIC, PARTITION, METADATA_RECORDS["partition with everything"]]
    image = applied([*created, METADATA_RECORDS[record], METADATA_RECORDS[record]])
    assert image.partition(TOPIC_ID, 0) == CREATED
    cleared = image.partition(TOPIC_ID, 1)
    assert cleared is not None
    assert (cleared.eligible_leader_replicas, cleared.last_known_elr, cleared.partition_epoch) == ((), (), 10)
    for only in (replace(CREATED, eligible_leader_replicas=(2,)), replace(CREATED, last_known_elr=(3,))):
        assert without_elr(only) == replace(CREATED, partition_epoch=CREATED.partition_epoch + 1)


def test_directories_that_do_not_fit_the_replicas_are_refused() -> None:
    fewer = bytes.fromhex("01050000000000000102030405060708090a0b0c0d0e0f01020502" + "00000001")
    with pytest.raises(FormatError, match="metadata record at offset 2: 2 directories for 1 replicas"):
        applied([TOPIC, PARTITION, fewer])


def test_a_broker_in_controlled_shutdown_is_so_until_it_registers_again() -> None:
    serving = bytearray(METADATA_RECORDS["broker"])
    serving[serving.index(bytes.fromhex("0372310101")) + 4] = 0
    image = applied([bytes(serving), METADATA_RECORDS["broker change"], bytes.fromhex("01080000000001" + "0000000000000011" + "00")])
    broker = image.broker(1)
    assert broker is not None
    assert (broker.rack, broker.fenced, broker.in_controlled_shutdown) == ("r1", False, True)
    assert (broker.log_dirs, broker.cordoned_log_dirs) == ((TOPIC_ID,), ())
    image.apply(memoryview(log([bytes(serving)], base_offset=3)))
    again = image.broker(1)
    assert again is not None
    assert (again.in_controlled_shutdown, again.cordoned_log_dirs) == (False, (OTHER_ID,))


def test_a_broker_that_unregisters_is_gone() -> None:
    register = bytes.fromhex("01000000000003" + "00" * 16 + "0000000000000007" + "01" + "01" + "00" + "01" + "00")
    unregister = bytes.fromhex("01010000000003" + "0000000000000007" + "00")
    alone = BrokerState(broker_id=3, rack=None, endpoints=(), fenced=True, in_controlled_shutdown=False, log_dirs=(), cordoned_log_dirs=())
    assert applied([register]).brokers() == (alone,)
    assert applied([register]).broker(3) == alone
    assert applied([register, unregister]).brokers() == ()


def test_the_leader_epoch_rises_with_every_leader_that_is_given() -> None:
    isr_only = bytes.fromhex("01050000000000000102030405060708090a0b0c0d0e0f01000502" + "00000001")
    image = applied([TOPIC, PARTITION])
    assert image.partition(TOPIC_ID, 0) == CREATED
    image.apply(memoryview(log([CHANGE], [CHANGE], base_offset=2)))
    assert image.partition(TOPIC_ID, 0) == replace(CREATED, isr=(1, 2), leader=2, leader_epoch=7, partition_epoch=8)
    image.apply(memoryview(log([isr_only], base_offset=4)))
    assert image.partition(TOPIC_ID, 0) == replace(CREATED, isr=(1,), leader=2, leader_epoch=7, partition_epoch=9)


def test_a_deleted_topic_leaves_nothing() -> None:
    image = applied([TOPIC, PARTITION, REMOVE_TOPIC])
    assert (image.topics(), image.topic_id("foo"), image.topic_name(TOPIC_ID)) == ((), None, None)
    assert (image.partition(TOPIC_ID, 0), image.partition_numbers(TOPIC_ID)) == (None, ())


def test_a_topic_made_again_has_another_id() -> None:
    again = bytes.fromhex("01020004666f6f" + "ff" * 16 + "00")
    image = applied([TOPIC, PARTITION, REMOVE_TOPIC, again])
    assert image.topics() == (Topic("foo", "_____________________w"),)
    assert image.topic_id("foo") == "_____________________w"
    assert image.topic_name("_____________________w") == "foo"


def test_a_metadata_transaction_is_seen_when_it_ends() -> None:
    image = applied([BEGIN, TOPIC], [PARTITION])
    assert image.topics() == ()
    image.apply(memoryview(log([END], base_offset=3)))
    assert image.partition(TOPIC_ID, 0) == CREATED


def test_an_aborted_metadata_transaction_never_was() -> None:
    image = applied([BEGIN, TOPIC, PARTITION], [ABORT], [NO_OP])
    assert (image.topics(), image.next_offset) == ((), 5)


@pytest.mark.parametrize("values", [[END], [ABORT], [BEGIN, BEGIN]])
def test_a_metadata_transaction_that_makes_no_sense_is_refused(values: list[bytes]) -> None:
    with pytest.raises(FormatError, match="metadata transaction"):
        applied(values)


def test_batches_that_it_has_already_are_passed_over() -> None:
    image, data = ClusterImage(), memoryview(log([TOPIC, PARTITION], [CHANGE]))
    assert image.apply(data) == len(data)
    assert image.apply(data) == len(data)
    state = image.partition(TOPIC_ID, 0)
    assert state is not None
    assert (state.leader_epoch, image.next_offset) == (6, 3)


def test_a_log_that_goes_on_too_far_is_refused() -> None:
    with pytest.raises(FormatError, match="goes on at offset 10, 0 is missing at position 0"):
        applied([TOPIC], base_offset=10)


@each_row("values", [[PARTITION], [CHANGE], [TOPIC, CHANGE], [REMOVE_TOPIC], [METADATA_RECORDS["clear elr"]]])
def test_a_change_of_what_is_not_there_is_refused_by_its_offset(values: list[bytes]) -> None:
    with pytest.raises(FormatError, match=f"metadata record at offset {len(values) - 1}: .* is not known"):
        applied(values)


def test_a_record_without_a_value_is_refused() -> None:
    data = encode(Batch(records=(Record(key=b"k"),)), 0)
    with pytest.raises(FormatError, match="offset 0: no value"):
        ClusterImage().apply(memoryview(data))


def test_a_snapshot_that_is_not_whole_is_refused() -> None:
    data = memoryview((DATA / "with_snapshots" / SNAPSHOTS[0]).read_bytes())
    for length in range(0, len(data), 7):
        with pytest.raises(FormatError, match="not whole"):
            image_of_snapshot(data[:length], 35)
    with pytest.raises(FormatError, match="not whole"):
        image_of_snapshot(memoryview(bytes(data) + b"\0"), 35)


@given(st.binary(max_size=300))
def test_garbage_is_refused_and_nothing_else(garbage: bytes) -> None:
    with suppress(FormatError):
        assert ClusterImage().apply(memoryview(garbage)) <= len(garbage)
    with pytest.raises(FormatError):
        image_of_snapshot(memoryview(garbage), 0)
