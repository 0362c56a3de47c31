"""The watcher: follows the active segment of every log at its own pace, and publishes what it finds.

Events of the file system are hints, ``stat`` is the truth: a lost hint costs latency, never data.
"""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from streaming.broker.disk.availability import LogDirs
from streaming.broker.disk.log_inventory import ScannedTimes
from streaming.broker.disk.opening import bytes_read
from streaming.broker.disk.segment_files import read_leader_epochs
from streaming.broker.journal.census import census
from streaming.broker.journal.journal import Begun, Journal
from streaming.broker.journal.known_producers import KnownProducers
from streaming.broker.journal.scan_cache import ScanCache
from streaming.broker.watcher.beginnings import Beginning
from streaming.broker.watcher.cluster_knowledge import Cluster
from streaming.broker.watcher.coordinator_replay import EntryReplays
from streaming.broker.watcher.departures import ListingResult
from streaming.broker.watcher.found_events import FoundPublisher
from streaming.broker.watcher.grown_logs import SLICE_BYTES, GrownLogs, Publisher
from streaming.broker.watcher.offset_checkpoints import RecoveryPositions
from streaming.broker.watcher.open_at import OpenReplays
from streaming.broker.watcher.ordinary_growth import FEW_LOGS, OrdinaryReader
from streaming.broker.watcher.reading import GrowthReader, Noting
from streaming.broker.watcher.registry import EVERYTHING, LogRegistry, Scope
from streaming.broker.watcher.replaying import Replaying
from streaming.broker.watcher.tail import Tail
from streaming.broker.watcher.timers import is_due
from streaming.broker.watcher.unreadable import StuckTail
from streaming.common.catalog import Changes, Version
from streaming.common.event_row import Event
from streaming.common.log_key import LogKey
from streaming.common.rows import Kind
from streaming.kafka.formats.metadata_partitions import UncleanElection
from streaming.rules.whereabouts import place, topic_numbers

log = logging.getLogger(__name__)

LOG_MS = 600_000
"""How long an election waits for its log to be found, or to be readable again."""

EPOCH_MS = 10_000
"""How long it waits for `leader-epoch-checkpoint`, which a leader writes when it begins to lead."""

RESCAN_MS = 60_000
"""How often everything is listed again."""

LISTING_MS = 1_000
"""The shortest time between two listings of the log dirs while directories come and go in them."""

POLL_BYTES = 128 << 20
"""How many bytes of backlogs are read in one poll."""

LIVE_SHARE = 8
"""Up to so many times `POLL_BYTES` are read of live logs in one poll: a plan lacks the bytes that are left for the next poll."""


