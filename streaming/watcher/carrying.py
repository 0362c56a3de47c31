"""What a log carries across its place where reading does not simply go on: at its beginning, behind a hole, where it was cut off.

It is told at once where little has to be read for it. Else the place remembers that the log has to be replayed
(`streaming.watcher.replaying`).
"""

import logging
from collections.abc import Sequence
from dataclasses import replace

from streaming.disk.segments import Segment
from streaming.kafka.producers import Producers
from streaming.kafka.walk import Bytes
from streaming.watcher.blobs import encode_ongoing
from streaming.watcher.bootstrap import Past, Replay
from streaming.watcher.events import Place, Replays
from streaming.watcher.locate import window
from streaming.watcher.tail import Tail

log = logging.getLogger(__name__)

AT_ONCE_BYTES = 16 << 10
"""So much is replayed at once: ten thousand logs may need it in one survey."""

REPLAY_BYTES = 1 << 20
"""How much of a log is replayed between two looks at the budget."""


def carry_over(tail: Tail, *, opens: bool = True) -> bytes | None:
    """What is open at the tail's place, as a column of the event that tells the place; None where nobody knows yet.

    The tail's producers are set to what they are there.

    Args:
        opens: whether anybody wants to know it.
    """
    tail.turns += 1
    if tail.place.next_offset == 0 or not opens:
        tail.producers.reset(Producers.none(tail.producers.limit))
        _needs_replay(tail, needed=False)
        return b""
    past = _at_once(tail)
    _needs_replay(tail, needed=past is None)
    tail.producers.reset(None if past is None else past.producers)
    return None if past is None else encode_ongoing(past.ongoing)


def still_open(tail: Tail) -> bytes | None:
    """The same for a place that the tail has read up to: its producers are known."""
    known = tail.producers.now
    if known is not None and known.active is not None and not known.entries["open"].any():
        return b""
    past = _at_once(tail)
    if past is None:
        _needs_replay(tail, needed=True)
    # it may stand in a file that is deleted already, with all that told what was open there
    return None if past is None or past.cold else encode_ongoing(past.ongoing)


def replay_of(tail: Tail, segments: Sequence[Segment], buffer: Bytes) -> Replay:
    """The replay of the tail's log up to its place. Raises OSError."""
    return Replay(tail.partition.path, segments, tail.place.next_offset, producers_limit=tail.producers.limit, buffer=buffer)


def note_doubts(tail: Tail, past: Past) -> None:
    """Count and log what was not understood of the files that tell what is open."""
    tail.doubts += len(past.doubts)
    tail.replayed_whole = past.whole
    for doubt in past.doubts:
        log.warning("what is open in a log is told with a doubt", extra={"log": str(tail.place.log), "doubt": doubt})


def _needs_replay(tail: Tail, *, needed: bool) -> None:
    if tail.place.replay != Replays.FIRST:
        tail.place = replace(tail.place, replay=Replays.ALONGSIDE if needed else Replays.NOT)


def _at_once(tail: Tail) -> Past | None:
    place = tail.place
    try:
        replay = replay_of(tail, tail.segments, window()[:REPLAY_BYTES])
        if not _is_short(replay.begins, place, tail.segments):
            return None
        replay.advance(tail.segments, place.next_offset)
    except OSError as error:
        log.warning(
            "what is open in a log cannot be told now", extra={"log": str(place.log), "path": str(tail.partition.path), "error": str(error)}
        )
        return None
    except MemoryError:
        raise
    except Exception:  # whatever is wrong with a snapshot or an old batch, the log is read on without
        log.exception("what is open in a log cannot be told", extra={"log": str(place.log), "path": str(tail.partition.path)})
        tail.doubts += 1
        return None
    past = replay.past()
    note_doubts(tail, past)
    return past


def _is_short(begins: int, place: Place, segments: Sequence[Segment]) -> bool:
    """Whether a replay from an offset to a place reads little, as far as that is known without reading."""
    if begins >= place.next_offset:
        return True
    between = [segment for segment in segments if segment.base_offset < place.next_offset]
    before = [segment for segment in between if segment.base_offset <= begins]
    size = sum(segment.size for segment in between[len(before) - 1 :]) if before else 0
    if between and between[-1].base_offset == place.segment:
        size -= max(0, between[-1].size - place.position)
    return size <= AT_ONCE_BYTES
