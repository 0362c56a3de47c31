"""What the values of all replicas say of a partition: which one counts, the high watermark, the last stable offset, the lag."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streaming.common.arrays import Flags, Longs

_NEVER = np.iinfo(np.int64).max
_NOT_KNOWN = -1
_NOT_OBSERVED = -2

NO_LEADER = -1
LEADER_UNKNOWN = -2

_LOWEST = np.iinfo(np.int64).min


def high_watermarks(copies: Copies, *, assume_replicated: bool = False) -> Longs:
    """The high watermark of each replica's partition, as far as that replica's log was read; -1 where it is not known.

    With metadata, if all in-sync replicas are observed: the larger of the leader's checkpoint and their smallest end offset (the leader's
    end if it is alone in sync). If they are not, or if ``stands`` is set: the leader's checkpoint. It is never below the replica's own,
    which a leader has told it. Without metadata: the replica's own checkpoint, or with ``assume_replicated`` its end. A checkpoint without
    an entry tells nothing: it has only the logs that its broker's last run was told of, so a full one may have none.
    """
    count = int(copies.partition.max()) + 1 if len(copies.partition) else 0
    own = np.maximum(copies.checkpoint, _NOT_KNOWN)
    of_leader = np.full(count, _NOT_OBSERVED, np.int64)
    np.maximum.at(of_leader, copies.partition[copies.leads], own[copies.leads])
    written = np.maximum(of_leader[copies.partition], own)
    held = np.where(copies.stands, _NOT_KNOWN, _held_by_all(copies, of_leader, count)[copies.partition])
    with_metadata = np.maximum(written, held)
    without = copies.end_offset if assume_replicated else own
    found = np.where(copies.isr >= 0, with_metadata, without)
    high_watermark: Longs = np.where(found < 0, _NOT_KNOWN, np.minimum(np.maximum(found, copies.log_start), copies.end_offset))
    return high_watermark


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Copies:
    """Observed replicas, all columns of equal length.

    ``partition`` numbers the partitions 0, 1, ... in any order. ``log_start`` and ``end_offset`` are as far as the log was read;
    ``checkpoint`` is the newest entry that is known in ``replication-offset-checkpoint``, -1 none or none that can be read. ``leads`` and
    ``in_sync`` follow the newest metadata of its partition; ``isr`` is the number of in-sync replicas there, -1 if no metadata is readable.
    ``stands``: too few are in sync for the leader to advance its high watermark, or this is possible (`streaming.rules.limits`).
    ``fenced``: the controller has fenced the replica's broker, so it cannot come into sync. ``silent``: the replica's agent has not
    answered for ``stale_after``.
    """

    partition: Longs
    broker: Longs
    log_start: Longs
    end_offset: Longs
    checkpoint: Longs
    leads: Flags
    in_sync: Flags
    isr: Longs
    stands: Flags
    fenced: Flags
    silent: Flags


def _held_by_all(copies: Copies, of_leader: Longs, count: int) -> Longs:
    """The smallest end offset of each partition's in-sync replicas, -1 if not all of them are observed.

    A replica that has caught up but is not in sync yet also holds the leader back (`shouldWaitForReplicaToJoinIsr`). The files do not show
    which replicas have caught up. Those at or after the leader's checkpoint may have, or any if there is none, unless they are
    fenced (`isReplicaIsrEligible`).
    """
    heard = ~copies.silent
    seen = np.flatnonzero(copies.in_sync & heard)
    written = of_leader[copies.partition]
    joining = np.flatnonzero(~copies.in_sync & ~copies.fenced & heard & (written != _NOT_OBSERVED) & (copies.end_offset >= written))
    partition = copies.partition[seen]
    smallest = np.full(count, _NEVER, np.int64)
    for some in (seen, joining):
        np.minimum.at(smallest, copies.partition[some], copies.end_offset[some])
    expected = np.full(count, _NOT_KNOWN, np.int64)
    expected[copies.partition] = copies.isr
    # one broker twice, as with a copy of its disk, counts as one replica
    observed = np.bincount(np.unique(partition << 32 | copies.broker[seen]) >> 32, minlength=count)
    held: Longs = np.where((expected > 0) & (observed >= expected), smallest, _NOT_KNOWN)
    return held


def stable_offsets(copies: Copies, high_watermark: Longs, undecided: Undecided, sizes: Sizes) -> Stable:
    """The last stable offset of each replica (`UnifiedLog.fetchLastStableOffset`).

    Computes the high watermark, the last stable offset and the lag between them, for all replicas at once, because a scrape needs
    all. No file contains an up-to-date high watermark: a leader writes it every five seconds, and a new partition has no entry at
    all. If all in-sync replicas are observed, their logs give a newer value: offsets that all of them hold are replicated
    (`Partition.maybeIncrementLeaderHW`). This does not hold while too few replicas are in sync for the leader to advance at all.

    It is the first offset of the oldest transaction that is open, or closed by a marker at or above the high watermark. It is never below
    the log start: where that lies inside a batch, brokers from 4.0 on answer the first offset of the batch (KAFKA-17803), which no client
    can read. Without such a transaction, it is the high watermark itself. If the high watermark is not known (-1), all results are -1.
    """
    first, bytes_at = _first_undecided(len(high_watermark), high_watermark, undecided)
    held = first < high_watermark
    lso = np.where(held, np.maximum(copies.log_start, first), high_watermark)
    lag = np.maximum(high_watermark - lso, 0)
    lag_bytes = _lag_bytes(copies, lso, lag, bytes_at, sizes)
    known = high_watermark >= 0
    return Stable(
        high_watermark=high_watermark,
        last_stable_offset=lso,
        lag=np.where(known, lag, _NOT_KNOWN),
        lag_bytes=np.where(known, lag_bytes, _NOT_KNOWN),
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Undecided:
    """The transactions of all replicas (`streaming.common.rows.TRANSACTIONS`), all columns of equal length, in any order.

    ``replica`` is the index in the columns of `Copies`; ``marker_offset`` is -1 while it is open, ``bytes_at`` -1 if it is not known.
    """

    replica: Longs
    first_offset: Longs
    marker_offset: Longs
    bytes_at: Longs


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sizes:
    """The bytes of each replica's log: ``appended`` as counted up to its end, and ``log`` on disk, -1 if that is not known."""

    appended: Longs
    log: Longs


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Stable:
    """The offsets up to which readers of committed data can read.

    ``lag`` is the number of offsets between the last stable offset and the high watermark, ``lag_bytes`` their bytes. The bytes are exact
    if the first undecided batch was seen when it was appended and everything up to the end is replicated. Otherwise they are estimated by
    the mean size of an offset, and -1 if there is nothing to estimate by.
    """

    high_watermark: Longs
    last_stable_offset: Longs
    lag: Longs
    lag_bytes: Longs


