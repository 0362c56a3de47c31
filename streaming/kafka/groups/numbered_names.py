"""Names by small numbers, so that columns of them take four bytes a row; and keys of commits as single numbers.

A key is the number of a pair of group and topic, times 2^32, plus the partition. Many are found at once by it.
"""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from streaming.common.arrays import Longs

Numbers = NDArray[np.int32]

_PARTITION_BITS = 32
_PARTITIONS = (1 << _PARTITION_BITS) - 1
_NO_TOPIC = "\n"  # before the id of a topic whose name is not known; no name contains it


class NumberedNames:
    """Numbers count from 0 in the order in which the names come."""

    __slots__ = ("_numbers", "names")

    def __init__(self) -> None:
        self.names: list[str] = []
        self._numbers: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self.names)

    def find(self, name: str) -> int:
        """The number of a name, -1 if it has none."""
        return self._numbers.get(name, -1)

    def number(self, name: str) -> int:
        """The number of a name, which gets one if it has none."""
        found = self._numbers.get(name, -1)
        if found < 0:
            found = self._numbers[name] = len(self.names)
            self.names.append(name)
        return found


def named(names: list[str], numbers: Numbers) -> pa.Array:
    """The names of some numbers, as a column."""
    if 2 * len(numbers) > len(names):
        return pa.array(names, pa.string()).take(pa.array(numbers))
    return pa.array([names[number] for number in numbers.tolist()], pa.string())


class CommitKeys:
    """Numbers for groups, topics, topic ids and pairs of group and topic. A pair's number is never given to another one."""

    def __init__(self) -> None:
        self.groups, self.topic_ids = NumberedNames(), NumberedNames()
        self._topics = NumberedNames()
        self._pairs: dict[int, int] = {}  # by the numbers of group and topic, ascending
        self._next_pair = 0

    def __len__(self) -> int:
        return len(self._pairs)

    @property
    def topics(self) -> list[str]:
        """The names of topics by their numbers; "" where only the id is known."""
        return ["" if name.startswith(_NO_TOPIC) else name for name in self._topics.names]

    def keys(self, commits: pa.RecordBatch) -> Longs:
        """The keys of rows of `COMMITS`. Rows without a topic's name are distinguished by its id."""
        topics = numbered(commits["topic"], self._topics)
        for row in np.flatnonzero(topics == self._topics.find("")).tolist():
            topics[row] = self._topics.number(_NO_TOPIC + commits["topic_id"][row].as_py())
        packed = numbered(commits["group"], self.groups).astype(np.int64) << _PARTITION_BITS | topics
        distinct, rows = np.unique(packed, return_inverse=True)
        pairs = np.array([self._pair(one) for one in distinct.tolist()], np.int64)
        partitions = np.asarray(commits["partition"], np.int32).astype(np.int64) & _PARTITIONS
        keys: Longs = (pairs[rows] << _PARTITION_BITS | partitions) if len(packed) else np.empty(0, np.int64)
        return keys

    def parts(self, keys: Longs) -> tuple[Numbers, Numbers, Numbers]:
        """What keys consist of: numbers of groups and topics, and partitions."""
        pairs, packed = (np.fromiter(each, np.int64, len(self)) for each in (self._pairs.values(), self._pairs.keys()))
        packed = packed[np.searchsorted(pairs, keys >> _PARTITION_BITS)]
        return (
            (packed >> _PARTITION_BITS).astype(np.int32),
            (packed & _PARTITIONS).astype(np.int32),
            (keys & _PARTITIONS).astype(np.uint32).view(np.int32),
        )

    def keep(self, keys: Longs) -> None:
        """Forget the groups that none of some keys is of, and give new numbers to the others; the numbers of topics and pairs stay."""
        live, groups = set(np.unique(keys >> _PARTITION_BITS).tolist()), NumberedNames()
        pairs = [(packed, pair) for packed, pair in self._pairs.items() if pair in live]
        self._pairs = {
            groups.number(self.groups.names[packed >> _PARTITION_BITS]) << _PARTITION_BITS | packed & _PARTITIONS: pair
            for packed, pair in pairs
        }
        self.groups = groups

    def _pair(self, packed: int) -> int:
        pair = self._pairs.get(packed, -1)
        if pair < 0:
            pair = self._pairs[packed] = self._next_pair
            self._next_pair += 1
        return pair


def numbered(texts: pa.Array, names: NumberedNames) -> Numbers:
    """The numbers of the names in a column."""
    encoded = texts.dictionary_encode()
    numbers = np.array([names.number(name) for name in encoded.dictionary.to_pylist()], np.int32)
    return numbers[np.asarray(encoded.indices)] if len(texts) else np.empty(0, np.int32)
