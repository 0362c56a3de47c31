"""What is open at a cursor where reading does not simply go on: at a beginning, after a gap, at a truncation.

Open transactions and producers are published at once if little has to be read to find them. Else the cursor notes that the log has to be
replayed, in pieces.
"""

import logging
from collections.abc import Sequence

import numpy as np

from streaming.broker.disk.scanning import kept_window
from streaming.broker.disk.segment_files import Segment, list_segments
from streaming.broker.journal.cursor import Cursor, Replays
from streaming.broker.journal.range_values import encode_ongoing
from streaming.broker.watcher.bootstrap import Past, Replay
from streaming.broker.watcher.cursors import Open
from streaming.broker.watcher.tail import Tail
from streaming.common.event_row import Event
from streaming.kafka.scan.producer_states import Producers
from streaming.kafka.scan.walk import Bytes

log = logging.getLogger(__name__)

AT_ONCE_BYTES = 16 << 10
"""The most bytes that are replayed at once: ten thousand logs may need it in one rescan."""

REPLAY_BYTES = 1 << 20
"""How many bytes of a log are replayed between two checks of the budget."""

_UNKNOWN = Open(None, None)


class OpenReplays:
    """The replays that find what is open at logs' cursors: of those whose cursors ask for one."""

    def __init__(self) -> None:
        self._buffer = kept_window(REPLAY_BYTES)

    def needed(self, tail: Tail) -> bool:
        """Whether the log has to be replayed."""
        return tail.cursor.replay != Replays.NOT

    def urgent(self, tail: Tail) -> bool:
        """Whether the log is not read on before."""
        return tail.cursor.replay == Replays.FIRST

    def possible(self, tail: Tail) -> bool:
        """Whether the log can be replayed now.

        Offsets that are published again for a new job come first: other jobs accept what is open only at the offset that they
        have reached.
        """
        cursor = tail.cursor
        is_published = cursor.replay == Replays.FIRST or cursor.next_offset >= cursor.frontier or bool(cursor.stopped)
        return is_published and not cursor.wanted

    def begin(self, tail: Tail) -> "OpenReplay":
        """Begin a replay up to the cursor."""
        return OpenReplay(tail, self._buffer)

    def give_up(self, tail: Tail, error: Exception) -> list[Event]:
        """Note that what is open is not known before the next rescan. Returns the events to publish."""
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


class OpenReplay:
    """A replay of one log up to its cursor, in pieces."""

    def __init__(self, tail: Tail, buffer: Bytes) -> None:
        self._tail = tail
        self._buffer = buffer
        self._replay: Replay | None = None

    def advance(self, budget: int) -> bool:
        """Read about ``budget`` bytes; returns whether the cursor is reached. Raises OSError."""
        segments = list_segments(self._tail.partition.path)
        if self._replay is None:
            self._replay = replay_of(self._tail, self._tail.cursor, segments, self._buffer)
        return self._replay.advance(segments, self._tail.cursor.next_offset, budget)

    def finish(self) -> list[Event]:
        """Note what is open at the tail's cursor. Returns the events to publish."""
        assert self._replay is not None
        tail = self._tail
        past, first = self._replay.past(), tail.cursor.replay == Replays.FIRST
        opened = found_open(tail, past, believe_cold=first)  # else jobs may know more than these files
        tail.replayed(opened, self._replay.timestamps(tail.cursor.segment))
        return [] if opened.transactions is None else [tail.appeared(opened.transactions)]

    def close(self) -> None:
        """Close the file that is being read."""
        if self._replay is not None:
            self._replay.close()


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


def open_at(tail: Tail, cursor: Cursor, segments: Sequence[Segment], *, opens: bool = True) -> Open:
    """The transactions that are open at another cursor of the tail's log.

    Args:
        segments: a listing; the cursor is in one of them.
        opens: whether the open transactions are needed.
    """
    if cursor.next_offset == 0 or not opens:
        return Open(b"", Producers.none(tail.producers.limit))
    return _at_once(tail, cursor, segments)


def _at_once(tail: Tail, cursor: Cursor, segments: Sequence[Segment], *, believe_cold: bool = True) -> Open:
    try:
        replay = replay_of(tail, cursor, segments, np.empty(REPLAY_BYTES, np.uint8))
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


def still_open(tail: Tail) -> Open:
    """The transactions that are open at a cursor that the tail has reached by reading: its producers are known."""
    producers = tail.producers.now
    if producers is not None and producers.active is not None and not producers.entries["open"].any():
        return Open(b"", producers)
    # the cursor may be in a file that is already deleted, together with the files that contained what was open there
    return _at_once(tail, tail.cursor, tail.segments, believe_cold=False)
