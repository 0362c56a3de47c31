"""Chooses the replica whose values count for its partition: exactly one of the observed ones, the leader if it is known.

It works on columns with one element for each replica, because a scrape needs all partitions at once.
"""

from dataclasses import dataclass

import numpy as np

from streaming.common.arrays import Flags, Longs

NO_LEADER = -1
LEADER_UNKNOWN = -2

_LOWEST = np.iinfo(np.int64).min


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReplicaColumns:
    """Observed replicas, all columns of equal length.

    ``partition`` numbers the partitions 0, 1, ... in any order. ``leader`` and ``leader_epoch`` come from the metadata log as the replica's
    own broker has read it (``LEADER_UNKNOWN``, epoch -1 if it could not). ``log_epoch`` is the leader epoch of the last batch, -1 unknown.
    ``silent``: the replica's agent has not answered for ``stale_after``.
    """

    partition: Longs
    broker: Longs
    leader: Longs
    leader_epoch: Longs
    log_epoch: Longs
    end_offset: Longs
    silent: Flags


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Roles:
    """The role of each replica, in the order of the given replicas.

    ``leader`` and ``leader_epoch`` belong to the partition, by the newest metadata: `NO_LEADER` if it has no leader, `LEADER_UNKNOWN` and
    -1 if that is not known.
    """

    speaks: Flags
    leads: Flags
    leader: Longs
    leader_epoch: Longs


def assign_roles(replicas: ReplicaColumns) -> Roles:
    """Choose one replica for each partition.

    The newest metadata among all agents names the leader. A higher leader epoch is later, whichever broker has read it: the controller
    increments it at every change of leader (`PartitionChangeBuilder`). If the leader is unknown, absent or not observed, the log that would
    win an election is chosen: highest (last leader epoch, end offset), then the lowest broker id. A silent replica is chosen only if all
    replicas of its partition are silent.
    """
    count = int(replicas.partition.max()) + 1 if len(replicas.partition) else 0
    leader, leader_epoch = _newest_metadata(replicas, count)
    leads = replicas.broker == leader[replicas.partition]
    speaks = _best_of_each(
        replicas.partition,
        count,
        (
            ~replicas.silent,
            leads,
            replicas.log_epoch,
            replicas.end_offset,
            -replicas.broker,
            -np.arange(len(leads)),  # one broker twice, as with a copy of its disk: still exactly one
        ),
    )
    return Roles(speaks=speaks, leads=leads, leader=leader[replicas.partition], leader_epoch=leader_epoch[replicas.partition])


def _newest_metadata(replicas: ReplicaColumns, count: int) -> tuple[Longs, Longs]:
    """The leader and leader epoch of every partition, from the replica whose broker knows the highest epoch."""
    # One number that sorts as (epoch, leader). Both are 32 bits wide and start at -1, and the lower half must not be negative.
    editions = (replicas.leader_epoch << 32) | (replicas.leader + 1)
    newest = np.full(count, _LOWEST, np.int64)
    np.maximum.at(newest, replicas.partition, np.where(replicas.leader == LEADER_UNKNOWN, _LOWEST, editions))
    leader = np.where(newest == _LOWEST, LEADER_UNKNOWN, (newest & 0xFFFF_FFFF) - 1)
    leader_epoch = np.where(newest == _LOWEST, -1, newest >> 32)
    return leader, leader_epoch


def _best_of_each(group: Longs, count: int, keys: tuple[Longs | Flags, ...]) -> Flags:
    """Mark the element of each group with the largest keys, compared one key after the other."""
    left = np.arange(len(group))
    for key in keys:
        values = key[left].astype(np.int64)
        best = np.full(count, _LOWEST, np.int64)
        np.maximum.at(best, group[left], values)
        left = left[values == best[group[left]]]
    chosen = np.zeros(len(group), np.bool_)
    chosen[left] = True
    return chosen
