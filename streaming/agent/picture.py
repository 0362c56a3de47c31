"""The full picture that a beat stands for, expanded when it is read: what was told of every log besides what was appended."""

from collections.abc import Iterable
from pathlib import Path

from streaming.rows import Kind
from streaming.watcher.events import Event
from streaming.watcher.tail import Tail


def picture(beat: Event, tails: Iterable[Tail], unseen: Iterable[Path]) -> list[Event]:
    """A row for every log, and the closing one, which names the log dirs of which the picture tells nothing.

    Args:
        beat: the journal's event.
        unseen: log dirs of which is not known what lies in them: a new journal does not even know the logs that should.
    """
    without = "\n".join(sorted(map(str, unseen)))
    return [*(_row(beat, tail) for tail in tails), Event(kind=Kind.BEAT_END, settled=beat.settled, reason=without)]


def _row(beat: Event, tail: Tail) -> Event:
    # a backlog that was read since the beat was told lies behind this row, and may not have been folded yet
    settled, told = beat.settled and tail.place.settled, tail.told
    if told is None:  # it is still being read
        return tail.event(Kind.BEAT, settled=settled, log_start_offset=tail.log_start)
    return tail.event(Kind.BEAT, settled=settled, **told.news(None))
