"""Replays logs to find what is open at their cursor: one log after the other, in pieces, so that nothing else waits for it."""

import logging
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from streaming.broker.disk.locate import batches_between, window
from streaming.broker.disk.opening import bytes_read
from streaming.broker.disk.scanning import kept_window
from streaming.broker.disk.segment_files import Segment, list_segments
from streaming.broker.journal.cursor import Cursor, Replays
from streaming.broker.journal.range_values import NO_ENTRIES, encode_entries, encode_ongoing
from streaming.broker.watcher.bootstrap import Past, Replay
from streaming.broker.watcher.cursors import Open
from streaming.broker.watcher.tail import Tail
from streaming.broker.watcher.unreadable import Tries
from streaming.common.event_row import Event
from streaming.common.rows import NOT_UNDERSTOOD, TOMBSTONE, Kind
from streaming.errors import FormatError
from streaming.kafka.formats.names import TRANSACTION_TOPIC
from streaming.kafka.scan.coordinator_entries import CoordinatorEntry, coordinator_entries
from streaming.kafka.scan.producer_states import Producers
from streaming.kafka.scan.walk import Bytes

# --- open transactions and producers at a cursor where reading does not simply go on: at a beginning, after a gap, at a truncation. They
# are published at once if little has to be read to find them. Else the cursor notes that the log has to be replayed.


log = logging.getLogger(__name__)

AT_ONCE_BYTES = 16 << 10
"""The most bytes that are replayed at once: ten thousand logs may need it in one rescan."""

REPLAY_BYTES = 1 << 20
"""How many bytes of a log are replayed between two checks of the budget."""

_UNKNOWN = Open(None, None)


def open_at(tail: Tail, cursor: Cursor, segments: Sequence[Segment], *, opens: bool = True) -> Open:
    """The transactions that are open at another cursor of the tail's log.

    Args:
        segments: a listing; the cursor is in one of them.
        opens: whether the open transactions are needed.
    """
    if cursor.next_offset == 0 or not opens:
        return Open(b"", Producers.none(tail.producers.limit))
    return _at_once(tail, cursor, segments)


def still_open(tail: Tail) -> Open:
    """The transactions that are open at a cursor that the tail has reached by reading: its producers are known."""
    producers = tail.producers.now
    if producers is not None and producers.active is not None and not producers.entries["open"].any():
        return Open(b"", producers)
    # the cursor may be in a file that is already deleted, together with the files that contained what was open there
    return _at_once(tail, tail.cursor, tail.segments, believe_cold=False)


def replay_of(tail: Tail, cursor: Cursor, segments: Sequence[Segment], buffer: Bytes) -> Replay:
    """The replay of the tail's log up to a cursor. Raises OSError."""
    return Replay(tail.partition.path, segments, cursor.next_offset, producers_limit=tail.producers.limit, buffer=buffer)


def found_open(tail: Tail, past: Past, *, believe_cold: bool) -> Open:
    """The result of a replay of the tail's log. Logs what was not understood in the files that show it.

    Args:
        believe_cold: also if no snapshot contained what was open before.
    """
    for doubt in past.doubts:
        log.warning("open transactions of a log may be incomplete", extra={"log": str(tail.cursor.log), "doubt": doubt})
    transactions = encode_ongoing(past.ongoing) if believe_cold or not past.cold else None
    return Open(transactions, past.producers, len(past.doubts), past.whole)


def _at_once(tail: Tail, cursor: Cursor, segments: Sequence[Segment], *, believe_cold: bool = True) -> Open:
    try:
        replay = replay_of(tail, cursor, segments, window()[:REPLAY_BYTES])
        if not _is_short(replay.begins, cursor, segments):
            return _UNKNOWN
        replay.advance(segments, cursor.next_offset)
    except OSError as error:
        log.warning(
            "open transactions of a log are not known now",
            extra={"log": str(cursor.log), "path": str(tail.partition.path), "error": str(error)},
        )
        return _UNKNOWN
    except MemoryError:
        raise
    except Exception:  # an error in a snapshot or an old batch does not stop the log: it is read on without it
        log.exception("open transactions of a log are not known", extra={"log": str(cursor.log), "path": str(tail.partition.path)})
        return Open(None, None, doubts=1)
    return found_open(tail, replay.past(), believe_cold=believe_cold)


def _is_short(begins: int, cursor: Cursor, segments: Sequence[Segment]) -> bool:
    """Whether a replay from an offset to a cursor has little to read, judged by the listed sizes."""
    if begins >= cursor.next_offset:
        return True
    between = [segment for segment in segments if segment.base_offset < cursor.next_offset]
    before = [segment for segment in between if segment.base_offset <= begins]
    size = sum(segment.size for segment in between[len(before) - 1 :]) if before else 0
    if between and between[-1].base_offset == cursor.segment:
        size -= max(0, between[-1].size - cursor.position)
    return size <= AT_ONCE_BYTES


@dataclass(slots=True)
class _CurrentReplay:
    """The current replay. ``breaks``: `Tail.breaks` when it began; if this has changed, the replayed part of the log may be gone."""

    tail: Tail
    replay: Replay
    breaks: int


