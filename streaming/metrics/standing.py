"""Where every observed log stands among its replicas: its high watermark, its last stable offset, who leads and who is in sync."""

from collections.abc import Sequence
from itertools import chain

import numpy as np

from streaming.facts import Facts
from streaming.metrics.carried import Carried
from streaming.metrics.columns import Columns, Longs
from streaming.metrics.limiter import LimitsOf
from streaming.rules.leaders import Flags, Roles
from streaming.rules.min_isr import may_stand
from streaming.rules.offsets import Copies, Sizes, Undecided, high_watermarks, stable_offsets
from streaming.rules.transactions import NO_TRANSACTIONS, Transactions

ABSENT = -1
"""Stands where a number has no value; no number that has one is negative, but ``leader_id`` (see `streaming.rules.leaders.Roles`)."""

COLUMNS = (
    "size_bytes",
    "high_watermark_checkpoint",
    "high_watermark",
    "last_stable_offset",
    "last_stable_offset_lag",
    "last_stable_offset_lag_bytes",
    "leader_id",
    "replicas",
    "in_sync_replicas",
    "in_sync",
    "replica_lag_offsets",
)
"""What `stand` works out. ``in_sync`` is 1 for a replica that is; ``replica_lag_offsets`` is how far it is behind the leader's end."""

OFFSETS = ("high_watermark", "last_stable_offset", "last_stable_offset_lag", "last_stable_offset_lag_bytes")
"""Those that follow from how far a partition is replicated."""

Standing = dict[str, Longs]
"""Columns by name, one item a log."""


def stand(
    logs: Columns,
    carried: Sequence[Carried],
    names: Sequence[str],
    roles: Roles,
    silent: Flags,
    fenced: frozenset[int],
    limits_of: LimitsOf,
    *,
    assume_replicated: bool,
) -> Standing:
    """Work out `COLUMNS`, for all observed logs; `ABSENT` where there is no value.

    Args:
        logs: the observed logs, all replicas of all partitions.
        carried: what is carried of each.
        names: their topics.
        roles: what each of them is.
        silent: whose agents have not answered for long.
        fenced: brokers that the controller has fenced off.
        limits_of: the limits of a topic on a broker.
    """
    told = _told(logs, carried, roles, silent)
    in_sync = [None if facts is None else facts.isr for facts in told]
    count = int(logs["replicas_of"].max()) + 1 if len(logs) else 0
    isr = _lengths(in_sync)[logs["replicas_of"]]
    start = np.maximum(logs["log_start_offset"], 0)
    copies = Copies(
        partition=logs["replicas_of"],
        broker=logs["broker"],
        log_start=start,
        end_offset=np.maximum(logs["log_end_offset"], start),
        checkpoint=logs["high_watermark"],
        leads=roles.leads,
        in_sync=_members(logs, in_sync),
        isr=isr,
        stands=_standing(logs, carried, names, roles, told, limits_of)[logs["replicas_of"]],
        fenced=np.isin(logs["broker"], list(fenced)),
        silent=silent,
    )
    owners, transactions = of_all([each.transactions for each in carried])
    undecided = Undecided(
        replica=owners,
        first_offset=transactions["first_offset"],
        marker_offset=transactions["marker_offset"],
        bytes_at=transactions["bytes_at"],
    )
    sizes = Sizes(appended=logs["appended_bytes"], log=_sizes(logs, carried))
    stable = stable_offsets(copies, high_watermarks(copies, assume_replicated=assume_replicated), undecided, sizes)
    ends = np.full(count, ABSENT, np.int64)
    leading = np.flatnonzero(roles.leads)
    ends[logs["replicas_of"][leading]] = logs["log_end_offset"][leading]
    return {
        "size_bytes": sizes.log,
        "high_watermark_checkpoint": logs["high_watermark"],
        "high_watermark": stable.high_watermark,
        "last_stable_offset": stable.last_stable_offset,
        "last_stable_offset_lag": stable.lag,
        "last_stable_offset_lag_bytes": stable.lag_bytes,
        "leader_id": roles.leader,
        "replicas": _lengths([None if facts is None else facts.replicas for facts in told])[logs["replicas_of"]],
        "in_sync_replicas": isr,
        "in_sync": copies.in_sync.astype(np.int64),
        "replica_lag_offsets": np.maximum(ends[logs["replicas_of"]] - logs["log_end_offset"], 0),
    }


