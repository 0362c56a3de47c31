"""Shows on a terminal how far a job that begins is in what was on the disks before."""

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from streaming.common.progress_line import ProgressLine

if TYPE_CHECKING:  # imports pyarrow: not for --help
    from streaming.cluster.view.observer import ByteTotals

_EVERY_SECONDS = 0.5


class CatchUp:
    """From the totals of a job to its line. What it had when it began, as one with an older checkpoint has, does not count."""

    def __init__(self, line: ProgressLine) -> None:
        self._line = line
        self._before: ByteTotals | None = None

    def show(self, totals: "ByteTotals") -> None:
        """Show how far it is: what agents have read of their backlog and, when they have all of it, how much of that is counted."""
        if not totals.published:
            return
        self._before = before = self._before or totals
        if totals.growing:
            self._line.set(totals.published - before.published, 0)
        else:
            self._line.set(totals.processed - before.processed, totals.published - before.processed, "counted")


@contextmanager
def shown_until(ready: Callable[[], bool], totals: "Callable[[], ByteTotals]", line: ProgressLine | None = None) -> Iterator[None]:
    """Show the line, on a thread, until the job is ready or the block ends. Log messages remove it before they are written."""
    line = line or ProgressLine.on_stderr()
    if not line.able:
        yield
        return
    over = threading.Event()
    handlers = logging.getLogger().handlers

    def clears(record: logging.LogRecord) -> bool:
        del record
        line.clear()
        return True

    def follow() -> None:
        catch_up = CatchUp(line)
        while not over.wait(_EVERY_SECONDS) and not ready():
            catch_up.show(totals())
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
