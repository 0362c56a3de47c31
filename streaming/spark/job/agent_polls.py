"""When a job asks its agents how they are: at each turn, but less often while all of them are well and no group commits.

An answer costs a call on both sides, which is half of what an idle job spends. What is known of groups is as old as the answers.
"""

import threading
from collections.abc import Callable

QUIET_SECONDS = 2.5
"""So long an answer holds of agents that are well. A turn comes each second, so it is the third one that asks."""


class AgentPolls:
    """Any thread may call `landed`, one thread the rest.

    Args:
        clock: seconds of a clock that only goes forward.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._quiet_until = clock()
        self._landed = threading.Event()

    def landed(self) -> None:
        """A micro-batch is in the table: up to when each agent is processed shows only by an answer after it."""
        self._landed.set()

    @property
    def due(self) -> bool:
        """Whether to ask now."""
        return self._landed.is_set() or self._clock() >= self._quiet_until

    def begin(self) -> None:
        """They are asked now. What lands meanwhile is asked for again."""
        self._landed.clear()

    def answered(self, *, quiet: bool) -> None:
        """They were asked; ``quiet``: all of them are well, and nothing else is as old as what they answer."""
        self._quiet_until = self._clock() + (QUIET_SECONDS if quiet else 0.0)
