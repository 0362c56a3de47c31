"""Problems of single logs: damaged bytes, records lost by elections, retention and compaction that do not go on, odd timestamps."""

from collections.abc import Iterator, Sequence

import numpy as np

from streaming.formatting import format_age, format_count, format_duration, format_size, format_time
from streaming.metrics.replica_health import overdue_replicas, role_of
from streaming.metrics.value_matrix import Longs
from streaming.protocol.problem_json import Problem
from streaming.rules.config_values import Source
from streaming.rules.leaders import Flags
from streaming.rules.retention_rule import BLOCKED
from streaming.verdicts import kinds
from streaming.verdicts.circumstances import Circumstances, found, only, partitions_named

RECENT_MS = 3_600_000
"""An unclean election is a problem of now for so long."""

WHY_BLOCKED = {
    "future_timestamp": "The first segment holds a record dated in the future, so nothing behind it is deleted by time before that date.",
    "high_watermark": "The first segment is not replicated to its end: some in-sync replica does not follow.",
    "remote_copy": "The first segment waits for its copy in remote storage.",
    "head_of_line": "A later segment is past the limit, but the first one has younger records and must be deleted before it.",
    "active_segment": "The only segment still takes appends: it is deleted once it is rolled, and this is how Kafka works.",
}
"""Why data past its limit stays, in the words of the alert RetentionBlocked."""

STALLED_FOR_MS = 3 * 3_600_000
"""The cleaner gets round to every log within less."""

_PASSES = ("high_watermark", "remote_copy")
"""Reasons that are there for a moment at most rolls of a segment."""


def log_problems(of: Circumstances) -> Iterator[Problem]:
    """Problems of single logs, together for a topic on a broker."""
    yield from _damaged(of)
    yield from _unclean(of)
    yield from _blocked(of)
    yield from _overdue(of)
    yield from _uncompacted(of)
    yield from _ahead(of)
    yield from _silent(of)
    yield from _not_rolled(of)


def _damaged(of: Circumstances) -> Iterator[Problem]:
    observed = of.shown.observed
    columns, names = observed.columns, observed.names
    by_scrub = of.shown.scrubbed
    of_topics: dict[tuple[bool, int, str], list[tuple[int, int]]] = {}
    for item in range(len(columns)) if by_scrub else np.flatnonzero(columns["corrupt_batches"] > 0).tolist():
        broker, topic, partition = int(columns["broker"][item]), names[item], int(columns["partition"][item])
        tail, scrub = int(columns["corrupt_batches"][item]), by_scrub.get((broker, topic, partition), 0)  # type: ignore[call-overload]
        follows = role_of(observed, item) == "follower"
        if of.export.has_topic(topic) and (tail or (scrub and not follows)):
            of_topics.setdefault((follows, broker, topic), []).append((partition, item))
    for (follows, broker, topic), those in sorted(of_topics.items()):
        partitions = sorted(partition for partition, _ in those)
        log_dir = observed.log_dirs[int(columns["log_dir"][those[0][1]])][1]
        yield found(
            kinds.REPLICA_CORRUPT if follows else kinds.LOG_CORRUPT,
            f"{partitions_named(partitions)}; the command reads the first of them",
            broker=broker,
            topic=topic,
            partition=only(partitions),
            command=of.commands.verify(f"{log_dir}/{topic}-{those[0][0]}"),
        )


def _unclean(of: Circumstances) -> Iterator[Problem]:
    recent = [each for each in of.shown.elected if of.now_ms - each.last_ms < RECENT_MS]
    for topic in dict.fromkeys(each.topic for each in recent):
        those = [each for each in recent if each.topic == topic]
        partitions = sorted(each.partition for each in those)
        last = max(each.last_ms for each in those)
        lost = [each.acknowledged for each in those if each.acknowledged >= 0]
        count = f"; {format_count(sum(lost), 'acknowledged offset')} lost at least" if lost else "; how many offsets are lost is not known"
        detail = f"{partitions_named(partitions)}, {format_age((of.now_ms - last) / 1000)}{count}"
        yield found(kinds.UNCLEAN, detail, topic=topic, partition=only(partitions), since_ms=last)


