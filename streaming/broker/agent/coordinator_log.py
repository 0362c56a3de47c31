"""Follows one log of a group coordinator: reads it from its first byte up to what the watcher has published of it, then on.

It begins again when reading did not simply go on for the watcher, as after a truncation, and after bytes that are no batch. A log that was
away is begun again too: tombstones that were written meanwhile may be cleaned by then. Where records were cleaned before they were read, it
is read anew beside: what was known counts until then.
"""

import logging
import threading
from collections.abc import Callable

from streaming.broker.agent.replay_reading import ReplayReading
from streaming.broker.protocol.group_messages import FollowedLog, Following, KnownLog
from streaming.broker.watcher.tail import Tail
from streaming.errors import FormatError
from streaming.kafka.groups.group_rows import GroupChanges
from streaming.kafka.groups.replays import Replay
from streaming.kafka.scan.walk import Bytes

log = logging.getLogger(__name__)

PIECE_BYTES = 512 << 10
"""How much is read and parsed at once: other threads wait for parts of that time."""

ANEW_SECONDS = 10.0
"""How long a log is left alone at least that was read anew. One that is cleaned all the time is read anew for a tenth of the time."""

_REST = 9


class ReplayedLog:
    """One log under one tail. One thread calls `step`; others may call `answer`.

    Args:
        new: makes an empty replay with a new edition; of the limit it may take what the other one takes that it is to replace.
    """

    def __init__(self, tail: Tail, new: Callable[[Replay | None], Replay]) -> None:
        self.tail = tail
        self._new = new
        self._lock = threading.Lock()  # protects the replay; it is never held while a file is read
        self._reading = ReplayReading(tail, new(None), self._lock)
        self._anew: ReplayReading | None = None
        self._due = False  # whether to read it anew
        self._begun = self._rested = 0.0  # when that began last, and when it may begin again
        self._read = False

    def unread(self, now: float) -> bool:
        """Whether something is published that is not replayed, as far as this can be known without a call into the log dir."""
        return not self._read or self._reading.broken or self._reading.has_more or self._reads_anew(now)

    def _reads_anew(self, now: float) -> bool:
        return self._anew is not None or (self._due and now >= self._rested)

    @property
    def read(self) -> bool:
        """Whether it was read up to what was published at some moment."""
        return self._read

    def step(self, buffer: Bytes, now: float) -> bool:
        """Read one piece; returns whether there is more.

        Args:
            buffer: the same one at each call, as pieces remain in it.
            now: seconds of a steady clock.

        Raises:
            FormatError: there is something else than a batch, with file and position.
            OSError: the log cannot be read now.
        """
        if self._reading.broken:
            self.begin_again()
        more = self._reading.step(buffer)
        self._due |= self._reading.took_cleaned()
        if more:
            return True
        self._read = True
        return self._reads_anew(now) and self._step_anew(buffer, now)

    def _step_anew(self, buffer: Bytes, now: float) -> bool:
        if self._anew is None:
            self._due, self._begun = False, now
            self._anew = ReplayReading(self.tail, self._new(self._reading.replay), self._lock)
        try:
            if self._anew.step(buffer):
                return True
        except (OSError, FormatError) as error:
            self._end_anew(now, due=True)
            context = {"log": str(self.tail.cursor.log), "error": str(error), "again_in_seconds": self._rested - now}
            level = logging.INFO if isinstance(error, FileNotFoundError) else logging.WARNING  # it is being cleaned right now
            log.log(level, "a group coordinator's log cannot be read anew now, which was cleaned before it was read", extra=context)
            return False
        with self._lock:
            self._anew.replay.replace(self._reading.replay)
            self._reading = self._anew
        self._end_anew(now, due=self._reading.took_cleaned())
        return False

    def _end_anew(self, now: float, *, due: bool) -> None:
        self._anew, self._due = None, due
        self._rested = now + max(ANEW_SECONDS, _REST * (now - self._begun))

    def adopt(self, tail: Tail) -> bool:
        """Go on under the tail of another watcher, which goes on from the journal; False if it found another log there."""
        if not self._reading.adopt(tail):
            return False
        if self._anew is not None:
            self._anew, self._due = None, True
        self.tail = tail
        return True

    def begin_again(self) -> None:
        """Forget everything, and read it again from the first byte."""
        with self._lock:
            self._reading.replay.close()
            self._reading = ReplayReading(self.tail, self._new(None), self._lock)
            self._read = False
        self._anew, self._due = None, False

    def close(self) -> None:
        """Give back what it takes of the limit of groups. Nothing may be called after that but `answer`."""
        with self._lock:
            self._reading.replay.close()
            self._read = False

    def answer(self, request: KnownLog | None) -> GroupChanges | FollowedLog:
        """The changes since the version that a job knows."""
        with self._lock:
            if not self._read or self._reading.broken:
                return followed(self.tail, Following.READING)
            replay = self._reading.replay
            return replay.changes(request.version if request is not None and request.edition == replay.edition else 0)


def followed(tail: Tail, following: Following) -> FollowedLog:
    """A log whose commits are not known now."""
    log = tail.cursor.log
    return FollowedLog(broker=log.broker, topic=log.topic, topic_id=log.topic_id, coordinator=log.partition, following=following)
