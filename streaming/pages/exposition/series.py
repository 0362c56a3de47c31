"""Which series a page has: those of the partitions, or their topics' sums if there would be too many."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streaming.cluster.view import elections, moves, replica_health
from streaming.cluster.view.exported import Followers, Logs, Observed
from streaming.cluster.view.family import EVERYTHING, NO_LIMIT, TEXT, Export, Family, Samples, bounded, family_of, labels, text
from streaming.cluster.view.table import RECORD_KINDS
from streaming.cluster.view.topic_skew import TopicSkews
from streaming.cluster.view.transaction_columns import CoordinatorView, Late, states_of
from streaming.cluster.view.view import Topics, View, sum_by
from streaming.common.arrays import Flags, Longs
from streaming.common.definitions import (
    broker_metrics,
    group_metrics,
    replica_metrics,
    retention_metrics,
    transaction_metrics,
)
from streaming.common.definitions.metric import Metric, Total, Type
from streaming.common.definitions.sections import METRICS, SECTIONS, Section
from streaming.common.definitions.throughput_metrics import (
    APPEND_AHEAD,
    APPEND_DELAY,
    BATCH_RECORDS,
    BATCH_SIZE,
    CODEC_BYTES,
    EXPIRED_BATCHES,
    EXPIRED_BYTES,
    EXPIRED_RECORDS,
    RECORDS_SKEW,
    SIZE_SKEW,
)
from streaming.common.definitions.transaction_metrics import (
    HANGING,
    OLDEST_OPEN_LAST_APPEND,
    OLDEST_OPEN_START,
    STALLED,
    STUCK,
    TRANSACTION_DURATION,
)
from streaming.common.rows import APPEND_DELAY_SECONDS_BOUNDS, BATCH_BYTES_BOUNDS, BATCH_RECORDS_BOUNDS, CODECS, TRANSACTION_SECONDS_BOUNDS
from streaming.kafka.formats.names import METADATA_TOPIC
from streaming.pages.exposition.group_families import NO_GROUPS, ShownGroups
from streaming.rules.cleaning import UNCLEANABLE
from streaming.rules.retention_rule import BLOCKED

_LED = {
    "appended_bytes": "share_codec_bytes",
    "appended_batches": "share_batch_bytes_buckets",
    "appended_records": "share_records",
}
"""The column that is summed for a column's `Total.LED`. For the bytes, these are bytes of data batches: control batches have no share."""

_ALERTED = frozenset(
    {
        group_metrics.UNREAD_RECORDS,
        group_metrics.LOSS,
        group_metrics.ENDANGERED,
        group_metrics.BUFFERED_RECORDS,
        group_metrics.LOST_RECORDS,
        group_metrics.LOST_OFFSETS,
        group_metrics.DELETED_TOPIC_RECORDS,
        group_metrics.LAST_LOSS,
        group_metrics.SKIPPED_RECORDS,
        group_metrics.SKIPPED_OFFSETS,
        group_metrics.LAST_SKIP,
        group_metrics.PENDING_COMMITS,
        group_metrics.STOPPED,
        group_metrics.STANDING_OFFSET,
        group_metrics.INVALID_OFFSETS,
        group_metrics.OFFSET_EXPIRATION,
        group_metrics.HELD,
        group_metrics.HELD_SINCE,
        group_metrics.MEMBERS,
        group_metrics.USE,
        group_metrics.LAG_OFFSETS,
        group_metrics.UNKNOWN,
    }
)
"""Metrics of consumer groups that wake people up, or that such alerts look at: they are there whatever is left out."""

PARTITION_METRICS = tuple(metric for metric in METRICS if metric.column)

_TRANSACTIONAL = frozenset(SECTIONS[Section.TRANSACTIONS])
"""Metrics that exist only for partitions on which a transactional batch has been seen."""

_EXPIRED = (EXPIRED_BATCHES, EXPIRED_RECORDS, EXPIRED_BYTES)
"""Metrics that exist only where an agent knows for how long records are kept."""

_LAST = (OLDEST_OPEN_START, OLDEST_OPEN_LAST_APPEND)
"""Metrics that are left out last, as those of late transactions are: people who were woken up need them, and no total replaces them."""

_NEVER = (HANGING, STUCK, STALLED)
"""Metrics that wake people up: their totals are there whatever is left out."""

_WAKING = _ALERTED.union(_LAST, _NEVER)


