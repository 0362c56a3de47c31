"""The text report of ``segtail retention``: one line for each partition, the totals, and what can be done."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from streaming.formatting import format_age, format_count, format_duration, format_list, format_size, format_table, format_time
from streaming.offline.partition_retention import Row

ADVICE = {
    "future_timestamp": "a record in the first segment claims to be from the future, and nothing of the log is deleted before that time "
    "and the limit are over. Show it with `segtail dump --records --from-time {now}`; get rid of it with kafka-delete-records; keep "
    "others out by message.timestamp.after.max.ms or message.timestamp.type=LogAppendTime.",
    "high_watermark": "the first segment is not on all in-sync replicas yet. Check for replicas that lag, or brokers that are down.",
    "remote_copy": "the first segment should be gone and is not, so it has probably not been copied to remote storage. Check for errors of "
    "the remote storage, and for open transactions, which hold copies back.",
    "head_of_line": "segments past the limit lie behind one that holds newer records, and only a prefix of a log is deleted. They go when "
    "it does; if they must not wait, use kafka-delete-records.",
    "active_segment": "old records lie in the segment that is still written to. A smaller segment.ms or segment.bytes rolls it earlier; an "
    "idle partition never rolls by itself.",
    "overdue": "the first segment could be deleted for more than two checks and is still there. Check whether the broker runs, whether its "
    "log dir is online, and whether the partition is being moved.",
    "open_transaction": "compaction stops at an open transaction. Find it with `segtail transactions`.",
    "compaction_lag": "closed segments are younger than min.compaction.lag.ms, and are compacted when they are not.",
    "assumed": "server.properties was not given, so Kafka's defaults are used where no topic and no dynamic configuration sets a limit. "
    "Name it with --server-properties, or set broker_config.",
}
"""The advice for each reason why data stays."""

_HEADS = ("partition", "broker", "size", "oldest", "limit", "lag", "overdue", "reclaimable", "next by time", "blocked by")


def sorted_rows(rows: Sequence[Row], by: str) -> list[Row]:
    """Sort by value, the largest first, then by name. Rows without a value come last."""
    values: dict[str, Callable[[Row], tuple[float | None, ...]]] = {
        "overdue": lambda row: (row.retention_overdue_seconds, row.retention_lag_seconds),
        "lag": lambda row: (row.retention_lag_seconds,),
        "reclaimable": lambda row: (row.retention_reclaimable_bytes,),
        "size": lambda row: (row.size_bytes,),
    }
    value = values[by]
    return sorted(rows, key=lambda row: (*(1 if one is None else -one for one in value(row)), row.topic, row.partition, row.broker))


def report(rows: Sequence[Row], now_ms: int) -> Iterator[str]:
    """The lines of the report."""
    yield from format_table([_HEADS, *(_cells(row, now_ms) for row in rows)], right=_HEADS[1:-1])
    yield ""
    yield _totals(rows)
    advice = list(_advice(rows, now_ms))
    if advice:
        yield ""
        yield from advice


def _cells(row: Row, now_ms: int) -> tuple[str | None, ...]:
    now, oldest, following = now_ms / 1000, row.oldest_record_timestamp_seconds, row.next_deletion_timestamp_seconds
    limits = filter(None, (_duration(row.retention_limit_seconds), _size(row.retention_limit_bytes)))
    limit = ", ".join(limits) or ("none" if "delete" in row.cleanup_policy else row.cleanup_policy or "no policy")
    return (
        f"{row.topic}-{row.partition}",
        str(row.broker),
        format_size(row.size_bytes),
        None if oldest is None else format_age(now - oldest),
        limit + ("?" if row.limit_source == "assumed" else ""),
        _duration(row.retention_lag_seconds),
        _duration(row.retention_overdue_seconds),
        _size(row.retention_reclaimable_bytes),
        None if following is None else "due" if following <= now else format_age(now - following),
        row.retention_blocked,
    )


def _duration(seconds: float | None) -> str | None:
    return None if seconds is None else format_duration(seconds)


def _size(count: int | None) -> str | None:
    return None if count is None else format_size(count)


def _totals(rows: Sequence[Row]) -> str:
    size = format_size(sum(row.size_bytes for row in rows))
    reclaimable = format_size(sum(row.retention_reclaimable_bytes or 0 for row in rows))
    dirty = format_size(sum(row.dirty_bytes or 0 for row in rows))
    late = sum(1 for row in rows if row.retention_lag_seconds)
    overdue = sum(1 for row in rows if row.retention_overdue_seconds)
    blocked = Counter(row.retention_blocked for row in rows if row.retention_blocked)
    reasons = f" ({', '.join(f'{reason} {count}' for reason, count in sorted(blocked.items()))})" if blocked else ""
    return (
        f"{format_count(len(rows), 'partition')}, {size}: {reclaimable} reclaimable, {dirty} dirty; "
        f"{late} keep records past their limit, {overdue} overdue, {blocked.total()} blocked{reasons}"
    )


def _advice(rows: Sequence[Row], now_ms: int) -> Iterator[str]:
    now = format_time(now_ms)
    present: dict[str, list[Row]] = {reason: [] for reason in ADVICE}
    for row in rows:
        if row.retention_blocked:
            present[row.retention_blocked].append(row)
        elif (row.retention_overdue_seconds or 0) > 2 * row.retention_check_interval_seconds:
            present["overdue"].append(row)
        for reason, held in (row.uncleanable_bytes or {}).items():
            if held:
                present[reason].append(row)
        if row.limit_source == "assumed":
            present["assumed"].append(row)
    for reason, concerned in present.items():
        if concerned:
            some = format_list([f"{row.topic}-{row.partition}" for row in concerned], 3)
            yield f"{reason}: {some}: {ADVICE[reason].format(now=now)}"