def _blocked(of: Circumstances) -> Iterator[Problem]:
    logs, known = of.shown.logs, _judged(of)
    lag, patience = logs["retention_lag_ms"], 2 * logs["check_interval_ms"]
    for code, reason in enumerate(BLOCKED):
        if reason == "active_segment":
            continue
        some = known & (logs["blocked"] == code)
        if reason in _PASSES:
            some &= lag > patience
        for broker, topic, those in _by_topic(of, some):
            partitions = _partitions(of, those)
            late = int(lag[those].max())
            detail = partitions_named(partitions) + (f", past the limit for {format_duration(late / 1000)}" if late > 0 else "")
            yield found(
                kinds.RETENTION_BLOCKED,
                detail,
                broker=broker,
                topic=topic,
                partition=only(partitions),
                since_ms=of.now_ms - late if late > 0 else -1,
                holds_back=f"{WHY_BLOCKED[reason]} {format_size(int(logs['size_bytes'][those].sum()))} are in these logs.",
                reason=reason,
            )


def _overdue(of: Circumstances) -> Iterator[Problem]:
    observed, kept = of.shown.observed, of.shown.kept
    overdue = kept.columns["retention_overdue_ms"]
    brokers = observed.columns["broker"][kept.items]
    some = np.flatnonzero(overdue_replicas(kept) & (overdue > of.thresholds.overdue_after_ms) & ~np.isin(brokers, list(of.not_current)))
    of_topics: dict[tuple[int, str], list[int]] = {}
    for row in some.tolist():
        of_topics.setdefault((int(brokers[row]), observed.names[kept.items[row]]), []).append(row)
    for (broker, topic), rows in of_topics.items():
        partitions = sorted(observed.columns["partition"][kept.items[rows]].tolist())
        size, longest = int(kept.columns["retention_reclaimable_bytes"][rows].sum()), int(overdue[rows].max())
        could = f"{format_size(size)} could go, the first of it for {format_duration(longest / 1000)}"
        yield found(
            kinds.RETENTION_OVERDUE,
            f"{partitions_named(partitions)}; {could}{of.if_idle(broker)}",
            broker=broker,
            topic=topic,
            partition=only(partitions),
            since_ms=of.now_ms - longest,
        )


def _uncompacted(of: Circumstances) -> Iterator[Problem]:
    """Logs whose dirty part was above the limit three hours ago: what was written since then does not count here."""
    observed, kept = of.shown.observed, of.shown.kept
    listed = kept.listed.logs
    if not len(kept.listed.items):
        return
    dirty_from = np.maximum(listed.cleaner_checkpoint, listed.log_start)
    old = (of.now_ms - listed.modified > STALLED_FOR_MS) & ~listed.active & (listed.base >= dirty_from[listed.owner])
    old &= listed.following <= listed.last_stable[listed.owner]
    old_bytes = np.bincount(listed.owner[old], listed.size[old], len(listed.count))
    rows = kept.listed.items
    ratio, limit = kept.columns["dirty_millionths"][rows], kept.columns["dirty_limit_millionths"][rows]
    share = np.divide(old_bytes, listed.total, out=np.zeros(len(rows)), where=listed.total > 0)
    brokers = observed.columns["broker"][kept.items[rows]]
    some = np.flatnonzero((limit >= 0) & (ratio > limit) & (share * 1e6 > limit) & ~np.isin(brokers, list(of.not_current)))
    of_topics: dict[tuple[int, str], list[int]] = {}
    for row in some.tolist():
        of_topics.setdefault((int(brokers[row]), observed.names[kept.items[rows[row]]]), []).append(row)
    for (broker, topic), those in of_topics.items():
        partitions = sorted(observed.columns["partition"][kept.items[rows[those]]].tolist())
        size = int(np.maximum(kept.columns["dirty_bytes"][rows[those]], 0).sum())
        detail = f"{partitions_named(partitions)}; {format_size(size)} wait, for more than three hours"
        yield found(kinds.COMPACTION_STALLED, detail, broker=broker, topic=topic, partition=only(partitions))