class Watcher:
    """Follows the logs. One thread calls `poll` again and again. Others may call `begin`, `check_all` and methods that only read."""

    def __init__(
        self,
        log_dirs: LogDirs,
        journal: Journal,
        cluster: Cluster,
        clock_ms: Callable[[], int],
        *,
        producers_limit: int,
        redact: Callable[[str], str] = str,
        attached: bool,
        should_stop: Callable[[], bool] = bool,
        scope: Scope = EVERYTHING,
        noting: Noting | None = None,
        few_logs: int = FEW_LOGS,
        cache: ScanCache | None = None,
        is_full: Callable[[], bool] = bool,
    ) -> None:
        """Go on where the logs stand in the journal, if a watcher before has published any.

        Args:
            producers_limit: most producers to remember of each log.
            redact: returns the text that replaces a transactional id in published events.
            attached: a watcher before has published logs. Until then nothing is, because the first job decides where it wants them to
                begin.
            should_stop: whether a poll has to end early, with what it has published. It is called between pieces of work that take a second
                at most, so each call is a sign of life.
            scope: which logs are watched, and how thoroughly.
            noting: is called with every range that is read.
            few_logs: so many ordinary logs that have grown are read one by one, more of them in one pass.
            cache: what was found out of closed segments before.
            is_full: whether so much that is published waits for jobs that no more has to be read.
        """
        self.log_dirs = log_dirs
        self.journal = journal
        self._cluster = cluster
        self._clock_ms = clock_ms
        self._once = scope.once
        self._attached = attached
        reading = GrowthReader(cluster, clock_ms, redact, noting)
        self._cache = ScanCache(None) if cache is None else cache
        self._scanned = ScannedTimes(self._cache.times())
        self._unclean = UncleanElections(cluster, clock_ms)
        self._inventories = FoundPublisher(log_dirs, cluster, clock_ms, self._scanned, once=scope.once)
        self._registry = LogRegistry(
            log_dirs,
            journal.cursors(),
            cluster,
            lambda log: KnownProducers(producers_limit, journal.producers(log)),
            clock_ms,
            reading.buffer,
            should_stop,
            scope,
        )
        self._should_stop = should_stop
        self._is_full = is_full
        self._replaying = Replaying([OpenReplays(), EntryReplays(redact)], self._is_watched)
        self._publisher = Publisher(journal, cluster, self._replaying)
        ordinary = OrdinaryReader(cluster, clock_ms, noting, reading.buffer)
        self._grown = GrownLogs(
            self._registry,
            reading,
            ordinary,
            self._publisher,
            self._replaying,
            should_stop,
            is_full=is_full,
            clock_ms=clock_ms,
            few_logs=few_logs,
        )
        self.backlog_bytes = 0
        """Bytes of logs that the last poll read besides new appends."""
        self._waiting: queue.SimpleQueue[_Waiting] = queue.SimpleQueue()
        self._asked_lock = threading.Lock()
        self._requested = 1  # how often it was requested to check all logs; the start is the first time
        self._answered = 0
        self._log_dirs_version = log_dirs.version  # of the available log dirs, as the registry knows them
        self._directories_changed = False  # directories have come or gone since the log dirs were listed
        # log dirs that the last census left out: that of an earlier process any of them, and other agents may have watched some
        self._left_out = frozenset(each.path for each in log_dirs) if attached else frozenset()
        self._next_rescan = self._next_listing = self._next_release = 0

    # --- called from other threads

    @property
    def caught_up(self) -> bool:
        """Whether everything is published that was there at the last beginning or registration."""
        return self._answered == self._requested

    @property
    def restless(self) -> bool:
        """Whether another poll soon may lead to something, though nothing has grown."""
        return not self.caught_up or any(tail.unsure for tail in self._registry.tails.values())

    def begin(self, beginning: Beginning) -> Begun:
        """Publish all logs from the beginning that a job wants. The next poll does it."""
        begun = Begun()
        self._waiting.put(_Waiting(beginning, begun))
        self.check_all()
        return begun

    def check_all(self) -> None:
        """Check everything again that is there now. See `caught_up`."""
        with self._asked_lock:
            self._requested += 1

    def doubts(self) -> dict[Doubt, int]:
        """How many files besides the segments could not be believed so far, by their kind."""
        return {
            Doubt.PRODUCER_SNAPSHOT: self._registry.watched.doubts,
            Doubt.TIME_INDEX: self._inventories.inventory.wrong_time_indexes,
            Doubt.CHECKPOINT: self._inventories.checkpoints.unreadable,
        }

    def decided(self, versions: Iterable[Version]) -> Changes | None:
        """The changes of the catalog, as `streaming.common.catalog.Editions.since` returns them."""
        return self._inventories.decided.editions.since(versions)

    def checkpoints_not_understood(self) -> list[Path]:
        """The offset checkpoints that cannot be read or are damaged, so that their offsets are not known."""
        return self._inventories.checkpoints.not_understood

    def unreadable(self) -> list[StuckTail]:
        """The logs that could not be read at the last try, each once."""
        return self._registry.unreadable()

    def unseen(self) -> list[Path]:
        """The log dirs whose logs are not known now."""
        return self._registry.listing.unseen()

    def tails(self) -> list[Tail]:
        """The logs that are watched at this moment, as `WatchedLogs.all` returns them."""
        return self._registry.all()

    @property
    def recovery(self) -> RecoveryPositions:
        """The recovery points of the logs."""
        return self._inventories.decided.recovery

    # --- the loop's body

    def poll(self, hints: set[Path], budget: int | None = None) -> bool:
        """Check all logs once, read what has grown, publish it. Returns whether there is more to do at once.

        Args:
            budget: how many bytes of backlogs may be read, `POLL_BYTES` if not given; a poll reads at most one piece of a log beyond it.
                New appends are read in any case.

        Raises:
            FencedError: another watcher has replaced this one.
        """
        now, requested = self._clock_ms(), self._requested
        self._cluster.refresh()
        if self._log_dirs_version != self.log_dirs.version:
            self._log_dirs_version = self.log_dirs.version
            self._registry.watched.part(self.log_dirs)
            self._directories_changed, self._next_listing = True, now
        budget, before = POLL_BYTES if budget is None else budget, bytes_read()
        began = self._begin_waiting()
        if self._attached:
            self._look_around(hints, now, rescanned=began)
        looked = bytes_read() - before
        read = 0 if self._is_full() else self._grown.read(max(0, budget - looked), LIVE_SHARE * POLL_BYTES)
        self.backlog_bytes = looked + read
        full = self._is_full()
        more = not full and self._grown.more
        self._directories_changed, self._grown.lost_directories = self._directories_changed or self._grown.lost_directories, False
        if self._attached:
            if not self._once:  # a single reading does not publish what has happened before it
                self._publisher.publish(self._unclean.events(self._registry.tails), ())
            more = self._let_go(now) or more
            more = (self._publish_found_events(full=full) and not full) or more
            if self._answered != requested and not (full or more) and not any(tail.unsure for tail in self._registry.tails.values()):
                if not self._answered and not any(tail.away or not tail.resumed for tail in self.tails()):
                    self._inventories.forget_others(self.tails())
                self._answered = requested
            more = self._scan(budget - self.backlog_bytes) or more  # no job waits for that
        return more

    def close(self) -> None:
        """Close every file. Another watcher goes on from what is published."""
        for tail in self.tails():
            tail.close()

    # --- which logs there are

    def _begin_waiting(self) -> bool:
        """Publish the requested beginnings, one after the other: for each job a log appears where this job begins."""
        began = False
        while not self._waiting.empty():
            if self._attached:  # events of the time before belong to the present jobs
                self._publisher.publish(*self._registry.before_beginning())
            each, began = self._waiting.get(), True
            self._attached = True
            found = self._registry.rescan(each.beginning)
            self._publisher.publish([*found.events, self._census_anew()], self.tails(), found.gone, each.begun)
        return began

    def _census_anew(self) -> Event:
        """A census before everything is published again: the list of segments of each log comes next."""
        for tail in self.tails():
            tail.publish_again()
        return self._census()

    def _census(self) -> Event:
        self._left_out = frozenset(self.unseen())
        ids = self._cluster.topic_ids()
        places = (place(log_dir.broker, log_dir.path) for log_dir in self._registry.listing.seen())
        return census(self._registry.logs(), places, self._left_out, None if ids is None else topic_numbers(ids))

    def _look_around(self, hints: set[Path], now: int, *, rescanned: bool) -> None:
        if rescanned:
            self._next_rescan = now + RESCAN_MS
        elif is_due(now, self._next_rescan, RESCAN_MS):
            self._next_rescan = now + RESCAN_MS
            self._publish_listing(self._registry.rescan())
            self._replaying.retry()
        else:
            self._directories_changed = self._registry.take_hints(hints) or self._directories_changed
            if self._directories_changed and is_due(now, self._next_listing, LISTING_MS):
                self._directories_changed, self._next_listing = False, now + LISTING_MS
                self._publish_listing(self._registry.rescan(thorough=False))
        if self._left_out - set(self.unseen()):  # a log that only an earlier journal knew may have left it: no event shows that
            self._publisher.publish([self._census()], self.tails())

    def _let_go(self, now: int) -> bool:
        """Give up files and logs of which everything readable was read; returns whether to list again at once."""
        if is_due(now, self._next_release, LISTING_MS):
            self._next_release = now + LISTING_MS
            released = self._registry.release()
            if released:
                self._publisher.publish(released, self.tails())
        departed = self._registry.departures.departed()
        if not departed.gone:
            return False
        self._publisher.publish(departed.events, (), departed.gone)
        if departed.again:
            self._directories_changed, self._next_listing = True, 0
        return departed.again

    def _publish_listing(self, result: ListingResult) -> None:
        log.debug("log dirs are listed", extra={"logs": len(self.tails()), "events": len(result.events), "gone": len(result.gone)})
        self._publisher.publish(result.events, self.tails(), result.gone)

    # --- what is published besides

    def _is_watched(self, tail: Tail) -> bool:
        return self._registry.tails.get(tail.cursor.log) is tail

    def _is_there(self, tail: Tail) -> bool:
        return self._is_watched(tail) and not tail.away

    def _publish_found_events(self, *, full: bool) -> bool:
        """Publish what has changed besides appends. Returns whether some logs still have to be published with all their values."""
        soon = not self.caught_up and not self._grown.has_backlog  # logs that are read from a backlog meanwhile have to be checked again
        events, more = self._inventories.round(self.tails(), self._registry.listing.moving, at_once=soon, full=full)
        if events:
            self._publisher.publish(events, ())
        return more

    def _scan(self, budget: int) -> bool:
        """Find out the timestamps of closed segments whose time index does not contain them. Returns whether there is more to scan."""
        began, read = bytes_read(), 0
        while self._inventories.unfinished and read < budget and not self._should_stop():
            self._inventories.scan(min(SLICE_BYTES, budget - read), self._is_there)
            read = bytes_read() - began
        self.backlog_bytes += read
        found, gone = self._scanned.changes()
        if found or gone:
            self._cache.keep_times(found, gone)
        return self._inventories.unfinished


