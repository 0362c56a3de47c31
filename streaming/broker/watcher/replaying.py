"""Queues of logs that have to be replayed: one log after the other, in pieces, so that nothing else waits for it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

from streaming.broker.watcher.tail import Tail
from streaming.broker.watcher.unreadable import Tries
from streaming.common.event_row import Event


class Replaying:
    """The replays of all kinds. Only the watcher's thread uses it.

    Args:
        kinds: those of an earlier one go before those of a later one.
        is_watched: whether this tail is still the current one of its log.
    """

    def __init__(self, kinds: Iterable[LogReplays], is_watched: Callable[[Tail], bool]) -> None:
        self._queues = [_Queue(kind, is_watched) for kind in kinds]

    def put(self, tail: Tail) -> None:
        """Queue a log for what its cursor requires."""
        for queue in self._queues:
            queue.put(tail)

    def retry(self) -> None:
        """Queue once more the logs that could not be read."""
        for queue in self._queues:
            queue.retry()

    @property
    def ready(self) -> bool:
        """Whether there is something to replay now."""
        return any(queue.ready for queue in self._queues)

    def step(self, budget: int) -> tuple[Tail, list[Event]] | None:
        """Replay about ``budget`` bytes of one log. Returns it and the events to publish if its replay is done; None if there is no log."""
        return next((done for queue in self._queues if (done := queue.step(budget)) is not None), None)


class LogReplays(Protocol):
    """One kind of replay."""

    def needed(self, tail: Tail) -> bool:
        """Whether the log has to be replayed."""

    def urgent(self, tail: Tail) -> bool:
        """Whether it goes before others."""

    def possible(self, tail: Tail) -> bool:
        """Whether what the cursor says allows it now."""

    def begin(self, tail: Tail) -> LogReplay:
        """Begin a replay up to the cursor."""

    def give_up(self, tail: Tail, error: Exception) -> list[Event]:
        """Note that it has failed, and is not tried again before the next rescan. Returns the events to publish."""


class LogReplay(Protocol):
    """A replay of one log that goes on in pieces."""

    def advance(self, budget: int) -> bool:
        """Read about ``budget`` bytes; returns whether all is read."""

    def finish(self) -> list[Event]:
        """Note what was found. Returns the events to publish."""

    def close(self) -> None:
        """Close the file that is being read."""


class _Queue:
    def __init__(self, kind: LogReplays, is_watched: Callable[[Tail], bool]) -> None:
        self._kind = kind
        self._is_watched = is_watched
        self._tails: OrderedDict[Tail, None] = OrderedDict()
        self._tries = Tries()
        self._current: _Current | None = None

    def put(self, tail: Tail) -> None:
        if self._kind.needed(tail) and tail not in self._tails and self._tries.any_left(tail):
            self._tails[tail] = None
            if self._kind.urgent(tail):
                self._tails.move_to_end(tail, last=False)

    def retry(self) -> None:
        for tail in self._tries.begin_again():
            self.put(tail)

    @property
    def ready(self) -> bool:
        return any(map(self._is_ready, self._tails))

    def step(self, budget: int) -> tuple[Tail, list[Event]] | None:
        tail = self._next()
        if tail is None:
            return None
        try:
            if self._current is None:
                self._current = _Current(tail, tail.breaks, self._kind.begin(tail))
            if not self._current.replay.advance(budget):
                return tail, []
            events = self._current.replay.finish()
        except MemoryError:
            raise
        except Exception as error:  # noqa: BLE001 - an error in a snapshot or an old batch does not stop the log
            return tail, self._fail(tail, error)
        self._tries.succeeded(tail)
        self._end(tail)
        return tail, events

    def _next(self) -> Tail | None:
        """The next log: the current one, unless its replay has become useless."""
        if self._current is not None:
            tail = self._current.tail
            if tail.breaks == self._current.breaks and self._is_ready(tail):
                return tail
            self._end(tail)
            self.put(tail)
        for _ in range(len(self._tails)):
            tail = next(iter(self._tails))
            if self._is_ready(tail):
                return tail
            if self._is_watched(tail) and self._kind.needed(tail):
                self._tails.move_to_end(tail)
            else:
                del self._tails[tail]
        return None

    def _is_ready(self, tail: Tail) -> bool:
        there = tail.resumed and not tail.away and self._is_watched(tail)
        return there and self._kind.needed(tail) and self._kind.possible(tail)

    def _fail(self, tail: Tail, error: Exception) -> list[Event]:
        """A segment is gone or cannot be read: try again soon, or after the next rescan if that does not help."""
        self._end(tail)
        self._tries.failed(tail, error)
        if not self._tries.any_left(tail):
            return self._kind.give_up(tail, error)
        self.put(tail)
        return []

    def _end(self, tail: Tail) -> None:
        """End the current replay, and remove its log."""
        if self._current is not None:
            self._current.replay.close()
            self._current = None
        self._tails.pop(tail, None)


@dataclass(frozen=True, slots=True)
class _Current:
    """``breaks``: `Tail.breaks` when it began; if this has changed, the replayed part of the log may be gone."""

    tail: Tail
    breaks: int
    replay: LogReplay