def choose(view: View, limit: int, export: Export = EVERYTHING, groups: ShownGroups = NO_GROUPS, *, label_limit: int = NO_LIMIT) -> Choice:
    """Choose at most ``limit`` series of those that are wanted, with at most ``label_limit`` bytes of labels.

    Elections, reassignments and the health of replicas come on top of ``limit``.
    """
    choice = _choose(view, limit, export, groups)
    always = _wanted(
        export,
        (
            *elections.families(view.elected if view.restored else ()),  # sums over shards
            *moves.families(view.moves),
            *replica_health.families(view, export),
        ),
    )
    last = _WAKING.union(family.metric for family in always)
    fitting = bounded(choice.families + always, label_limit, last)
    return replace(choice, families=fitting.families, label_series_dropped=fitting.series_dropped, label_dropped=fitting.dropped)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Choice:
    """What a page shows, and how many series it leaves out because there would be too many; then also the topic with most partitions.

    ``label_series_dropped``: how many more it leaves out because of the bytes of their labels, all those of the metrics ``label_dropped``.
    """

    families: tuple[Family, ...]
    partition_series_dropped: int
    topic_series_dropped: int
    largest_topic: str = ""
    label_series_dropped: int = 0
    label_dropped: tuple[str, ...] = ()


def _choose(view: View, limit: int, export: Export, groups: ShownGroups) -> Choice:
    """Choose by the number of series. Those of partitions of consumer groups are left out before those of partitions."""
    metrics = [metric for metric in PARTITION_METRICS if export.has_metric(metric)]
    own = (_partition_family(metric, view.logs) for metric in metrics)
    partitions = _wanted(export, (*own, *of_partitions(view.logs), records_of_partitions(view), of_followers(view.followers)))
    topics = _wanted(export, (_codecs(view.topics), *_histograms(view.topics), *_skews(view.skews), *groups.families))
    group_partitions = _wanted(export, groups.partitions)
    others = _wanted(
        export,
        (
            *of_late(view.logs),
            *of_coordinators(view.observed.coordinators),
            *of_brokers(view.logs),
            *of_log_dirs(view.observed),
        ),
    )
    series = _series(topics) + _series(others) + (_series(partitions) if export.partitions else 0)
    group_series_dropped = _series(group_partitions) if series + _series(group_partitions) > limit else 0
    others += () if group_series_dropped else group_partitions
    if export.partitions and series <= limit:
        return Choice(
            families=partitions + topics + others,
            partition_series_dropped=group_series_dropped,
            topic_series_dropped=0,
            largest_topic=_largest_topic(view) if group_series_dropped else "",
        )
    summed = [metric for metric in metrics if metric.total != Total.NONE]
    kept = _present(_total_family(metric, view) for metric in summed if metric in _NEVER)
    kept += tuple(family for family in topics if family.metric in _ALERTED)
    records = _wanted(export, (records_of_topics(view),))
    totals = _present(_total_family(metric, view) for metric in summed if metric not in _NEVER) + records
    totals += tuple(family for family in topics if family.metric not in _ALERTED)
    own_last = tuple(family for family in partitions if family.metric in _LAST)
    last = own_last + others
    replaced = _series(partitions) - _series(own_last) if export.partitions else 0
    fitting = _fitting(last, limit - _series(kept))
    of_topics = _fitting(totals, limit - _series(kept) - _series(fitting))
    topic_series_dropped = _series(totals) - _series(of_topics)
    partition_series_dropped = replaced + _series(last) - _series(fitting) + group_series_dropped
    return Choice(
        families=kept + of_topics + fitting,
        partition_series_dropped=partition_series_dropped,
        topic_series_dropped=topic_series_dropped,
        largest_topic=_largest_topic(view) if partition_series_dropped + topic_series_dropped else "",
    )


def _partition_family(metric: Metric, logs: Logs) -> Family:
    """One series for each log that has the value: a counter once its backlog is read, a gauge unless it is negative, Kafka's "none"."""
    values, present = logs[metric.column], _present_in(metric, logs)
    if present.all():
        return Family(metric=metric, labels=logs.labels, samples=(Samples(values=values),))
    return Family(metric=metric, labels=logs.labels.filter(pa.array(present)), samples=(Samples(values=values[present]),))


def _present_in(metric: Metric, logs: Logs) -> Flags:
    """Which logs have the value."""
    present: Flags = logs["settled"] == 1 if metric.type == Type.COUNTER else logs[metric.column] >= metric.least
    if metric in _EXPIRED:
        return present & (logs["judges_expiry"] > 0)
    return present & (logs["transactional"] > 0) if metric in _TRANSACTIONAL else present


