"""What a watcher looks at: all that is there, for as long as it runs, or a part of it, a single time."""

from collections.abc import Callable
from dataclasses import dataclass

from streaming.disk.logdirs import Partition
from streaming.watcher.events import LogId


def _every_log(_: Partition) -> bool:
    return True


def _every_beginning(_: LogId) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Scope:
    """Which logs a watcher takes up, and how thoroughly.

    ``wants``: whether a directory of a live log is looked at. ``opens``: whether it is of interest what is open where reading of a log
    begins; of the others nothing is said to have been open there. ``once``: nobody waits for the first logs while the last are looked at,
    and no later look corrects this one: all are told in one turn, every time index is held against its segment, and nothing is said of
    what has happened before.
    """

    wants: Callable[[Partition], bool] = _every_log
    opens: Callable[[LogId], bool] = _every_beginning
    once: bool = False


EVERYTHING = Scope()