class UncleanElections:
    """The elections that are not published yet. Only the watcher's thread calls it."""

    def __init__(self, cluster: Cluster, clock_ms: Callable[[], int]) -> None:
        self._cluster = cluster
        self._clock_ms = clock_ms
        self._pending: list[_Pending] = []

    def events(self, tails: Mapping[LogKey, Tail]) -> list[Event]:
        """The events that can be published now."""
        now = self._clock_ms()
        self._pending += [_Pending(election, now) for election in self._cluster.unclean_elections()]
        pending, self._pending = self._pending, []
        events = []
        for each in pending:
            event = self._event(each, tails, now)
            if event is not None:
                events.append(event)
        return events

    def _event(self, pending: _Pending, tails: Mapping[LogKey, Tail], now: int) -> Event | None:
        election, waited = pending.election, now - pending.since_ms
        tail = _tail_of(election, tails)
        if tail is None or tail.away:
            if waited < LOG_MS:
                self._pending.append(pending)
            else:
                log.warning(
                    "a leader was elected that is asked to recover, and its log is not watched: it is not counted", extra=_named(election)
                )
            return None
        start = _start_of(election, tail)
        if start is None and waited < EPOCH_MS:
            self._pending.append(pending)
            return None
        log.warning("a leader was elected that is asked to recover", extra={**_named(election), "offset": -1 if start is None else start})
        return replace(
            tail.event(Kind.UNCLEAN),
            leader=election.leader,
            leader_epoch=election.leader_epoch,
            next_offset=-1 if start is None else start,
            seen_at=election.timestamp,
            reason=",".join(map(str, election.in_sync)),
        )