def _wanted(export: Export, families: Iterable[Family]) -> tuple[Family, ...]:
    return _present(family for family in families if export.has_metric(family.metric))


def _present(families: Iterable[Family]) -> tuple[Family, ...]:
    return tuple(family for family in families if family.series)


def of_partitions(logs: Logs) -> Iterator[Family]:
    """The families that have one or more series per partition."""
    yield _ones(retention_metrics.RETENTION_BLOCKED, logs, np.flatnonzero(logs["retention_blocked"] >= 0), _reasons(logs))
    yield _uncleanable(logs)
    known = [item for item, limits in enumerate(logs.limits) if limits is not None]
    yield _ones(retention_metrics.PARTITION_INFO, logs, np.array(known, np.int64), list(_infos(logs, known)))


def _ones(metric: Metric, logs: Logs, items: Longs, more: list[str]) -> Family:
    ones = np.ones(len(items), np.int64)
    return Family(metric=metric, labels=_with(logs.labels, items, more), samples=(Samples(values=ones),))


def _with(of_logs: pa.LargeStringArray, items: Longs, more: list[str]) -> pa.LargeStringArray:
    return pc.binary_join_element_wise(of_logs.take(pa.array(items)), pa.array(more, TEXT), text(","))


def _reasons(logs: Logs) -> list[str]:
    spelled = [labels(reason=reason) for reason in BLOCKED]
    return [spelled[code] for code in logs["retention_blocked"][logs["retention_blocked"] >= 0].tolist()]


def _uncleanable(logs: Logs) -> Family:
    first = logs[f"uncleanable_{UNCLEANABLE[0]}_bytes"]
    kept = np.flatnonzero(first >= 0)
    samples = (Samples(label=labels(reason=reason), values=logs[f"uncleanable_{reason}_bytes"][kept]) for reason in UNCLEANABLE)
    return Family(metric=retention_metrics.UNCLEANABLE, labels=logs.labels.take(pa.array(kept)), samples=tuple(samples))


def _infos(logs: Logs, items: Sequence[int]) -> Iterator[str]:
    spelled: dict[tuple[str, int], str] = {}  # the logs of a topic share their limits
    for item in items:
        limits, topic_id = logs.limits[item], logs.topic_ids[item]
        assert limits is not None
        key = topic_id, id(limits)
        if key not in spelled:
            spelled[key] = labels(topic_id=topic_id, cleanup_policy=limits.cleanup_policy, limit_source=limits.source)
        yield spelled[key]


def records_of_partitions(view: View) -> Family:
    """The family of records on disk: a series for each partition and kind, where they are counted."""
    counts = view.records[:, view.logs.columns["slot"]]
    known = counts[0] >= 0
    return Family(metric=replica_metrics.RECORDS, labels=view.logs.labels.filter(pa.array(known)), samples=_kinds_of(counts[:, known]))


def _kinds_of(counts: Longs) -> tuple[Samples, ...]:
    return tuple(Samples(label=labels(kind=kind), values=values) for kind, values in zip(RECORD_KINDS, counts, strict=True))


def of_followers(followers: Followers) -> Family:
    """The family of replicas that are behind."""
    return Family(metric=replica_metrics.REPLICA_LAG, labels=followers.labels, samples=(Samples(values=followers.lag),))


def _codecs(topics: Topics) -> Family:
    by_codec = topics.sums["share_codec_bytes"]
    samples = (Samples(label=labels(codec=codec), values=values) for codec, values in zip(CODECS, by_codec, strict=True))
    return _topic_family(CODEC_BYTES, topics, topics.order, *samples)


def _topic_family(metric: Metric, topics: Topics, order: Longs, *samples: Samples) -> Family:
    return Family(
        metric=metric,
        labels=topics.labels.take(pa.array(order)),
        samples=tuple(replace(each, values=each.values[order]) for each in samples),
    )


