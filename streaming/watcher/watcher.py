"""The watcher: follows the active segment of every log at its own pace, and publishes what it sees.

Events of the file system are hints, ``stat`` is the truth: a lost hint costs latency, never data.
"""

import logging
import queue
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from streaming.catalog.changes import Changes, Version
from streaming.disk.availability import LogDirs
from streaming.disk.reads import bytes_read
from streaming.disk.scanned import ScannedTimes
from streaming.watcher.census import census
from streaming.watcher.cluster import Cluster
from streaming.watcher.events import Event, LogId, Place, Replays
from streaming.watcher.journal import Journal
from streaming.watcher.leading import Leading
from streaming.watcher.producers import KnownProducers, Pages
from streaming.watcher.queues import Queue, unread_bytes
from streaming.watcher.reading import Reading, refusal
from streaming.watcher.registering import Registration
from streaming.watcher.replaying import Replaying
from streaming.watcher.rereading import Rereading, chained
from streaming.watcher.roster import Beginning, Found, Roster
from streaming.watcher.scope import EVERYTHING, Scope
from streaming.watcher.stopping import failed
from streaming.watcher.tail import Tail
from streaming.watcher.telling import Teller
from streaming.watcher.timers import is_due
from streaming.watcher.unclean import UncleanElections
from streaming.watcher.unreadable import Unreadable

__all__ = ["Beginning", "Watcher"]

log = logging.getLogger(__name__)

SURVEY_MS = 60_000
"""How often everything is listed anew."""

GLANCE_MS = 1_000
"""How often the log dirs are listed at most while directories come and go in them."""

TURN_BYTES = 128 << 20
"""How much of a backlog is read before the watcher looks around again."""

LIVE_SHARE = 8
"""So many times as much is read in a turn of what grows under the watcher's eyes: a plan misses what is left for the next turn."""

SLICE_BYTES = 32 << 20
"""How much of a backlog is read before it is published."""

LIVE_BYTES = 256 << 20
"""A log that was caught up with and has more than that to read by now is in backlog again."""

NEW_BYTES = 1 << 20
"""A log that is met for the first time is no backlog if it has no more than that."""


PIECE_BYTES = 4 << 10
"""What a piece of a log counts for at least, or logs in which there is nothing to read would cost nothing."""


class Doubt(StrEnum):
    """What could not be believed, so that something else stood in for it."""

    PRODUCER_SNAPSHOT = "producer_snapshot"  # an older one, or the log itself, told what was open
    TIME_INDEX = "time_index"  # its segment was scanned
    CHECKPOINT = "checkpoint"  # nothing stands in for its offsets: they are not known
    CONFIGURATION = "configuration"  # the next level's value counts


@dataclass(frozen=True, slots=True)
class _Waiting:
    beginning: Beginning
    registers: Registration | None
    published: threading.Event


@dataclass(frozen=True, slots=True)
class _Publication:
    """What goes into the journal in one transaction, and who is told when it stands there."""

    events: Sequence[Event]
    places: Sequence[tuple[Tail, Place]]
    gone: Sequence[LogId]
    pages: Sequence[Pages]
    registers: Registration | None
    published: threading.Event | None


def _never() -> bool:
    """Nobody asks the watcher to stop."""
    return False


