"""The state of every observed log among its replicas: its high watermark, its last stable offset, who leads and who is in sync."""

from collections.abc import Callable, Sequence
from operator import attrgetter

import numpy as np

from streaming.cluster.view.decisions import NOWHERE, Decided, best_of_each
from streaming.cluster.view.value_matrix import Carried, Columns
from streaming.common.arrays import Flags, Longs
from streaming.rules.limits import LimitsOf, may_stand
from streaming.rules.partition_values import Copies, Roles, Sizes, Undecided, high_watermarks, stable_offsets
from streaming.rules.transaction_fold import NO_TRANSACTIONS, Transactions

ABSENT = -1
"""A number without a value. No value is negative, except that of ``leader_id`` (see `streaming.rules.partition_values.Roles`)."""

COLUMNS = (
    "size_bytes",
    "high_watermark_checkpoint",
    "high_watermark",
    "last_stable_offset",
    "unread_offsets",
    "unread_bytes",
    "leader_id",
    "replicas",
    "in_sync_replicas",
    "in_sync",
    "complete_replicas",
    "complete",
    "replica_lag_offsets",
)
"""What `replica_offsets_of` computes. ``in_sync`` is 1 for a replica in sync, ``complete`` for one that has everything up to the high
watermark: it is in sync, or none is and it is eligible to lead. ``complete_replicas``: how many of the partition are.
``replica_lag_offsets`` is how far a replica is behind the leader's end."""

OFFSETS = ("high_watermark", "last_stable_offset", "unread_offsets", "unread_bytes")
"""The columns that depend on how far a partition is replicated."""

ReplicaOffsets = dict[str, Longs]
"""Columns by name, with one item per log."""

Known = tuple[Decided, Roles]
"""What is decided of all logs, and the role that each of them has by that."""


def replica_offsets_of(
    logs: Columns,
    carried: Sequence[Carried],
    names: Sequence[str],
    facts: Known,
    assigned: Longs,
    ahead: Sequence[Known],
    silent: Flags,
    fenced: frozenset[int],
    limits_of: LimitsOf,
    *,
    assume_replicated: bool,
) -> ReplicaOffsets:
    """Compute `COLUMNS` for all observed logs; `ABSENT` where there is no value.

    Args:
        logs: the observed logs, all replicas of all partitions.
        carried: the carried values of each.
        names: their topics.
        facts: what is decided of each.
        assigned: by `assigned_rows`.
        ahead: what will be decided of each when more rows have been processed. The smallest of all high watermarks that follow counts: so
            none is higher than the true one, whichever of these decisions the processed rows belong to.
        silent: whether the agent of each log has not answered for long.
        fenced: brokers that the controller has fenced off.
        limits_of: returns the limits of a topic on a broker.
    """
    decided, roles = facts
    copies = _copies(logs, names, facts, assigned, silent, fenced, limits_of)
    eligible = np.maximum(_of_partition(decided.eligible_replicas, assigned), 0)[logs["replicas_of"]]
    owners, transactions = of_all([each.transactions for each in carried])
    undecided = Undecided(
        replica=owners,
        first_offset=transactions["first_offset"],
        marker_offset=transactions["marker_offset"],
        bytes_at=transactions["bytes_at"],
    )
    high_watermark = high_watermarks(copies, assume_replicated=assume_replicated)
    for later in ahead:
        those = _copies(logs, names, later, assigned_rows(logs, *later, silent), silent, fenced, limits_of)
        next_one = high_watermarks(those, assume_replicated=assume_replicated)
        high_watermark = np.where(later[0].heard, np.minimum(high_watermark, next_one), high_watermark)
    sizes = Sizes(appended=logs["appended_bytes"], log=_sizes(logs, carried))
    stable = stable_offsets(copies, high_watermark, undecided, sizes)
    ends = np.full(len(assigned), ABSENT, np.int64)
    leading = np.flatnonzero(roles.leads)
    ends[logs["replicas_of"][leading]] = logs["log_end_offset"][leading]
    return {
        "size_bytes": sizes.log,
        "high_watermark_checkpoint": decided.high_watermark,
        "high_watermark": stable.high_watermark,
        "last_stable_offset": stable.last_stable_offset,
        "unread_offsets": stable.lag,
        "unread_bytes": stable.lag_bytes,
        "leader_id": roles.leader,
        "replicas": _of_partition(decided.replicas, assigned)[logs["replicas_of"]],
        "in_sync_replicas": copies.isr,
        "in_sync": copies.in_sync.astype(np.int64),
        "complete_replicas": np.where(copies.isr == 0, eligible, copies.isr),
        "complete": (copies.in_sync | ((copies.isr == 0) & _members(logs, assigned, decided.brokers_eligible))).astype(np.int64),
        "replica_lag_offsets": np.maximum(ends[logs["replicas_of"]] - logs["log_end_offset"], 0),
    }


