"""What an agent beside a node would report, without its journal and its watcher."""

import time
from collections.abc import Callable
from pathlib import Path

from streaming.broker.agent.cluster_view import ClusterView
from streaming.broker.agent.host_status import CHECK_EVERY_MS, HostStatus
from streaming.broker.agent.process_watch import ProcessWatch
from streaming.broker.disk.availability import open_log_dirs
from streaming.broker.protocol.status_messages import BrokerStatus, LogDirStatus
from streaming.cluster.view.broker_status import broker_phases, broker_processes, is_given_up
from streaming.kafka.formats.metadata_records import Phase
from tests.broker.kafka import Node


def now_ms() -> int:
    """By the clock of the machine, which is that of its files."""
    return time.time_ns() // 1_000_000


class Observed:
    """Every look is one, however soon it comes after another."""

    def __init__(self, node: Node, log_dirs: tuple[Path, ...] = (), clock_ms: Callable[[], int] = now_ms) -> None:
        dirs = open_log_dirs(log_dirs or node.log_dirs)
        self._now = 0
        self._cluster = ClusterView(dirs)
        self._summary = HostStatus(dirs, self._cluster, lambda: (), lambda: self._now, processes=ProcessWatch(dirs, clock_ms))

    def look(self) -> tuple[BrokerStatus, list[LogDirStatus]]:
        self._now += CHECK_EVERY_MS
        self._cluster.refresh()
        self._summary.refresh()
        (status,) = self._summary.brokers
        return status, self._summary.log_dirs

    def phases(self) -> dict[int, tuple[Phase, float | None]]:
        """Of all brokers, by this copy of the metadata log alone."""
        status, _ = self.look()
        return {each.broker: (each.phase, each.since) for each in broker_phases([status])}

    def offline(self) -> list[str]:
        """The log dirs that the locks show to be given up."""
        status, log_dirs = self.look()
        processes = broker_processes([status])
        return [each.log_dir for each in log_dirs if is_given_up(each, processes)]
