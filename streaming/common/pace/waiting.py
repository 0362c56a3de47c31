"""The source's side of the pace: it waits until the next check for work is due, unless there is a reason to hurry."""

import os
import time
from collections.abc import Callable
from enum import Enum, auto
from pathlib import Path

from streaming.common.pace.schedule import QUICK_SECONDS, WorkCheck, due_without, read_schedule

_TICK_SECONDS = 0.5
"""How often the schedule is read again, so that a person who opens a page does not wait long."""


class Hurry(Enum):
    """How soon the next check has to follow the last one."""

    NOT = auto()
    SOON = auto()  # something was not there yet but will come: it is requested again, without a busy loop
    NOW = auto()  # there is more than one micro-batch takes


class Turns:
    """The checks for work of one run of a query. For one thread.

    Args:
        schedule: the file that the exporter writes, None for no pace at all.
        clock: seconds of `time.monotonic`.
        sleep: waits so many seconds.
        parent: returns the id of the process that this one works for.
    """

    def __init__(
        self,
        schedule: Path | None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
        parent: Callable[[], int] = os.getppid,
    ) -> None:
        self._schedule = schedule
        self._clock = clock
        self._sleep = sleep
        self._parent = parent
        self._since: float | None = None
        self._hurry = Hurry.NOW
        self._first = 0.0
        self._number = 0

    def __reduce__(self) -> tuple[type["Turns"], tuple[Path | None]]:
        """In another process the checks begin anew."""
        return Turns, (self._schedule,)

    def wait(self) -> bool:
        """Wait until the next check is due. False if nobody needs it any more: Spark, which would notice this, is gone."""
        parent = self._parent()
        while (left := self._due() - self._clock()) > 0:
            self._sleep(min(left, _TICK_SECONDS))
            if self._parent() != parent:
                return False
        return True

    def checked(self, hurry: Hurry, *, idle: bool) -> WorkCheck:
        """A check has ended. Returns it, for the file."""
        now = self._clock()
        if self._since is None or self._hurry is not Hurry.NOW:
            self._first = now
        self._since, self._hurry, self._number = now, hurry, self._number + 1
        return WorkCheck(now, self._number, idle, self._first)

    def _due(self) -> float:
        if self._schedule is None or self._since is None or self._hurry is Hurry.NOW:
            return 0.0
        if self._hurry is Hurry.SOON:
            return self._since + QUICK_SECONDS
        now = self._clock()
        schedule = read_schedule(self._schedule, now)
        return due_without(self._since) if schedule is None else schedule.due(self._since, now)
