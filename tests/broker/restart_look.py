"""What an agent reports of a broker's restarts, looked at as often as a test likes."""

import time
from collections.abc import Iterable
from pathlib import Path

from streaming.broker.agent.cluster_view import ClusterView
from streaming.broker.agent.host_status import CHECK_EVERY_MS, HostStatus
from streaming.broker.agent.topic_configs import running_configs
from streaming.broker.disk.logdirs import open_log_dirs
from streaming.broker.journal.journal import Journal
from streaming.broker.protocol.status_messages import LogDirStatus
from streaming.broker.watcher.beginnings import Beginning
from streaming.broker.watcher.watcher import Watcher
from streaming.common.start_from import StartFrom


class RestartLook:
    """A watcher in the test's process, with its journal."""

    def __init__(self, log_dirs: Iterable[Path]) -> None:
        def now_ms() -> int:
            return time.time_ns() // 1_000_000

        self._dirs = open_log_dirs(log_dirs)
        self._journal = Journal()
        self._cluster = ClusterView(self._dirs, running_configs(self._dirs))
        self._watcher = Watcher(self._dirs, self._journal, self._cluster, now_ms, producers_limit=0, attached=False)
        self._looks = 0
        self._status = HostStatus(
            self._dirs, self._cluster, self._watcher.tails, lambda: now_ms() + self._looks * CHECK_EVERY_MS, self._watcher.recovery
        )
        self._watcher.begin(Beginning(StartFrom.ACTIVE, resumed=False))

    def close(self) -> None:
        """Closes the files."""
        self._watcher.close()

    def look(self) -> dict[Path, LogDirStatus]:
        """What is known now, by log dir."""
        while self._watcher.poll({log_dir.path for log_dir in self._dirs}):
            pass
        self._looks += 1
        self._status.refresh()
        return {Path(each.log_dir): each for each in self._status.log_dirs}
