"""Limits how many log files a thread keeps open: if there are more logs than descriptors, quiet logs are closed between polls."""

import errno
import logging
import resource
import threading
from typing import Protocol

log = logging.getLogger(__name__)

RESERVED = 1280
"""How many descriptors are left for everything else, which is the connections of two ports above all; half of all if there are few."""

_SHORT = (errno.EMFILE, errno.ENFILE)


class Holder(Protocol):
    """An object that holds a file open."""

    @property
    def calm(self) -> bool:
        """Whether closing its file now costs nothing but the time to open it again."""
        ...

    def rest(self) -> bool:
        """Close its file for now; False if it must stay open."""
        ...


class OpenFiles:
    """The open files of a thread's logs. ``most``: how many there may be."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._holders: dict[Holder, None] = {}  # in the order of their opening
        self._logged = False

    def __len__(self) -> int:
        return len(self._holders)

    def opened(self, holder: Holder) -> None:
        """Note that a holder has opened its file; if there are too many now, others are closed."""
        self._holders[holder] = None
        if len(self._holders) > self.most:
            self._make_room(self.most - self.most // 8, but=holder)

    def closed(self, holder: Holder) -> None:
        """Note that a holder has closed its file."""
        self._holders.pop(holder, None)

    def ran_short(self, error: OSError) -> bool:
        """Whether a file could not be opened because there was no descriptor, and some were made free: then the caller may try again."""
        if error.errno not in _SHORT or not self._holders:
            return False
        before = len(self._holders)
        self.most = max(1, before - before // 4)
        self._make_room(self.most, but=None)
        return len(self._holders) < before

    def _make_room(self, upto: int, but: Holder | None) -> None:
        if not self._logged:
            self._logged = True
            log.warning(
                "more logs than files may be open: those of quiet logs are closed between looks; raise LimitNOFILE (ulimit -Hn)",
                extra={"open_files": len(self._holders), "limit": _limit()},
            )
        holders = [holder for holder in self._holders if holder is not but]
        for holder in sorted(holders, key=lambda each: not each.calm):
            if len(self._holders) <= upto:
                return
            holder.rest()


class _FilesOfThread(threading.local):
    def __init__(self) -> None:
        limit = _limit()
        self.files = OpenFiles(limit - min(RESERVED, limit // 2))


def _limit() -> int:
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


_of_thread = _FilesOfThread()


def open_files() -> OpenFiles:
    """The open files of the calling thread."""
    return _of_thread.files
