"""The full picture that a beat stands for, expanded when it is read: what was told of every log besides what was appended."""

from collections.abc import Iterable

from streaming.rows import Kind
from streaming.watcher.events import Event
from streaming.watcher.tail import Tail


def picture(beat: Event, tails: Iterable[Tail]) -> list[Event]:
    """A row for every log, and the closing one. ``beat`` is the journal's event."""
    return [*(_row(beat, tail) for tail in tails), Event(kind=Kind.BEAT_END, settled=beat.settled)]


def _row(beat: Event, tail: Tail) -> Event:
    # a backlog that was read since the beat was told lies behind this row, and may not have been folded yet
    settled, told = beat.settled and tail.place.settled, tail.told
    if told is None:  # it is still being read
        return tail.event(Kind.BEAT, settled=settled, log_start_offset=tail.log_start)
    return tail.event(Kind.BEAT, settled=settled, **told.news(None))
