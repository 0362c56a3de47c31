"""The text report of ``segtail retention``: one line for each partition, the totals, and what can be done."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime

from streaming.offline.partition_retention import DirUse, Row

ADVICE = {
    "future_timestamp": "a record in the first segment claims to be from the future, and nothing of the log is deleted before that time "
    "and the limit are over. Look at it with `segtail dump --records --from-time {now}`; get rid of it with kafka-delete-records; keep "
    "others out by message.timestamp.after.max.ms or message.timestamp.type=LogAppendTime.",
    "high_watermark": "the first segment is not on all in-sync replicas yet. Look for replicas that lag, or brokers that are down.",
    "remote_copy": "the first segment should be gone and is not, so it has probably not been copied to remote storage. Look for errors of "
    "the remote storage, and for open transactions, which hold copies back.",
    "head_of_line": "segments past the limit lie behind one that holds newer records, and only a prefix of a log is deleted. They go when "
    "it does; if they must not wait, use kafka-delete-records.",
    "active_segment": "old records lie in the segment that is still written to. A smaller segment.ms or segment.bytes rolls it earlier; an "
    "idle partition never rolls by itself.",
    "overdue": "the first segment could be deleted for more than two checks and is still there. Look whether the broker runs, whether its "
    "log dir is online, and whether the partition is being moved.",
    "open_transaction": "compaction stops at an open transaction. Find it with `segtail transactions`.",
    "compaction_lag": "closed segments are younger than min.compaction.lag.ms, and are compacted when they are not.",
    "assumed": "server.properties was not given, so Kafka's defaults stand in where no topic and no dynamic configuration says otherwise. "
    "Name it with --server-properties, or set broker_config.",
}
"""The advice for each reason why data stays."""


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


def report(rows: Sequence[Row], uses: Sequence[DirUse], now_ms: int) -> Iterator[str]:
    """The lines of the report."""
    yield from _table(rows, now_ms)
    yield ""
    yield _totals(rows)
    yield from map(_log_dir, uses)
    advice = list(_advice(rows, now_ms))
    if advice:
        yield ""
        yield from advice


def _table(rows: Sequence[Row], now_ms: int) -> Iterator[str]:
    names = ("partition", "broker", "size", "oldest", "limit", "lag", "overdue", "reclaimable", "next deletion", "blocked by")
    lines = [names, *(_cells(row, now_ms) for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        padded = [line[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(line[1:-1], widths[1:-1], strict=True)), line[-1]]
        yield "  ".join(padded).rstrip()


def _cells(row: Row, now_ms: int) -> tuple[str, ...]:
    now, oldest, following = now_ms / 1000, row.oldest_record_timestamp_seconds, row.next_deletion_timestamp_seconds
    limits = [duration(row.retention_limit_seconds), size(row.retention_limit_bytes)]
    limit = ", ".join(limit for limit in limits if limit) or (
        "none" if "delete" in row.cleanup_policy else row.cleanup_policy or "no policy"
    )
    return (
        f"{row.topic}-{row.partition}",
        str(row.broker),
        size(row.size_bytes),
        "" if oldest is None else f"{duration(now - oldest)} ago" if oldest <= now else f"in {duration(oldest - now)}",
        limit + ("?" if row.limit_source == "assumed" else ""),
        duration(row.retention_lag_seconds),
        duration(row.retention_overdue_seconds),
        size(row.retention_reclaimable_bytes),
        "" if following is None else "due" if following <= now else f"in {duration(following - now)}",
        row.retention_blocked or "",
    )


def _totals(rows: Sequence[Row]) -> str:
    reclaimable = sum(row.retention_reclaimable_bytes or 0 for row in rows)
    dirty = sum(row.dirty_bytes or 0 for row in rows)
    late = sum(1 for row in rows if row.retention_lag_seconds)
    overdue = sum(1 for row in rows if row.retention_overdue_seconds)
    blocked = Counter(row.retention_blocked for row in rows if row.retention_blocked)
    reasons = f" ({', '.join(f'{reason} {count}' for reason, count in sorted(blocked.items()))})" if blocked else ""
    return (
        f"{len(rows)} partitions, {size(sum(row.size_bytes for row in rows))}: {size(reclaimable)} reclaimable, {size(dirty)} dirty; "
        f"{late} keep records past their limit, {overdue} overdue, {blocked.total()} blocked{reasons}"
    )


def _log_dir(use: DirUse) -> str:
    found = use.status
    others = (
        ("deleted segments", found.deleted),
        ("deleted partitions", found.delete),
        ("strays", found.stray),
        ("replicas moving here", found.future),
        ("metadata log", found.metadata),
    )
    waiting = "".join(f", {name} {size(taken)}" for name, taken in others if taken)
    return f"{found.log_dir}: partitions {size(use.held)}{waiting}; {size(found.free)} of {size(found.capacity)} free"


def _advice(rows: Sequence[Row], now_ms: int) -> Iterator[str]:
    now = datetime.fromtimestamp(now_ms / 1000, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
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
            some = ", ".join(f"{row.topic}-{row.partition}" for row in concerned[:3])
            more = f" and {len(concerned) - 3} more" if len(concerned) > 3 else ""
            yield f"{reason}: {some}{more}: {ADVICE[reason].format(now=now)}"


def duration(seconds: float | None) -> str:
    """Seconds in the two largest units that are not zero; empty for None."""
    if seconds is None:
        return ""
    whole = round(seconds)
    if whole < 1:
        return "0" if not seconds else f"{seconds:.3f}s"
    parts = []
    for unit, length in (("d", 86_400), ("h", 3600), ("m", 60), ("s", 1)):
        count, whole = divmod(whole, length)
        if count:
            parts.append(f"{count}{unit}")
        elif parts:
            break
        if len(parts) == 2:
            break
    return " ".join(parts)


def size(count: int | None) -> str:
    """Bytes in the largest unit that is not larger than they are; empty for None."""
    if count is None:
        return ""
    value, unit = float(count), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if value < 1024:
            break
        value, unit = value / 1024, larger
    return f"{count} B" if unit == "B" else f"{value:.1f} {unit}"
