"""The listing of retention: what is kept of each partition, what Kafka is about to delete, and what prevents that."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streaming.broker.protocol.listing_json import RetentionPage, RetentionRow
from streaming.cluster.verdicts.blocked_remedies import FUTURE, REMEDIES, wrong_unit
from streaming.pages.api.judged_look import JudgedLook, with_verdicts
from streaming.pages.api.look import Look
from streaming.pages.api.paging import PageRequest, Sheet, cut, natural_order, worst_first
from streaming.pages.listings.partition_list import RETENTION
from streaming.rules.cleaning import UNCLEANABLE
from streaming.rules.limits import Limits
from streaming.rules.retention_rule import BLOCKED

_COPIED = (
    *("broker", "partition", "leader_epoch", "replicas", "in_sync_replicas", "min_in_sync_replicas", "log_start_offset"),
    *("local_log_start_offset", "log_end_offset", "high_watermark", "size_bytes", "segments", "active_segment_size_bytes"),
    *("active_segment_first_timestamp_ms", "segment_limit_ms", "segment_limit_bytes", "oldest_record_ms", "retention_limit_ms"),
    *("retention_limit_bytes", "retention_lag_ms", "retention_overdue_ms", "check_interval_ms", "retention_reclaimable_bytes"),
    *("next_deletion_ms", "next_deletion_start_of", "max_timestamp_ahead_ms", "dirty_bytes", "cleaner_checkpoint_offset"),
    "last_stable_offset",
)
"""Fields that have the name of a column."""


def retention_page(judged: JudgedLook, request: PageRequest) -> RetentionPage:
    """A page of what is kept."""
    look, logs = judged.look, judged.look.view.logs
    columns: dict[str, NDArray[Any]] = {name: logs[name] for name in RETENTION.sortable if name in _COPIED}
    columns["retention_blocked"] = logs["blocked"]
    natural = natural_order(look.topics, look.partitions, look.brokers)
    columns["kind"] = worst_first(judged.retention_verdicts.place, natural, -logs["retention_overdue_ms"])
    sheet = Sheet(columns=columns, texts=look.texts, natural=natural, topics=look.topics)
    some = cut(sheet, request)
    rows = retention_rows(judged, some.items)
    return some.page(RetentionPage, look.now_ms, rows)


def retention_rows(judged: JudgedLook, items: Sequence[int]) -> list[RetentionRow]:
    """Some of the rows."""
    look, logs, chosen = judged.look, judged.look.view.logs, np.array(items, np.int64)
    copied = {name: logs[name][chosen].tolist() for name in _COPIED}
    copied["next_deletion_by_size"] = (logs["next_deletion_by_size"][chosen] > 0).tolist()
    copied["retention_overdue"] = judged.overdue[chosen].tolist()
    rows = [_row(look, item, {name: values[place] for name, values in copied.items()}) for place, item in enumerate(items)]
    return with_verdicts(rows, judged.retention_verdicts.of_rows(items))


def _row(look: Look, item: int, copied: dict[str, Any]) -> RetentionRow:
    logs, limits = look.view.logs, look.view.logs.limits[item]
    code, directory, millionths = (int(logs[name][item]) for name in ("blocked", "log_dir", "dirty_millionths"))
    reason = BLOCKED[code] if code >= 0 else ""
    return RetentionRow(
        **copied,
        topic=look.topics[item],
        topic_id=logs.topic_ids[item],
        log_dir=look.view.observed.log_dirs[directory][1] if directory >= 0 else "",
        leader=bool(logs["leader"][item] > 0),
        retention_blocked=reason,
        retention_blocked_why=f"{REMEDIES[reason].why} {_unit(look, item) if reason == FUTURE else ''}".rstrip() if reason else "",
        dirty_ratio=-1.0 if millionths < 0 else millionths / 1e6,
        **_of_limits(limits),
        **({} if limits is None or not limits.compacts else _of_compacted(look, item)),
    )


def _unit(look: Look, item: int) -> str:
    ahead_ms = int(look.view.logs["max_timestamp_ahead_ms"][item])
    return wrong_unit(look.now_ms + ahead_ms, look.now_ms) if ahead_ms > 0 else ""


def _of_limits(limits: Limits | None) -> dict[str, Any]:
    if limits is None:
        return {}
    return {
        "cleanup_policy": limits.cleanup_policy,
        "limit_source": str(limits.source),
        "limits_assumed": limits.assumed,
    }


def _of_compacted(look: Look, item: int) -> dict[str, Any]:
    """What holds back the cleaner."""
    logs = look.view.logs
    if logs["dirty_bytes"][item] < 0:
        return {}
    return {f"uncleanable_{name}_bytes": int(logs[f"uncleanable_{name}"][item]) for name in UNCLEANABLE}
