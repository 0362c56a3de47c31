"""Logs of ``__transaction_state`` that have to be read again from their first byte: some reader may not have all that stands in them.

Such a log is compacted, so what it holds now is all that counts. Each event of it says where the one before it ended, so a reader knows
whether it has missed one. Behind whatever breaks that chain (a loss, a cut, a flaw, a reader that was away for too long) the log is read
again, in pieces, while it is also read on, and where that has come to by then one event tells all of its entries.
"""

import logging
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from streaming.disk.reads import bytes_read
from streaming.disk.segments import Segment, list_segments
from streaming.errors import FormatError
from streaming.kafka.coordinator import CoordinatorEntry, coordinator_entries
from streaming.kafka.names import TRANSACTION_TOPIC
from streaming.kafka.walk import Bytes
from streaming.rows import NOT_UNDERSTOOD, TOMBSTONE, Kind
from streaming.watcher.blobs import NO_ENTRIES, encode_entries
from streaming.watcher.events import Event, Replays
from streaming.watcher.locate import window
from streaming.watcher.replay import batches_between
from streaming.watcher.tail import Tail
from streaming.watcher.tries import Tries

log = logging.getLogger(__name__)

_PIECE_BYTES = 4 << 20
_CHAINED = (Kind.APPEARED, Kind.APPENDED, Kind.SKIPPED, Kind.TRUNCATED, Kind.CORRUPT)


def chained(events: Sequence[Event], tails: Iterable[Tail]) -> Sequence[Event]:
    """The events, each of a coordinator's log with the place where the one before it ended; notes which logs have to be read again."""
    ours = {tail.place.log: tail for tail in tails if tail.place.log.topic == TRANSACTION_TOPIC}
    if not ours:
        return events
    return [_linked(event, ours.get(event.log)) for event in events]


def _linked(event: Event, tail: Tail | None) -> Event:
    if tail is None or event.kind not in _CHAINED:
        return event
    goes_on = event.kind is Kind.APPENDED or (event.kind is Kind.APPEARED and event.coordinator is not None)
    linked = replace(event, follows=tail.place.told)
    tail.place = replace(tail.place, told=event.next_offset, reread=tail.place.reread or not goes_on)
    return linked


@dataclass(slots=True)
class _Current:
    """The log that is read again. ``turns``: `Tail.turns` when that began; another number says that it was cut off since."""

    tail: Tail
    turns: int
    reached: int
    pieces: Iterator[int] | None = None
    end: int = -1
    newest: dict[str, CoordinatorEntry] = field(default_factory=dict)


class Rereading:
    """The queue of these logs. Only the watcher's thread uses it.

    Args:
        is_watched: whether this tail is the one of its log still.
        told_as: what stands for a transactional id in what is told.
    """

    def __init__(self, is_watched: Callable[[Tail], bool], told_as: Callable[[str], str]) -> None:
        self._is_watched = is_watched
        self._told_as = told_as
        self._queue: dict[Tail, None] = {}
        self._tries = Tries()
        self._current: _Current | None = None
        self._buffer: Bytes | None = None

    def put(self, tail: Tail) -> None:
        """Queue a log whose place says that it has to be read again."""
        if tail.place.reread and self._tries.any_left(tail):
            self._queue[tail] = None

    def retry(self) -> None:
        """Queue once more what could not be read."""
        for tail in self._tries.begin_again():
            self.put(tail)

    @property
    def ready(self) -> bool:
        """Whether there is something to read now."""
        return any(map(self._is_ready, self._queue))

    def step(self, budget: int) -> tuple[Tail, list[Event]] | None:
        """Read on in one log for about ``budget`` bytes. Returns it and what must be told if all of it was read, None if there is none."""
        tail = self._next()
        if tail is None:
            return None
        try:
            if self._current is None:
                self._current = _Current(tail, tail.turns, list_segments(tail.partition.path)[0].base_offset)
            if not self._advance(self._current, budget):
                return tail, []
        except MemoryError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever is wrong with the log, it is read on without
            self._fail(tail, error)
            return tail, []
        entries = sorted(self._current.newest.values(), key=lambda entry: entry.offset)
        self._drop()
        self._tries.succeeded(tail)
        tail.place = replace(tail.place, reread=False)
        log.info("a coordinator's log was read again", extra={"log": str(tail.place.log), "transactional_ids": len(entries)})
        return tail, [replace(tail.appeared(None), coordinator=encode_entries(entries, self._told_as) or NO_ENTRIES)]

    def _next(self) -> Tail | None:
        if self._current is not None:
            tail = self._current.tail
            if tail.turns == self._current.turns and self._is_ready(tail):
                return tail
            self._drop()
            self.put(tail)
        self._queue = {tail: None for tail in self._queue if self._is_watched(tail) and tail.place.reread}
        return next(filter(self._is_ready, self._queue), None)

    def _is_ready(self, tail: Tail) -> bool:
        """What is told again to a new reader has to be told first; behind a flaw nothing is known of the rest."""
        place = tail.place
        told_once = place.next_offset >= place.frontier and not place.stopped
        waits = place.replay == Replays.FIRST or bool(place.wanted)
        return place.reread and tail.resumed and not tail.away and told_once and not waits and self._is_watched(tail)

    def _advance(self, current: _Current, budget: int) -> bool:
        """Read on up to the place; returns whether it was reached."""
        began = bytes_read()
        while current.reached < current.tail.place.next_offset:
            if current.pieces is None:
                current.end = current.tail.place.next_offset
                current.pieces = self._pieces(current, list_segments(current.tail.partition.path))
            for reached in current.pieces:
                current.reached = reached
                if bytes_read() - began >= budget:
                    return False
            current.pieces, current.reached = None, current.end  # what lies before it and is not there was cleaned
        return True

    def _pieces(self, current: _Current, segments: Sequence[Segment]) -> Iterator[int]:
        if self._buffer is None:
            self._buffer = window()[:_PIECE_BYTES]
        reached = current.reached
        for batches, _ in batches_between(segments, reached, current.end, self._buffer):
            found = coordinator_entries(batches, self._buffer)
            reached = int(batches.last_offset[-1]) + 1
            for entry in found.entries:
                current.newest[entry.transactional_id] = entry
                if entry.state == TOMBSTONE:
                    del current.newest[entry.transactional_id]
            if found.unreadable:
                current.newest[""] = CoordinatorEntry(transactional_id="", offset=reached - 1, state=NOT_UNDERSTOOD)
            yield reached
        if reached < current.end and all(segment.base_offset != current.end for segment in segments):
            raise FormatError(f"no whole batch at offset {reached}")

    def _drop(self) -> None:
        """Let go of the log at work, and of its place in the queue."""
        if self._current is not None:
            if isinstance(self._current.pieces, Generator):
                self._current.pieces.close()
            self._queue.pop(self._current.tail, None)
            self._current = None

    def _fail(self, tail: Tail, error: Exception) -> None:
        """A segment is gone or cannot be read: try again soon, or after the next survey if that does not help."""
        self._drop()
        self._queue.pop(tail, None)
        self._tries.failed(tail, error)
        if self._tries.any_left(tail):
            self.put(tail)
            return
        known = isinstance(error, (OSError, FormatError))
        log.warning(
            "a coordinator's log cannot be read again now: what its entries are is not known",
            exc_info=None if known else error,
            extra={"log": str(tail.place.log), "path": str(tail.partition.path), "error": str(error)},
        )
        tail.doubts += not isinstance(error, OSError)