def _first_undecided(count: int, high_watermark: Longs, undecided: Undecided) -> tuple[Longs, Longs]:
    """The smallest first offset that holds each replica back, and the bytes appended before it, -1 if they are not known."""
    marker = undecided.marker_offset
    holds = np.flatnonzero((marker < 0) | (marker >= high_watermark[undecided.replica]))
    first, bytes_at = np.full(count, _NEVER, np.int64), np.full(count, _NOT_KNOWN, np.int64)
    np.minimum.at(first, undecided.replica[holds], undecided.first_offset[holds])
    oldest = holds[undecided.first_offset[holds] == first[undecided.replica[holds]]]
    bytes_at[undecided.replica[oldest]] = undecided.bytes_at[oldest]
    return first, bytes_at


def _lag_bytes(copies: Copies, lso: Longs, lag: Longs, bytes_at: Longs, sizes: Sizes) -> Longs:
    counted = np.where(bytes_at >= 0, sizes.appended - bytes_at, _NOT_KNOWN)
    span = copies.end_offset - copies.log_start
    by_mean = np.where((sizes.log >= 0) & (span > 0), _part(sizes.log, copies.end_offset - lso, span), _NOT_KNOWN)
    to_end = np.where(counted >= 0, counted, by_mean)
    found: Longs = np.where(lag == 0, 0, np.where(to_end < 0, _NOT_KNOWN, _part(to_end, lag, copies.end_offset - lso)))
    return found


def _part(size: Longs, offsets: Longs, divisors: Longs) -> Longs:
    """The share of the bytes that belongs to some of the offsets; exact if these are all offsets."""
    part: Longs = np.where(offsets == divisors, size, (size * (offsets / np.maximum(divisors, 1))).astype(np.int64))
    return part


def assign_roles(replicas: ReplicaColumns) -> Roles:
    """Choose one replica for each partition.

    Chooses the replica whose values count for its partition: exactly one of the observed ones, the leader if it is known. It works on
    columns with one element for each replica, because a scrape needs all partitions at once.

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
