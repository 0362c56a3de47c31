"""A log for what strangers cause: one line a second at most, or fewer, which says how many were left out before it."""

import logging
import time
from collections.abc import Callable, Mapping
from threading import Lock

EVERY_SECONDS = 1.0
"""The least time between two lines."""


class RareLog:
    """Of one port, whatever its lines say: strangers choose their mistakes. For several threads."""

    def __init__(self, log: logging.Logger, monotonic: Callable[[], float] = time.monotonic, every: float = EVERY_SECONDS) -> None:
        self._log = log
        self._monotonic = monotonic
        self._every = every
        self._lock = Lock()  # protects what follows
        self._next = float("-inf")
        self._left_out = 0
        self.left_out = 0
        """The number of lines that were left out, all in all."""

    def write(self, level: int, message: str, fields: Mapping[str, object], error: BaseException | None = None) -> None:
        """Log a message with its fields, and with the traceback of an error; or leave it out."""
        if not self._log.isEnabledFor(level):
            return
        now = self._monotonic()
        with self._lock:
            if now < self._next:
                self._left_out += 1
                self.left_out += 1
                return
            self._next = now + self._every
            left_out, self._left_out = self._left_out, 0
        more = {"lines_left_out": left_out} if left_out else {}
        self._log.log(level, message, extra={**fields, **more}, exc_info=error)
