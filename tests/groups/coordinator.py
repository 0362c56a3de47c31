"""A coordinator's log as a script, in which each word is a record. The first one was written at 1000 ms, each other a ms later.

60  60/1  h:60  u.60     a commit of offset 60: of partition 0 of topic t in group g, or of another partition, group, topic
60=id  60!5000  60^7     with the id of its topic; with a time of expiry; in a transaction of producer 7
~  ?                     its tombstone; a value that nobody understands (so for all others, too)
+7  -7                   the markers of that producer: committed, aborted
G4(a,b)  G4(a)%connect   a generation of a classic group with these members, "i/a": of an instance; another protocol
E3  E3#7  kE3.1          an epoch of a newer group, with the hash of its metadata; of a streams group (k; s: share), with its valid topology
M(a=t,u!i)               a member describes itself: topics, instance
T3  C3.1(a=0,2)          the target assignment; what a member has: epoch, state and partitions
R(a.*=ab,aa)  kP1(in)    topics of a regular expression, of a topology
60@5000                  any of them, written at that time
"""

import dataclasses
import re
from typing import Any, Self

from streaming.common.log_key import LogKey
from streaming.kafka.formats import consumer_offsets as streams
from streaming.kafka.formats import stored_groups as newer
from streaming.kafka.formats import stored_groups as share
from streaming.kafka.formats.consumer_offsets import GroupKey, OffsetCommit, OffsetsKey
from streaming.kafka.formats.stored_groups import GroupMember, GroupMetadata
from streaming.kafka.groups.commit_log import CommitLog
from streaming.kafka.groups.group_rows import GroupFacts, group_facts
from streaming.kafka.groups.log_replay import GroupLimit
from streaming.kafka.scan.group_records import NOT_UNDERSTOOD, Commit, EndMarker, GroupRecord, GroupRecords

Record = Commit | EndMarker | GroupRecord
Row = dict[str, Any]

LOG = LogKey(1, "__consumer_offsets", 3, "AAECAwQFBgcICQoLDA0ODw")
_SUBSCRIPTION = bytes.fromhex("0001 00000002 0001 62 0001 61 ffffffff")
_ASSIGNMENT = bytes.fromhex("0001 00000001 0001 61 00000003 00000001 00000000 00000007 ffffffff")  # partitions 1, 0 and 7 of topic a

_COMMIT = re.compile(r"(?:(\w+):)?(?:([a-z]+)\.)?(\d+|~|\?)(?:/(-?\d+))?(?:=(\w+))?(?:!(\d+))?(?:\^(\d+))?")
_GROUP = re.compile(
    r"(?:(\w+):)?([sk]?)([GEMTCRPN])(-?\d+|~|\?|)(?:\.(\d+))?(?:#(\d+))?(?:\(([^=()!]*)(?:=([^!()]*))?(?:!(\w+))?\))?(?:%(\w+))?"
)
_PROTOCOLS = {"": "CONSUMER", "s": "SHARE", "k": "STREAMS"}
_KEYS = {
    "E": "METADATA",
    "M": "MEMBER_METADATA",
    "T": "TARGET_ASSIGNMENT_METADATA",
    "C": "CURRENT_MEMBER_ASSIGNMENT",
    "R": "REGULAR_EXPRESSION",
    "P": "TOPOLOGY",
    "N": "TARGET_ASSIGNMENT_MEMBER",
}


