"""The status of brokers and log dirs that does not belong to one log, checked every few seconds."""

import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from operator import is_not
from pathlib import Path
from typing import Any

from streaming.broker.agent.cluster_view import ClusterView
from streaming.broker.agent.process_watch import ProcessWatch
from streaming.broker.agent.strays import StrayWatch
from streaming.broker.disk.availability import LogDirs
from streaming.broker.disk.contents import ContentsReader
from streaming.broker.disk.log_inventory import LogInventory
from streaming.broker.disk.logdirs import LogDir
from streaming.broker.disk.opening import is_short, shortage
from streaming.broker.protocol.status_messages import BrokerStatus, LogDirStatus
from streaming.broker.restarts.restart_status import RestartStatus
from streaming.broker.watcher.offset_checkpoints import RecoveryPositions
from streaming.broker.watcher.tail import Tail

log = logging.getLogger(__name__)

CHECK_EVERY_MS = 5_000

_OF_CONTENTS = ("checkpoint_ms", "free", "capacity", "delete", "stray", "future", "metadata")


class HostStatus:
    """The status of a host: its log dirs and brokers. The watcher's thread refreshes it; other threads may read its values.

    Args:
        tails: the logs that are watched, as `streaming.broker.watcher.departures.WatchedLogs.all` returns them.
        points: the recovery points of logs; None if no job asks what a restart costs.
        processes: looks at the processes of the brokers; one of its own if it is None.
    """

    def __init__(
        self,
        log_dirs: LogDirs,
        cluster: ClusterView,
        tails: Callable[[], Sequence[Tail]],
        clock_ms: Callable[[], int],
        points: RecoveryPositions | None = None,
        processes: ProcessWatch | None = None,
    ) -> None:
        self.log_dirs: list[LogDirStatus] = []
        self.brokers: list[BrokerStatus] = []
        self.logs = 0
        """The number of logs in the log dirs that can be read, watched or not."""
        self._dirs = log_dirs
        self._cluster = cluster
        self._tails = tails
        self._clock_ms = clock_ms
        self.processes = processes or ProcessWatch(log_dirs, clock_ms)
        self._next_check = 0
        self._incomplete = False  # the last check was before all logs were listed
        self._live = 0
        self._besides = _Besides()
        self._down: set[Path] = set()
        self._contents: dict[Path, ContentsReader] = {}
        self._last: dict[Path, LogDirStatus] = {}  # of log dirs that could be listed
        self._unlisted: dict[Path, Mapping[str, str]] = {}
        self._strays = StrayWatch(log_dirs, cluster)
        self._restarts = None if points is None else RestartStatus(points)

    def refresh(self) -> None:
        """Check again if it is time to, or if all logs are listed now that were not at the last check: it lacks their sums."""
        now = self._clock_ms()
        waits = now < self._next_check <= now + CHECK_EVERY_MS  # otherwise the clock was set back
        if waits and not (self._incomplete and _listed(self._tails()) >= self.logs):
            return
        self._next_check = now + CHECK_EVERY_MS
        self._dirs.check()
        self._dirs.log_changes()
        tails = self._tails()
        deleted, index = self._besides.look(tails)
        self.brokers = self.processes.look(self._cluster.statuses())
        self._live = 0
        if self._restarts is not None:
            self._restarts.look(tails, self.brokers, now)
        self.log_dirs = [self._status_of(log_dir, tails, deleted[log_dir.path], index[log_dir.path]) for log_dir in self._dirs]
        self.logs = self._live
        self._incomplete = self._besides.listed < self.logs

    def _status_of(self, log_dir: LogDir, tails: Sequence[Tail], deleted: int, index: int) -> LogDirStatus:
        registered = self._cluster.lists(log_dir)
        unavailable = self._dirs.unavailable.get(log_dir.path)
        if unavailable is not None:
            return _down(log_dir, registered, unavailable)
        try:
            found = self._contents.setdefault(log_dir.path, ContentsReader(log_dir.path)).read(log_dir)
        except OSError as error:
            before = self._last.get(log_dir.path)
            if is_short(error) and before is not None:
                shortage.note()
                return before
            if log_dir.path not in self._down:
                self._down.add(log_dir.path)
                log.error("log dir cannot be listed", extra={"log_dir": str(log_dir.path), "error": str(error)})
            return _down(log_dir, registered, str(error))
        self._down.discard(log_dir.path)
        self._log_unlisted(log_dir, found.unlisted)
        self._live += len(found.live)
        status = LogDirStatus(
            broker=log_dir.broker,
            log_dir=str(log_dir.path),
            up=True,
            registered=registered,
            deleted=deleted,
            index=index,
            **{name: getattr(found, name) for name in _OF_CONTENTS},
            hosts=self._cluster.hosts(log_dir, found.live),
            device=found.device,
            lock=self.processes.lock_of(log_dir),
            recovery_threads=self._cluster.recovery_threads(log_dir.broker),
        )
        if self._restarts is not None:
            status = self._restarts.within(status, found)
        status = self._strays.within(status, found, (tail.partition for tail in tails), self._clock_ms())
        self._last[log_dir.path] = status
        return status

    def _log_unlisted(self, log_dir: LogDir, unlisted: Mapping[str, str]) -> None:
        before, self._unlisted[log_dir.path] = self._unlisted.get(log_dir.path, {}), unlisted
        for path in unlisted.keys() - before.keys():
            log.warning(
                "directory cannot be listed: the sizes of its log dir are without it", extra={"path": path, "error": unlisted[path]}
            )


class _Besides:
    """The bytes besides the segments in directories of logs, by log dir: of segments that are to be unlinked, and of other files."""

    def __init__(self) -> None:
        self._tails: Sequence[Tail] = ()
        self._inventories: list[LogInventory | None] = []
        self.listed = 0
        """How many logs have been listed, by the last look."""
        self._deleted, self._index = Counter[Path](), Counter[Path]()

    def look(self, tails: Sequence[Tail]) -> tuple[Counter[Path], Counter[Path]]:
        """Both, by what was found last of each log."""
        inventories = [None if (found := tail.last_found) is None else found.inventory for tail in tails]
        if tails is not self._tails or any(map(is_not, inventories, self._inventories)):
            self._tails, self._inventories = tails, inventories
            self.listed = len(inventories) - inventories.count(None)
            self._deleted, self._index = Counter(), Counter()
            for tail, inventory in zip(tails, inventories, strict=True):
                if inventory is not None:
                    self._deleted[tail.partition.log_dir.path] += inventory.deleted_bytes
                    self._index[tail.partition.log_dir.path] += inventory.index_bytes
        return self._deleted, self._index


def _listed(tails: Sequence[Tail]) -> int:
    return len(tails) - [tail.last_found for tail in tails].count(None)


def _down(log_dir: LogDir, registered: bool | None, problem: str) -> LogDirStatus:
    sizes: dict[str, Any] = dict.fromkeys((*_OF_CONTENTS, "deleted", "index"), -1)
    return LogDirStatus(broker=log_dir.broker, log_dir=str(log_dir.path), up=False, registered=registered, problem=problem, **sizes)
