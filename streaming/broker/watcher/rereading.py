"""Rereads logs of ``__transaction_state`` from their first byte, because some consumer may lack some of their entries.

Such a log is compacted, so only its present entries count. Each event of it contains the offset where the one before it ended. So a
consumer knows whether it has missed one. This chain can break: by a loss, a truncation, a flaw, or a consumer that was away for too long.
Then the log is read again, in pieces, while it is also read on. At the end, one event publishes all of its entries up to the cursor of that
time.
"""

import logging
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from streaming.broker.disk.calls import bytes_read
from streaming.broker.disk.replay import batches_between
from streaming.broker.disk.scanning import kept_window
from streaming.broker.disk.segment_files import Segment, list_segments
from streaming.broker.journal.blobs import NO_ENTRIES, encode_entries
from streaming.broker.journal.cursor import Replays
from streaming.broker.watcher.tail import Tail
from streaming.broker.watcher.unreadable import Tries
from streaming.common.event_row import Event
from streaming.common.rows import NOT_UNDERSTOOD, TOMBSTONE, Kind
from streaming.errors import FormatError
from streaming.kafka.formats.names import TRANSACTION_TOPIC
from streaming.kafka.scan.coordinator_entries import CoordinatorEntry, coordinator_entries
from streaming.kafka.scan.walk import Bytes

log = logging.getLogger(__name__)

_PIECE_BYTES = 4 << 20
_CHAINED = (Kind.APPEARED, Kind.APPENDED, Kind.SKIPPED, Kind.TRUNCATED, Kind.CORRUPT)


def chained(events: Sequence[Event], tails: Iterable[Tail]) -> Sequence[Event]:
    """The events; each one of a coordinator's log gets the offset where the one before it ended. Notes which logs have to be reread."""
    ours = {tail.cursor.log: tail for tail in tails if tail.cursor.log.topic == TRANSACTION_TOPIC}
    if not ours:
        return events
    return [_linked(event, ours.get(event.log)) for event in events]


def _linked(event: Event, tail: Tail | None) -> Event:
    if tail is None or event.kind not in _CHAINED:
        return event
    goes_on = event.kind is Kind.APPENDED or (event.kind is Kind.APPEARED and event.coordinator is not None)
    linked = replace(event, follows=tail.cursor.entries_upto)
    tail.chain(event.next_offset, goes_on=goes_on)
    return linked


@dataclass(slots=True)
class _CurrentReread:
    """The current reread. ``breaks``: `Tail.breaks` when it began; if this has changed, the log was truncated since."""

    tail: Tail
    breaks: int
    reached: int
    pieces: Iterator[int] | None = None
    end: int = -1
    newest: dict[str, CoordinatorEntry] = field(default_factory=dict)


class Rereading:
    """The queue of these logs. Only the watcher's thread uses it.

    Args:
        is_watched: whether this tail is still the current one of its log.
        redact: returns the text that replaces a transactional id in events.
    """

    def __init__(self, is_watched: Callable[[Tail], bool], redact: Callable[[str], str]) -> None:
        self._is_watched = is_watched
        self._redact = redact
        self._queue: dict[Tail, None] = {}
        self._tries = Tries()
        self._current: _CurrentReread | None = None
        self._buffer: Bytes | None = None

    def put(self, tail: Tail) -> None:
        """Queue a log whose cursor requires a reread."""
        if tail.cursor.reread and self._tries.any_left(tail):
            self._queue[tail] = None

    def retry(self) -> None:
        """Queue once more the logs that could not be read."""
        for tail in self._tries.begin_again():
            self.put(tail)

    @property
    def ready(self) -> bool:
        """Whether there is something to read now."""
        return any(map(self._is_ready, self._queue))

    def step(self, budget: int) -> tuple[Tail, list[Event]] | None:
        """Reread about ``budget`` bytes of one log. Returns it and the events to publish if all of it was read; None if there is no log."""
        tail = self._next()
        if tail is None:
            return None
        try:
            if self._current is None:
                self._current = _CurrentReread(tail, tail.breaks, list_segments(tail.partition.path)[0].base_offset)
            if not self._advance(self._current, budget):
                return tail, []
        except MemoryError:
            raise
        except Exception as error:  # noqa: BLE001 - an error of a reread does not stop the log
            self._fail(tail, error)
            return tail, []
        entries = sorted(self._current.newest.values(), key=lambda entry: entry.offset)
        self._drop()
        self._tries.succeeded(tail)
        tail.plan_reread(needed=False)
        log.info("a coordinator's log was read again", extra={"log": str(tail.cursor.log), "transactional_ids": len(entries)})
        return tail, [replace(tail.appeared(None), coordinator=encode_entries(entries, self._redact) or NO_ENTRIES)]

    def _next(self) -> Tail | None:
        if self._current is not None:
            tail = self._current.tail
            if tail.breaks == self._current.breaks and self._is_ready(tail):
                return tail
            self._drop()
            self.put(tail)
        self._queue = {tail: None for tail in self._queue if self._is_watched(tail) and tail.cursor.reread}
        return next(filter(self._is_ready, self._queue), None)

    def _is_ready(self, tail: Tail) -> bool:
        """Whether a log can be reread now.

        Offsets that are published again for a new consumer come first. Behind a flaw nothing is known of the rest.
        """
        cursor = tail.cursor
        is_published = cursor.next_offset >= cursor.frontier and not cursor.stopped
        waits = cursor.replay == Replays.FIRST or bool(cursor.wanted)
        return cursor.reread and tail.resumed and not tail.away and is_published and not waits and self._is_watched(tail)

    def _advance(self, current: _CurrentReread, budget: int) -> bool:
        """Read on up to the cursor; returns whether it was reached."""
        began = bytes_read()
        while current.reached < current.tail.cursor.next_offset:
            if current.pieces is None:
                current.end = current.tail.cursor.next_offset
                current.pieces = self._pieces(current, list_segments(current.tail.partition.path))
            for reached in current.pieces:
                current.reached = reached
                if bytes_read() - began >= budget:
                    return False
            current.pieces, current.reached = None, current.end  # missing offsets before it were cleaned
        return True

    def _pieces(self, current: _CurrentReread, segments: Sequence[Segment]) -> Iterator[int]:
        if self._buffer is None:
            self._buffer = kept_window(_PIECE_BYTES)
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
        """End the current reread, and remove its log from the queue."""
        if self._current is not None:
            if isinstance(self._current.pieces, Generator):
                self._current.pieces.close()
            self._queue.pop(self._current.tail, None)
            self._current = None

    def _fail(self, tail: Tail, error: Exception) -> None:
        """Note that a segment is gone or cannot be read: try again soon, or after the next rescan if that does not help."""
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
            extra={"log": str(tail.cursor.log), "path": str(tail.partition.path), "error": str(error)},
        )
        if not isinstance(error, OSError):
            tail.note_doubt()
