"""The scope of a watcher: all logs for as long as it runs, or a part of them a single time."""

from collections.abc import Callable
from dataclasses import dataclass

from streaming.broker.disk.logdirs import Partition
from streaming.common.log_key import LogKey


def _every_log(_: Partition) -> bool:
    return True


def _every_beginning(_: LogKey) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Scope:
    """Which logs are watched, and how thoroughly.

    ``wants``: whether the directory of a live log is watched. ``opens``: whether it has to be known what is open where reading of a log
    begins; for other logs nothing is published as open there. ``once``: nobody waits for the first logs while the last ones are checked,
    and no later poll corrects this one. So all lists are published in one poll, every time index is compared with its segment, and nothing
    is published about events before the reading.
    """

    wants: Callable[[Partition], bool] = _every_log
    opens: Callable[[LogKey], bool] = _every_beginning
    once: bool = False


EVERYTHING = Scope()
