"""The watcher: finds the logs of its log dirs, follows each active segment, and publishes what it sees.

Events of the file system are hints, ``stat`` is the truth, and the loop runs at its own pace: a lost hint costs latency, never data.
"""

import logging
import queue
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from streaming.disk.logdirs import LogDir, Partition, list_partitions
from streaming.disk.segments import Segment, list_segments, log_start_offset
from streaming.kafka.names import DirState
from streaming.rows import Kind
from streaming.watcher.events import Event, LogId
from streaming.watcher.journal import Journal
from streaming.watcher.locate import StartFrom, start_spot
from streaming.watcher.locate import beginning as beginning_of
from streaming.watcher.reading import Reading
from streaming.watcher.resume import resume
from streaming.watcher.tail import EVERYTHING, Tail, log_id, place_at

log = logging.getLogger(__name__)

LOOK_MS = 200
"""How often logs that grew lately are looked at."""

COLD_LOOKS = 5
"""A log that has been quiet is looked at in every fifth look: 10,000 idle logs then cost about 10 ms a second."""

HOT_LOOKS = 50
"""A log counts as quiet after this many looks without growth."""

RESCAN_MS = 60_000
"""How often everything is listed anew; also bounds how long a descriptor of an unlinked file is held."""

ROUNDS_A_TURN = 16
"""How many windows of backlog a log may get before the watcher looks around again."""


class Cluster(Protocol):
    """What the metadata log says of a partition."""

    def refresh(self) -> None:
        """Read what was appended to the metadata logs."""

    def leader(self, log: LogId) -> tuple[int, int]:
        """(leader, leader epoch) as this log's broker knows it; (-2, -1) if not known."""

    def has_topic(self, log: LogId) -> bool | None:
        """Whether the topic still exists; None if not known."""


@dataclass(frozen=True, slots=True)
class Beginning:
    """A new consumer wants the logs from ``start_from`` on. ``resumed``: it knows these logs already, by another journal."""

    start_from: StartFrom
    resumed: bool


@dataclass(frozen=True, slots=True)
class _Waiting:
    beginning: Beginning
    enrol: Callable[[], None]
    published: threading.Event


def _nobody() -> None:
    """No consumer to enrol."""


