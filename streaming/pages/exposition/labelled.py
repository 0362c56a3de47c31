"""Families with other labels than those of a partition: records by kind, reasons, infos, late transactions, coordinators, log dirs."""

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streaming.cluster.view.exported import Followers, Logs, Observed
from streaming.cluster.view.family import TEXT, Family, Samples, family_of, labels, text
from streaming.cluster.view.open_list import Late
from streaming.cluster.view.table import RECORD_KINDS
from streaming.cluster.view.transaction_columns import CoordinatorView, states_of
from streaming.cluster.view.view import View, sum_by
from streaming.common.arrays import Longs
from streaming.common.definitions import broker_metrics, log_dir_metrics, offset_metrics, retention_metrics, transaction_metrics
from streaming.common.definitions.metric import Metric
from streaming.kafka.formats.names import METADATA_TOPIC
from streaming.rules.cleaning import UNCLEANABLE
from streaming.rules.retention_rule import BLOCKED


def of_partitions(logs: Logs) -> Iterator[Family]:
    """The families that have one or more series per partition."""
    yield _ones(retention_metrics.RETENTION_BLOCKED, logs, np.flatnonzero(logs["retention_blocked"] >= 0), _reasons(logs))
    yield _uncleanable(logs)
    known = [item for item, limits in enumerate(logs.limits) if limits is not None]
    yield _ones(retention_metrics.PARTITION_INFO, logs, np.array(known, np.int64), list(_infos(logs, known)))


def records_of_partitions(view: View) -> Family:
    """The family of records on disk: a series for each partition and kind, where they are counted."""
    counts = view.records[:, view.logs.columns["slot"]]
    known = counts[0] >= 0
    return Family(metric=offset_metrics.RECORDS, labels=view.logs.labels.filter(pa.array(known)), samples=_kinds_of(counts[:, known]))


def records_of_topics(view: View) -> Family:
    """Their sums by topic on a broker."""
    topics, logs = view.topics, view.logs.columns
    counts = view.records[:, logs["slot"]]
    known = counts[0] >= 0
    sums = sum_by(logs["topic"][known], counts[:, known], len(topics.labels))
    order = topics.order[np.isin(topics.order, logs["topic"][known])]
    return Family(metric=offset_metrics.RECORDS, labels=topics.labels.take(pa.array(order)), samples=_kinds_of(sums[:, order]))


def _kinds_of(counts: Longs) -> tuple[Samples, ...]:
    return tuple(Samples(label=labels(kind=kind), values=values) for kind, values in zip(RECORD_KINDS, counts, strict=True))


def of_late(logs: Logs) -> Iterator[Family]:
    """The families of late transactions."""
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
    yield family_of(log_dir_metrics.LOG_DIR_SIZE, [(spelled[item], int(total[item])) for item in held.tolist()])
    pairs, group = np.unique(dirs << 32 | topics, return_inverse=True)  # both are small numbers
    sums = np.bincount(group, size, len(pairs)).astype(np.int64)
    rows = [
        (f"{spelled[each]},{labels(topic=names[topic])}", total_of)
        for each, topic, total_of in zip((pairs >> 32).tolist(), (pairs & 0xFFFFFFFF).tolist(), sums.tolist(), strict=True)
    ]
    yield family_of(log_dir_metrics.LOG_DIR_TOPIC_SIZE, rows)


def of_followers(followers: Followers) -> Family:
    """The family of replicas that are behind."""
    return Family(metric=offset_metrics.REPLICA_LAG, labels=followers.labels, samples=(Samples(values=followers.lag),))


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


def _info(late: Late) -> str:
    return labels(
        producer_epoch=str(late.producer_epoch),
        transactional_id=late.transactional_id,
        coordinator_state=late.coordinator_state,
        verdict=late.verdict,
        stuck="true" if late.stuck else "",
        groups=", ".join(late.groups),
    )


def _ones(metric: Metric, logs: Logs, items: Longs, more: list[str]) -> Family:
    ones = np.ones(len(items), np.int64)
    return Family(metric=metric, labels=_with(logs.labels, items, more), samples=(Samples(values=ones),))


def _with(of_logs: pa.LargeStringArray, items: Longs, more: list[str]) -> pa.LargeStringArray:
    return pc.binary_join_element_wise(of_logs.take(pa.array(items)), pa.array(more, TEXT), text(","))


def _plain(metric: Metric, value: int) -> Family:
    """A family of one series without labels."""
    return family_of(metric, [("", value)])
