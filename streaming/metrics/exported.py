"""The exported logs, one a partition, with all that is worked out of what they told: offsets, transactions, retention."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streaming.kafka.names import METADATA_TOPIC
from streaming.metrics import retention, transactions
from streaming.metrics.carried import Carried
from streaming.metrics.columns import Columns, Longs
from streaming.metrics.standing import ABSENT, OFFSETS, Standing, stand
from streaming.metrics.table import Snapshot
from streaming.metrics.transactions import CoordinatorView, Late
from streaming.rules.leaders import NO_LEADER, Flags, Replicas, Roles, assign_roles
from streaming.rules.limits import Limits

TEXT = pa.large_string()
"""Texts with 64-bit offsets: a page may be larger than 2 GB."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Observed:
    """All replicas that are there. In ``columns``, ``leader`` and ``leader_epoch`` are as each was told."""

    columns: Columns
    carried: list[Carried]
    names: list[str]  # of their topics
    roles: Roles
    standing: Standing
    coordinators: CoordinatorView
    log_dirs: list[tuple[int, str]]  # (broker, path), by the number in ``columns["log_dir"]``


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Logs:
    """The exported logs, in the order of the page.

    In ``columns``, ``leader`` is 1 for a log that is known to lead, else 0, -1 where nobody has told yet who does; ``leader_epoch`` is its
    partition's, -1 unknown. Those in ``derived`` are worked out; ``limits`` is None for a log of which that is not known yet. ``late`` are
    transactions on these logs.
    """

    labels: pa.LargeStringArray
    columns: Columns
    derived: Standing
    topic_ids: list[str]
    limits: list[Limits | None]
    late: tuple[Late, ...]
    late_omitted: int

    def __getitem__(self, name: str) -> Longs:
        """A column that was told, or one that was worked out."""
        return self.derived[name] if name in self.derived else self.columns[name]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Followers:
    """Replicas that do not lead and are behind the leader, by how many offsets."""

    labels: pa.LargeStringArray
    lag: Longs


def observe(there: Columns, snapshot: Snapshot) -> Observed:
    """Look at all replicas of all partitions together."""
    silent = snapshot.silent[there["agent"]]
    roles = assign_roles(
        Replicas(
            partition=there["replicas_of"],
            broker=there["broker"],
            leader=_leaders(there["leader"], snapshot.judges.fenced),
            leader_epoch=there["leader_epoch"],
            log_epoch=there["log_epoch"],
            end_offset=there["log_end_offset"],
            silent=silent,
        )
    )
    carried = [snapshot.carried[slot] for slot in there["slot"].tolist()]
    names = [snapshot.topic_names[topic] for topic in there["topic"].tolist()]
    standing = stand(there, carried, roles, silent, assume_replicated=snapshot.judges.assume_replicated)
    quorum = np.array([name == METADATA_TOPIC for name in names], np.bool_)
    for name in OFFSETS:  # no file that is read here tells how far the quorum has committed
        standing[name][quorum | _unheard(there, roles)] = ABSENT
    current = (roles.leads | (standing["in_sync"] > 0)) & ~silent
    coordinators = transactions.coordinator_view(
        there, carried, names, current=current, speaks=roles.speaks, partitions=snapshot.judges.coordinator_partitions
    )
    return Observed(
        columns=there, carried=carried, names=names, roles=roles, standing=standing, coordinators=coordinators, log_dirs=snapshot.log_dirs
    )


def _unheard(there: Columns, roles: Roles) -> Flags:
    """Logs whose first backlog is still being read and of which no agent has told yet who leads: 0 would say that nobody does."""
    unheard: Flags = (there["settled"] == 0) & (roles.leader_epoch < 0)
    return unheard


def _leaders(told: Longs, fenced: frozenset[int]) -> Longs:
    """Without brokers that are fenced, which lead nothing (`ReplicationControlManager.handleBrokerFenced`): where no other broker has a
    replica, only the one that is down has told who leads, and it does not know of its end."""
    return np.where(np.isin(told, list(fenced)), NO_LEADER, told)


def export(observed: Observed, snapshot: Snapshot, topic_labels: pa.LargeStringArray, rank: Longs) -> Logs:
    """Choose the logs that are exported, and judge them."""
    there, roles = observed.columns, observed.roles
    wanted = snapshot.topic_exported[there["topic"]]
    shown = np.flatnonzero(wanted if snapshot.all_replicas else wanted & roles.speaks)
    shown = shown[_page_order(there.select(shown), rank)]
    columns = there.select(shown)
    columns["leader"][:] = np.where(_unheard(there, roles), ABSENT, roles.leads)[shown]
    columns["leader_epoch"][:] = roles.leader_epoch[shown]
    items = shown.tolist()
    names, carried = [observed.names[item] for item in items], [observed.carried[item] for item in items]
    standing = {name: column[shown] for name, column in observed.standing.items()}
    places = [f"{name}-{partition}" for name, partition in zip(names, columns["partition"].tolist(), strict=True)]
    weighed = snapshot.judges.bench.weigh(carried, places, observed.coordinators, snapshot.now_ms)
    kept, limits = retention.keep(columns, carried, names, standing, snapshot.judges.limiter, snapshot.now_ms)
    return Logs(
        labels=_labels(columns, topic_labels),
        columns=columns,
        derived=standing | weighed.columns | kept,
        topic_ids=[snapshot.topic_ids[slot] for slot in columns["slot"].tolist()],
        limits=limits,
        late=weighed.late,
        late_omitted=weighed.omitted,
    )


def followers(observed: Observed, topic_labels: pa.LargeStringArray, rank: Longs) -> Followers:
    """The replicas that are behind their leader, in the order of the page."""
    lag: Longs = observed.standing["replica_lag_offsets"]
    behind = np.flatnonzero((lag > 0) & ~observed.roles.leads)
    behind = behind[_page_order(observed.columns.select(behind), rank)]
    return Followers(labels=_labels(observed.columns.select(behind), topic_labels), lag=lag[behind])


def _labels(logs: Columns, topic_labels: pa.LargeStringArray) -> pa.LargeStringArray:
    numbers = pc.cast(pa.array(logs["partition"]), TEXT)
    topics = topic_labels.take(pa.array(logs["topic"]))
    return pc.binary_join_element_wise(topics, text(',partition="'), numbers, text('"'), text(""))


def text(value: str) -> pa.Scalar:
    """A text that goes with arrays of texts."""
    return pa.scalar(value, TEXT)


def _page_order(logs: Columns, rank: Longs) -> Longs:
    """By broker and topic, then partition; of two logs with the same labels only one, for a series must not come twice.

    Two there are for a moment: a topic was deleted and made again, and the removal of the old one's log is still on its way. The one
    that grew last is the new one.
    """
    place = rank[logs["topic"]]
    order = np.lexsort((-logs["last_append_ms"], logs["partition"], place))
    place, partition = place[order], logs["partition"][order]
    again = (place[1:] == place[:-1]) & (partition[1:] == partition[:-1])
    return order[np.concatenate(([True], ~again))] if len(order) else order
