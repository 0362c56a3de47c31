"""The listing of retention: what is kept of each partition, what Kafka is about to delete, and what prevents that."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from streaming.broker.protocol.listing_json import RetentionPage, RetentionRow
from streaming.cluster.verdicts.log_problems import FUTURE, REMEDIES, wrong_unit
from streaming.pages.api.judged_look import JudgedLook, with_verdicts
from streaming.pages.api.look import Look
from streaming.pages.api.paging import PageRequest, Sheet, cut, natural_order, worst_first
from streaming.pages.listings.partition_list import RETENTION
from streaming.rules.limits import Limits
from streaming.rules.retention_rule import BLOCKED


def retention_page(judged: JudgedLook, request: PageRequest) -> RetentionPage:
    """A page of what is kept."""
    look, logs = judged.look, judged.look.view.logs
    columns = look.columns_of(RETENTION) | {"retention_blocked": logs["retention_blocked"]}
    natural = natural_order(look.topics, look.partitions, look.brokers)
    columns["kind"] = worst_first(judged.retention_verdicts.place, natural, -logs["retention_overdue_ms"])
    sheet = Sheet(columns=columns, texts=look.texts, natural=natural, topics=look.topics)
    some = cut(sheet, request)
    rows = retention_rows(judged, some.items)
    return some.page(RetentionPage, look.now_ms, rows)


def retention_rows(judged: JudgedLook, items: Sequence[int]) -> list[RetentionRow]:
    """Some of the rows."""
    look, chosen = judged.look, np.array(items, np.int64)
    columns = look.columns_of(RETENTION) | {"retention_overdue": judged.overdue}
    copied = {name: column[chosen].tolist() for name, column in columns.items()}
    rows = [_row(look, item, {name: values[place] for name, values in copied.items()}) for place, item in enumerate(items)]
    return with_verdicts(rows, judged.retention_verdicts.of_rows(items))


def _row(look: Look, item: int, copied: dict[str, Any]) -> RetentionRow:
    logs, limits = look.view.logs, look.view.logs.limits[item]
    code, directory, millionths = (int(logs[name][item]) for name in ("retention_blocked", "log_dir", "dirty_millionths"))
    reason = BLOCKED[code] if code >= 0 else ""
    return RetentionRow(
        **copied,
        topic=look.topics[item],
        topic_id=logs.topic_ids[item],
        log_dir=look.view.observed.log_dirs[directory][1] if directory >= 0 else "",
        retention_blocked=reason,
        retention_blocked_why=f"{REMEDIES[reason].why} {_unit(look, item) if reason == FUTURE else ''}".rstrip() if reason else "",
        dirty_ratio=-1.0 if millionths < 0 else millionths / 1e6,
        **_of_limits(limits),
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
