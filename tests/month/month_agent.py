"""The agent of a month: it keeps the last commit of each partition, and computes where any offset lies."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from streaming.broker.protocol.group_messages import POSITIONS, GroupsRequest
from streaming.broker.protocol.group_stream import GroupsAnswer
from streaming.kafka.formats.names import OFFSETS_TOPIC
from streaming.kafka.groups.group_rows import COMMITS, GROUPS, PENDING, GroupChanges
from tests.consumers.group_agents import COMMIT, WAITING, FakeAgent
from tests.month.readers import Reader
from tests.month.streams import RECORD_BYTES, Stream, unix_ms

Row = dict[str, Any]


@dataclass
class MonthAgent(FakeAgent):
    """``now_s``: the time, in seconds of the month."""

    streams: dict[tuple[str, int], Stream] = field(default_factory=dict)
    latest: dict[tuple[str, str, int], Row] = field(default_factory=dict)
    now_s: float = 0.0

    def note(self, reader: Reader) -> None:
        """A group has committed where it is."""
        for stream in reader.streams:
            self._version += 1
            self.latest[reader.name, stream.topic, stream.partition] = COMMIT | {
                "group": reader.name,
                "topic": stream.topic,
                "partition": stream.partition,
                "offset": reader.offset(stream),
                "commit_ms": unix_ms(reader.lived_s - 1),
                "version": self._version,
            }

    def forget(self, group: str) -> None:
        """The coordinator has deleted it; what is left is said anew."""
        self.latest = {key: row for key, row in self.latest.items() if key[0] != group}
        self.edition += "'"

    def wait(self, reader: Reader, since_s: float) -> None:
        """Offsets that a group committed in a transaction wait for its end."""
        for each in reader.streams:
            where = {"group": reader.name, "topic": each.topic, "partition": each.partition}
            self.pending.append(WAITING | where | {"commit_ms": unix_ms(since_s)})

    def end_wait(self, group: str) -> None:
        """The transaction has ended without them."""
        self.pending = [each for each in self.pending if each["group"] != group]

    def groups(self, request: GroupsRequest | None = None) -> GroupsAnswer:
        known = {(each.topic, each.coordinator): each for each in request.known} if request else {}
        has = known.get((OFFSETS_TOPIC, 0))
        whole = has is None or has.edition != self.edition
        after = 0 if has is None or whole else has.version
        changes = GroupChanges(
            broker=1,
            topic=OFFSETS_TOPIC,
            topic_id="",
            coordinator=0,
            edition=self.edition,
            version=self._version,
            whole=whole,
            upto=self.upto,
            commits=pa.RecordBatch.from_pylist([row for row in self.latest.values() if row["version"] > after], COMMITS),
            unreadable=0,
            pending=pa.RecordBatch.from_pylist(self.pending, PENDING),
            groups=pa.RecordBatch.from_pylist(self.groups_, GROUPS),
        )
        return GroupsAnswer(journal=self.journal, seq=self.seq, changes=[changes], others=[])

    def positions(self, asked: pa.Table) -> pa.Table:
        return pa.Table.from_pylist([each | self._position(each) for each in asked.to_pylist()], POSITIONS)

    def _position(self, asked: Mapping[str, Any]) -> Row:
        stream: Stream = self.streams[asked["topic"], asked["partition"]]
        offset, start, end = asked["offset"], stream.log_start(self.now_s), stream.offset_at(self.now_s)
        following = max(offset, start)
        there = following < min(asked["upto"], end)
        at_ms = unix_ms(stream.time_of(following)) if there else -1
        gone = max(start - offset, 0)
        return {
            "edition": "e",
            "state": "KNOWN" if offset <= end else "BEYOND",
            "data": following,
            "aborted": 0,
            "control": 0,
            "bytes": RECORD_BYTES * following,
            "next_offset": following if there else -1,
            "next_timestamp_ms": at_ms,
            "next_append_ms": at_ms,
            "next_batch_bytes": RECORD_BYTES,
            "next_segment": start,
            "next_position": 0,
            "deleted_least": gone,
            "deleted_most": gone,
            "next_earliest_ms": at_ms,
            "next_latest_ms": at_ms,
        }
