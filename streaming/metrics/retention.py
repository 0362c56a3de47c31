"""What retention and compaction come to for the exported logs, as columns beside what they told themselves."""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from streaming.metrics.carried import Carried
from streaming.metrics.columns import Columns, Longs
from streaming.metrics.decided import Decided
from streaming.metrics.limiter import Limiter
from streaming.metrics.overdue import DeletableSince
from streaming.metrics.standing import ABSENT, Standing
from streaming.rows import SEGMENTS, TIME_UNKNOWN
from streaming.rules.compaction import CompactionRule
from streaming.rules.limits import Limits
from streaming.rules.min_isr import effective_min_isr
from streaming.rules.retention import RetentionRule
from streaming.rules.segments import LogFacts, Logs

COLUMNS = (
    "segments",
    "active_segment_size_bytes",
    "active_segment_first_timestamp_ms",
    "active_segment_created_ms",
    "segment_limit_ms",
    "segment_limit_bytes",
    "oldest_record_ms",
    "retention_limit_ms",
    "retention_limit_bytes",
    "retention_lag_ms",
    "retention_overdue_ms",
    "retention_reclaimable_bytes",
    "next_deletion_ms",
    "blocked",
    "max_timestamp_ahead_ms",
    "dirty_bytes",
    "dirty_millionths",
    "dirty_limit_millionths",
    "uncleanable_open_transaction",
    "uncleanable_compaction_lag",
    "cleaner_checkpoint_offset",
    "local_log_start_offset",
    "min_in_sync_replicas",
    "check_interval_ms",
)
"""What `keep` works out; ``blocked`` is a place in `streaming.rules.retention.BLOCKED`."""

JUDGED = (
    "retention_lag_ms",
    "retention_overdue_ms",
    "retention_reclaimable_bytes",
    "blocked",
    "max_timestamp_ahead_ms",
    "dirty_bytes",
    "dirty_millionths",
    "uncleanable_open_transaction",
    "uncleanable_compaction_lag",
)
"""Those that follow from the present time: of a log that nobody has looked at for long they would age, whatever its broker does."""


def keep(
    logs: Columns,
    carried: Sequence[Carried],
    names: Sequence[str],
    decided: Decided,
    standing: Standing,
    limiter: Limiter,
    deletable: DeletableSince | None,
    now_ms: int,
) -> tuple[Standing, list[Limits | None]]:
    """Work out `COLUMNS` for some logs, and what limits them: None of a log whose segments are not told yet.

    Args:
        names: their topics.
        decided: what is decided of them.
        standing: what `streaming.metrics.standing.stand` made of the same logs.
        deletable: what was seen of them before, None for nothing that could have been.
    """
    columns = {name: np.full(len(logs), ABSENT, np.int64) for name in COLUMNS}
    limits: list[Limits | None] = [None] * len(logs)
    told = [item for item, each in enumerate(carried) if each.segments is not None and len(each.segments)]
    if not told:
        return columns, limits
    oldest = logs["oldest_timestamp"].tolist()
    checkpoints, each_limit, found = decided.cleaner_checkpoint.tolist(), _limits(logs, names, decided, told, limiter), []
    for item, segments, *offsets in zip(told, _grown(logs, carried, told), *_offsets(logs, standing, told), strict=True):
        limits[item] = limit = each_limit[item]
        log_start, log_end, high_watermark, last_stable = offsets
        found.append(
            LogFacts(
                segments=segments,
                log_start_offset=log_start,
                log_end_offset=log_end,
                high_watermark=high_watermark,
                last_stable_offset=last_stable,
                cleaner_checkpoint=checkpoints[item],
                oldest_record_ms=oldest[item],
                limits=limit,
            )
        )
    together = Logs(found)
    bound = None if deletable is None else deletable.bound(logs["slot"][told], now_ms)
    retention = RetentionRule(together).at(now_ms, bound)
    compaction = CompactionRule(together).at(now_ms)
    last = together.last
    values: dict[str, Longs] = {
        "segments": together.count,
        "active_segment_size_bytes": together.size[last],
        "active_segment_first_timestamp_ms": logs["active_first_timestamp"][told],
        "active_segment_created_ms": logs["active_created_ms"][told],
        "segment_limit_ms": together.limit("roll_ms"),
        "segment_limit_bytes": together.limit("segment_bytes"),
        "oldest_record_ms": together.oldest_record,
        "retention_limit_ms": np.where(together.limit("deletes") > 0, together.limit("retention_ms"), ABSENT),
        "retention_limit_bytes": np.where(together.limit("deletes") > 0, together.limit("retention_bytes"), ABSENT),
        "retention_lag_ms": retention.retention_lag,
        "retention_overdue_ms": retention.overdue,
        "retention_reclaimable_bytes": retention.reclaimable,
        "next_deletion_ms": retention.next_deletion,
        "blocked": retention.blocked.astype(np.int64),
        "max_timestamp_ahead_ms": retention.ahead,
        "dirty_bytes": compaction.dirty_bytes,
        "dirty_millionths": _millionths(compaction.dirty_ratio),
        "dirty_limit_millionths": _millionths(compaction.dirty_limit),
        "uncleanable_open_transaction": compaction.uncleanable[0],
        "uncleanable_compaction_lag": compaction.uncleanable[1],
        "cleaner_checkpoint_offset": np.where(together.limit("compacts") > 0, together.cleaner_checkpoint, ABSENT),
        "local_log_start_offset": np.where(together.limit("remote_storage") > 0, logs["local_log_start_offset"][told], ABSENT),
        "min_in_sync_replicas": np.where(
            standing["replicas"][told] >= 0,  # of no use to anybody where nothing is known of replicas
            effective_min_isr(
                together.limit("min_insync_replicas"),
                np.maximum(decided.all_replicas[told], 0),
                decided.leader_metadata_version[told],
            ),
            ABSENT,
        ),
        "check_interval_ms": together.limit("check_interval_ms"),
    }
    for name, column in columns.items():
        column[told] = values[name]
    return columns, limits


