"""Notes when no descriptor is free ("too many open files"): that is in the way of this process, and no fault of a log dir."""

import errno
import logging
import resource
import threading

log = logging.getLogger(__name__)

_SHORT = (errno.EMFILE, errno.ENFILE)


def is_short(error: OSError) -> bool:
    """Whether the process, or the host, has no descriptor left."""
    return error.errno in _SHORT


class Shortage:
    """For all threads. It is logged when it begins and when it ends."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.lasts = False
        """Whether a file of a log dir could not be opened at the last check for want of a descriptor."""
        self.count = 0
        """How often that was so."""

    def note(self) -> None:
        """No descriptor was free."""
        with self._lock:
            begins, self.lasts = not self.lasts, True
            self.count += 1
        if begins:
            log.error(
                "too many open files: log dirs cannot be checked now, they count as they were; "
                "raise LimitNOFILE (ulimit -Hn), or close what is connected to this process",
                extra={"limit": resource.getrlimit(resource.RLIMIT_NOFILE)[0]},
            )

    def end(self) -> None:
        """A check of all log dirs found descriptors."""
        with self._lock:
            ends, self.lasts = self.lasts, False
        if ends:
            log.warning("files can be opened again")


shortage = Shortage()
"""Of this process."""
