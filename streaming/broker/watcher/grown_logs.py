"""Reads what has grown, live logs at once, and backlogs as far as a budget allows, slice by slice, and publishes it."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from streaming.broker.disk.locate import SEEDED_BYTES, WINDOW_BYTES
from streaming.broker.disk.opening import Calling, bytes_read, calls_of_this_thread
from streaming.broker.journal.blocks import BLOCK_ROWS, AppendedRanges
from streaming.broker.journal.journal import Begun, Journal
from streaming.broker.watcher.cluster_knowledge import Cluster
from streaming.broker.watcher.coordinator_replay import chained
from streaming.broker.watcher.ordinary_growth import OrdinaryReader
from streaming.broker.watcher.reading import GrowthReader
from streaming.broker.watcher.registry import LogRegistry
from streaming.broker.watcher.replaying import Replaying
from streaming.broker.watcher.stopped_logs import failed
from streaming.broker.watcher.tail import Tail
from streaming.common.event_row import Event
from streaming.common.log_key import LogKey
from streaming.common.rows import Kind

log = logging.getLogger(__name__)

SLICE_BYTES = 32 << 20
"""How many bytes of backlogs are read before they are published."""

LIVE_BYTES = 256 << 20
"""A live log that has more than this to read is in backlog again."""

NEW_BYTES = 1 << 20
"""A new log is no backlog if it has no more than this to read."""

PIECE_BYTES = 4 << 10
"""The bytes that a piece of a log counts at least, or logs with nothing to read would cost nothing."""

SLICE_LOGS = 512
"""How many logs are read at most before the result is published."""


class GrownLogs:
    """Reads live logs that have grown, then backlogs, and publishes what it read. Only the watcher's thread uses it.
    Args:
        is_full: whether so much that is published waits for jobs that no more has to be read: what is read in spite of that may be dropped
            before a job has it.
    """

    def __init__(
        self,
        registry: LogRegistry,
        reading: GrowthReader,
        ordinary: OrdinaryReader,
        publisher: Publisher,
        replaying: Replaying,
        should_stop: Callable[[], bool],
        *,
        is_full: Callable[[], bool],
        clock_ms: Callable[[], int],
        few_logs: int,
    ) -> None:
        self._registry = registry
        self._reading = reading
        self._ordinary = ordinary
        self._clock_ms = clock_ms
        self._few_logs = few_logs
        self._publisher = publisher
        self._replaying = replaying
        self._should_stop = should_stop
        self._is_full = is_full
        self._live = Queue(self._may_be_read)  # logs that grow or appear while they are watched: read at once
        self._backlog = Queue(self._may_be_read)
        self.lost_directories = False
        """Whether a log that was read has lost its directory. The watcher takes note of it and sets it back."""

    @property
    def more(self) -> bool:
        """Whether there is more to read."""
        return bool(self._live or self._backlog or self._replaying.ready)

    @property
    def has_backlog(self) -> bool:
        """Whether there are backlogs to read."""
        return bool(self._backlog)

    def read(self, budget: int, live_bytes: int) -> int:
        """Read up to ``live_bytes`` of live logs, then ``budget`` bytes of backlogs. Returns how many bytes of backlogs were read."""
        now_ms = self._clock_ms()
        ordinary = self._look(now_ms)
        live_bytes -= self._read_ordinary(ordinary, now_ms, live_bytes)
        self._read_from(self._live, live_bytes)
        replayed = self._replay(budget // 2 if self._backlog else budget)
        return replayed + self._read_from(self._backlog, budget - replayed)

    def _look(self, now_ms: int) -> list[Tail]:
        """Queue the logs that have grown, without those ordinary ones that may be read in one pass: they are returned."""
        queued = self._live.queued | self._backlog.queued
        ordinary: list[Tail] = []
        for tail in self._not_still(now_ms):
            if tail not in queued and self._grown(tail):
                if tail.is_ordinary(now_ms) and tail.size - tail.cursor.position <= SEEDED_BYTES:
                    ordinary.append(tail)
                else:
                    self._enqueue(tail)
        return ordinary

    def _not_still(self, now_ms: int) -> list[Tail]:
        """All logs but those of which the size of a file shows that nothing is to be done."""
        found, tails, calls = [], list(self._registry.tails.values()), calls_of_this_thread()
        with Calling(tails[0].path if tails else ""):
            for tail in tails:
                try:
                    if tail.is_still(now_ms, calls):
                        continue
                except OSError as error:  # the next look at it meets the same error, and handles it
                    log.debug("log cannot be measured", extra={"log": str(tail.cursor.log), "path": tail.path, "error": str(error)})
                found.append(tail)
        return found

    def _read_ordinary(self, tails: list[Tail], looked_ms: int, budget: int) -> int:
        """Read logs in one pass, and publish slice by slice; logs that are not ordinary are queued. Returns how many bytes were read."""
        began, at = bytes_read(), 0
        if len(tails) > self._few_logs:
            while at < len(tails) and bytes_read() - began < budget and self._goes_on():
                done = self._ordinary.read(tails[at : at + BLOCK_ROWS], looked_ms)
                if done.ranges is not None:
                    self._publisher.publish_ranges(done.ranges, done.read)
                for tail in done.left:
                    self._enqueue(tail)
                at += BLOCK_ROWS
        for tail in tails[at:]:
            self._enqueue(tail)
        return bytes_read() - began

    def _replay(self, budget: int) -> int:
        """Find out what is open in logs where this is not known yet, and publish it. Returns how many bytes were read for it."""
        began, read, steps = bytes_read(), 0, 0
        events: list[Event] = []
        tails: dict[Tail, None] = {}
        while read < budget and not self._should_stop():
            piece = min(SLICE_BYTES, budget - read)
            done = self._replaying.step(piece)
            if done is None:
                break
            tails[done[0]] = None
            events += done[1]
            steps += 1
            read = max(bytes_read() - began, steps * PIECE_BYTES)
        self._publisher.publish(events, tails)
        for tail in tails:
            if tail.new and not tail.cursor.held:  # it appeared, and may be read on now
                self._enqueue(tail)
        return read

    def _read_from(self, queue: Queue, budget: int) -> int:
        """Read queued logs as far as the budget allows, and publish slice by slice. Returns how many bytes were read."""
        began, read, pieces = bytes_read(), 0, 0
        while queue and read < budget and self._goes_on():
            slice_bytes = min(SLICE_BYTES, budget - read)
            tails = queue.take(slice_bytes)
            if tails:
                done = self._reading.read(tails, slice_bytes)
                self._publisher.publish(done.events, tails)
                for tail in done.more:
                    self._enqueue(tail)
                self.lost_directories = self.lost_directories or done.lost
            pieces += len(tails)
            read = max(bytes_read() - began, pieces * PIECE_BYTES)
        return read

    def _goes_on(self) -> bool:
        return not (self._should_stop() or self._is_full())

    def _enqueue(self, tail: Tail) -> None:
        if (tail.has_later_segment and (tail.live or tail.new)) or not (tail.has_later_segment or tail.plain):
            try:
                tail.measure()
            except OSError as error:  # reading it meets the same error, and handles it
                log.debug("log cannot be measured", extra={"log": str(tail.cursor.log), "path": tail.path, "error": str(error)})
        unread = tail.unread_bytes(exact=False)
        at_once = tail.take_turn(far_behind=unread > LIVE_BYTES, small=unread <= NEW_BYTES)
        (self._live if at_once else self._backlog).put([tail])

    def _grown(self, tail: Tail) -> bool:
        try:
            return self._reading.grown(tail)
        except OSError as error:
            if tail.note_error(error):
                log.warning("log cannot be listed", extra={"log": str(tail.cursor.log), "path": tail.path, "error": str(error)})
            tail.refuse(error)
            tail.close()
        except Exception as error:  # noqa: BLE001 - the bytes of one log must not end the agent
            self._publisher.publish(failed(tail, error), [tail])
        return False

    def _may_be_read(self, tail: Tail) -> bool:
        return self._registry.tails.get(tail.cursor.log) is tail and tail.may_be_read


class Publisher:
    """Publishes what the watcher has read: events, where the logs stand behind them, and what is gone, all at once.

    Logs whose cursors ask for it are put to those that are replayed. Only the watcher's thread uses it.
    """

    def __init__(self, journal: Journal, cluster: Cluster, replaying: Replaying) -> None:
        self._journal = journal
        self._cluster = cluster
        self._replaying = replaying

    def publish(self, events: Sequence[Event], tails: Iterable[Tail], gone: Sequence[LogKey] = (), begun: Begun | None = None) -> None:
        """Publish events, with what has changed in these tails.

        Args:
            gone: the logs that are not watched any more.
            begun: of a job whose beginning this is.

        Raises:
            FencedError: another thread has replaced this one.
        """
        tails = list(tails)
        events = chained([self._led(each) if each.kind in (Kind.SKIPPED, Kind.TRUNCATED) else each for each in events], tails)
        moved = [tail for tail in tails if tail.has_moved]
        for tail in moved:
            self._replaying.put(tail)
        if events or moved or gone or begun is not None:
            self._journal.publish(events, [tail.stand() for tail in moved], gone, begun)
        if begun is not None:
            begun.done.set()

    def _led(self, loss: Event) -> Event:
        """With who leads by now: the epoch shows whether a leader's counters are too low, and a follower that starts cuts off its end."""
        state = self._cluster.partition(loss.log)
        if state is not None:
            loss = replace(loss, leader=state.leader, leader_epoch=state.leader_epoch)
        if loss.kind is Kind.TRUNCATED and loss.bytes:
            follows = loss.leader >= 0 and loss.leader != loss.broker
            where = {"log_dir": loss.log_dir, "segment": loss.segment, "position": loss.end_position, "offset": loss.next_offset}
            level = logging.INFO if follows else logging.WARNING
            log.log(level, "log truncated", extra={"log": str(loss.log), **where, "bytes": loss.bytes, "leader": loss.leader})
        return loss

    def publish_ranges(self, ranges: AppendedRanges, tails: Sequence[Tail]) -> None:
        """Publish ranges of these tails, whose cursors are after them.

        Raises:
            FencedError: as `publish` does.
        """
        self._journal.publish((), [tail.stand() for tail in tails], ranges=ranges)