def _ahead(of: Circumstances) -> Iterator[Problem]:
    logs = of.shown.logs
    ahead = logs["max_timestamp_ahead_ms"]
    some = np.flatnonzero(ahead > of.thresholds.ahead_limit_ms)
    for topic, those in _of_whole_topics(of, some):
        partitions = _partitions(of, those)
        furthest = int(ahead[those].max())
        detail = f"{partitions_named(partitions)}, up to {format_time(of.now_ms + furthest)}"
        yield found(kinds.IN_FUTURE, detail, topic=topic, partition=only(partitions))


def _silent(of: Circumstances) -> Iterator[Problem]:
    if not of.thresholds.silent_after_ms:
        return
    logs = of.shown.logs
    last = logs["last_append_ms"]
    some = np.flatnonzero((last >= 0) & (of.now_ms - last > of.thresholds.silent_after_ms) & _current(of))
    for topic, those in _of_whole_topics(of, some):
        if not topic.startswith("__"):
            partitions, longest = _partitions(of, those), int(last[those].min())
            detail = f"{partitions_named(partitions)}, the longest for {format_duration((of.now_ms - longest) / 1000)}"
            yield found(kinds.SILENT, detail, topic=topic, partition=only(partitions), since_ms=longest)


def _not_rolled(of: Circumstances) -> Iterator[Problem]:
    logs = of.shown.logs
    limit, first, created = (
        logs[f"{name}"] for name in ("segment_limit_ms", "active_segment_first_timestamp_ms", "active_segment_created_ms")
    )
    half = np.where(limit > 0, np.minimum(limit, 1 << 60), 1 << 60)
    old = (first >= 0) & (created >= 0) & (of.now_ms - np.maximum(first, created) > 2 * half)
    some = old & _judged(of) & (of.now_ms - logs["last_append_ms"] < RECENT_MS)
    for broker, topic, those in _by_topic(of, some):
        partitions = _partitions(of, those)
        oldest = int(first[those].min())
        detail = f"{partitions_named(partitions)}, the oldest active segment begins at {format_time(oldest)}"
        yield found(kinds.SEGMENT_TOO_OLD, detail, broker=broker, topic=topic, partition=only(partitions), since_ms=oldest)


def _current(of: Circumstances) -> Flags:
    """Which exported logs are on brokers whose numbers are current."""
    current: Flags = ~np.isin(of.shown.logs["broker"], list(of.not_current))
    return current


def _judged(of: Circumstances) -> Flags:
    """Those of them whose limits are known."""
    known = (limits is not None and limits.source is not Source.ASSUMED for limits in of.shown.logs.limits)
    return _current(of) & np.fromiter(known, np.bool_, len(of.shown.logs.limits))


def _by_topic(of: Circumstances, some: Flags) -> Iterator[tuple[int, str, Longs]]:
    """The exported logs of each topic on each broker, of those that are flagged."""
    items = np.flatnonzero(some)
    topics = of.shown.logs["topic"][items]  # a number is of a topic on one broker
    for number in np.unique(topics).tolist():
        those = items[topics == number]
        yield int(of.shown.logs["broker"][those[0]]), of.topics[number], those


def _of_whole_topics(of: Circumstances, items: Longs) -> Iterator[tuple[str, Longs]]:
    names: dict[str, list[int]] = {}
    for item in items.tolist():
        names.setdefault(of.topics[int(of.shown.logs["topic"][item])], []).append(item)
    for topic, those in names.items():
        yield topic, np.array(those, np.int64)


def _partitions(of: Circumstances, those: Longs | Sequence[int]) -> list[int]:
    found_there: list[int] = sorted(of.shown.logs["partition"][those].tolist())
    return found_there
