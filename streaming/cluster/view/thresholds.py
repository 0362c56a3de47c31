"""Which options are exported as thresholds, so that alert rules need no templates."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from streaming.common.settings import Settings

SECONDS = (
    "hanging_after",
    "late_after",
    "stuck_after",
    "group_late_after",
    "group_stopped_after",
    "group_loss_within",
    "group_held_after",
    "overdue_after",
    "ahead_limit",
    "full_within",
    "starting_after",
    "scrub_overdue_after",
    "stale_after",
)
RATIOS = ("free_ratio",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Threshold:
    """A limit of the configuration that alert rules need."""

    name: str
    unit: Literal["seconds", "ratio"]
    value: float


def thresholds(settings: Settings) -> Iterator[Threshold]:
    """Every option that a rule or a dashboard may need, in base units, by the option's own name."""
    for name in SECONDS:
        yield Threshold(name=name, unit="seconds", value=getattr(settings, name).total_seconds())
    yield Threshold(name="trigger", unit="seconds", value=settings.longest_pause.total_seconds())
    for name in RATIOS:
        yield Threshold(name=name, unit="ratio", value=getattr(settings, name))