def record(word: str, offset: int) -> Record:
    """The record that a word stands for."""
    what, _, at = word.partition("@")
    at_ms = int(at) if at else 1000 + offset
    if what[0] in "+-":
        return EndMarker(offset, int(what[1:]), what[0] == "+", at_ms)
    if found := _COMMIT.fullmatch(what):
        group, topic, text, partition, topic_id, expire_ms, producer = found.groups()
        value: Any = {"~": None, "?": NOT_UNDERSTOOD}.get(text, text)
        if value == text:
            value = OffsetCommit(
                offset=int(text), metadata="", commit_timestamp=at_ms, topic_id=topic_id, expire_timestamp=int(expire_ms or -1)
            )
        return Commit(offset, int(producer or -1), group or "g", topic or "t", int(partition or 0), value)
    found = _GROUP.fullmatch(what)
    assert found, word
    group, protocol, kind, text, state, hash_, name, items, instance, other = found.groups()
    group, name, listed = group or "g", name or "", tuple((items or "").split(",")) if items else ()
    key: OffsetsKey = GroupKey(group)
    if kind != "G":
        key_type = newer.KeyType[f"{_PROTOCOLS[protocol]}_GROUP_{_KEYS[kind]}"]
        key = newer.ConsumerGroupKey(key_type, group)
        if kind in "MCN":
            key = newer.ConsumerGroupMemberKey(key_type, group, name)
        elif kind == "R":
            key = newer.ConsumerGroupRegexKey(key_type, group, name)
    if kind == "G":  # what is given is since when the group is in its state
        at_ms = 1000 + offset
    if text in ("~", "?"):
        return GroupRecord(offset, key, None if text == "~" else NOT_UNDERSTOOD, at_ms)
    number, turn = int(text or 0), int(state or 0)
    client = {"instance_id": instance, "client_id": f"c-{name}", "client_host": "/h", "topics": listed}
    made = {
        "G": lambda: generation(number, *name.split(",") if name else (), protocol=other or "consumer", at_ms=int(at or -1)),
        "E": lambda: newer.ConsumerGroup(number, int(hash_ or 0)),
        "sE": lambda: share.ShareGroup(number, int(hash_ or 0)),
        "kE": lambda: streams.StreamsGroup(number, int(hash_ or 0), int(state or -1)),
        "M": lambda: filled(newer.ConsumerGroupMember, **client),
        "sM": lambda: filled(share.ShareGroupMember, **client),
        "kM": lambda: filled(streams.StreamsGroupMember, **client),
        "C": lambda: filled(newer.CurrentMember, epoch=number, state=turn, assigned=_parts(newer.AssignedPartitions, listed)),
        "sC": lambda: filled(share.CurrentShareMember, epoch=number, state=turn, assigned=_parts(newer.TargetPartitions, listed)),
        "kC": lambda: filled(streams.CurrentStreamsMember, epoch=number, state=turn),
        "R": lambda: newer.RegexTopics(listed, 1, 1),
        "kP": lambda: streams.Topology(number, (filled(streams.Subtopology, source_topics=(name,)),)),
    }.get(protocol + kind, lambda: newer.TargetAssignment(number, 55))
    return GroupRecord(offset, key, made(), at_ms)


def filled(of: type, **given: Any) -> Any:
    """A value of which the other fields are empty, or 0; fields that it does not have are left out."""
    kinds = (("tuple", ()), ("nt", 0), ("bytes", b""))
    empty = {each.name: next((value for word, value in kinds if word in str(each.type)), "") for each in dataclasses.fields(of)}
    return of(**{name: given.get(name, value) for name, value in empty.items()})


def _parts(of: Any, partitions: tuple[str, ...]) -> tuple[Any, ...]:
    return (of("id", tuple(map(int, partitions))),) if partitions else ()


def generation(number: int, *members: str, protocol: str = "consumer", at_ms: int = -1) -> GroupMetadata:
    """A classic group's; members are named as in a script."""
    made = []
    for name in members:
        instance, slash, _ = name.partition("/")
        who = {"member_id": name, "group_instance_id": instance if slash else None, "client_id": f"c-{instance}", "client_host": "/h"}
        made.append(filled(GroupMember, **who, subscription=_SUBSCRIPTION, assignment=_ASSIGNMENT))
    return filled(GroupMetadata, protocol_type=protocol, generation=number, current_state_timestamp=at_ms, members=tuple(made))


class Log:
    """The replay of a script."""

    def __init__(self, script: str = "", most: int = 100, *, limit: GroupLimit | None = None, edition: str = "e1") -> None:
        self.limit = limit or GroupLimit(most)
        self.replay = CommitLog(LOG, edition, self.limit)
        self.play(script)

    def play(self, script: str) -> Self:
        for word in script.split():
            self.take(record(word, self.replay.upto))
        return self

    def take(self, made: Record) -> None:
        self.replay.replay(GroupRecords((made,), 0), made.record_offset + 1)

    def rows(self, after: int = 0) -> list[Row]:
        """Of groups."""
        found: list[Row] = self.replay.changes(after).groups.to_pylist()
        return found

    def commits(self, after: int = 0) -> list[Row]:
        found: list[Row] = self.replay.changes(after).commits.to_pylist()
        return found

    def offsets(self, after: int = 0) -> dict[tuple[str, int], tuple[int, int]]:
        """By group and partition: the offset, and the record that made it count."""
        return {(row["group"], row["partition"]): (row["offset"], row["effective_offset"]) for row in self.commits(after)}

    @property
    def row(self) -> Row:
        (found,) = self.rows()
        return found

    @property
    def facts(self) -> GroupFacts:
        (found,) = group_facts(self.replay.changes(0).groups)
        return found
