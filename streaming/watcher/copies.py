"""Which of several copies of a log counts: a disk that was taken out of ``log.dirs`` may still lie there, with all that it held."""

import logging
from collections.abc import Callable, Sequence

from streaming.disk.logdirs import Partition
from streaming.disk.segments import Identity, Segment, list_segments
from streaming.kafka.walk import Bytes
from streaming.watcher.events import LogId, Place
from streaming.watcher.locate import find_offset

log = logging.getLogger(__name__)

_Paths = frozenset[str]


class Copies:
    """Remembers which logs lay in several log dirs at the listing before: while a move ends both are there for a moment.

    Args:
        assigned: the directory.id in which the cluster's metadata has a replica, None where it does not say (before Kafka 3.7).
    """

    def __init__(self, assigned: Callable[[LogId], str | None], buffer: Bytes) -> None:
        self._assigned = assigned
        self._buffer = buffer
        self._before: dict[LogId, _Paths] = {}
        self._now: dict[LogId, _Paths] = {}
        self._logged: dict[LogId, tuple[_Paths, str]] = {}

    def listed(self) -> None:
        """What was chosen from so far is the listing before from now on."""
        self._before, self._now = self._now, {}
        self._logged = {key: told for key, told in self._logged.items() if key in self._before}

    def choose(self, key: LogId, copies: Sequence[Partition], watched: Partition | None) -> Partition:
        """The copy that the cluster's metadata names; else the watched one, unless another goes further and both are there to stay."""
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

    def goes_on_in(self, copy: Partition, place: Place) -> bool:
        """Whether a copy may stand for one in a log dir that is unavailable: the metadata names it, or it holds what was read."""
        directory = self._assigned(place.log)
        if directory is not None and copy.log_dir.directory_id == directory:
            return True
        segments = _segments(copy)
        if any(segment.identity == Identity(place.device, place.inode) for segment in segments):
            return True
        return self._end_of(copy)[0] >= place.next_offset

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