@dataclass(frozen=True, slots=True)
class _Pending:
    election: UncleanElection
    since_ms: int


def _tail_of(election: UncleanElection, tails: Mapping[LogKey, Tail]) -> Tail | None:
    for topic_id in (election.topic_id, ""):
        tail = tails.get(LogKey(election.leader, election.topic, election.partition, topic_id))
        if tail is not None:
            return tail
    return None


def _named(election: UncleanElection) -> dict[str, object]:
    return {"log": f"{election.topic}-{election.partition}", "broker": election.leader, "leader_epoch": election.leader_epoch}


def _start_of(election: UncleanElection, tail: Tail) -> int | None:
    """The offset where the new epoch begins. If nothing was appended in it, a later epoch has replaced its entry."""
    try:
        entries = read_leader_epochs(tail.partition.path)
    except OSError as error:
        log.info("leader epochs cannot be read", extra={"path": tail.path, "error": str(error)})
        return None
    return next((entry.start_offset for entry in entries if entry.epoch >= election.leader_epoch), None)


@dataclass(frozen=True, slots=True)
class _Waiting:
    beginning: Beginning
    begun: Begun


class Doubt(StrEnum):
    """A kind of file that could not be believed, so that a fallback was used, where there is one."""

    PRODUCER_SNAPSHOT = "producer_snapshot"  # an older one, or the log itself, showed what was open
    TIME_INDEX = "time_index"  # its segment was scanned
    CHECKPOINT = "checkpoint"  # there is no fallback for its offsets: they are not known
    CONFIGURATION = "configuration"  # another level, or the default, stands in
    RECORD_TIME = "record_time"  # of a batch that is too large to be opened: there is no fallback