class Queue:
    """Logs that have more to read, each once: a log that was read goes to the end.

    Args:
        may_be_read: whether a tail is still the current one of its log, and is not held, stopped, remembered or away. A queued tail for
            which this is false is removed when it becomes the first.
    """

    def __init__(self, may_be_read: Callable[[Tail], bool]) -> None:
        self._may_be_read = may_be_read
        self._tails: deque[Tail] = deque()
        self._queued: set[Tail] = set()

    def __len__(self) -> int:
        return len(self._tails)

    @property
    def queued(self) -> frozenset[Tail]:
        """All of them."""
        return frozenset(self._queued)

    def put(self, tails: Iterable[Tail]) -> None:
        """Append those that are not queued yet."""
        for tail in tails:
            if tail not in self._queued:
                self._tails.append(tail)
                self._queued.add(tail)

    def take(self, size: int) -> list[Tail]:
        """The next logs, at least one, until they have about ``size`` bytes to read; each counts for a window at most."""
        taken: list[Tail] = []
        while self._tails and size > 0 and len(taken) < SLICE_LOGS:
            tail = self._tails.popleft()
            self._queued.discard(tail)
            if self._may_be_read(tail):
                taken.append(tail)
                size -= min(WINDOW_BYTES, max(1, tail.unread_bytes(exact=False)))
        return taken
