"""The thread that polls the log dirs: the watcher, its view of the cluster, and the status of its host."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from streaming.broker.agent.cluster_view import ClusterView
from streaming.broker.agent.health_server import Pulse
from streaming.broker.agent.host_status import HostStatus
from streaming.broker.disk.opening import ThreadCalls, calls_of_this_thread
from streaming.broker.watcher.structure import Structure
from streaming.broker.watcher.watcher import POLL_BYTES, Watcher
from streaming.errors import FencedError, SegtailError

log = logging.getLogger(__name__)

REST_SECONDS = 8.0
"""The longest time between two polls. Every plan of a job has a poll first, so this number does not decide what a page contains.

It is a little more than half of 15 seconds. So there is one poll between two plans, and the next plan has at most half to read.
"""

LEAST_SECONDS = 0.2
"""The least time between the beginnings of two polls, however many are requested."""

BACKLOG_PAUSE_SECONDS = 0.5
"""The rest takes half of the time. No pause is longer than this."""


class PollingThread:
    """Polls a watcher until ``stop`` is set, it is replaced, or it fails. Call `start`.

    Args:
        make: makes the parts. Its argument is a function that the watcher calls between pieces of its work; it returns whether to stop.
        read_rate: bytes of a backlog for each second.
        polls: the requests for a poll.
    """

    def __init__(
        self,
        make: Callable[[Callable[[], bool]], HostWatch],
        structure: Structure,
        *,
        read_rate: int,
        pulse: Pulse,
        stop: threading.Event,
        polls: Polls,
    ) -> None:
        self.calls = ThreadCalls()
        """The file of Kafka that is being read."""
        self.error: Exception | None = None
        """The reason why the thread ended, if it was not stopped."""
        self._pace = BacklogPace(read_rate, POLL_BYTES)
        self._pulse = pulse
        self._stop = stop
        self._polls = polls
        self._replaced = threading.Event()
        self.structure = structure
        self.host_watch = make(self._should_stop)
        self.thread = threading.Thread(target=self._run, daemon=True, name="watcher")

    @property
    def alive(self) -> bool:
        """Whether the thread has not ended."""
        return self.thread.is_alive()

    def replace(self) -> None:
        """Stop this thread as soon as its call returns, because another one does its work from now on."""
        self._replaced.set()

    def _run(self) -> None:
        self.calls = calls_of_this_thread()
        try:
            while not self._ends():
                self._poll()
        except FencedError:
            log.info("a replaced watcher ends, because its call has returned")
        except Exception as error:  # noqa: BLE001 - the thread that checks this one raises it
            self.error = error
        finally:
            self._close()

    def start(self) -> None:
        """Start the thread."""
        self.thread.start()

    def _should_stop(self) -> bool:
        self._pulse.beat()
        return self._ends()

    def _ends(self) -> bool:
        return self._stop.is_set() or self._replaced.is_set()

    def _poll(self) -> None:
        watcher, began = self.host_watch.watcher, time.monotonic()
        with self._polls.polling():
            more = watcher.poll(self.structure.take(), self._pace.budget(began))
        self.host_watch.host_status.refresh()
        self._pulse.beat()
        ended = time.monotonic()
        if watcher.backlog_bytes:
            self._pace.read(watcher.backlog_bytes, began, ended)
        if more:
            self._stop.wait(min(self._pace.rest(ended), LEAST_SECONDS))
        else:
            self._polls.rest(LEAST_SECONDS if watcher.restless else REST_SECONDS)
            self._stop.wait(max(0.0, LEAST_SECONDS - (time.monotonic() - began)))

    def _close(self) -> None:
        try:
            self.host_watch.watcher.close()
        except (SegtailError, OSError) as error:
            self.error = self.error or error
        self.structure.stop()


@dataclass(frozen=True, slots=True)
class HostWatch:
    """The parts that poll the log dirs. Others replace them, all together, if one of their calls does not return."""

    watcher: Watcher
    cluster: ClusterView
    host_status: HostStatus


class Polls:
    """The polls that are requested, begun and done. The watcher's thread, which polls, and threads that request a poll share it."""

    def __init__(self) -> None:
        self._wanted = threading.Event()
        self._changed = threading.Condition()  # protects the numbers
        self._begun = 0
        self._done = 0  # the last poll that has ended

    def want(self) -> None:
        """Request that the next poll begins at once."""
        self._wanted.set()

    def request(self, seconds: float) -> bool:
        """Wait for a poll that begins after this call. Returns whether it ended within so many seconds.

        Before the first poll it does not wait, because there may be no watcher to begin one.
        """
        with self._changed:
            wanted = self._begun + 1
            self.want()
            return self._begun > 0 and self._changed.wait_for(lambda: self._done >= wanted, seconds)

    def rest(self, seconds: float) -> None:
        """Wait so long, or until a poll is requested. Only the watcher's thread calls it."""
        self._wanted.wait(seconds)

    @contextmanager
    def polling(self) -> Iterator[None]:
        """Count the body as one poll, of the watcher's thread. It and the one that replaces it may both be in a poll at the same time."""
        with self._changed:
            self._begun += 1
            number = self._begun
            self._wanted.clear()
        yield
        with self._changed:
            self._done = max(self._done, number)
            self._changed.notify_all()


class BacklogPace:
    """Limits how fast a backlog is read: at most half of the time and at most a given rate. New data is read as usual.

    Only one thread uses it. All times are seconds of a monotonic clock.

    Args:
        rate: bytes per second.
        burst: the most bytes that are read without a pause.
    """

    def __init__(self, rate: int, burst: int) -> None:
        self._rate = rate
        self._burst = max(1, min(burst, rate // 2))
        self._again_at = 0.0

    def budget(self, now: float) -> int:
        """How many bytes of a backlog may be read now."""
        return self._burst if now >= self._again_at else 0

    def read(self, size: int, began: float, ended: float) -> None:
        """Note that this many bytes were read between the two times."""
        took = ended - began
        self._again_at = ended + max(min(took, BACKLOG_PAUSE_SECONDS), size / self._rate - took)

    def rest(self, now: float) -> float:
        """Seconds until more of the backlog may be read."""
        return max(0.0, self._again_at - now)