def _histograms(topics: Topics) -> tuple[Family, ...]:
    sizes = _histogram(topics.sums["share_batch_bytes_buckets"], BATCH_BYTES_BOUNDS, topics.sums["share_codec_bytes"].sum(axis=0))
    records = _histogram(topics.sums["share_batch_records_buckets"], BATCH_RECORDS_BOUNDS, topics.sums["share_records"])
    durations = _histogram(
        topics.sums["share_transaction_buckets"], TRANSACTION_SECONDS_BOUNDS, topics.sums["share_transaction_ms"], in_seconds=True
    )
    delays = _histogram(
        topics.sums["share_append_delay_buckets"], APPEND_DELAY_SECONDS_BOUNDS, topics.sums["share_append_delay_ms"], in_seconds=True
    )
    ahead = topics.sums["share_ahead_batches"]
    timed = topics.order[(topics.sums["share_append_delay_buckets"].sum(axis=0) + ahead)[topics.order] > 0]
    had_any = (topics.sums["transactional"] > 0) | (topics.sums["share_transaction_buckets"].sum(axis=0) > 0)
    ended = topics.order[had_any[topics.order]]
    return (
        _topic_family(BATCH_SIZE, topics, topics.order, *sizes),
        _topic_family(BATCH_RECORDS, topics, topics.order, *records),
        _topic_family(APPEND_DELAY, topics, timed, *delays),
        _topic_family(APPEND_AHEAD, topics, timed, Samples(values=ahead)),
        _topic_family(TRANSACTION_DURATION, topics, ended, *durations),
    )


def _histogram(buckets: Longs, bounds: tuple[float, ...], total: Longs, *, in_seconds: bool = False) -> tuple[Samples, ...]:
    """The samples of a histogram from buckets that are counted separately, shape (bounds + 1, subjects)."""
    upto = buckets.cumsum(axis=0)
    # OpenMetrics requires bounds written as floats. With floats, both formats have the same series.
    spelled = (*(str(float(bound)) for bound in bounds), "+Inf")
    samples = (Samples(suffix="_bucket", label=labels(le=bound), values=values) for bound, values in zip(spelled, upto, strict=True))
    total_of = Samples(suffix="_sum", values=total, thousandths=in_seconds)
    return *samples, total_of, Samples(suffix="_count", values=upto[-1])


def _skews(skews: TopicSkews) -> Iterator[Family]:
    for metric, values in ((SIZE_SKEW, skews.size), (RECORDS_SKEW, skews.records)):
        yield family_of(metric, [(labels(topic=skews.names[item]), int(values[item])) for item in np.flatnonzero(values >= 0).tolist()])


def of_late(logs: Logs) -> Iterator[Family]:
    """The families of late transactions.

    Families with other labels than those of a partition: records by kind, reasons, infos, late transactions, coordinators, log dirs.
    """
    owners = np.array([each.log for each in logs.late], np.int64)
    start = [labels(producer_id=str(each.producer_id), first_offset=str(each.first_offset)) for each in logs.late]
    starts = np.array([each.start_ms for each in logs.late], np.int64)
    yield Family(metric=transaction_metrics.LATE_START, labels=_with(logs.labels, owners, start), samples=(Samples(values=starts),))
    ends = [at for at, each in enumerate(logs.late) if each.deadline_ms >= 0]
    times = np.array([logs.late[at].deadline_ms for at in ends], np.int64)
    timed = _with(logs.labels, owners[ends], [start[at] for at in ends])
    yield Family(metric=transaction_metrics.LATE_TIMEOUT, labels=timed, samples=(Samples(values=times),))
    yield _ones(transaction_metrics.LATE_INFO, logs, owners, [f"{some},{_info(each)}" for some, each in zip(start, logs.late, strict=True)])
    yield _plain(transaction_metrics.LATE_OMITTED, logs.late_omitted)


def _info(late: Late) -> str:
    return labels(
        producer_epoch=str(late.producer_epoch),
        transactional_id=late.transactional_id,
        coordinator_state=late.coordinator_state,
        verdict=late.verdict,
        stuck="true" if late.stuck else "",
        groups=", ".join(late.groups),
    )


def _plain(metric: Metric, value: int) -> Family:
    """A family of one series without labels."""
    return family_of(metric, [("", value)])


def of_coordinators(view: CoordinatorView) -> Iterator[Family]:
    """The families of `__transaction_state`."""
    rows = [(labels(broker=str(broker), state=state), entries) for broker, state, entries in states_of(view.counts)]
    yield family_of(transaction_metrics.COORDINATOR_TRANSACTIONS, rows)
    if view.partitions is not None:
        yield _plain(transaction_metrics.COORDINATOR_PARTITIONS, view.partitions)
        yield _plain(transaction_metrics.COORDINATOR_READABLE, len(view.readable_partitions))
    if view.partitions is not None or view.counts:  # what is in the logs that are read is known, however many there are
        yield family_of(
            transaction_metrics.COORDINATOR_OVERDUE, [(labels(broker=str(broker)), count) for broker, count in view.overdue.items()]
        )
        yield _plain(transaction_metrics.COORDINATOR_NOT_UNDERSTOOD, view.coordinators.not_understood)
        yield _plain(transaction_metrics.COORDINATOR_SHORTENED, view.coordinators.shortened)


