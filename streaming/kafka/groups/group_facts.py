"""What is known of one group, and of one offset that waits for the end of its transaction: rows of `GROUPS` and `PENDING` as values."""

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from streaming.kafka.groups.group_rows import REMOVED


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupFacts:
    """A group; columns and units as `GROUPS`."""

    group: str
    coordinator: int
    effective_offset: int
    type: str
    protocol: str
    state: str
    members: int
    epoch: int
    state_ms: int
    clients: tuple[str, ...]
    hosts: tuple[str, ...]
    topics: tuple[str, ...]

    @property
    def removed(self) -> bool:
        """Whether the group is deleted."""
        return self.members == REMOVED


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingCommit:
    """An offset that was committed in a transaction which is open; columns and units as `PENDING`."""

    group: str
    topic: str
    topic_id: str
    partition: int
    coordinator: int
    producer_id: int
    offset: int
    record_offset: int
    commit_ms: int = -1


def group_facts(groups: pa.RecordBatch) -> list[GroupFacts]:
    """The rows of `GROUPS`."""
    found: list[GroupFacts] = []
    for row in groups.to_pylist():
        values: dict[str, Any] = row | {name: tuple(row[name]) for name in ("clients", "hosts", "topics")}
        found.append(GroupFacts(**values))
    return found


def pending_commits(pending: pa.RecordBatch) -> tuple[PendingCommit, ...]:
    """The rows of `PENDING`."""
    return tuple(PendingCommit(**row) for row in pending.to_pylist())
