"""The text report of ``segtail retention``: one line for each partition, the totals, and what can be done."""

from collections import Counter
from collections.abc import Iterator, Sequence

from streaming.broker.protocol.listing_json import RetentionRow
from streaming.cluster.verdicts.commands import FUTURE, REMEDIES, Commands, shows
from streaming.common.settings import Settings
from streaming.common.units import format_count, format_list, format_size
from streaming.kafka.formats.names import INTERNAL_TOPICS
from streaming.pages.listings.declared_lists import RETENTION
from streaming.pages.listings.listing import Times
from streaming.pages.listings.text_table import text_table
from streaming.rules.cleaning import UNCLEANABLE
from streaming.terminal.cli.assumed_limits import assumed_line
from streaming.terminal.cli.printing import ShellCommand

_MOST_LOWERED = 5
"""So many changes of limits are named."""

ALL_ACTIVE, UNLIMITED = "all_active", "unlimited"

ADVICE = {
    **{reason: each.mend for reason, each in REMEDIES.items()},
    "overdue": "The first segment could be deleted for more than two checks and is still there. Check whether the broker runs, whether its "
    "log dir is online, and whether the partition is being moved.",
    "open_transaction": "Compaction stops at an open transaction. Find it with `segtail transactions`.",
    "compaction_lag": "Closed segments are younger than min.compaction.lag.ms, and are compacted when they are not.",
    ALL_ACTIVE: "All of it is in the active segment, which is never compacted. An append rolls it that comes after segment.ms or "
    "max.compaction.lag.ms, or finds it as large as segment.bytes.",
    UNLIMITED: "Neither retention.ms nor retention.bytes limits it, so all of it is kept for ever, whoever has read it. `segtail groups` "
    "shows how far each group is; a limit deletes what is beyond it, read or not.",
}
"""What to do for each reason why data stays; why it stays is in the rows."""


def report(rows: Sequence[RetentionRow], now_ms: int, width: int | None = None, settings: Settings | None = None) -> Iterator[str]:
    """The lines of the report; its table fits ``width``. ``settings``: as in `assumed_line`."""
    yield from text_table(RETENTION, rows, Times(now_ms), width)
    yield ""
    yield _totals(rows)
    advice = list(_advice(rows))
    if assumed := [f"{row.topic}-{row.partition}" for row in rows if row.limits_assumed]:
        advice.append(assumed_line(assumed, settings))
    lowered = dict.fromkeys(row.limit_lowered for row in rows if row.limit_lowered and row.retention_reclaimable_bytes > 0)
    advice += (f"lowered: {each}." for each in [*lowered][:_MOST_LOWERED])
    if advice:
        yield ""
        yield from advice


def _totals(rows: Sequence[RetentionRow]) -> str:
    size, reclaimable, dirty = (
        format_size(sum(max(0, getattr(row, name)) for row in rows))
        for name in ("size_bytes", "retention_reclaimable_bytes", "dirty_bytes")
    )
    late = sum(row.retention_lag_ms > 0 for row in rows)
    overdue = sum(row.retention_overdue and not row.limits_assumed for row in rows)
    perhaps = sum(row.retention_overdue and row.limits_assumed for row in rows)
    by_assumed = f", {perhaps} overdue by assumed limits" if perhaps else ""
    blocked = Counter(row.retention_blocked for row in rows if row.retention_blocked)
    reasons = f" ({', '.join(f'{reason} {count}' for reason, count in sorted(blocked.items()))})" if blocked else ""
    return (
        f"{format_count(len(rows), 'partition')}, {size}: {reclaimable} reclaimable, {dirty} dirty; "
        f"{late} keep records past their limit, {overdue} overdue{by_assumed}, {blocked.total()} blocked{reasons}"
    )


def _advice(rows: Sequence[RetentionRow]) -> Iterator[str]:
    present: dict[str, list[RetentionRow]] = {reason: [] for reason in ADVICE}
    for row in rows:
        if row.retention_blocked:
            present[row.retention_blocked].append(row)
        elif row.retention_overdue and not row.limits_assumed:
            present["overdue"].append(row)
        for reason in UNCLEANABLE:
            if getattr(row, f"uncleanable_{reason}_bytes") > 0 and row.retention_blocked != reason:
                present[reason].append(row)
        if "compact" in row.cleanup_policy and row.segments == 1 and row.size_bytes > 0 and row.topic not in INTERNAL_TOPICS:
            present[ALL_ACTIVE].append(row)
        if _is_unlimited(row):
            present[UNLIMITED].append(row)
    for reason, concerned in present.items():
        if concerned:
            some = format_list([f"{row.topic}-{row.partition}" for row in concerned], 3)
            why = next((f"{row.retention_blocked_why} " for row in concerned if row.retention_blocked == reason), "")
            why = why or (f"{REMEDIES[reason].why} " if reason in REMEDIES else "")
            why = f"{format_size(sum(row.size_bytes for row in concerned))}. " if reason == UNLIMITED else why
            yield f"{reason}: {some}: {why}{ADVICE[reason]}"
            if reason == FUTURE:
                first = concerned[0]
                yield ShellCommand(f"  {shows(reason, Commands(), first.topic, f'{first.log_dir}/{first.topic}-{first.partition}').line}")


def _is_unlimited(row: RetentionRow) -> bool:
    limits = max(row.retention_limit_ms, row.retention_limit_bytes)
    return row.cleanup_policy == "delete" and limits < 0 and not row.limits_assumed and row.size_bytes > 0
