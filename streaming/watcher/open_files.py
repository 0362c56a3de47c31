"""How many files of logs a thread keeps open: where there are more logs than descriptors, those of quiet logs are closed between looks."""

import errno
import logging
import resource
import threading
from typing import Protocol

log = logging.getLogger(__name__)

RESERVED = 256
"""So many descriptors are left to everything else, or half of them where there are few."""

_SHORT = (errno.EMFILE, errno.ENFILE)


class Holder(Protocol):
    """What holds a file open."""

    @property
    def quiet(self) -> bool:
        """Whether nothing is lost when its file is closed now, but the time to open it again."""
        ...

    def rest(self) -> bool:
        """Close its file for now; False if it must stay open."""
        ...


class OpenFiles:
    """Those that a thread's logs hold. ``most``: how many there may be."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._holders: dict[Holder, None] = {}  # by when they were opened
        self._told = False

    def __len__(self) -> int:
        return len(self._holders)

    def opened(self, holder: Holder) -> None:
        """It has opened its file: if there are too many now, others are closed."""
        self._holders[holder] = None
        if len(self._holders) > self.most:
            self._make_room(self.most - self.most // 8, but=holder)

    def closed(self, holder: Holder) -> None:
        """It has closed its file."""
        self._holders.pop(holder, None)

    def ran_short(self, error: OSError) -> bool:
        """Whether a file could not be opened for want of descriptors, and some were made free: then it is worth another try."""
        if error.errno not in _SHORT or not self._holders:
            return False
        before = len(self._holders)
        self.most = max(1, before - before // 4)
        self._make_room(self.most, but=None)
        return len(self._holders) < before

    def _make_room(self, upto: int, but: Holder | None) -> None:
        if not self._told:
            self._told = True
            log.warning(
                "more logs than files may be open: those of quiet logs are closed between looks; raise LimitNOFILE (ulimit -Hn)",
                extra={"open_files": len(self._holders), "limit": _limit()},
            )
        holders = [holder for holder in self._holders if holder is not but]
        for holder in sorted(holders, key=lambda each: not each.quiet):
            if len(self._holders) <= upto:
                return
            holder.rest()


class _OfThread(threading.local):
    def __init__(self) -> None:
        limit = _limit()
        self.files = OpenFiles(limit - min(RESERVED, limit // 2))


def _limit() -> int:
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


_of_thread = _OfThread()


def open_files() -> OpenFiles:
    """Those of the thread that asks."""
    return _of_thread.files
