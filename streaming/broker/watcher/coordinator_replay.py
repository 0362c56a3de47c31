"""Replays logs of ``__transaction_state`` from their first byte, because some job may lack some of their entries.

Such a log is compacted, so only its present entries count. Each event of it contains the offset where the one before it ended. So a job
knows whether it has missed one. This chain can break: by a loss, a truncation, a flaw, or a job that was away for too long. Then the log
is read again, in pieces, while it is also read on. At the end, one event publishes all of its entries up to the cursor of that time.
"""

import logging
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import replace

from streaming.broker.disk.locate import batches_between
from streaming.broker.disk.opening import bytes_read
from streaming.broker.disk.scanning import kept_window
from streaming.broker.disk.segment_files import Segment, list_segments
from streaming.broker.journal.cursor import Replays
from streaming.broker.journal.range_values import NO_ENTRIES, encode_entries
from streaming.broker.watcher.tail import Tail
from streaming.common.event_row import Event
from streaming.common.rows import NOT_UNDERSTOOD, TOMBSTONE, Kind
from streaming.errors import FormatError
from streaming.kafka.formats.names import TRANSACTION_TOPIC
from streaming.kafka.scan.coordinator_entries import CoordinatorEntry, coordinator_entries
from streaming.kafka.scan.walk import Bytes

log = logging.getLogger(__name__)

_PIECE_BYTES = 4 << 20
_CHAINED = (Kind.APPEARED, Kind.APPENDED, Kind.SKIPPED, Kind.TRUNCATED, Kind.CORRUPT)


class EntryReplays:
    """The replays of coordinators' logs whose cursors ask for one.

    Args:
        redact: returns the text that replaces a transactional id in events.
    """

    def __init__(self, redact: Callable[[str], str]) -> None:
        self._redact = redact
        self._buffer: Bytes | None = None

    def needed(self, tail: Tail) -> bool:
        """Whether the log has to be replayed."""
        return tail.cursor.reread

    def urgent(self, tail: Tail) -> bool:
        """Never: the log is read on meanwhile."""
        return False

    def possible(self, tail: Tail) -> bool:
        """Whether the log can be replayed now.

        Offsets that are published again for a new job come first. Behind a flaw nothing is known of the rest.
        """
        cursor = tail.cursor
        is_published = cursor.next_offset >= cursor.frontier and not cursor.stopped
        return is_published and cursor.replay != Replays.FIRST and not cursor.wanted

    def begin(self, tail: Tail) -> "EntryReplay":
        """Begin a replay up to the cursor. Raises OSError."""
        if self._buffer is None:
            self._buffer = kept_window(_PIECE_BYTES)
        return EntryReplay(tail, self._buffer, self._redact)

    def give_up(self, tail: Tail, error: Exception) -> list[Event]:
        """Note that what the entries are is not known before the next rescan. Returns no events."""
        known = isinstance(error, (OSError, FormatError))
        log.warning(
            "a coordinator's log cannot be read again now: what its entries are is not known",
            exc_info=None if known else error,
            extra={"log": str(tail.cursor.log), "path": str(tail.partition.path), "error": str(error)},
        )
        if not isinstance(error, OSError):
            tail.note_doubt()
        return []


class EntryReplay:
    """A replay of one log from its first byte up to its cursor, in pieces. Raises OSError if the log cannot be listed."""

    def __init__(self, tail: Tail, buffer: Bytes, redact: Callable[[str], str]) -> None:
        self._tail = tail
        self._buffer = buffer
        self._redact = redact
        self._reached = list_segments(tail.partition.path)[0].base_offset
        self._pieces: Iterator[int] | None = None
        self._end = -1
        self._newest: dict[str, CoordinatorEntry] = {}

    def advance(self, budget: int) -> bool:
        """Read about ``budget`` bytes; returns whether the cursor is reached.

        Raises:
            OSError: the log cannot be read now.
            FormatError: there is something else than a batch.
        """
        began = bytes_read()
        while self._reached < self._tail.cursor.next_offset:
            if self._pieces is None:
                self._end = self._tail.cursor.next_offset
                self._pieces = self._read(list_segments(self._tail.partition.path))
            for reached in self._pieces:
                self._reached = reached
                if bytes_read() - began >= budget:
                    return False
            self._pieces, self._reached = None, self._end  # missing offsets before it were cleaned
        return True

    def finish(self) -> list[Event]:
        """Note that it is done. Returns the event with all entries."""
        entries = sorted(self._newest.values(), key=lambda entry: entry.offset)
        tail = self._tail
        tail.plan_reread(needed=False)
        log.info("a coordinator's log was read again", extra={"log": str(tail.cursor.log), "transactional_ids": len(entries)})
        return [replace(tail.appeared(None), coordinator=encode_entries(entries, self._redact) or NO_ENTRIES)]

    def close(self) -> None:
        """Close the file that is being read."""
        if isinstance(self._pieces, Generator):
            self._pieces.close()

    def _read(self, segments: Sequence[Segment]) -> Iterator[int]:
        reached = self._reached
        for batches, _ in batches_between(segments, reached, self._end, self._buffer):
            found = coordinator_entries(batches, self._buffer)
            reached = int(batches.last_offset[-1]) + 1
            for entry in found.entries:
                self._newest[entry.transactional_id] = entry
                if entry.state == TOMBSTONE:
                    del self._newest[entry.transactional_id]
            if found.unreadable:
                self._newest[""] = CoordinatorEntry(transactional_id="", offset=reached - 1, state=NOT_UNDERSTOOD)
            yield reached
        if reached < self._end and all(segment.base_offset != self._end for segment in segments):
            raise FormatError(f"no whole batch at offset {reached}")


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