class Watcher:
    """One thread calls `turn` again and again; `begin`, `greet` and what only looks may be called from others."""

    def __init__(
        self,
        log_dirs: LogDirs,
        journal: Journal,
        cluster: Cluster,
        clock_ms: Callable[[], int],
        *,
        producers_limit: int,
        told_as: Callable[[str], str] = str,
        attached: bool,
        should_stop: Callable[[], bool] = _never,
        scope: Scope = EVERYTHING,
    ) -> None:
        """Take up what the journal keeps.

        Args:
            producers_limit: most producers to remember of each log.
            told_as: what stands for a transactional id in what is published.
            attached: somebody reads the journal already. Until then nothing is published: a first reader says from where on it wants the
                logs.
            should_stop: asked between pieces of work that take a second at most, so being asked is a sign of life; whether a turn is to end
                early, with what it has published.
            scope: which logs it takes up, and how thoroughly.
        """
        self.log_dirs = log_dirs
        self.journal = journal
        self._cluster = cluster
        self._clock_ms = clock_ms
        self._once = scope.once
        self._attached = attached
        self._reading = Reading(Leading(cluster, clock_ms), cluster.compacts, told_as, clock_ms)
        self._scanned = ScannedTimes(journal.scanned())
        self._unclean = UncleanElections(cluster, clock_ms)
        self._teller = Teller(log_dirs, cluster, clock_ms, self._scanned, once=scope.once)
        self._roster = Roster(
            log_dirs,
            journal.places(),
            cluster.has_topic,
            self._assigned,
            lambda log: KnownProducers(producers_limit, journal.producers(log, producers_limit)),
            clock_ms,
            self._reading.buffer,
            should_stop,
            scope,
        )
        self._should_stop = should_stop
        self._owed: _Publication | None = None  # what the journal could not be given yet
        self._replaying = Replaying(self._is_watched)
        self._rereading = Rereading(self._is_watched, told_as)
        self._live = Queue(self._is_read)  # logs that grow or come under our eyes: read at once
        self._backlog = Queue(self._is_read)
        self.backlog_bytes = 0
        """Bytes of logs that the last turn read besides what was new."""
        self._waiting: queue.SimpleQueue[_Waiting] = queue.SimpleQueue()
        self._asked_lock = threading.Lock()
        self._asked = 1  # how often somebody asked that all be looked at; the start is the first
        self._answered = 0
        self._log_dirs_version = log_dirs.version  # of which log dirs are available, as the roster knows it
        self._stirred = False  # directories have come or gone since the log dirs were listed
        self._missed: threading.Event | None = None  # some reader has missed what was forgotten: is set once that is made good
        self._next_survey = self._next_glance = self._next_release = 0

    # --- asked from other threads

    @property
    def caught_up(self) -> bool:
        """Whether everything is published that was there at the last beginning or greeting."""
        return self._answered == self._asked

    @property
    def restless(self) -> bool:
        """Whether another look soon may lead to something, though nothing has grown."""
        return not self.caught_up or any(tail.suspect is not None or tail.waits for tail in self._roster.tails.values())

    def begin(self, beginning: Beginning, consumer: str = "") -> threading.Event:
        """Publish again from where a new consumer wants to begin; done in the next turn.

        Args:
            consumer: its id, "" for one that has none. It is registered with its beginning, all at once: an agent that dies before has
                never heard of it.

        Returns:
            An event that is set once the beginning of every log is published.
        """
        published = threading.Event()
        self._waiting.put(_Waiting(beginning, Registration(consumer) if consumer else None, published))
        self.greet()
        return published

    def greet(self) -> None:
        """A known consumer starts: what is there by now is new to it until it has been looked at. See `caught_up`."""
        with self._asked_lock:
            self._asked += 1

    def appear_again(self) -> threading.Event:
        """A reader has missed a part of the journal: say again which logs there are, and what stands of each and is open in it.

        Returns:
            An event that is set once that is published, but for the lists of segments: they follow as soon as all logs are looked at again.
        """
        with self._asked_lock:
            if self._missed is None:
                self._missed = threading.Event()
            return self._missed

    def doubts(self) -> dict[Doubt, int]:
        """How many files beside the segments could not be believed so far, by what they are."""
        return {
            Doubt.PRODUCER_SNAPSHOT: self._roster.doubts,
            Doubt.TIME_INDEX: self._teller.wrong_time_indexes,
            Doubt.CHECKPOINT: self._teller.unreadable_checkpoints,
        }

    def decided(self, known: Iterable[Version]) -> Changes | None:
        """What is decided of the logs, as `streaming.catalog.editions.Editions.since` tells it."""
        return self._teller.decided.editions.since(known)

    def unreadable(self) -> list[Unreadable]:
        """The logs that could not be read at the last try, each once."""
        return self._roster.unreadable()

    def unseen(self) -> list[Path]:
        """The log dirs of which is not known what lies in them now."""
        return self._roster.unseen()

    def tails(self) -> list[Tail]:
        """The logs under watch at this moment."""
        return list(self._roster.tails.values())

    # --- the loop's body

    def turn(self, hints: set[Path], budget: int | None = None) -> bool:
        """Look around once, read what has grown, publish it. Returns whether there is more to do at once.

        Args:
            budget: how many bytes of a backlog may be read, `TURN_BYTES` if not given; a turn reads no more than one piece of a log beyond
                it. What is new is read in any case.

        Raises:
            JournalError: the journal cannot be written: nothing may be read on, or it would be lost.
        """
        now, asked = self._clock_ms(), self._asked
        self._write_owed()
        self._cluster.refresh()
        if self._log_dirs_version != self.log_dirs.version:
            self._log_dirs_version = self.log_dirs.version
            self._roster.part()
            self._stirred, self._next_glance = True, now
        budget, before = TURN_BYTES if budget is None else budget, bytes_read()
        began = self._begin_waiting()
        if self._attached:
            self._look_around(hints, now, surveyed=began)
        looked = bytes_read() - before
        more = self._read(max(0, budget - looked))
        self.backlog_bytes += looked
        if self._attached:
            if not self._once:  # what has happened before it is nothing that a single look tells
                self._publish(self._unclean.events(self._roster.tails), ())
            more = self._let_go() or more
            more = self._tell_found() or more
            self._note_caught_up(asked, more)
            more = self._scan(budget - self.backlog_bytes) or more  # nobody waits for that
        return more

    def close(self) -> None:
        """Keep the places and let go of every file."""
        if self._attached:
            self._publish([], self.tails())
        self.abandon()

    def abandon(self) -> None:
        """Let go of every file and keep nothing: another watcher goes on from the journal."""
        for tail in self.tails():
            tail.close()

    def _publish(
        self,
        events: Sequence[Event],
        tails: Iterable[Tail],
        gone: Sequence[LogId] = (),
        registers: Registration | None = None,
        published: threading.Event | None = None,
    ) -> None:
        self._write_owed()
        tails = list(tails)
        events = chained(events, tails)
        changed = [(tail, tail.place) for tail in tails if tail.place is not tail.kept]
        for tail, place in changed:
            if place.replay != Replays.NOT:
                self._replaying.put(tail)
            if place.reread:
                self._rereading.put(tail)
        pages = [pages for tail in tails if (pages := tail.producers.unwritten(tail.place.log)) is not None]
        if events or changed or gone or pages or registers is not None:
            self._owed = _Publication(events, changed, gone, pages, registers, published)
            self._write_owed()
        elif published is not None:
            published.set()

    def _write_owed(self) -> None:
        """Write what could not be written so far: places have moved on in memory, and nothing may come before what led there."""
        if self._owed is not None:
            owed = self._owed
            self.journal.publish(owed.events, [place for _, place in owed.places], owed.gone, owed.pages, owed.registers)
            self._owed = None
            for tail, place in owed.places:
                tail.kept = place
            if owed.published is not None:
                owed.published.set()

    # --- which logs there are

    def _begin_waiting(self) -> bool:
        """Publish the beginnings that were asked for, one after the other: a log appears for each reader where this one begins."""
        began = False
        while not self._waiting.empty():
            if self._attached:  # what is told of the time before belongs to those that are there
                self._publish(*self._roster.before_beginning())
            each, began = self._waiting.get(), True
            self._attached = True
            found = self._roster.survey(each.beginning)
            self._publish([*found.events, self._census()], self.tails(), found.gone, each.registers, each.published)
        return began

    def _census(self) -> Event:
        """Which logs there are; what stands of each is told next, by its list of segments."""
        for tail in self.tails():
            tail.tell_again()
        return census(self._roster.logs(), self.unseen())

    def _look_around(self, hints: set[Path], now: int, *, surveyed: bool) -> None:
        if surveyed:
            self._next_survey = now + SURVEY_MS
        elif is_due(now, self._next_survey, SURVEY_MS):
            self._next_survey = now + SURVEY_MS
            self._tell(self._roster.survey())
            self._replaying.retry()
            self._rereading.retry()
        else:
            self._stirred = self._roster.heed(hints) or self._stirred
            if self._stirred and is_due(now, self._next_glance, GLANCE_MS):
                self._stirred, self._next_glance = False, now + GLANCE_MS
                self._tell(self._roster.survey(thorough=False))
        with self._asked_lock:
            missed, self._missed = self._missed, None
        if missed is not None:
            self._publish([*self._roster.appear_again(), self._census()], self.tails(), published=missed)
        if is_due(now, self._next_release, GLANCE_MS):
            self._next_release = now + GLANCE_MS
            released = self._roster.release()
            if released:
                self._publish(released, self.tails())

    def _let_go(self) -> bool:
        """Say which logs are gone, all of which that could be read was read; returns whether to look again at once."""
        departed = self._roster.departed()
        if not departed.gone:
            return False
        self._publish(departed.events, (), departed.gone)
        if departed.again:
            self._stirred, self._next_glance = True, 0
        return departed.again

    def _tell(self, found: Found) -> None:
        self._publish(found.events, self.tails(), found.gone)

    # --- what has grown

    def _read(self, budget: int) -> bool:
        """Read what has grown, then some of the backlog. Returns whether there is more to read."""
        some = bool(self._live or self._backlog)
        for tail in self.tails():
            if not (some and (tail in self._live or tail in self._backlog)) and self._grown(tail):
                self._enqueue(tail)
        self._read_from(self._live, LIVE_SHARE * TURN_BYTES)
        replayed = self._replay(budget // 2 if self._backlog else budget)
        self.backlog_bytes = replayed + self._read_from(self._backlog, budget - replayed)
        return bool(self._live or self._backlog or self._replaying.ready or self._rereading.ready)

    def _replay(self, budget: int) -> int:
        """Find out what is open where nobody knows it yet, and publish that. Returns how many bytes that took."""
        began, read, steps = bytes_read(), 0, 0
        events: list[Event] = []
        tails: dict[Tail, None] = {}
        while read < budget and not self._should_stop():
            piece = min(SLICE_BYTES, budget - read)
            done = self._replaying.step(piece) or self._rereading.step(piece)
            if done is None:
                break
            tails[done[0]] = None
            events += done[1]
            steps += 1
            read = max(bytes_read() - began, steps * PIECE_BYTES)
        self._publish(events, tails)
        for tail in tails:
            if tail.new and not tail.place.held:  # it appeared, and may be read on now
                self._enqueue(tail)
        return read

    def _read_from(self, queue: Queue, budget: int) -> int:
        """Read what is queued, as much as the budget allows, and publish it slice by slice. Returns how many bytes that were."""
        began, read, pieces = bytes_read(), 0, 0
        while queue and read < budget and not self._should_stop():
            slice_bytes = min(SLICE_BYTES, budget - read)
            tails = queue.take(slice_bytes)
            self._read_some(tails, slice_bytes)
            pieces += len(tails)
            read = max(bytes_read() - began, pieces * PIECE_BYTES)
        return read

    def _read_some(self, tails: list[Tail], budget: int) -> None:
        if tails:
            done = self._reading.read(tails, budget)
            self._publish(done.events, tails)
            for tail in done.more:
                self._enqueue(tail)
            self._stirred = self._stirred or done.lost

    def _enqueue(self, tail: Tail) -> None:
        unread = unread_bytes(tail)
        tail.live = tail.live and unread <= LIVE_BYTES
        at_once = tail.live or (tail.new and unread <= NEW_BYTES)
        tail.new = False
        (self._live if at_once else self._backlog).put([tail])

    def _is_watched(self, tail: Tail) -> bool:
        return self._roster.tails.get(tail.place.log) is tail

    def _is_there(self, tail: Tail) -> bool:
        return self._is_watched(tail) and not tail.away

    def _is_read(self, tail: Tail) -> bool:
        return self._is_there(tail) and not tail.place.held

    def _grown(self, tail: Tail) -> bool:
        try:
            return self._reading.grown(tail)
        except OSError as error:
            if tail.trouble != str(error):
                tail.trouble = str(error)
                log.warning("log cannot be looked at", extra={"log": str(tail.place.log), "path": tail.path, "error": str(error)})
            tail.refused = refusal(tail, error)
            tail.close()
        except Exception as error:  # noqa: BLE001 - one log's bytes end no agent, whatever they lead to
            self._publish(failed(tail, error), [tail])
        return False

    def _assigned(self, log_id: LogId) -> str | None:
        state = self._cluster.partition(log_id)
        return None if state is None else state.directory(log_id.broker)

    def _tell_found(self) -> bool:
        """Tell what has changed besides what was appended. Returns whether there are logs of which everything has to be told yet."""
        soon = not self.caught_up and not self._backlog  # what is read of a backlog meanwhile has to be looked at again
        telling = self._teller.round(self.tails(), at_once=soon)
        if telling.events:
            self._publish(telling.events, ())
        return telling.more

    def _scan(self, budget: int) -> bool:
        """Find out the times of closed segments whose time index does not tell them. Returns whether there is more to scan."""
        began, read = bytes_read(), 0
        while self._teller.unfinished and read < budget and not self._should_stop():
            self._teller.scan(min(SLICE_BYTES, budget - read), self._is_there)
            read = bytes_read() - began
        self.backlog_bytes += read
        self._keep_scanned()
        return self._teller.unfinished

    def _keep_scanned(self) -> None:
        found, gone = self._scanned.changes()
        if found or gone:
            self.journal.keep_scanned(found, gone)

    def _note_caught_up(self, asked: int, more: bool) -> None:
        if self._answered != asked and not more and not any(tail.suspect or tail.waits for tail in self._roster.tails.values()):
            if not self._answered and not any(tail.away or not tail.resumed for tail in self.tails()):
                self._teller.forget_others(self.tails())
            self._answered = asked
