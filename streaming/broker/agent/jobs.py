"""What an agent remembers of the jobs that read it, while it runs: where each began, how far it has come, and which of its runs is served.

Nothing of it is needed: a job that is not known begins again, at what it has counted.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from streaming.broker.journal.journal import Begun, Journal

MOST_JOBS = 32
"""The most jobs of one principal. One more replaces the one that was heard least lately, which begins again if it comes back."""

OWNED_SECONDS = 60.0
"""After this long without a request from the run that is served, an earlier one may take over. A twin is reported for the same time."""

READS_SECONDS = 60.0
"""After this long without a request nothing waits for a job any more."""

_MOST_RUNS = 64
_MOST_PRINCIPALS = 256


class Jobs:
    """All jobs, each of one principal. Thread-safe.

    Only one run of a job's query is served: of two that took turns, each would lose what the other has. A run that is not known takes over
    at once: it is a query that was started again, and the run before it is dead. If a run that was replaced still sends requests, both are
    alive, for example because a checkpoint was copied.

    Args:
        journal: the agent's id of this process.
        clock: seconds of a monotonic clock.
    """

    def __init__(self, journal: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._journal = journal
        self._clock = clock
        self._lock = threading.Lock()
        self._of: dict[str, dict[str, _Job]] = {}
        self._beginnings = 0
        self._waiting: set[tuple[str, str]] = set()

    def claim(self, principal: str, job: str, run: str) -> bool:
        """Whether a run that sends a request is served, or is from now on."""
        now = self._clock()
        with self._lock:
            known = self._known(principal, job)
            if known is None:
                self._add(principal, job, _Job(run, now))
                return True
            if known.run != run:
                if run in known.earlier and now - known.heard_at < OWNED_SECONDS:
                    known.twin_at = now
                    return False
                known.earlier = [*[each for each in known.earlier if each != run][-_MOST_RUNS:], known.run]
                known.run, known.begun = run, None
            known.heard_at = now
            return True

    def begins(self, principal: str, job: str, run: str, watcher: object) -> bool:
        """Whether the beginning of a run was asked for, of the present watcher unless it is published."""
        with self._lock:
            known = self._of_run(principal, job, run)
            if known is None or known.begun is None:
                return False
            return known.begun.done.is_set() or known.watcher is watcher

    def note_beginning(self, principal: str, job: str, run: str, begun: Begun, watcher: object) -> None:
        """Note that the beginning of a run was asked for."""
        with self._lock:
            known = self._of_run(principal, job, run)
            if known is not None:
                self._beginnings += 1
                known.begun, known.watcher, known.number, known.after = begun, watcher, self._beginnings, -1

    def forget(self, principal: str, job: str, run: str) -> None:
        """Forget where a run began: it lacks what is not there any more, and begins again."""
        with self._lock:
            known = self._of_run(principal, job, run)
            if known is not None:
                known.begun = None

    def place(self, principal: str, job: str, run: str) -> Place | None:
        """Where a run is, None before its beginning is published."""
        with self._lock:
            known = self._of_run(principal, job, run)
            if known is None or known.begun is None or not known.begun.done.is_set():
                return None
            return Place(self._name(known), known.begun.seq)

    def journal(self, principal: str, job: str) -> str:
        """The journal of a job's present run, as its rows name it; the agent's own id if it has not begun."""
        with self._lock:
            known = self._known(principal, job)
            return self._journal if known is None or known.begun is None else self._name(known)

    def note_after(self, principal: str, job: str, run: str, after: int) -> None:
        """Note that a run has everything up to a seq."""
        with self._lock:
            known = self._of_run(principal, job, run)
            if known is not None:
                known.after = after

    def furthest(self) -> int:
        """Up to which seq the job that has come furthest has everything, of those that were heard lately; -1 if there is none."""
        since = self._clock() - READS_SECONDS
        with self._lock:
            lately = (each for jobs in self._of.values() for each in jobs.values() if each.heard_at >= since)
            return max((max(each.after, -1 if each.begun is None else each.begun.seq) for each in lately), default=-1)

    def twins(self) -> list[str]:
        """Jobs with requests from two runs lately."""
        now = self._clock()
        with self._lock:
            each = ((name, job) for jobs in self._of.values() for name, job in jobs.items())
            return sorted({name for name, job in each if job.twin_at is not None and now - job.twin_at < OWNED_SECONDS})

    def may_wait(self, principal: str, job: str) -> bool:
        """Whether a plan of a job may wait: only one does at a time, so that no job keeps many threads. `waited` ends it."""
        with self._lock:
            if (principal, job) in self._waiting:
                return False
            self._waiting.add((principal, job))
            return True

    def waited(self, principal: str, job: str) -> None:
        """The plan that might wait has ended."""
        with self._lock:
            self._waiting.discard((principal, job))

    # --- with the lock

    def _name(self, job: _Job) -> str:
        return f"{self._journal}.{job.number}"

    def _known(self, principal: str, job: str) -> _Job | None:
        return self._of.get(principal, {}).get(job)

    def _of_run(self, principal: str, job: str, run: str) -> _Job | None:
        known = self._known(principal, job)
        return known if known is not None and known.run == run else None

    def _add(self, principal: str, job: str, added: _Job) -> None:
        jobs = self._of.setdefault(principal, {})
        if len(jobs) >= MOST_JOBS:
            del jobs[min(jobs, key=lambda each: jobs[each].heard_at)]
        jobs[job] = added
        if len(self._of) > _MOST_PRINCIPALS:
            silent = min(self._of, key=lambda each: max(job.heard_at for job in self._of[each].values()))
            del self._of[silent]


@dataclass(slots=True)
class _Job:
    run: str
    heard_at: float
    earlier: list[str] = field(default_factory=list)
    twin_at: float | None = None  # when a request of an earlier run was last refused
    begun: Begun | None = None
    watcher: object = None  # the one that was asked for the beginning
    number: int = 0  # of the beginning
    after: int = -1  # what the job has


@dataclass(frozen=True, slots=True)
class Place:
    """Where a run of a job is: its ``journal``, the agent's with the number of the beginning, and the seq behind which that lies."""

    journal: str
    begun: int


def is_full(journal: Journal, jobs: Jobs) -> bool:
    """Whether so much waits for the job that has come furthest that no more has to be read of logs: Kafka keeps it."""
    return journal.size_after(jobs.furthest()) >= journal.full_bytes
