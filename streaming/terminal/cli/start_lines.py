"""Shows on stderr how far a job that starts is: on a terminal one line that is overwritten, elsewhere a message of the log now and then."""

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from streaming.common.progress_line import ProgressLine

log = logging.getLogger(__name__)

_EVERY_SECONDS = 0.5
_LOG_EVERY_SECONDS = 15.0


@dataclass(slots=True)
class StartLog:
    """Which of the sentences are logged: one for each step, and one every quarter of a minute while a step lasts."""

    _step: str = ""
    _logged_at: float = 0.0

    def take(self, sentence: str, at: float) -> None:
        """``at``: seconds since the start. Its first moment is not worth a message: a job that is refused says why."""
        step = sentence.partition(":")[0]
        if at - self._logged_at < (_EVERY_SECONDS if step != self._step else _LOG_EVERY_SECONDS):
            return
        self._step, self._logged_at = step, at
        log.info("not ready yet", extra={"progress": sentence})


@contextmanager
def start_shown(sentence: Callable[[], str], line: ProgressLine | None = None) -> Iterator[None]:
    """Show it on a thread, until ``sentence`` returns "" or the block ends. Log messages remove the line before they are written."""
    line = line or ProgressLine.on_stderr()
    over, handlers = threading.Event(), logging.getLogger().handlers
    starts = StartLog()

    def clears(record: logging.LogRecord) -> bool:
        del record
        line.clear()
        return True

    def follow() -> None:
        rounds = 0
        while not over.wait(_EVERY_SECONDS) and (now := sentence()):
            rounds += 1
            if line.able:
                line.show(now)
            else:
                starts.take(now, rounds * _EVERY_SECONDS)
        line.clear()

    for handler in handlers:
        handler.addFilter(clears)
    thread = threading.Thread(target=follow, name="progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        for handler in handlers:
            handler.removeFilter(clears)
