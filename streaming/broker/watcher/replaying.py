"""Replays logs to find what is open at their cursor: one log after the other, in pieces, so that nothing else waits for it."""

import logging
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from streaming.broker.disk.locate import window
from streaming.broker.disk.scanning import kept_window
from streaming.broker.disk.segment_files import Segment, list_segments
from streaming.broker.journal.blobs import encode_ongoing
from streaming.broker.journal.cursor import Cursor, Replays
from streaming.broker.watcher.bootstrap import Past, Replay
from streaming.broker.watcher.relocation import Open
from streaming.broker.watcher.tail import Tail
from streaming.broker.watcher.unreadable import Tries
from streaming.common.event_row import Event
from streaming.kafka.scan.producer_states import Producers
from streaming.kafka.scan.walk import Bytes

# --- open transactions and producers at a cursor where reading does not simply go on: at a beginning, after a gap, at a truncation. They
# are published at once if little has to be read to find them. Else the cursor notes that the log has to be replayed
# (`streaming.broker.watcher.replaying`).


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

        Offsets that are published again for a new consumer come first: other consumers accept what is open only at the offset that they
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
    opened = found_open(tail, past, believe_cold=first)  # else consumers may know more than these files
    tail.replayed(opened, replay.timestamps(tail.cursor.segment))
    return [] if opened.transactions is None else [tail.appeared(opened.transactions)]