def of_all(transactions: Sequence[Transactions]) -> tuple[Longs, Transactions]:
    """The transactions of several logs one behind the other, and whose each is."""
    some = [item for item, each in enumerate(transactions) if len(each)]
    if not some:
        return np.empty(0, np.int64), NO_TRANSACTIONS
    owners = np.repeat(np.array(some, np.int64), [len(transactions[item]) for item in some])
    # Not `np.concatenate`, which works out the common type of every two structured arrays.
    return owners, np.frombuffer(b"".join(transactions[item].tobytes() for item in some), NO_TRANSACTIONS.dtype)


def _sizes(logs: Columns, carried: Sequence[Carried]) -> Longs:
    """Bytes of each log on disk: its segments as they were listed, and what the last of them has grown since."""
    listed = np.array([(each.listed_bytes, each.last_segment, each.last_bytes) for each in carried], np.int64).reshape(-1, 3)
    total, last, size = listed.T
    grown = np.where(logs["active_segment"] == last, logs["active_position"] - size, 0)
    rolled = np.where(logs["active_segment"] > last, logs["active_position"], 0)
    return np.where(total >= 0, total + np.maximum(grown, 0) + rolled, ABSENT)


def _told(logs: Columns, carried: Sequence[Carried], roles: Roles, silent: Flags) -> list[Facts | None]:
    """For each partition the facts that tell its replicas and ISR, None where nobody knows them.

    Those of the leader's own broker, which hears of a change first, for it asked for it; where it is not observed or silent, of the highest
    leader epoch that a broker knows.
    """
    count = int(logs["replicas_of"].max()) + 1 if len(logs) else 0
    told: list[Facts | None] = [None] * count
    newest = np.lexsort((logs["leader_epoch"], roles.leads, ~silent)).tolist()
    partitions = logs["replicas_of"].tolist()
    for item in newest:  # the best one last
        facts = carried[item].facts
        if facts is not None and facts.isr is not None:
            told[partitions[item]] = facts
    return told


def _standing(
    logs: Columns, carried: Sequence[Carried], names: Sequence[str], roles: Roles, told: Sequence[Facts | None], limits_of: LimitsOf
) -> Flags:
    """Whether the leader of each partition may not move its high watermark on: by its own broker's limits, where it is observed."""
    stands = np.zeros(len(told), np.bool_)
    few = np.array([_is_few(facts) for facts in told], np.bool_)
    stands[few] = True  # where the leader is not observed, or there is none
    if not few.any():
        return stands
    for item in np.flatnonzero(roles.leads & few[logs["replicas_of"]]).tolist():
        partition = int(logs["replicas_of"][item])
        facts, own = told[partition], carried[item].facts
        assert facts is not None
        assert facts.isr is not None
        assert facts.all_replicas is not None
        limits = limits_of(int(logs["broker"][item]), names[item], "" if own is None else own.configs)
        stands[partition] = may_stand(limits, len(facts.isr), len(facts.all_replicas), facts.leader_metadata_version)
    return stands


def _is_few(facts: Facts | None) -> bool:
    return facts is not None and facts.isr is not None and facts.all_replicas is not None and len(facts.isr) < len(facts.all_replicas)


def _lengths(brokers: Sequence[tuple[int, ...] | None]) -> Longs:
    return np.array([ABSENT if each is None else len(each) for each in brokers], np.int64)


def _members(logs: Columns, in_sync: list[tuple[int, ...] | None]) -> Flags:
    sizes = [len(each or ()) for each in in_sync]
    members = np.fromiter(chain.from_iterable(each or () for each in in_sync), np.int64, sum(sizes))
    known = np.repeat(np.arange(len(in_sync)), sizes) << 32 | members
    found: Flags = np.isin(logs["replicas_of"] << 32 | logs["broker"], known)
    return found