def _copies(
    logs: Columns,
    names: Sequence[str],
    facts: Known,
    assigned: Longs,
    silent: Flags,
    fenced: frozenset[int],
    limits_of: LimitsOf,
) -> Copies:
    decided, roles = facts
    start = np.maximum(logs["log_start_offset"], 0)
    return Copies(
        partition=logs["replicas_of"],
        broker=logs["broker"],
        log_start=start,
        end_offset=np.maximum(logs["log_end_offset"], start),
        checkpoint=np.maximum(decided.high_watermark, logs["high_watermark"]),
        leads=roles.leads,
        in_sync=_members(logs, assigned, decided.brokers_in_sync),
        isr=_of_partition(decided.in_sync_replicas, assigned)[logs["replicas_of"]],
        stands=_may_stay_below(logs, names, facts, assigned, limits_of)[logs["replicas_of"]],
        fenced=np.isin(logs["broker"], list(fenced)),
        silent=silent,
    )


def _members(logs: Columns, assigned: Longs, brokers_of: Callable[[Longs], tuple[Longs, Longs]]) -> Flags:
    """Which logs are on one of the brokers that their partition's replica has in a list."""
    found = np.zeros(len(logs), np.bool_)
    known = np.flatnonzero(assigned[logs["replicas_of"]] != NOWHERE)
    owners, brokers = brokers_of(assigned[logs["replicas_of"][known]])
    found[known[owners[brokers == logs["broker"][known][owners]]]] = True
    return found


def _of_partition(column: Longs, assigned: Longs) -> Longs:
    found: Longs = np.where(assigned == NOWHERE, ABSENT, column[assigned]) if len(column) else np.empty(0, np.int64)
    return found


def _may_stay_below(logs: Columns, names: Sequence[str], facts: Known, assigned: Longs, limits_of: LimitsOf) -> Flags:
    """Whether the leader of each partition may leave its high watermark where it is: by its own broker's limits, if it is observed."""
    decided, roles = facts
    isr, replicas = (_of_partition(column, assigned) for column in (decided.in_sync_replicas, decided.all_replicas))
    stands: Flags = (isr >= 0) & (replicas >= 0) & (isr < replicas)  # also if the leader is not observed, or there is none
    few = roles.leads & stands[logs["replicas_of"]]
    if not few.any():
        return stands
    version = _of_partition(decided.leader_metadata_version, assigned)
    for item in np.flatnonzero(few).tolist():
        partition = int(logs["replicas_of"][item])
        limits = limits_of(int(logs["broker"][item]), names[item], decided.text(item))
        stands[partition] = may_stand(limits, int(isr[partition]), int(replicas[partition]), int(version[partition]))
    return stands


def of_all(transactions: Sequence[Transactions]) -> tuple[Longs, Transactions]:
    """The transactions of several logs, one after the other, and before them the index of the log of each."""
    some = [item for item, each in enumerate(transactions) if len(each)]
    if not some:
        return np.empty(0, np.int64), NO_TRANSACTIONS
    owners = np.repeat(np.array(some, np.int64), [len(transactions[item]) for item in some])
    # Not `np.concatenate`, which computes the common type of every two structured arrays.
    return owners, np.frombuffer(b"".join(transactions[item].tobytes() for item in some), NO_TRANSACTIONS.dtype)


def assigned_rows(logs: Columns, decided: Decided, roles: Roles, silent: Flags) -> Longs:
    """For each partition the log whose agent determines its replicas and ISR, `NOWHERE` if they are not known.

    It is the log of the leader's own broker, which learns of a change first, because it requested the change. If that log is not observed
    or silent, it is the log whose broker knows the highest leader epoch.
    """
    count = int(logs["replicas_of"].max()) + 1 if len(logs) else 0
    return best_of_each(logs["replicas_of"], count, decided.in_sync_replicas >= 0, (decided.leader_epoch, roles.leads, ~silent))


def _sizes(logs: Columns, carried: Sequence[Carried]) -> Longs:
    """Bytes of each log on disk: its segments as they were listed, and the bytes by which the log has grown since."""
    total, last, size = (
        np.fromiter(map(attrgetter(name), carried), np.int64, len(carried)) for name in ("listed_bytes", "last_segment", "last_bytes")
    )
    grown = np.where(logs["active_segment"] == last, logs["active_position"] - size, 0)
    rolled = np.where(logs["active_segment"] > last, logs["active_position"], 0)
    return np.where(total >= 0, total + np.maximum(grown, 0) + rolled, ABSENT)
