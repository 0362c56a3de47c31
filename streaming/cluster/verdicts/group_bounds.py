"""How severe each verdict about a consumer group is, and from when on something is a verdict.

The alerts of conf/alerts/Group*.yaml have the same numbers; `tests/alerts` holds their bounds and severities against these.
"""

from dataclasses import dataclass
from datetime import timedelta

from streaming.broker.protocol.group_verdicts import GroupVerdict
from streaming.broker.protocol.status_json import SEVERITIES
from streaming.cluster.consumers.group_counting import LOST_LATELY_MS
from streaming.cluster.verdicts import kinds
from streaming.common.settings import Settings

CRITICAL, WARNING, INFO, CALM = range(4)
"""Severities as numbers, the highest first: indexes of `SEVERITIES`; `CALM` is none."""

PROBLEMS = {
    GroupVerdict.LOST: kinds.GROUP_LOST,
    GroupVerdict.WILL_LOSE: kinds.GROUP_WILL_LOSE,
    GroupVerdict.HELD: kinds.GROUP_HELD,
    GroupVerdict.BEYOND_END: kinds.GROUP_OFFSET_INVALID,
    GroupVerdict.OTHER_HISTORY: kinds.GROUP_OFFSET_INVALID,
    GroupVerdict.PENDING: kinds.GROUP_PENDING,
    GroupVerdict.DAMAGED: kinds.GROUP_STOPPED,
    GroupVerdict.STOPPED: kinds.GROUP_STOPPED,
    GroupVerdict.SKIPPED: kinds.GROUP_SKIPPED,
    GroupVerdict.REBALANCING: kinds.GROUP_REBALANCING,
    GroupVerdict.WILL_EXPIRE: kinds.GROUP_OFFSETS_EXPIRE,
}
"""The problem that a verdict is, where an alert reports it."""

SEVERITY = {verdict: SEVERITIES.index(kind.severity) for verdict, kind in PROBLEMS.items()} | {
    GroupVerdict.BUFFERED: INFO,
    GroupVerdict.TOO_LARGE: INFO,
    GroupVerdict.SLOWER: INFO,
    GroupVerdict.REWOUND: INFO,
    GroupVerdict.SKEWED: INFO,
    GroupVerdict.NO_MEMBERS: INFO,
    GroupVerdict.PERHAPS_LOST: CALM,
}
"""The severity of a verdict that has lasted for long enough."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupBounds:
    """From when on something is a verdict; times in milliseconds. What has not lasted for as long as an alert waits for has no severity.

    ``fetch_bytes``: what consumers fetch of a partition at once. ``loss_within_ms``: a loss that is further away is none yet, and one
    beyond ``loss_soon_ms``, or of a partition that is not in danger, is only `INFO`. ``expire_within_ms``: likewise for the committed
    offset itself. ``held_from_ms``: a next record that is younger waits for a transaction as each does for a moment. ``held_cause_ms``:
    before, what a group will lose is its own doing: one that waits for another transaction each minute is in the same danger all the time,
    and its alert waits for two minutes. ``held_after_ms``: for so long readers may wait for one; ``pending_after_ms``, ``pending_long_ms``:
    its commits. ``lost_lately_ms``: a loss is a warning for so long after it was seen, also after the group has gone on.
    ``slower_after_ms``: with a next record that is younger, a group keeps up, whatever its rate of the last minutes; ``slower_from_rate``:
    nor is a group slower than producers that append fewer records a second, as what fades after a burst. ``skewed_share``: of a group's lag
    of ``skewed_records`` or more, so much is most of it. ``abandoned_after_ms``: after so long without members or a commit a group is
    abandoned, and not before ``abandoned_times`` its usual interval.
    """

    fetch_bytes: int = 1 << 20
    loss_within_ms: int = 24 * 3_600_000
    loss_soon_ms: int = 4 * 3_600_000
    expire_within_ms: int = 24 * 3_600_000
    held_from_ms: int = 10_000
    held_cause_ms: int = 90_000
    held_after_ms: int = 900_000
    pending_after_ms: int = 60_000
    pending_long_ms: int = 600_000
    lost_lately_ms: int = LOST_LATELY_MS
    slower_after_ms: int = 30_000
    slower_from_rate: float = 0.05
    skewed_share: float = 0.8
    skewed_records: int = 1000
    abandoned_after_ms: int = 24 * 3_600_000
    abandoned_times: int = 10


DEFAULT_BOUNDS = GroupBounds()


def bounds_of(settings: Settings) -> GroupBounds:
    """The bounds by the settings."""
    millisecond = timedelta(milliseconds=1)
    return GroupBounds(loss_soon_ms=settings.group_loss_within // millisecond, held_after_ms=settings.group_held_after // millisecond)


def order(verdict: GroupVerdict, lag: int, loss_ms: int) -> int:
    """What comes first of partitions with the same verdict: the next loss where records are about to be deleted, else the largest lag."""
    return loss_ms if verdict is GroupVerdict.WILL_LOSE else -lag
