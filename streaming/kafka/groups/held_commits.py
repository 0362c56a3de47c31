"""The committed offsets of one coordinator's log, in columns: a million of them take some 70 MB; and those of open transactions.

A row is found by the numbers of its group and topic and its partition, through a hash table of row numbers.
"""

from array import array
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from streaming.kafka.groups.group_rows import REMOVED

_FREE = -1
_FIRST_SLOTS = 16


class Held(NamedTuple):
    """What is known of a commit: ``topic_id`` by its number; times in Unix milliseconds; ``leader_epoch``: -1 for none."""

    offset: int
    topic_id: int
    commit_ms: int
    expire_ms: int
    record_offset: int
    leader_epoch: int = -1


class HeldCommits:
    """Columns of equal length. A row whose ``record_offset`` is -1 has no commit: it was deleted, or is only pending.

    ``step``: the largest of its last steps forwards from one commit to the next, fading; 0 not known. ``former_ms``: of those that had a
    commit that was deleted, or was of another topic of that name, when that was made.
    """

    def __init__(self) -> None:
        self.group, self.topic, self.partition, self.topic_id, self.leader_epoch = (array("i") for _ in range(5))
        self.offset, self.commit_ms, self.record_offset, self.effective_offset, self.version, self.step = (array("q") for _ in range(6))
        self.expire_ms: dict[int, int] = {}  # few have one
        self.former_ms: dict[int, int] = {}
        self._slots = array("i", [_FREE]) * _FIRST_SLOTS

    def __len__(self) -> int:
        return len(self.group)

    def find(self, group: int, topic: int, partition: int) -> int:
        """The row of a key, -1 if it has none."""
        return self._slots[self._slot(group, topic, partition)]

    def find_or_add(self, group: int, topic: int, partition: int) -> int:
        """The row of a key; a new one has no commit."""
        slot = self._slot(group, topic, partition)
        row = self._slots[slot]
        if row != _FREE:
            return row
        row = self._slots[slot] = len(self.group)
        self.group.append(group)
        self.topic.append(topic)
        self.partition.append(partition)
        self.topic_id.append(0)
        self.leader_epoch.append(-1)
        self.offset.append(REMOVED)
        for column in (self.commit_ms, self.record_offset, self.effective_offset):
            column.append(-1)
        self.version.append(0)
        self.step.append(0)
        if 3 * len(self.group) > 2 * len(self._slots):
            self._grow()
        return row

    def put(self, row: int, held: Held, effective_offset: int, version: int) -> None:
        """Give a row its commit."""
        self.offset[row], self.topic_id[row], self.commit_ms[row], expire_ms, self.record_offset[row], self.leader_epoch[row] = held
        self.effective_offset[row], self.version[row] = effective_offset, version
        if expire_ms >= 0:
            self.expire_ms[row] = expire_ms
        elif self.expire_ms:
            self.expire_ms.pop(row, None)

    def remove(self, row: int, effective_offset: int, version: int) -> None:
        """Take a row's commit away."""
        self.former_ms[row] = self.commit_ms[row]
        self.put(row, Held(REMOVED, self.topic_id[row], -1, -1, -1), effective_offset, version)
        self.step[row] = 0

    def copy(self, rows: Sequence[int], groups: Mapping[int, int]) -> "HeldCommits":
        """Some of the rows, in order, with other numbers of their groups."""
        copied = HeldCommits()
        for number, row in enumerate(rows):
            copied.find_or_add(groups[self.group[row]], self.topic[row], self.partition[row])
            times = self.commit_ms[row], self.expire_ms.get(row, -1)
            held = Held(self.offset[row], self.topic_id[row], *times, self.record_offset[row], self.leader_epoch[row])
            copied.put(number, held, self.effective_offset[row], self.version[row])
            copied.step[number] = self.step[row]
            if row in self.former_ms:
                copied.former_ms[number] = self.former_ms[row]
        return copied

    def _slot(self, group: int, topic: int, partition: int) -> int:
        """The slot of a key, or the free one where it belongs."""
        slots, groups, topics, partitions = self._slots, self.group, self.topic, self.partition
        mask = len(slots) - 1
        slot = hash((group, topic, partition)) & mask
        while (row := slots[slot]) != _FREE:
            if partitions[row] == partition and topics[row] == topic and groups[row] == group:
                return slot
            slot = (slot + 1) & mask
        return slot

    def _grow(self) -> None:
        self._slots = array("i", [_FREE]) * (2 * len(self._slots))
        for row, key in enumerate(zip(self.group, self.topic, self.partition, strict=True)):
            self._slots[self._slot(*key)] = row


class OpenCommits:
    """The pending commits of one coordinator's log, by producer and row: they wait for the marker of their producer."""

    def __init__(self) -> None:
        self._by_producer: dict[int, dict[int, Held]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._by_producer.values()))

    def __iter__(self) -> Iterator[tuple[int, int, Held]]:
        """Producer, row and commit, in the order of the transactions."""
        for producer_id, commits in self._by_producer.items():
            for row, held in commits.items():
                yield producer_id, row, held

    def put(self, producer_id: int, row: int, held: Held) -> bool:
        """Whether the producer had no commit for the row yet."""
        commits = self._by_producer.setdefault(producer_id, {})
        new = row not in commits
        commits[row] = held
        return new

    def drop_row(self, row: int) -> int:
        """A tombstone also deletes what is pending, for all producers; returns for how many."""
        return sum(commits.pop(row, None) is not None for commits in self._by_producer.values())

    def end(self, producer_id: int) -> dict[int, Held]:
        """The transaction of a producer ends: its commits no longer wait."""
        return self._by_producer.pop(producer_id, {})

    def move(self, rows: Mapping[int, int]) -> None:
        """The rows have got other numbers."""
        self._by_producer = {
            producer_id: {rows[row]: held for row, held in commits.items()} for producer_id, commits in self._by_producer.items()
        }
