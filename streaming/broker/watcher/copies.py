"""Decides which of several copies of a log counts: a disk that was removed from ``log.dirs`` may still be there with all its logs."""

import logging
from collections.abc import Callable, Sequence

from streaming.broker.disk.locate import find_offset
from streaming.broker.disk.logdirs import Partition
from streaming.broker.disk.segment_files import FileIdentity, Segment, list_segments
from streaming.broker.journal.cursor import Cursor
from streaming.common.log_key import LogKey
from streaming.kafka.scan.walk import Bytes

log = logging.getLogger(__name__)

_Paths = frozenset[str]


class LogCopies:
    """Remembers which logs were in several log dirs at the previous listing: at the end of a move both copies exist for a moment.

    Args:
        assigned: the directory.id of a replica in the cluster's metadata, None if the metadata contains none (before Kafka 3.7).
    """

    def __init__(self, assigned: Callable[[LogKey], str | None], buffer: Bytes) -> None:
        self._assigned = assigned
        self._buffer = buffer
        self._before: dict[LogKey, _Paths] = {}
        self._now: dict[LogKey, _Paths] = {}
        self._logged: dict[LogKey, tuple[_Paths, str]] = {}

    def listed(self) -> None:
        """End the current listing: from now on it is the previous one."""
        self._before, self._now = self._now, {}
        self._logged = {key: logged for key, logged in self._logged.items() if key in self._before}

    def choose(self, key: LogKey, copies: Sequence[Partition], watched: Partition | None) -> Partition:
        """The copy that the cluster's metadata names; else the watched copy, unless another one goes further and both were listed twice."""
        paths = self._now[key] = frozenset(str(each.path) for each in copies)
        directory = self._assigned(key)
        named = [each for each in copies if directory is not None and each.log_dir.directory_id == directory]
        current = next((each for each in copies if watched is not None and each.path == watched.path), None)
        if len(named) == 1:
            chosen = named[0]
        elif current is not None and self._before.get(key) != paths:
            return current
        else:
            chosen = max(copies, key=lambda each: (self._end_of(each)[0], each is current, self._end_of(each)[1]))
        if self._logged.get(key) != (paths, str(chosen.path)):
            self._logged[key] = paths, str(chosen.path)
            log.warning("a log lies in several log dirs", extra={"log": str(key), "paths": sorted(paths), "watched": str(chosen.path)})
        return chosen

    def goes_on_in(self, copy: Partition, cursor: Cursor) -> bool:
        """Whether a copy may replace one in an unavailable log dir: the metadata names it, or it contains everything that was read."""
        directory = self._assigned(cursor.log)
        if directory is not None and copy.log_dir.directory_id == directory:
            return True
        segments = _segments(copy)
        if any(segment.identity == FileIdentity(cursor.device, cursor.inode) for segment in segments):
            return True
        return self._end_of(copy)[0] >= cursor.next_offset

    def _end_of(self, copy: Partition) -> tuple[int, int]:
        """(Next offset, last write in Unix milliseconds) of a copy, -1 where it cannot be read now."""
        segments = _segments(copy)
        try:
            return (find_offset(segments, None, self._buffer).next_offset, segments[-1].modified_ms) if segments else (-1, -1)
        except OSError as error:
            log.warning("copy of a log cannot be read", extra={"path": str(copy.path), "error": str(error)})
            return -1, -1


def _segments(copy: Partition) -> tuple[Segment, ...]:
    try:
        return list_segments(copy.path)
    except OSError as error:
        log.warning("copy of a log cannot be read", extra={"path": str(copy.path), "error": str(error)})
        return ()