def of_brokers(logs: Logs) -> Iterator[Family]:
    """The families of brokers that follow from the limits of their logs."""
    known = np.flatnonzero(logs["check_interval_ms"] >= 0)
    brokers, first = np.unique(logs["broker"][known], return_index=True)
    intervals = logs["check_interval_ms"][known][first]
    spelled = (labels(broker=str(broker)) for broker in brokers.tolist())
    yield family_of(broker_metrics.CHECK_INTERVAL, list(zip(spelled, intervals.tolist(), strict=True)))


def of_log_dirs(observed: Observed) -> Iterator[Family]:
    """The families of log dirs that follow from their logs: every replica counts, exported or not.

    The metadata log is no replica in the sense of brokers (`LogManager.allLogs`): it counts among the other files of a log dir.
    """
    columns, size = observed.columns, observed.replica_offsets["size_bytes"]
    held = np.unique(columns["log_dir"][size >= 0])
    known = np.flatnonzero((size >= 0) & np.array([name != METADATA_TOPIC for name in observed.names], np.bool_))
    dirs, topics, size = columns["log_dir"][known], columns["topic"][known], size[known]
    names = dict(zip(columns["topic"].tolist(), observed.names, strict=True))
    spelled = [labels(broker=str(broker), log_dir=path) for broker, path in observed.log_dirs]
    total = np.bincount(dirs, size, len(spelled)).astype(np.int64)
    yield family_of(broker_metrics.LOG_DIR_SIZE, [(spelled[item], int(total[item])) for item in held.tolist()])
    pairs, group = np.unique(dirs << 32 | topics, return_inverse=True)  # both are small numbers
    sums = np.bincount(group, size, len(pairs)).astype(np.int64)
    rows = [
        (f"{spelled[each]},{labels(topic=names[topic])}", total_of)
        for each, topic, total_of in zip((pairs >> 32).tolist(), (pairs & 0xFFFFFFFF).tolist(), sums.tolist(), strict=True)
    ]
    yield family_of(broker_metrics.LOG_DIR_TOPIC_SIZE, rows)


def _series(families: Iterable[Family]) -> int:
    return sum(family.series for family in families)


def _largest_topic(view: View) -> str:
    """The labels of the topic with most partitions, "" where there is none."""
    if not len(view.logs.columns):
        return ""
    return str(view.topics.labels[int(np.bincount(view.logs.columns["topic"]).argmax())])


def _total_family(metric: Metric, view: View) -> Family:
    """The metric with one series per topic on a broker: the same name, without the label ``partition``."""
    topics = view.topics
    if metric.total == Total.LARGEST:
        largest = np.full(len(topics.labels), -1, np.int64)
        np.maximum.at(largest, view.logs.columns["topic"], view.logs[metric.column])
        order = topics.order[largest[topics.order] >= 0]
        return _topic_family(metric, topics, order, Samples(values=largest))
    if metric.total == Total.SHOWN:
        known = _present_in(metric, view.logs)
        sums = sum_by(view.logs["topic"][known], view.logs[metric.column][known], len(topics.labels))
        there = np.isin(topics.order, view.logs["topic"][known])
        return _topic_family(metric, topics, topics.order[there], Samples(values=sums))
    values = topics.sums[_LED.get(metric.column, metric.column) if metric.total == Total.LED else metric.column]
    order = topics.order[topics.sums["judges_expiry"][topics.order] > 0] if metric in _EXPIRED else topics.order
    return _topic_family(metric, topics, order, Samples(values=values.sum(axis=0) if values.ndim == 2 else values))


def records_of_topics(view: View) -> Family:
    """Their sums by topic on a broker."""
    topics, logs = view.topics, view.logs.columns
    counts = view.records[:, logs["slot"]]
    known = counts[0] >= 0
    sums = sum_by(logs["topic"][known], counts[:, known], len(topics.labels))
    order = topics.order[np.isin(topics.order, logs["topic"][known])]
    return Family(metric=replica_metrics.RECORDS, labels=topics.labels.take(pa.array(order)), samples=_kinds_of(sums[:, order]))


def _fitting(families: tuple[Family, ...], limit: int) -> tuple[Family, ...]:
    """Leave out whole families, because half a family misleads: first the one with the most series (a histogram, if there is one)."""
    kept = list(families)
    while kept and _series(kept) > limit:
        kept.remove(max(kept, key=lambda family: family.series))
    return tuple(kept)
