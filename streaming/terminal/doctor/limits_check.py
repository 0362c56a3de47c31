"""Compares the limits of the system with the logs that are there: open files, and what inotify watches."""

import resource
from collections.abc import Iterator

from streaming.broker.disk.availability import LogDir
from streaming.broker.disk.logdirs import list_partitions
from streaming.broker.watcher.structure import limit
from streaming.common.formatting import format_count
from streaming.terminal.doctor.diagnosis import Diagnosis, Outcome, Setup

_SPARE = 512
"""Descriptors for all that is no log: the journal, sockets, files that are read for a moment."""


def check(setup: Setup) -> Iterator[Diagnosis]:
    """Compare the limits with the logs that are there."""
    if setup.log_dirs is None:
        what = f"{setup.no_log_dirs}; an agent holds a file open for each log"
        yield Diagnosis(check="open files", state=Outcome.NOT_APPLICABLE, what=what)
        return
    logs = sum(_logs(log_dir) for log_dir in setup.log_dirs.available)
    yield _descriptors(logs)
    yield from _inotify(logs, len(setup.log_dirs.available))


def _logs(log_dir: LogDir) -> int:
    try:
        return len(list_partitions(log_dir, lambda _: ""))
    except OSError:
        return 0  # the check of permissions reports it


def _descriptors(logs: int) -> Diagnosis:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    have = "any number of" if hard == resource.RLIM_INFINITY else f"{hard:,}"
    what = f"{have} files may be open (the hard limit), and an agent holds one for each of {format_count(logs, 'log')}"
    needed = logs + _SPARE
    if hard == resource.RLIM_INFINITY or hard >= needed:
        return Diagnosis(check="open files", state=Outcome.FINE, what=what)
    higher = 1 << (2 * needed - 1).bit_length()
    return Diagnosis(
        check="open files",
        state=Outcome.FAULT,
        what=f"{what}: logs beyond it are not read. For a service, LimitNOFILE={higher} in the unit of a service does the same",
        command=f"sudo prlimit --pid $$ --nofile={higher}:{higher}",
    )


def _inotify(logs: int, log_dirs: int) -> Iterator[Diagnosis]:
    for name, needed, per in (("watches", logs + log_dirs, "directory"), ("instances", log_dirs, "log dir")):
        bound = limit(name)
        if bound is None:
            yield Diagnosis(check=f"inotify {name}", state=Outcome.UNKNOWN, what=f"the kernel does not say how many {name} a user may have")
        elif bound.value < needed:
            yield Diagnosis(
                check=f"inotify {name}",
                state=Outcome.WARNING,
                what=f"{bound}, and one is needed for each {per}, {needed:,}: the others are compared every few seconds, which takes CPU",
                command=f"sudo sysctl -w {bound.sysctl}={max(2 * needed, 128)}",
            )
        else:
            yield Diagnosis(check=f"inotify {name}", state=Outcome.FINE, what=f"{bound}, and {needed:,} are needed")
