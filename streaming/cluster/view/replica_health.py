"""What is wrong with replicas, leaders or not: a few series for each problem, whatever else is exported.

These series do not count towards the series limit, because people are woken up for them. If there are very many, the worst are named and
the others are counted.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from streaming.cluster.view.exported import Observed, RetentionResults
from streaming.cluster.view.family import Export, Family, family_of, labels
from streaming.cluster.view.late_arrivals import LateArrivals, worst
from streaming.cluster.view.table import Replica
from streaming.cluster.view.view import View
from streaming.common.arrays import Flags
from streaming.common.definitions import retention_metrics
from streaming.common.definitions.metric import Metric
from streaming.rules.limits import Limits
from streaming.rules.partition_values import LEADER_UNKNOWN
from streaming.rules.retention_rule import BLOCKED

MOST_REPLICAS = 1_000
"""At most so many replicas are named for each metric."""

_TRUNCATED = {retention_metrics.REPLICA_TRUNCATIONS: "truncations", retention_metrics.REPLICA_TRUNCATED_COMMITTED: "truncated_committed"}

ACTIVE = "active_segment"
"""A reason that blocks nothing: a segment that still takes appends is deleted once it is rolled, and this is how Kafka works."""

_Row = tuple[dict[str, str], int]
"""Labels and a value."""


def families(view: View, export: Export) -> Iterator[Family]:
    """One family per metric, how many replicas are left out, and what is counted by topic."""
    observed, scrubbed, retention = view.observed, view.scrubbed, view.retention
    known, dirty = limits_known(retention.limits), _dirty(retention)
    overdue = perhaps_overdue_replicas(retention) & known  # by limits that are known
    found = {retention_metrics.REPLICA_CORRUPT: [*_by_tail(observed, export), *_by_scrub(observed, scrubbed, export)]}
    for metric, column in _TRUNCATED.items():
        found[metric] = [(_where(observed, item), value) for item, value in _above_0(observed, column, export)]
    found |= {
        retention_metrics.REPLICA_OVERDUE: _of_kept(observed, retention, "retention_overdue_ms", overdue),
        retention_metrics.REPLICA_DIRTY: _of_kept(observed, retention, "dirty_millionths", dirty),
        retention_metrics.REPLICA_CLEANER_CHECKPOINT: _of_kept(
            observed, retention, "cleaner_checkpoint_offset", dirty & (retention.columns["cleaner_checkpoint_offset"] >= 0)
        ),
    }
    for metric, rows in found.items():
        yield _family(metric, sorted(rows, key=lambda row: (-row[1], *row[0].values()))[:MOST_REPLICAS])
    omitted = [({"metric": metric.name}, len(rows) - MOST_REPLICAS) for metric, rows in found.items() if len(rows) > MOST_REPLICAS]
    yield _family(retention_metrics.REPLICAS_OMITTED, omitted)
    late = overdue & (retention.columns["retention_overdue_ms"] > view.overdue_after_ms)
    yield _family(retention_metrics.TOPIC_OVERDUE, _counted(_topic(observed, item) for item in retention.items[late].tolist()))
    blocked = retention.columns["retention_blocked"]
    held = known & (blocked >= 0) & (blocked != BLOCKED.index(ACTIVE)) & observed.roles.speaks[retention.items]
    reasons = zip(retention.items[held].tolist(), (BLOCKED[reason] for reason in blocked[held].tolist()), strict=True)
    yield from _arriving_late(view)
    yield _family(retention_metrics.TOPIC_BLOCKED, _counted(_topic(observed, item) | {"reason": reason} for item, reason in reasons))


def limits_known(limits: Sequence[Limits | None]) -> Flags:
    """Which replicas have limits that are known, and not assumed."""
    return np.fromiter((each is not None and not each.assumed for each in limits), np.bool_, len(limits))


def _dirty(retention: RetentionResults) -> Flags:
    """Replicas whose dirty ratio is above what the cleaner leaves dirty."""
    ratio, limit = retention.columns["dirty_millionths"], retention.columns["dirty_limit_millionths"]
    dirty: Flags = (limit >= 0) & (ratio > limit)
    return dirty


def perhaps_overdue_replicas(retention: RetentionResults) -> Flags:
    """Replicas that keep bytes for longer than two checks of their broker, by limits that are known or assumed."""
    columns = retention.columns
    overdue: Flags = (columns["retention_overdue_ms"] > 2 * columns["check_interval_ms"]) & (columns["retention_reclaimable_bytes"] > 0)
    return overdue


def _by_tail(observed: Observed, export: Export) -> Iterator[_Row]:
    for item, batches in _above_0(observed, "corrupt_batches", export):
        yield _where(observed, item) | {"role": role_of(observed, item), "found_by": "tail"}, batches


def _above_0(observed: Observed, column: str, export: Export) -> Iterator[tuple[int, int]]:
    """Logs with a value above 0. If a topic was created again, two logs may have one name for a moment: the larger value counts."""
    values = observed.columns[column]
    best: dict[tuple[int, str, int], int] = {}
    for item in np.flatnonzero(values > 0).tolist():
        key = int(observed.columns["broker"][item]), observed.names[item], int(observed.columns["partition"][item])
        if export.has_topic(key[1]) and (key not in best or values[item] > values[best[key]]):
            best[key] = item
    return ((item, int(values[item])) for item in best.values())


def _where(observed: Observed, item: int) -> dict[str, str]:
    columns = observed.columns
    return {"broker": str(columns["broker"][item]), "topic": observed.names[item], "partition": str(columns["partition"][item])}


def role_of(observed: Observed, item: int) -> str:
    """The role of a replica; "unknown" if the leader of its partition is not known."""
    if observed.roles.leads[item]:
        return "leader"
    return "unknown" if observed.roles.leader[item] == LEADER_UNKNOWN else "follower"


def _by_scrub(observed: Observed, scrubbed: Mapping[Replica, int], export: Export) -> Iterator[_Row]:
    brokers, partitions = observed.columns["broker"], observed.columns["partition"]
    for replica, batches in scrubbed.items():
        if not export.has_topic(replica.topic):
            continue
        hosted = np.flatnonzero((brokers == replica.broker) & (partitions == replica.partition)).tolist()
        logs = [item for item in hosted if observed.names[item] == replica.topic]
        where = {"broker": str(replica.broker), "topic": replica.topic, "partition": str(replica.partition)}
        yield where | {"role": role_of(observed, logs[0]) if logs else "unknown", "found_by": "scrub"}, batches


def _of_kept(observed: Observed, retention: RetentionResults, column: str, some: Flags) -> list[_Row]:
    named: dict[tuple[str, ...], _Row] = {}
    for item, value in zip(retention.items[some].tolist(), retention.columns[column][some].tolist(), strict=True):
        where = _where(observed, item) | {"role": role_of(observed, item)}
        named[tuple(where.values())] = where, value
    return list(named.values())


def _family(metric: Metric, rows: Iterable[_Row]) -> Family:
    return family_of(metric, ((labels(**where), value) for where, value in rows))


def _counted(wheres: Iterable[dict[str, str]]) -> list[_Row]:
    counts = Counter(tuple(where.items()) for where in wheres)
    return [(dict(where), count) for where, count in counts.items()]


def _topic(observed: Observed, item: int) -> dict[str, str]:
    return {"broker": str(observed.columns["broker"][item]), "topic": observed.names[item]}


def _arriving_late(view: View) -> Iterator[Family]:
    """How many records came past their retention, and how old, of each topic on its brokers that has any."""
    topics: dict[tuple[str, ...], list[LateArrivals]] = {}
    for each in view.late:
        topics.setdefault(tuple(_topic(view.observed, each.item).values()), []).append(each)
    found = [({"broker": broker, "topic": topic, "looks": worst(those).looks}, those) for (broker, topic), those in topics.items()]
    yield _family(retention_metrics.TOPIC_ARRIVES_EXPIRED, ((where, sum(each.records for each in those)) for where, those in found))
    yield _family(retention_metrics.TOPIC_ARRIVES_EXPIRED_DELAY, ((where, worst(those).delay_ms) for where, those in found))
