"""Raises the limit on open files: the agent holds one for each log, so it takes as many as the system allows."""

import logging
import os
import resource

from streaming.disk.calls import Calling
from streaming.disk.identity import LogDir
from streaming.watcher.open_files import RESERVED

log = logging.getLogger(__name__)

WANTED = 1 << 20
"""More than any broker has logs. A limit of "infinity" cannot be set on every system."""

FEW = 16_384


def count_directories(log_dir: LogDir) -> int:
    """How many directories a log dir has, 0 if it cannot be listed now."""
    try:
        with Calling(log_dir.path), os.scandir(log_dir.path) as entries:
            return sum(entry.is_dir() for entry in entries)
    except OSError as error:  # the watcher reports it
        log.debug("log dir cannot be listed", extra={"log_dir": str(log_dir.path), "error": str(error)})
        return 0


def raise_limit(logs: int = 0) -> int:
    """Raise the soft limit on open files to the hard one and return the new limit. Logs if ``logs`` need more, besides a reserve for
    everything else, or a large broker may.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = WANTED if hard == resource.RLIM_INFINITY else min(hard, WANTED)
    if soft < limit:
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
    if limit < logs + RESERVED:
        log.warning(
            "fewer files may be open than this host's logs need: those of quiet logs are closed between looks, and connections may find no "
            "descriptor; raise LimitNOFILE (ulimit -Hn)",
            extra={"limit": limit, "logs": logs, "reserve": RESERVED},
        )
    elif limit < FEW:
        log.warning(
            "few files may be open: raise LimitNOFILE (ulimit -Hn) above the number of partitions on this host", extra={"limit": limit}
        )
    return limit
