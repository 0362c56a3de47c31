"""Records of groups, as the readers of the real ones read them, and against a real broker's."""

from uuid import UUID

from streaming.kafka.formats.consumer_offsets import GroupKey
from streaming.kafka.formats.stored_groups import (
    AssignedPartitions,
    ConsumerGroup,
    ConsumerGroupKey,
    ConsumerGroupMember,
    ConsumerGroupMemberKey,
    CurrentMember,
    GroupMetadata,
    KeyType,
    TargetAssignment,
    TargetMember,
    TargetPartitions,
)
from streaming.simulator.coordinators import SESSION_TIMEOUT_MS, SimulatedMember, classic_group_record, consumer_group_records
from tests.formats.dumped import columns
from tests.formats.dumped import read as read_file
from tests.formats.offsets_topic import read, records_of

T = 1_700_000_000_000
TOPIC_ID = UUID("000102030405060708090a0b0c0d0e0f")
SPELLED = "AAECAwQFBgcICQoLDA0ODw"
REAL = "transactions/__consumer_offsets-1/00000000000000000000.log"


def test_a_classic_group_with_members_and_an_empty_one() -> None:
    members = [SimulatedMember("m-0", "c", (0, 1)), SimulatedMember("m-1", "c", (2,))]
    key, value = read(classic_group_record("g", 2, "foo", members, T))
    assert key == GroupKey("g")
    assert isinstance(value, GroupMetadata)
    assert (value.protocol_type, value.generation, value.protocol, value.leader) == ("consumer", 2, "range", "m-0")
    assert value.current_state_timestamp == T
    first, second = value.members
    assert (first.member_id, second.member_id, first.client_id, first.client_host) == ("m-0", "m-1", "c", "/127.0.0.1")
    assert (first.session_timeout_ms, first.rebalance_timeout_ms, first.group_instance_id) == (SESSION_TIMEOUT_MS, 300_000, None)
    assert read(classic_group_record("g", 3, "foo", (), T)) == (
        GroupKey("g"),
        GroupMetadata(protocol_type="consumer", generation=3, protocol=None, leader=None, current_state_timestamp=T, members=()),
    )


def test_a_classic_member_describes_itself_as_kafka_s_own_client_does() -> None:
    data = read_file(REAL)
    groups = [value for _, value in map(read, records_of(data, columns(data))) if isinstance(value, GroupMetadata)]
    real = next(member for group in groups for member in group.members)
    _, ours = read(classic_group_record("g", 1, "in", [SimulatedMember(real.member_id, real.client_id, (0, 1))], T))
    assert isinstance(ours, GroupMetadata)
    assert ours.members[0].subscription == real.subscription
    assert ours.members[0].assignment == real.assignment


def test_a_group_of_the_newer_protocol_that_a_second_member_joins() -> None:
    members = [SimulatedMember("m-0", "c", (0, 1)), SimulatedMember("m-1", "c", (2,))]
    records = [read(record) for record in consumer_group_records("g", 2, "foo", TOPIC_ID, members, T)]

    def of(key_type: KeyType, member_id: str) -> object:
        return dict(records)[ConsumerGroupMemberKey(key_type, "g", member_id)]

    assert dict(records)[ConsumerGroupKey(KeyType.CONSUMER_GROUP_METADATA, "g")] == ConsumerGroup(2, 0x0001020304050607)
    assert dict(records)[ConsumerGroupKey(KeyType.CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA, "g")] == TargetAssignment(2, T)
    assert of(KeyType.CONSUMER_GROUP_MEMBER_METADATA, "m-1") == ConsumerGroupMember(
        instance_id=None,
        rack_id=None,
        client_id="c",
        client_host="/127.0.0.1",
        topics=("foo",),
        topic_regex="",
        rebalance_timeout_ms=300_000,
        server_assignor=None,
    )
    target = KeyType.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER
    assert of(target, "m-0") == TargetMember((TargetPartitions(SPELLED, (0, 1)),))
    assert of(target, "m-1") == TargetMember((TargetPartitions(SPELLED, (2,)),))
    current = KeyType.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT
    assert of(current, "m-0") == CurrentMember(2, 1, 0, (AssignedPartitions(SPELLED, (0, 1), (2, 2)),), ())
    assert of(current, "m-1") == CurrentMember(2, 0, 0, (AssignedPartitions(SPELLED, (2,), (2,)),), ())
    assert len(records) == 7  # nothing is written twice, and who was there before does not describe itself again