class Replaying:
    """The queue of these logs. Only the watcher's thread uses it.

    Args:
        is_watched: whether this tail is still the current one of its log.
    """

    def __init__(self, is_watched: Callable[[Tail], bool]) -> None:
        self._is_watched = is_watched
        self._queue: deque[Tail] = deque()
        self._queued: set[Tail] = set()
        self._tries = Tries()
        self._current: _CurrentReplay | None = None
        self._buffer = kept_window(REPLAY_BYTES)

    def put(self, tail: Tail) -> None:
        """Queue a log whose cursor requires a replay; logs that cannot be read on before their replay come first."""
        if tail.cursor.replay != Replays.NOT and tail not in self._queued and self._tries.any_left(tail):
            self._queued.add(tail)
            if tail.cursor.replay == Replays.FIRST:
                self._queue.appendleft(tail)
            else:
                self._queue.append(tail)

    def retry(self) -> None:
        """Queue once more the logs that could not be read."""
        for tail in self._tries.begin_again():
            self.put(tail)

    @property
    def ready(self) -> bool:
        """Whether there is something to replay now."""
        return self._current is not None or any(map(self._is_ready, self._queue))

    def step(self, budget: int) -> tuple[Tail, list[Event]] | None:
        """Replay about ``budget`` bytes of one log. Returns it and the events to publish if its replay is done; None if there is no log."""
        tail = self._next()
        if tail is None:
            return None
        try:
            segments = list_segments(tail.partition.path)
            if self._current is None:
                self._current = _CurrentReplay(tail, replay_of(tail, tail.cursor, segments, self._buffer), tail.breaks)
            if not self._current.replay.advance(segments, tail.cursor.next_offset, budget):
                return tail, []
            events = _finish_replay(tail, self._current.replay)
        except MemoryError:
            raise
        except Exception as error:  # noqa: BLE001 - an error in a snapshot or an old batch does not stop the log
            events = self._fail(tail, error)
        else:
            self._tries.succeeded(tail)
            self._drop()
        return tail, events

    def _next(self) -> Tail | None:
        """The next log: the current one, unless its replay has become useless."""
        if self._current is not None:
            tail = self._current.tail
            if self._is_watched(tail) and tail.breaks == self._current.breaks and self._is_ready(tail):
                return tail
            self._drop()
            self.put(tail)
        for _ in range(len(self._queue)):
            tail = self._queue.popleft()
            if not self._is_watched(tail) or tail.cursor.replay == Replays.NOT:
                self._queued.discard(tail)
            elif self._is_ready(tail):
                self._queue.appendleft(tail)
                return tail
            else:
                self._queue.append(tail)
        return None

    def _drop(self) -> None:
        """End the current replay, and remove its log from the queue."""
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
        """Whether a log can be replayed now.

        Offsets that are published again for a new job come first: other jobs accept what is open only at the offset that they
        have reached.
        """
        cursor = tail.cursor
        is_published = cursor.replay == Replays.FIRST or cursor.next_offset >= cursor.frontier or bool(cursor.stopped)
        return cursor.replay != Replays.NOT and tail.resumed and not tail.away and is_published and not cursor.wanted

    def _fail(self, tail: Tail, error: Exception) -> list[Event]:
        """Note that a segment is gone or cannot be read: try again soon, or after the next rescan if that does not help."""
        self._drop()
        self._forget(tail)
        self._tries.failed(tail, error)
        if self._tries.any_left(tail):
            self.put(tail)
            return []
        path, known = str(tail.partition.path), isinstance(error, OSError)
        extra = {"log": str(tail.cursor.log), "path": path, "error": str(error)}
        log.warning("open transactions of a log are not known now", exc_info=None if known else error, extra=extra)
        tail.note_partial_replay()
        if not known:
            tail.note_doubt()
        if tail.cursor.replay != Replays.FIRST:
            return []
        tail.plan_replay(Replays.ALONGSIDE)  # the readable part of the log does not wait
        return [tail.appeared(None)]


def _finish_replay(tail: Tail, replay: Replay) -> list[Event]:
    """Store the result of a replay: what is open at the tail's cursor. Returns the events to publish."""
    past, first = replay.past(), tail.cursor.replay == Replays.FIRST
    opened = found_open(tail, past, believe_cold=first)  # else jobs may know more than these files
    tail.replayed(opened, replay.timestamps(tail.cursor.segment))
    return [] if opened.transactions is None else [tail.appeared(opened.transactions)]


# --- rereads logs of ``__transaction_state`` from their first byte, because some job may lack some of their entries. Such a log is
# compacted, so only its present entries count. Each event of it contains the offset where the one before it ended. So a job knows
# whether it has missed one. This chain can break: by a loss, a truncation, a flaw, or a job that was away for too long. Then the log
# is read again, in pieces, while it is also read on. At the end, one event publishes all of its entries up to the cursor of that time.


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

        Offsets that are published again for a new job come first. Behind a flaw nothing is known of the rest.
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
