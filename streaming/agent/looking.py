"""What looks at the log dirs: the watcher with its view of the cluster and its overview, turned on a thread of its own."""

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from streaming.agent.cluster import ClusterView
from streaming.agent.health import Pulse
from streaming.agent.overview import Overview
from streaming.agent.pace import Pace
from streaming.agent.polls import Polls
from streaming.disk.calls import Calls, calls_of_this_thread
from streaming.errors import FencedError, SegtailError
from streaming.watcher.structure import Structure
from streaming.watcher.watcher import TURN_BYTES, Watcher

log = logging.getLogger(__name__)

REST_SECONDS = 8.0
"""The longest time between two looks: a job that plans is looked for first, so that this decides about no page.

Of 15 seconds it is a little more than half. That makes one look between two plans, and the next plan finds no more than half to read.
"""

LEAST_SECONDS = 0.2
"""Two looks begin no sooner one after the other, however many want one."""


@dataclass(frozen=True, slots=True)
class Looking:
    """The parts that look at the log dirs. Others take their place, all together, where a call of theirs does not come back."""

    watcher: Watcher
    cluster: ClusterView
    overview: Overview


class LookingThread:
    """Turns a watcher until ``stop`` is set, it is replaced, or it fails. Call `start`.

    Args:
        make: makes the parts, given what the watcher asks between pieces of its work.
        read_rate: bytes a second of a backlog.
        polls: who wants it to look now.
    """

    def __init__(
        self,
        make: Callable[[Callable[[], bool]], Looking],
        structure: Structure,
        *,
        read_rate: int,
        pulse: Pulse,
        stop: threading.Event,
        polls: Polls,
    ) -> None:
        self.calls = Calls()
        """At which of Kafka's files it is."""
        self.error: Exception | None = None
        """Why it ended, where nobody told it to."""
        self._pace = Pace(read_rate, TURN_BYTES)
        self._pulse = pulse
        self._stop = stop
        self._polls = polls
        self._replaced = threading.Event()
        self.structure = structure
        self.looking = make(self._should_stop)
        self.thread = threading.Thread(target=self._run, daemon=True, name="watcher")

    @property
    def alive(self) -> bool:
        """Whether it has not ended."""
        return self.thread.is_alive()

    def replace(self) -> None:
        """Another one does its work from now on: it ends as soon as its call comes back."""
        self._replaced.set()

    def _run(self) -> None:
        self.calls = calls_of_this_thread()
        try:
            self.structure.start()
            while not self._ends():
                self._turn()
        except FencedError:
            log.info("a watcher that was replaced ends: its call has come back")
        except Exception as error:  # noqa: BLE001 - whoever looks after this thread raises it
            self.error = error
        finally:
            self._close()

    def start(self) -> None:
        """Begin."""
        self.thread.start()

    def _should_stop(self) -> bool:
        self._pulse.beat()
        return self._ends()

    def _ends(self) -> bool:
        return self._stop.is_set() or self._replaced.is_set()

    def _turn(self) -> None:
        watcher, began = self.looking.watcher, time.monotonic()
        with self._polls.looking():
            more = watcher.turn(self.structure.take(), self._pace.budget(began))
        self.looking.overview.refresh()
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
            if self._replaced.is_set():
                self.looking.watcher.abandon()
            else:
                self.looking.watcher.close()
        except (SegtailError, OSError) as error:
            self.error = self.error or error
        self.structure.stop()
