"""How many shards a new checkpoint's state has: few, because each costs time in a micro-batch; more if one would hold too many logs.

A shard that changes is written as a whole, about 0.7 KB per log, whatever has changed in it. Whatever it holds, it also takes 1.3 ms of a
micro-batch, and Spark needs as much again. Between 1,000 and 2,500 logs per shard both costs stay small.
"""

import logging
from collections.abc import Iterable, Sequence

from streaming.broker.disk.identity import LogDir
from streaming.broker.disk.logdirs import list_partitions
from streaming.broker.protocol.status_messages import Status

log = logging.getLogger(__name__)

_ROOM = 2
"""A cluster grows, but the number of shards does not: it is chosen for so many times the logs that are there at first."""

_SHARDS = ((10_000, 4), (40_000, 16))
_MOST = 64


def shards_for(logs: int) -> int:
    """The shards of a state that begins with so many logs."""
    return next((shards for most, shards in _SHARDS if _ROOM * logs <= most), _MOST)


def logs_in(log_dirs: Iterable[LogDir]) -> int:
    """How many logs are in these log dirs; a log dir that cannot be read counts as empty."""
    found = 0
    for log_dir in log_dirs:
        try:
            found += len(list_partitions(log_dir, lambda _: ""))
        except OSError as error:
            log.warning("log dir is not counted when the state's shards are chosen", extra={"log_dir": log_dir.path, "error": str(error)})
    return found


def logs_of(answers: Sequence[Status], addresses: int) -> int:
    """How many logs the agents at all ``addresses`` watch. Those that have not answered are assumed to have as many each as the others."""
    return sum(each.logs for each in answers) * max(addresses, len(answers)) // max(1, len(answers))
