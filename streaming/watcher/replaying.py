"""Logs that have to be replayed to know what is open at their place: one after the other, in pieces, so that nothing else waits for it."""

import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace

from streaming.disk.segments import list_segments
from streaming.watcher.blobs import encode_ongoing
from streaming.watcher.bootstrap import Replay
from streaming.watcher.carrying import REPLAY_BYTES, note_doubts, replay_of
from streaming.watcher.events import TIMES_UNKNOWN, Event, Place, Replays
from streaming.watcher.locate import window
from streaming.watcher.tail import Tail
from streaming.watcher.tries import Tries

log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Current:
    """The replay at work. ``turns``: `Tail.turns` when it began; another number says that what was replayed may be gone."""

    tail: Tail
    replay: Replay
    turns: int


class Replaying:
    """The queue of these logs. Only the watcher's thread uses it.

    Args:
        is_watched: whether this tail is the one of its log still.
    """

    def __init__(self, is_watched: Callable[[Tail], bool]) -> None:
        self._is_watched = is_watched
        self._queue: deque[Tail] = deque()
        self._queued: set[Tail] = set()
        self._tries = Tries()
        self._current: _Current | None = None
        self._buffer = window()[:REPLAY_BYTES]

    def put(self, tail: Tail) -> None:
        """Queue a log whose place says that it has to be replayed; those that cannot be read before come first."""
        if tail.place.replay != Replays.NOT and tail not in self._queued and self._tries.any_left(tail):
            self._queued.add(tail)
            if tail.place.replay == Replays.FIRST:
                self._queue.appendleft(tail)
            else:
                self._queue.append(tail)

    def retry(self) -> None:
        """Queue once more what could not be read."""
        for tail in self._tries.begin_again():
            self.put(tail)

    @property
    def ready(self) -> bool:
        """Whether there is something to replay now."""
        return self._current is not None or any(map(self._is_ready, self._queue))

    def step(self, budget: int) -> tuple[Tail, list[Event]] | None:
        """Replay one log for about ``budget`` bytes. Returns it and what must be told if that has come to an end, None if there is none."""
        tail = self._next()
        if tail is None:
            return None
        try:
            segments = list_segments(tail.partition.path)
            if self._current is None:
                self._current = _Current(tail, replay_of(tail, segments, self._buffer), tail.turns)
            if not self._current.replay.advance(segments, tail.place.next_offset, budget):
                return tail, []
            events = _settle(tail, self._current.replay)
        except MemoryError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever is wrong with a snapshot or an old batch, the log is read on without
            events = self._fail(tail, error)
        else:
            self._tries.succeeded(tail)
            self._drop()
        return tail, events

    def _next(self) -> Tail | None:
        """The log whose turn it is: the one at work unless its replay leads nowhere any more."""
        if self._current is not None:
            tail = self._current.tail
            if self._is_watched(tail) and tail.turns == self._current.turns and self._is_ready(tail):
                return tail
            self._drop()
            self.put(tail)
        for _ in range(len(self._queue)):
            tail = self._queue.popleft()
            if not self._is_watched(tail) or tail.place.replay == Replays.NOT:
                self._queued.discard(tail)
            elif self._is_ready(tail):
                self._queue.appendleft(tail)
                return tail
            else:
                self._queue.append(tail)
        return None

    def _drop(self) -> None:
        """Let go of the replay at work, and of its log's place in the queue."""
        if self._current is not None:
            self._current.replay.close()
            self._forget(self._current.tail)
            self._current = None

    def _forget(self, tail: Tail) -> None:
        if tail in self._queued:
            self._queued.discard(tail)
            self._queue.remove(tail)

    @staticmethod
    def _is_ready(tail: Tail) -> bool:
        """What is told again to a new consumer has to be told first: the others take what is open only where they have come to."""
        place = tail.place
        told_once = place.replay == Replays.FIRST or place.next_offset >= place.frontier or bool(place.stopped)
        return place.replay != Replays.NOT and tail.resumed and not tail.away and told_once and not place.wanted

    def _fail(self, tail: Tail, error: Exception) -> list[Event]:
        """A segment is gone or cannot be read: try again soon, or after the next survey if that does not help."""
        self._drop()
        self._forget(tail)
        self._tries.failed(tail, error)
        if self._tries.any_left(tail):
            self.put(tail)
            return []
        path, known = str(tail.partition.path), isinstance(error, OSError)
        extra = {"log": str(tail.place.log), "path": path, "error": str(error)}
        log.warning("what is open in a log cannot be told now", exc_info=None if known else error, extra=extra)
        tail.doubts += not known
        if tail.place.replay != Replays.FIRST:
            return []
        tail.place = replace(tail.place, replay=Replays.ALONGSIDE)  # what can be read of it does not wait
        return [tail.appeared(None)]


def _settle(tail: Tail, replay: Replay) -> list[Event]:
    """What is open at the tail's place is known."""
    past, first = replay.past(), tail.place.replay == Replays.FIRST
    note_doubts(tail, past)
    if first or tail.producers.now is None:
        tail.producers.reset(past.producers)
    tail.place = replace(_with_times(tail.place, replay), replay=Replays.NOT)
    tail.new = first
    if past.cold and not first:  # readers may know more than these files
        return []
    return [tail.appeared(encode_ongoing(past.ongoing))]


def _with_times(place: Place, replay: Replay) -> Place:
    """The place with the timestamps of its segment, if all of that was replayed: nobody has to read it for them again."""
    known = replay.timestamps(place.segment)
    if known is None or place.largest_timestamp != TIMES_UNKNOWN:
        return place
    return replace(place, first_timestamp=known[0], largest_timestamp=known[1])