def _offsets(logs: Columns, standing: Standing, told: Sequence[int]) -> Iterator[list[int]]:
    """Log start, log end, high watermark, last stable offset of the logs ``told``."""
    for column in (logs["log_start_offset"], logs["log_end_offset"], standing["high_watermark"], standing["last_stable_offset"]):
        yield column[told].tolist()


def _grown(logs: Columns, carried: Sequence[Carried], told: Sequence[int]) -> Iterator[NDArray[np.void]]:
    """The segments as they were listed, with what was read since: the last one grew, or there is one behind it."""
    names = ("active_segment", "active_position", "active_max_timestamp_ms", "last_append_ms")
    for item, *newest in zip(told, *(logs[name][told].tolist() for name in names), strict=True):
        yield _with_active(carried[item], *newest)


def _with_active(carried: Carried, active: int, position: int, newest: int, modified: int) -> NDArray[np.void]:
    segments = carried.segments
    assert segments is not None
    if active < carried.last_segment or (active == carried.last_segment and position <= carried.last_bytes):
        return segments
    if active > carried.last_segment:
        grown = np.empty(len(segments) + 1, SEGMENTS)  # `np.append` takes ten times as long with a structured type
        grown[:-1] = segments
        grown[-1] = (active, position, newest, modified)
        return grown
    grown = segments.copy()
    last = segments[-1]
    largest = int(last["largest_timestamp"])
    grown[-1] = (active, position, largest if largest == TIME_UNKNOWN else max(newest, largest), max(modified, int(last["modified_ms"])))
    return grown


def _millionths(ratio: NDArray[np.float64]) -> Longs:
    millionths: Longs = np.where(ratio >= 0, np.round(ratio * 1e6), ABSENT).astype(np.int64)
    return millionths


def _limits(logs: Columns, names: Sequence[str], decided: Decided, told: Sequence[int], limiter: Limiter) -> dict[int, Limits]:
    """What limits the logs ``told``: worked out once for each topic of a broker, however many logs it has."""
    limits_of, of_topic, found = limiter.now(), dict[tuple[int, int], Limits](), {}
    for item, topic, configs in zip(told, logs["topic"][told].tolist(), decided.configs[told].tolist(), strict=True):
        limits = of_topic.get((topic, configs))
        if limits is None:
            limits = of_topic[topic, configs] = limits_of(int(logs["broker"][item]), names[item], decided.text(item))
        found[item] = limits
    return found
