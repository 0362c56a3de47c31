"""The exported logs, one per partition, with everything that is computed from their values: offsets, transactions, retention."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streaming.cluster.view import retention_columns, transaction_columns
from streaming.cluster.view.decisions import Decided, join, keys_of
from streaming.cluster.view.fading_rates import Rates
from streaming.cluster.view.family import TEXT, text
from streaming.cluster.view.listed_segments import Listed
from streaming.cluster.view.replica_offsets import ABSENT, OFFSETS, ReplicaOffsets, assigned_rows, replica_offsets_of
from streaming.cluster.view.table import Snapshot
from streaming.cluster.view.transaction_columns import CoordinatorView, HangingTransaction, Late, OpenList
from streaming.cluster.view.value_matrix import Carried, Columns
from streaming.common.arrays import Flags, Longs
from streaming.kafka.formats.names import METADATA_TOPIC, OFFSETS_TOPIC
from streaming.rules.limits import Limits
from streaming.rules.partition_values import LEADER_UNKNOWN, NO_LEADER, ReplicaColumns, Roles, assign_roles
from streaming.rules.transaction_verdicts import TransactionVerdict

OLD_METADATA_MS = 60_000
"""While a controller is active, every copy of the metadata log is written to twice a second. A copy that was not written to for so long
does not show who leads or is in sync by now."""


def export(observed: Observed, all_kept: RetentionResults, snapshot: Snapshot, topic_labels: pa.LargeStringArray, rank: Longs) -> Logs:
    """Choose the logs that are exported, and judge their transactions."""
    there, roles = observed.columns, observed.roles
    wanted = snapshot.topic_exported[there["topic"]]
    items = np.flatnonzero(wanted if snapshot.all_replicas else wanted & roles.speaks)
    items = items[_page_order(there.select(items), rank)]
    columns = there.select(items)
    led = {"leader": np.where(roles.leader == LEADER_UNKNOWN, ABSENT, roles.leads)[items], "leader_epoch": roles.leader_epoch[items]}
    names, carried = [observed.names[item] for item in items.tolist()], [observed.carried[item] for item in items.tolist()]
    replica_offsets = {name: column[items] for name, column in observed.replica_offsets.items()}
    names_of = [f"{name}-{partition}" for name, partition in zip(names, columns["partition"].tolist(), strict=True)]
    judged = snapshot.context.transactions.judge(
        carried,
        names_of,
        observed.coordinators,
        snapshot.now_ms,
        read_ms=observed.read_ms[items],
        lag=replica_offsets["unread_offsets"],
    )
    kept_rows = np.searchsorted(all_kept.items, items)  # every exported log is among them
    kept = {name: column[kept_rows] for name, column in all_kept.columns.items()}
    return Logs(
        items=items,
        labels=_labels(columns, topic_labels),
        columns=columns,
        derived=led | replica_offsets | judged.columns | kept,
        topic_ids=[snapshot.topic_ids[slot] for slot in columns["slot"].tolist()],
        limits=[all_kept.limits[place] for place in kept_rows.tolist()],
        late=_with_groups(judged.late, columns, names, snapshot),
        late_omitted=judged.omitted,
        open=judged.open,
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Observed:
    """All observed replicas."""

    columns: Columns
    decided: Decided
    carried: list[Carried]
    names: list[str]  # the topic of each
    roles: Roles
    replica_offsets: ReplicaOffsets
    assigned: Longs  # by the number of a partition in ``columns["replicas_of"]``: the log by which its replicas are known, else `NOWHERE`
    coordinators: CoordinatorView
    read_ms: Longs  # up to when each was processed; -1 if that is not known or long ago, or if another replica counts
    unreadable: Flags  # whether it cannot be read now
    log_dirs: list[tuple[int, str]]  # (broker, path), by the number in ``columns["log_dir"]``


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RetentionResults:
    """The results of retention and compaction for replicas, exported or not; ``items`` are their indexes in `Observed`."""

    items: Longs
    columns: ReplicaOffsets
    limits: list[Limits | None]
    listed: Listed  # their segments; its items are indexes in ``items``
    watched: Rates  # the bytes a second by which each of these grows now, `ABSENT` where that was not measured
    unseen: Flags  # which has a limit of bytes, and an agent that is silent: its growth is not seen


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Logs:
    """The exported logs, in the order of the page.

    ``items``: their indexes in `Observed`. The columns in ``derived`` are computed. Among them, ``leader`` is 1 for a log that leads, 0 for
    one that does not, -1 if the leader is not known. ``leader_epoch`` is that of its partition, -1 unknown.
    """

    items: Longs
    labels: pa.LargeStringArray
    columns: Columns
    derived: ReplicaOffsets
    topic_ids: list[str]
    limits: list[Limits | None]  # None for a log whose limits are not known yet
    late: tuple[Late, ...]  # transactions on these logs
    late_omitted: int
    open: OpenList  # all that are open on them

    def __getitem__(self, name: str) -> Longs:
        """A published column, or a computed one."""
        return self.derived[name] if name in self.derived else self.columns[name]

    def __contains__(self, name: str) -> bool:
        """Whether there is such a column."""
        return name in self.derived or name in self.columns

    def held_by(self, late: Late) -> int:
        """The offsets that readers of committed data do not see because of a transaction; a lower bound if ``unread_more`` is set.

        -1 if another one before it holds them back, or if the last stable offset is not known.
        """
        last_stable = int(self["last_stable_offset"][late.log])
        first = max(late.first_offset, int(self["log_start_offset"][late.log]))
        return int(self["unread_offsets"][late.log]) if last_stable >= 0 and first <= last_stable else -1


def _page_order(logs: Columns, rank: Longs) -> Longs:
    """The order by broker and topic, then partition; of two logs with the same labels only one is in it, because no series may come twice.

    There are two for a moment if a topic was deleted and created again, and the removal of the old log is still on its way. The log that
    grew last is the new one.
    """
    place = rank[logs["topic"]]
    order = np.lexsort((-logs["last_append_ms"], logs["partition"], place))
    place, partition = place[order], logs["partition"][order]
    again = (place[1:] == place[:-1]) & (partition[1:] == partition[:-1])
    return order[np.concatenate(([True], ~again))] if len(order) else order


def _labels(logs: Columns, topic_labels: pa.LargeStringArray) -> pa.LargeStringArray:
    numbers = pc.cast(pa.array(logs["partition"]), TEXT)
    topics = topic_labels.take(pa.array(logs["topic"]))
    return pc.binary_join_element_wise(topics, text(',partition="'), numbers, text('"'), text(""))


def _with_groups(late: tuple[Late, ...], logs: Columns, names: list[str], snapshot: Snapshot) -> tuple[Late, ...]:
    """The transactions; those that hang in `__consumer_offsets` with the groups that wait for them, as far as agents have sent these."""
    subjects = {
        each: HangingTransaction(
            broker=int(logs["broker"][each.log]),
            topic=OFFSETS_TOPIC,
            partition=int(logs["partition"][each.log]),
            topic_id=snapshot.topic_ids[int(logs["slot"][each.log])],
            producer_id=each.producer_id,
            first_offset=each.first_offset,
        )
        for each in late
        if each.verdict == TransactionVerdict.HANGING.label and names[each.log] == OFFSETS_TOPIC
    }
    known = snapshot.context.waiting.of(subjects.values())
    return tuple(replace(each, groups=known[subjects[each]]) if subjects.get(each) in known else each for each in late)


def observe(there: Columns, snapshot: Snapshot) -> Observed:
    """Compute what concerns all replicas of all partitions together."""
    silent = snapshot.silent[there["agent"]]
    carried = [snapshot.carried[slot] for slot in there["slot"].tolist()]
    names = [snapshot.topic_names[topic] for topic in there["topic"].tolist()]
    context = snapshot.context
    known, *ahead = ((each, _roles(there, each, silent, context.fenced)) for each in _decided(there, names, snapshot))
    decided, roles = known[0], replace(known[1], speaks=known[1].speaks & ~_left_over(there, names, snapshot))
    assigned = assigned_rows(there, *known, silent)
    limits_of, assumed = context.limiter.now(), context.assume_replicated
    replica_offsets = replica_offsets_of(
        there, carried, names, known, assigned, ahead, silent, context.fenced, limits_of, assume_replicated=assumed
    )
    quorum = np.array([name == METADATA_TOPIC for name in names], np.bool_)
    for name in OFFSETS:  # no file that is read here shows how far the quorum has committed
        replica_offsets[name][quorum | _unheard(there, roles) | ~decided.heard] = ABSENT
    read_ms, current = _read_ms(there, snapshot), (roles.leads | (replica_offsets["complete"] > 0)) & ~silent
    old = context.metadata_ms is not None and snapshot.now_ms - context.metadata_ms > OLD_METADATA_MS
    unsure = ~_all_complete_here(there, replica_offsets, silent) if old else np.zeros(len(names), np.bool_)
    current &= ~unsure
    high_watermark = replica_offsets["high_watermark"]
    replica_offsets["unread_more"] = (unsure & (high_watermark >= 0) & (high_watermark < there["log_end_offset"])).astype(np.int64)
    coordinators = transaction_columns.coordinator_view(
        there,
        carried,
        names,
        read_ms=np.where(current, read_ms, ABSENT),
        speaks=roles.speaks,
        believed=current
        | ~np.bool_(old or context.transactions.once),  # other replicas may have gone on without one: a later page corrects its values
        partitions=snapshot.context.coordinator_partitions,
        clocks_ahead_ms=snapshot.context.clocks_ahead_ms,
        now_ms=snapshot.now_ms,
    )
    return Observed(
        columns=there,
        decided=decided,
        carried=carried,
        names=names,
        roles=roles,
        replica_offsets=replica_offsets,
        assigned=assigned,
        coordinators=coordinators,
        read_ms=np.where(current | (roles.leader_epoch < 0), read_ms, ABSENT),
        unreadable=_unreadable(there, snapshot),
        log_dirs=snapshot.log_dirs,
    )


def _roles(there: Columns, decided: Decided, silent: Flags, fenced: frozenset[int]) -> Roles:
    return assign_roles(
        ReplicaColumns(
            partition=there["replicas_of"],
            broker=there["broker"],
            leader=_leaders(decided.leader, fenced),
            leader_epoch=decided.leader_epoch,
            log_epoch=there["log_epoch"],
            end_offset=there["log_end_offset"],
            silent=silent,
        )
    )


def _leaders(leaders: Longs, fenced: frozenset[int]) -> Longs:
    """The leaders without fenced brokers, which lead nothing (`ReplicationControlManager.handleBrokerFenced`).

    If no other broker has a replica, only the metadata of the broker that is down names the leader, and it does not contain its end.
    """
    return np.where(np.isin(leaders, list(fenced)), NO_LEADER, leaders)


def _decided(there: Columns, names: list[str], snapshot: Snapshot) -> Iterator[Decided]:
    """What is decided of all logs now; then what will be decided once rows that are on their way are processed, where that differs."""
    topic_ids = [snapshot.topic_ids[slot] for slot in there["slot"].tolist()]
    keys = keys_of(there["broker"], names, topic_ids, there["partition"])
    speaks = {agent: rounds.speaks for agent, rounds in snapshot.rounds.items() if rounds.speaks is not None}
    yield join(keys, there["agent"], speaks)
    ahead = {agent: rounds.ahead for agent, rounds in snapshot.rounds.items() if agent in speaks and rounds.ahead}
    for number in range(max(map(len, ahead.values()), default=0)):
        yield join(keys, there["agent"], speaks | {agent: each[min(number, len(each) - 1)] for agent, each in ahead.items()})


def _left_over(there: Columns, names: list[str], snapshot: Snapshot) -> Flags:
    """Replicas of topics that were deleted, and perhaps created again, while their broker was down: its own disk does not show that.

    Of a broker that is not fenced, the metadata log of that disk decides: a topic that has just been made is on its way here.
    """
    found, topic_ids = np.zeros(len(names), np.bool_), snapshot.context.topic_ids
    if topic_ids is not None:
        for item in np.flatnonzero(np.isin(there["broker"], [*snapshot.context.fenced])).tolist():
            own, known = snapshot.topic_ids[int(there["slot"][item])], topic_ids.get(names[item])
            found[item] = names[item] != METADATA_TOPIC and (known is None or (own != known and "" not in (own, known)))
    return found


def _unheard(there: Columns, roles: Roles) -> Flags:
    """Logs whose first backlog is still being read, and whose leader no agent has reported yet: 0 would mean that there is none."""
    unheard: Flags = (there["settled"] == 0) & (roles.leader_epoch < 0)
    return unheard


def _read_ms(there: Columns, snapshot: Snapshot) -> Longs:
    """Up to when each log was processed; -1 if it cannot be read now, or if that is too long ago (never with ``once``)."""
    read_ms = snapshot.read_ms[there["agent"]]
    lately = snapshot.context.transactions.once | (snapshot.now_ms - read_ms <= snapshot.context.transactions.read_within_ms)
    found: Longs = np.where((read_ms >= 0) & lately & ~_unreadable(there, snapshot), read_ms, ABSENT)
    return found


def _unreadable(there: Columns, snapshot: Snapshot) -> Flags:
    unread: Flags = np.isin(there["slot"], snapshot.unreadable) | np.isin(there["log_dir"], snapshot.unread_dirs)
    return unread


def _all_complete_here(there: Columns, replica_offsets: ReplicaOffsets, silent: Flags) -> Flags:
    """Logs of partitions whose complete replicas are all read: no other replica can have gone on without them."""
    heard = np.flatnonzero((replica_offsets["complete"] > 0) & ~silent)
    count = int(there["replicas_of"].max()) + 1 if len(there) else 0
    # a broker that occurs twice, for example by a copy of its disk, is one replica
    here = np.bincount(np.unique(there["replicas_of"][heard] << 32 | there["broker"][heard]) >> 32, minlength=count)
    all_here: Flags = (replica_offsets["complete_replicas"] > 0) & (here[there["replicas_of"]] >= replica_offsets["complete_replicas"])
    return all_here


def keep(observed: Observed, snapshot: Snapshot) -> RetentionResults:
    """Compute it for all replicas of exported topics. If an agent is silent, what it has published about a follower is out of date."""
    wanted = snapshot.topic_exported[observed.columns["topic"]]
    heard = ~snapshot.silent[observed.columns["agent"]] | observed.roles.speaks | snapshot.all_replicas
    items = np.flatnonzero(wanted & heard)
    columns, limits, listed, watched = retention_columns.keep(
        observed.columns.select(items),
        [observed.carried[item] for item in items.tolist()],
        [observed.names[item] for item in items.tolist()],
        observed.decided.take(items),
        {name: column[items] for name, column in observed.replica_offsets.items()},
        snapshot.context,
        snapshot.now_ms,
        snapshot.steady_ms,
    )
    silent = snapshot.silent[observed.columns["agent"][items]]
    for name in retention_columns.JUDGED:
        columns[name][silent] = ABSENT
    unseen = silent & (columns["retention_limit_bytes"] >= 0)
    columns["next_deletion_ms"][unseen] = ABSENT
    return RetentionResults(items=items, columns=columns, limits=limits, listed=listed, watched=watched, unseen=unseen)


def followers(observed: Observed, topic_labels: pa.LargeStringArray, rank: Longs) -> Followers:
    """The replicas that are behind their leader, in the order of the page."""
    lag: Longs = observed.replica_offsets["replica_lag_offsets"]
    behind = np.flatnonzero((lag > 0) & ~observed.roles.leads)
    behind = behind[_page_order(observed.columns.select(behind), rank)]
    return Followers(labels=_labels(observed.columns.select(behind), topic_labels), lag=lag[behind])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Followers:
    """Replicas that do not lead and are behind the leader, and by how many offsets."""

    labels: pa.LargeStringArray
    lag: Longs
