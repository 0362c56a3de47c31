"""Agents that say of consumer groups what a test gives them: commits, and logs record by record."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from streaming.broker.protocol.group_json import BatchCheck
from streaming.broker.protocol.group_messages import POSITIONS, RECORDS, BatchRequest, FollowedLog, GroupsRequest, RecordsRequest
from streaming.broker.protocol.group_stream import GroupsAnswer, RecordsAnswer
from streaming.errors import AgentError
from streaming.kafka.formats.names import OFFSETS_TOPIC, SHARE_STATE_TOPIC
from streaming.kafka.groups.group_rows import COMMITS, GROUPS, PENDING, GroupChanges

BATCH_BYTES = 100
"""Of each record: it is a batch of its own."""

COMMIT = {
    "group": "g",
    "topic": "orders",
    "topic_id": "",
    "partition": 0,
    "coordinator": 0,
    "commit_ms": 1_000,
    "expire_ms": -1,
    "record_offset": 0,
    "effective_offset": 0,
    "share": False,
    "delivered": 0,
    "done": None,
    "leader_epoch": -1,
    "former_ms": -1,
    "resumed": -1,
    "moved_ms": -1,
    "presence": 0,
}
GROUP = {
    "group": "g",
    "coordinator": 0,
    "effective_offset": 0,
    "type": "Consumer",
    "protocol": "consumer",
    "state": "Stable",
    "members": 2,
    "epoch": 3,
    "state_ms": -1,
    "clients": ["c"],
    "hosts": ["/h"],
    "topics": ["orders"],
    "interval_ms": -1,
    "assigned": None,
    "last_topics": None,
    "moves": None,
    "raised": -1,
    "raised_by_metadata": -1,
    "raised_unfinished": -1,
    "rebalance_ms": -1,
    "rebalance_minutes": None,
    "rebalances": None,
    "rebalance_clients": None,
    "rebalance_hosts": None,
}

WAITING = {name: COMMIT[name] for name in ("group", "topic", "topic_id", "partition", "coordinator", "record_offset", "commit_ms")} | {
    "producer_id": 9,
    "offset": 5,
}

Row = dict[str, Any]


@dataclass
class Records:
    """A log: ``kinds`` of its records from offset 0 on ("data", "aborted", "control", "gone"); ``times``: their own, which are believed
    unless ``earliest`` and ``latest`` say between which times they were appended."""

    kinds: list[str]
    edition: str = "e1"
    state: str = "KNOWN"
    times: dict[int, int] = field(default_factory=dict)
    earliest: dict[int, int] = field(default_factory=dict)
    latest: dict[int, int] = field(default_factory=dict)

    def count(self, upto: int, *kinds: str) -> int:
        return sum(kind in kinds for kind in self.kinds[:upto])

    def position(self, offset: int, upto: int, *, reads_uncommitted: bool = False) -> Row:
        next_kinds = {"data", "aborted"} if reads_uncommitted else {"data"}
        known = offset <= len(self.kinds) and self.state == "KNOWN"
        following = next((at for at in range(offset, min(upto, len(self.kinds))) if self.kinds[at] in next_kinds), -1)
        return {
            "edition": self.edition,
            "state": self.state if offset <= len(self.kinds) else "BEYOND",
            "data": self.count(offset, "data", "aborted") if known else 0,
            "aborted": self.count(offset, "aborted") if known else 0,
            "control": self.count(offset, "control"),
            "bytes": BATCH_BYTES * self.count(offset, "data", "aborted", "control"),
            "next_offset": following if known else -1,
            "next_timestamp_ms": self.times.get(following, following * 1000 if following >= 0 else -1),
            "next_append_ms": -1,
            "next_batch_bytes": BATCH_BYTES,
            "next_segment": 0,
            "next_position": BATCH_BYTES * max(following, 0),
            "deleted_least": -1,
            "deleted_most": -1,
            "next_earliest_ms": self.earliest.get(following, self.times.get(following, following * 1000 if following >= 0 else -1)),
            "next_latest_ms": self.latest.get(following, self.times.get(following, following * 1000 if following >= 0 else -1)),
        }


TRANSACTION = ["data"] * 5 + ["control"]


class Emptied(Records):
    """A log whose segments before its end are not on disk any more; ``bounds``: of the records among them."""

    bounds = (-1, -1)
    first = 0

    def position(self, offset: int, upto: int, *, reads_uncommitted: bool = False) -> Row:
        found = super().position(offset, upto, reads_uncommitted=reads_uncommitted)
        least, most = self.bounds
        gone = {"state": "BELOW", "next_segment": self.first, "next_offset": -1, "deleted_least": least, "deleted_most": most}
        return found | gone if offset < self.first else found


@dataclass
class FakeAgent:
    """One agent with a coordinator's log and logs of data."""

    logs: dict[tuple[str, int], Records] = field(default_factory=dict)
    commits: list[Row] = field(default_factory=list)
    groups_: list[Row] = field(default_factory=list)
    pending: list[Row] = field(default_factory=list)
    journal: str = "j"
    seq: int = 1
    upto: int = 1_000_000
    edition: str = "c1"
    coordinator: int | None = 0
    unreadable: int = 0
    others: list[FollowedLog] = field(default_factory=list)
    error: AgentError | None = None
    asked: list[list[tuple[str, int, int]]] = field(default_factory=list)
    counted: list[Row] = field(default_factory=list)
    checked: list[tuple[str, int, int]] = field(default_factory=list)
    _version: int = 0

    def commit(self, offset: int, **values: Any) -> None:
        self._version += 1
        self.commits.append(COMMIT | {"offset": offset, "version": self._version} | values)

    def groups(self, request: GroupsRequest | None = None) -> GroupsAnswer:
        if self.error is not None:
            raise self.error
        known = {(each.topic, each.coordinator): each for each in request.known} if request else {}
        return GroupsAnswer(journal=self.journal, seq=self.seq, changes=list(self._changes(known)), others=self.others)

    def _changes(self, known: dict[tuple[str, int], Any]) -> Iterator[GroupChanges]:
        if self.coordinator is None:
            return
        yield self._changes_of(OFFSETS_TOPIC, known, share=False)
        if any(row["share"] for row in self.commits):
            yield self._changes_of(SHARE_STATE_TOPIC, known, share=True)

    def _changes_of(self, topic: str, known: dict[tuple[str, int], Any], *, share: bool) -> GroupChanges:
        assert self.coordinator is not None
        has = known.get((topic, self.coordinator))
        whole = has is None or has.edition != self.edition
        after = 0 if has is None or whole else has.version
        own = [row for row in self.commits if row["share"] == share and row["version"] > after]
        rows = {(row["group"], row["topic"], row["topic_id"], row["partition"]): row for row in own}
        return GroupChanges(
            broker=1,
            topic=topic,
            topic_id="",
            coordinator=self.coordinator,
            edition=self.edition,
            version=self._version,
            whole=whole,
            upto=self.upto,
            commits=pa.RecordBatch.from_pylist([{name: row[name] for name in COMMITS.names} for row in rows.values()], COMMITS),
            unreadable=0 if share else self.unreadable,
            pending=pa.RecordBatch.from_pylist([] if share else self.pending, PENDING),
            groups=pa.RecordBatch.from_pylist([] if share else self.groups_, GROUPS),
        )

    def records(self, request: RecordsRequest | None = None) -> RecordsAnswer:
        if self.error is not None:
            raise self.error
        has = request is not None and request.process == "p"
        rows = [] if has and request.number == len(self.counted) else self.counted
        return RecordsAnswer(process="p", number=len(self.counted), whole=not has, rows=pa.Table.from_pylist(rows, RECORDS))

    def positions(self, asked: pa.Table) -> pa.Table:
        if self.error is not None:
            raise self.error
        rows = asked.to_pylist()
        self.asked.append([(row["topic"], row["partition"], row["offset"]) for row in rows])
        answers = [
            row
            | self.logs[row["topic"], row["partition"]].position(row["offset"], row["upto"], reads_uncommitted=row["reads_uncommitted"] > 0)
            for row in rows
        ]
        return pa.Table.from_pylist(answers, POSITIONS)

    def batch(self, request: BatchRequest) -> BatchCheck:
        if self.error is not None:
            raise self.error
        self.checked.append((request.topic, request.partition, request.offset))
        return BatchCheck(sound=False, error="crc", size=77, last_offset=request.offset)
