"""The end of an agent: by SIGTERM, SIGINT, and for a child the end of its parent."""

import logging
import os
import signal
import sys
import threading
from collections.abc import Callable

from streaming.broker.agent.polling_thread import Polls

log = logging.getLogger(__name__)


class Ending:
    """Set once the agent has to end. ``polls``: the requests that the watcher's thread waits for, so that it notices at once."""

    def __init__(self, polls: Polls) -> None:
        self.event = threading.Event()
        self._polls = polls

    def end(self) -> None:
        """End the agent."""
        self.event.set()
        self._polls.want()

    def end_at_signals(self) -> None:
        """End at SIGTERM and SIGINT, however often they come. Only the main thread may call it.

        A handler runs in the middle of whatever the main thread does, another handler included, and would wait for ever for a lock that
        this holds. So the signal wakes a thread.
        """
        reader, writer = os.pipe()
        os.set_blocking(writer, False)
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, _do_nothing)
        threading.Thread(target=_wait_for_signal, args=(reader, self.end), daemon=True, name="signals").start()

    def end_with_parent(self) -> None:
        """End at the end of standard input."""
        threading.Thread(target=_wait_for_parent, args=(self.end,), daemon=True, name="parent").start()


def _do_nothing(*_: object) -> None:
    """The thread has been told already."""


def _wait_for_signal(reader: int, end: Callable[[], None]) -> None:
    while os.read(reader, 1)[0] == signal.SIGHUP:
        pass  # it is for the log's level
    end()


def _wait_for_parent(end: Callable[[], None]) -> None:
    while os.read(sys.stdin.fileno(), 1024):
        pass  # the parent sends nothing; the pipe closes with the parent, however it ends
    end()


def send_address(address: str) -> None:
    """Send the agent's address to its parent, on standard output."""
    try:
        os.write(sys.stdout.fileno(), f"{address}\n".encode())
    except BrokenPipeError:
        log.debug("the parent has ended")  # the end of standard input shows it as well
