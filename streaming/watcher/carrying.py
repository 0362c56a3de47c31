"""Open transactions and producers at a cursor where reading does not simply go on: at a beginning, behind a gap, at a truncation.

They are published at once if little has to be read to find them. Else the cursor notes that the log has to be replayed
(`streaming.watcher.replaying`).
"""

import logging
from collections.abc import Sequence

from streaming.disk.segment_files import Segment
from streaming.journal.blobs import encode_ongoing
from streaming.journal.events import Cursor, Replays
from streaming.scan.producer_states import Producers
from streaming.scan.walk import Bytes
from streaming.watcher.bootstrap import Past, Replay
from streaming.watcher.locate import window
from streaming.watcher.tail import Tail

log = logging.getLogger(__name__)

AT_ONCE_BYTES = 16 << 10
"""The most bytes that are replayed at once: ten thousand logs may need it in one rescan."""

REPLAY_BYTES = 1 << 20
"""How many bytes of a log are replayed between two checks of the budget."""


def carry_over(tail: Tail, *, opens: bool = True) -> bytes | None:
    """The open transactions at the tail's cursor, as a column of the event that publishes the cursor; None if they are not known yet.

    The tail's producers are set to those at the cursor.

    Args:
        opens: whether the open transactions are needed.
    """
    if tail.cursor.next_offset == 0 or not opens:
        tail.break_off(Producers.none(tail.producers.limit), known=True)
        return b""
    past = _at_once(tail)
    tail.break_off(None if past is None else past.producers, known=past is not None)
    return None if past is None else encode_ongoing(past.ongoing)


def still_open(tail: Tail) -> bytes | None:
    """The same for a cursor that the tail has reached by reading: its producers are known."""
    known = tail.producers.now
    if known is not None and known.active is not None and not known.entries["open"].any():
        return b""
    past = _at_once(tail)
    if past is None and tail.cursor.replay != Replays.FIRST:
        tail.plan_replay(Replays.ALONGSIDE)
    # the cursor may be in a file that is already deleted, together with the files that contained what was open there
    return None if past is None or past.cold else encode_ongoing(past.ongoing)


def replay_of(tail: Tail, segments: Sequence[Segment], buffer: Bytes) -> Replay:
    """The replay of the tail's log up to its cursor. Raises OSError."""
    return Replay(tail.partition.path, segments, tail.cursor.next_offset, producers_limit=tail.producers.limit, buffer=buffer)


def note_doubts(tail: Tail, past: Past) -> None:
    """Count and log what was not understood in the files that show what is open."""
    tail.note_replayed(doubts=len(past.doubts), whole=past.whole)
    for doubt in past.doubts:
        log.warning("open transactions of a log may be incomplete", extra={"log": str(tail.cursor.log), "doubt": doubt})


def _at_once(tail: Tail) -> Past | None:
    cursor = tail.cursor
    try:
        replay = replay_of(tail, tail.segments, window()[:REPLAY_BYTES])
        if not _is_short(replay.begins, cursor, tail.segments):
            return None
        replay.advance(tail.segments, cursor.next_offset)
    except OSError as error:
        log.warning(
            "open transactions of a log are not known now",
            extra={"log": str(cursor.log), "path": str(tail.partition.path), "error": str(error)},
        )
        return None
    except MemoryError:
        raise
    except Exception:  # an error in a snapshot or an old batch does not stop the log: it is read on without it
        log.exception("open transactions of a log are not known", extra={"log": str(cursor.log), "path": str(tail.partition.path)})
        tail.note_doubt()
        return None
    past = replay.past()
    note_doubts(tail, past)
    return past


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