class Watcher:
    """One thread calls `turn` again and again; `begin` and `picture` may be called from others."""

    def __init__(
        self, log_dirs: tuple[LogDir, ...], journal: Journal, cluster: Cluster, clock_ms: Callable[[], int], *, beat_ms: int, attached: bool
    ) -> None:
        """Take up what the journal keeps.

        Args:
            attached: somebody reads the journal already. Until then nothing is published: a first reader says from where on it wants the logs.
        """
        self.log_dirs = log_dirs
        self.journal = journal
        self.caught_up = False  # the first scan since the last beginning is complete, and a beat has told it
        self._cluster = cluster
        self._clock_ms = clock_ms
        self._beat_ms = beat_ms
        self._tails: dict[LogId, Tail] = {}
        self._kept = {place.log: place for place in journal.places()}
        self._attached = attached
        self._unreadable: set[Path] = set()
        self._reading = Reading(self._leads, clock_ms)
        self._beginnings: queue.SimpleQueue[_Waiting] = queue.SimpleQueue()
        self._heat: dict[LogId, int] = {}
        self._looks = 0
        self._next_rescan = 0
        self._next_beat = 0

    # --- asked from other threads

    def begin(self, beginning: Beginning, enrol: Callable[[], None] = _nobody) -> threading.Event:
        """Publish again from where a new consumer wants to begin; done in the next turn.

        Args:
            enrol: called right before that: only what is published from then on is this consumer's, and nothing older can come between.

        Returns:
            An event that is set once the beginning of every log is published.
        """
        published = threading.Event()
        self._beginnings.put(_Waiting(beginning, enrol, published))
        self.caught_up = False
        return published

    def greet(self) -> None:
        """A known consumer starts: bring a beat as soon as everything that is there has been read."""
        self.caught_up = False

    def tails(self) -> list[Tail]:
        """The logs under watch at this moment."""
        return list(self._tails.values())

    # --- the loop's body

    def turn(self, hints: set[Path]) -> bool:
        """Look around once, read what has grown, publish it. Returns whether there is more to do at once."""
        now = self._clock_ms()
        self._cluster.refresh()
        waiting = self._take_waiting()
        if waiting or (self._attached and now >= self._next_rescan):
            for each in waiting:
                each.enrol()
            self._rescan([each.beginning for each in waiting])
            for each in waiting:
                each.published.set()
            self._next_rescan = now + RESCAN_MS
        elif self._attached:
            self._heed(hints)
        more = self._read()
        if self._attached and (now >= self._next_beat if self.caught_up else not more and not self._suspects()):
            self._beat(now)
        return more

    def _suspects(self) -> bool:
        return any(tail.suspect >= 0 for tail in self._tails.values())

    def _take_waiting(self) -> list[_Waiting]:
        found = []
        while not self._beginnings.empty():
            found.append(self._beginnings.get())
        return found

    def _beat(self, now: int) -> None:
        self.caught_up = self._beginnings.empty()
        self.journal.publish([Event(kind=Kind.BEAT, settled=self.caught_up)], [tail.place for tail in self._tails.values()])
        # at multiples of the interval, so that all agents' beats share one micro-batch
        self._next_beat = (now // self._beat_ms + 1) * self._beat_ms

    # --- which logs there are

    def _rescan(self, beginnings: list[Beginning]) -> None:
        found = self._list()
        if self._missing(found):
            found = self._list()  # a move between log dirs shows a log nowhere for a moment
        gone = self._missing(found)
        events = [self._drop(missing) for missing in gone]
        for log_found, partition in found.items():
            try:
                events.extend(self._take_up(log_found, partition, beginnings))
            except OSError as error:  # gone or unreadable since it was listed: the next rescan tries again
                log.warning("log cannot be taken up now", extra={"log": str(log_found), "path": str(partition.path), "error": str(error)})
        self._attached = True
        self.journal.publish(events, [tail.place for tail in self._tails.values()], gone)

    def _list(self) -> dict[LogId, Partition]:
        self._unreadable = set()
        found: dict[LogId, Partition] = {}
        for log_dir in self.log_dirs:
            try:
                partitions = list_partitions(log_dir)
            except OSError as error:
                log.error("log dir cannot be read", extra={"log_dir": str(log_dir.path), "error": str(error)})
                self._unreadable.add(log_dir.path)
                continue
            for partition in partitions:
                if partition.state is DirState.LIVE:
                    key, watched = log_id(partition), self._tails.get(log_id(partition))
                    # while a move between log dirs ends, both may be there: stay with the one that is watched
                    if key not in found or (watched is not None and watched.partition.path == partition.path):
                        found[key] = partition
        return found

    def _missing(self, found: dict[LogId, Partition]) -> list[LogId]:
        """Logs that were there and are not; what lies in a log dir that cannot be read now is not missing."""
        watched = [key for key, tail in self._tails.items() if tail.partition.log_dir.path not in self._unreadable]
        kept = [] if self._unreadable else list(self._kept)
        return [key for key in (*watched, *kept) if key not in found]

    def _drop(self, gone: LogId) -> Event:
        tail = self._tails.pop(gone, None)
        self._heat.pop(gone, None)
        self._kept.pop(gone, None)
        if tail is not None:
            tail.close()
        reason = "moved" if self._cluster.has_topic(gone) else "deleted"
        log.info("log left", extra={"log": str(gone), "reason": reason})
        return Event(kind=Kind.GONE, broker=gone.broker, topic=gone.topic, partition=gone.partition, topic_id=gone.topic_id, reason=reason)

    def _take_up(self, key: LogId, partition: Partition, beginnings: list[Beginning]) -> list[Event]:
        """Watch a log that is new, moved or known, from further back if a new consumer wants it so."""
        segments = list_segments(partition.path)
        if not segments:
            return []  # being made: its first segment is a hint of its own
        known, fresh = self._tails.get(key), False
        if known is None or known.partition.path != partition.path:
            tail, fresh, events = self._tail(key, partition, segments)
        else:
            tail, tail.segments = known, segments
            events = self._reading.retry(tail) if tail.place.stopped else []
        new = fresh
        for beginning in beginnings:
            fresh = self._go_back(tail, beginning, fresh)
        tail.log_start = log_start_offset(partition.path, segments)
        if beginnings or new:
            events.append(tail.event(Kind.APPEARED, next_offset=tail.place.next_offset, log_epoch=tail.place.log_epoch))
        self._tails[key] = tail
        self._heat[key] = HOT_LOOKS
        return events

    def _tail(self, key: LogId, partition: Partition, segments: tuple[Segment, ...]) -> tuple[Tail, bool, list[Event]]:
        """A tail for a directory that is new to this process, whether nothing at all is known of its log, and what must be told."""
        watched = self._tails.get(key)
        if watched is not None:
            watched.close()
        place = watched.place if watched is not None else self._kept.pop(key, None)
        if place is not None:
            tail, events = resume(partition, segments, place, self._reading.buffer)
            return tail, False, events
        # a log that appears is read whole, unless a new consumer asks for less
        return Tail(partition, place_at(key, beginning_of(segments[0]), segments, 0), segments), True, []

    def _go_back(self, tail: Tail, beginning: Beginning, fresh: bool) -> bool:
        """Set the tail to where a new consumer wants to begin, never ahead of where others are. Returns False: it is fresh no more."""
        start_from: StartFrom = "earliest" if beginning.resumed else beginning.start_from
        spot = start_spot(tail.segments, start_from, self._reading.buffer)
        if fresh or spot.next_offset < tail.place.next_offset:
            frontier = EVERYTHING if beginning.resumed else 0 if fresh else tail.place.frontier
            tail.close()
            tail.live = False
            tail.place = place_at(tail.place.log, spot, tail.segments, frontier)
        return False

    def _heed(self, hints: set[Path]) -> None:
        """Look at the directories in which something happened."""
        if not hints:
            return
        roots = {log_dir.path for log_dir in self.log_dirs}
        watched = {tail.partition.path: tail for tail in self._tails.values()}
        if any(hint in roots or hint not in watched for hint in hints):
            self._rescan([])
            return
        for hint in hints:
            tail = watched[hint]
            try:
                tail.segments = list_segments(hint) or tail.segments
            except OSError:
                self._next_rescan = 0  # the directory itself is gone
                continue
            tail.log_start = log_start_offset(hint, tail.segments)
            self._heat[tail.place.log] = HOT_LOOKS

    # --- what has grown

    def _read(self) -> bool:
        """Read the logs that have grown, a bounded number of rounds. Returns whether some have more."""
        queue_ = [tail for tail in self._due() if self._grown(tail)]
        for _ in range(ROUNDS_A_TURN):
            if not queue_:
                return False
            before = {tail.place.log: tail.place for tail in queue_}
            events, more = self._reading.read(queue_)
            changed = [tail.place for tail in queue_ if tail.place is not before[tail.place.log]]
            if events or changed:
                self.journal.publish(events, changed)
            for tail in queue_:
                self._heat[tail.place.log] = HOT_LOOKS
            queue_ = more
        return bool(queue_)

    def _due(self) -> list[Tail]:
        self._looks += 1
        turn = self._looks % COLD_LOOKS
        due = []
        for number, (key, tail) in enumerate(self._tails.items()):
            heat = self._heat.get(key, 0)
            if heat or not self.caught_up or number % COLD_LOOKS == turn:
                self._heat[key] = max(0, heat - 1)
                due.append(tail)
        return due

    def _grown(self, tail: Tail) -> bool:
        try:
            return self._reading.grown(tail)
        except OSError as error:
            log.debug("log cannot be looked at", extra={"log": str(tail.place.log), "error": str(error)})
            tail.close()
            self._next_rescan = min(self._next_rescan, self._clock_ms() + LOOK_MS)
            return False

    def _leads(self, tail: Tail) -> int:
        leader, _ = self._cluster.leader(tail.place.log)
        return -1 if leader == -2 else int(leader == tail.place.log.broker)

    def close(self) -> None:
        """Keep the places and let go of every file."""
        if self._attached:
            self.journal.publish([], [tail.place for tail in self._tails.values()])
        for tail in self._tails.values():
            tail.close()

