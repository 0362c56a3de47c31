"""Finds commits by the names of their groups and topics, without a look at any other."""

from collections.abc import Container, Sequence

import numpy as np
from numpy.typing import NDArray

from streaming.cluster.consumers.group_lag import ABSENT
from streaming.common.arrays import Longs
from streaming.kafka.groups.commit_table import CommitRows

Place = tuple[str, str, int]
"""Group, topic and partition."""

_BITS = 32
_LOW_BITS = (1 << _BITS) - 1


def rows_of(rows: CommitRows, places: Sequence[Place]) -> list[int]:
    """The commit of each of some places, `ABSENT` where there is none. Those of share groups are left out: their topics have no name."""
    if not places:
        return []
    groups, topics = _numbers(rows.group_names, {place[0] for place in places}), _numbers(rows.topic_names, {place[1] for place in places})
    wanted = np.array([(groups.get(group, ABSENT), topics.get(topic, ABSENT), number) for group, topic, number in places], np.int64)
    group, topic, partition = wanted.T
    some = np.flatnonzero(np.isin(rows.group, group.astype(np.int32)) & np.isin(rows.partition, partition.astype(np.int32)) & ~rows.share)
    own = _packed(rows.group[some], rows.topic[some])
    pairs, pair = np.unique(_packed(group, topic), return_inverse=True)
    near = np.minimum(np.searchsorted(pairs, own), len(pairs) - 1)
    some, near = some[pairs[near] == own], near[pairs[near] == own]
    key = _packed(near, rows.partition[some])
    order = np.argsort(key, kind="stable")
    last = np.searchsorted(key[order], key_wanted := _packed(pair.reshape(-1), partition), side="right") - 1
    same = np.append(key[order], ABSENT)[last] == key_wanted
    found: list[int] = np.where(same, np.append(some[order], ABSENT)[last], ABSENT).tolist()
    return found


def _packed(high: NDArray[np.signedinteger], low: NDArray[np.signedinteger]) -> Longs:
    """Two numbers of 32 bits in one."""
    packed: Longs = high.astype(np.int64) << _BITS | low.astype(np.int64) & _LOW_BITS
    return packed


def _numbers(names: Sequence[str], some: Container[str]) -> dict[str, int]:
    return {name: number for number, name in enumerate(names) if name in some}
