"""When retention will delete offsets of observed logs, and by which limits: the rule of `streaming.rules.group_loss` for a page."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from streaming.metrics.exported import Kept, Observed
from streaming.metrics.value_matrix import Longs
from streaming.metrics.view import View
from streaming.protocol.group_json import GroupPartition
from streaming.rules.config_values import Source
from streaming.rules.group_loss import Growth, Losses, losses, mean_rates
from streaming.rules.segment_columns import ABSENT, Flags


def losses_of(
    observed: Observed, kept: Kept, items: Longs, offsets: Longs, now_ms: int, rates: NDArray[np.float64] | None = None
) -> Losses:
    """Compute when retention deletes offsets, `ABSENT` where that is not known.

    Args:
        items: the log of each offset, as an index in ``observed``.
        offsets: at or above the log start.
        rates: bytes a second at which each observed log grows now; if None, or `ABSENT` for a log, what its list of segments shows.
    """
    listed = kept.listed
    where = kept.items[listed.items]  # of each listed log its index in `observed`
    if not len(where) or not len(items):
        return _nothing(len(items))
    owner = np.minimum(np.searchsorted(where, items), len(where) - 1)
    known = np.flatnonzero(where[owner] == items)
    mean = mean_rates(listed.logs, now_ms)
    growth = Growth(
        rate=mean if rates is None else np.where(rates[where] >= 0, rates[where], mean),
        active_first_ms=observed.columns["active_first_timestamp"][where],
    )
    found, all_of = losses(listed.logs, growth, owner[known], offsets[known], now_ms), _nothing(len(items))
    all_of.at_ms[known], all_of.end_offset[known], all_of.by_size[known] = found.at_ms, found.end_offset, found.by_size
    return all_of


def limits_assumed(kept: Kept, items: Longs) -> Flags:
    """Of which logs, as indexes in `Observed`, the limits are assumed."""
    assumed = np.array([limits is not None and limits.source is Source.ASSUMED for limits in kept.limits], np.bool_)
    place = np.searchsorted(kept.items, items)
    there = np.append(kept.items, ABSENT)[place] == items
    found: Flags = np.append(assumed, False)[place] & there
    return found


def with_limits(of: GroupPartition, kept: Kept, item: int, *, by_size: bool) -> GroupPartition:
    """The partition with the limits of its log, as far as they are known.

    Args:
        item: the log, as an index in `Observed`.
        by_size: the limit in size deletes the next record.
    """
    place = int(np.searchsorted(kept.items, item))
    limits = kept.limits[place] if place < len(kept.items) and kept.items[place] == item else None
    if limits is None:
        return of
    of = replace(of, limits_assumed=limits.source is Source.ASSUMED, loss_by_size=by_size)
    return replace(of, retention_ms=limits.retention_ms, retention_bytes=limits.retention_bytes) if limits.deletes else of


TopicPartition = tuple[str, int]


def leading_items(shown: View) -> dict[TopicPartition, int]:
    """The leading replica of each partition, as an index in `Observed`."""
    partitions = shown.observed.columns["partition"].tolist()
    return {(shown.observed.names[item], partitions[item]): item for item in np.flatnonzero(shown.observed.roles.leads).tolist()}


def with_losing_limits(
    partitions: Sequence[GroupPartition],
    shown: View,
    items: Mapping[TopicPartition, int],
    growth: Mapping[TopicPartition, float],
    now_ms: int,
) -> list[GroupPartition]:
    """The partitions; those that will lose records with the limits of their logs.

    Args:
        items: `leading_items` of the view.
        growth: bytes a second at which logs grow now, as far as that is known.
    """
    some = [each for each in partitions if each.loss_ms >= 0 and each.next_offset >= 0 and (each.topic, each.partition) in items]
    of = np.array([items[each.topic, each.partition] for each in some], np.int64)
    rates = np.full(len(shown.observed.names), float(ABSENT))
    rates[of] = [growth.get((each.topic, each.partition), ABSENT) for each in some]
    losing = losses_of(shown.observed, shown.kept, of, np.array([each.next_offset for each in some], np.int64), now_ms, rates)
    found = {
        (each.topic, each.partition): with_limits(each, shown.kept, item, by_size=by_size)
        for each, item, by_size in zip(some, of.tolist(), losing.by_size.tolist(), strict=True)
    }
    return [found.get((each.topic, each.partition), each) for each in partitions]


def _nothing(count: int) -> Losses:
    return Losses(at_ms=np.full(count, ABSENT), end_offset=np.full(count, ABSENT), by_size=np.zeros(count, np.bool_))
