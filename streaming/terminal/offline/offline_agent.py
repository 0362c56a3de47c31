"""An agent without a process of its own: it publishes the logs of log dirs into a journal. Only its caller reads that journal.

Reading begins at the active segments. Producer snapshots contain the transactions that are open there, so no closed segment is read.
"""

import logging
import sys
from collections.abc import Callable, Collection
from pathlib import Path

import pyarrow as pa

import streaming
from streaming.broker.agent.cluster_view import ClusterView
from streaming.broker.agent.host_status import HostStatus
from streaming.broker.agent.topic_configs import running_configs
from streaming.broker.disk.availability import LogDirs
from streaming.broker.journal.journal import Journal
from streaming.broker.protocol.event_tables import blocks_table
from streaming.broker.protocol.listing_json import AwayBroker
from streaming.broker.protocol.status_messages import Status, UnreadableLog
from streaming.broker.watcher.beginnings import Beginning
from streaming.broker.watcher.registry import Scope
from streaming.broker.watcher.watcher import POLL_BYTES, Watcher
from streaming.cluster.view.broker_status import away_brokers, broker_processes, each_broker
from streaming.common.start_from import StartFrom

log = logging.getLogger(__name__)

NAME = "log-dirs"

_WAIT_SECONDS = 0.05
"""The time between two polls while a log has to be polled again, for example because half a batch is at its end."""

_PATIENCE_SECONDS = 15.0
"""The limit of all these waits together. A watcher itself waits only seconds for anything."""

_NO_PRODUCERS = 0


class OfflineAgent:
    """Polls log dirs into a journal of its own. Nothing is written to disk. Only one thread uses it.

    Args:
        scope: which logs are watched, decided from the metadata logs.
        read_rate: the most bytes that are read in a second.
        clock: Unix seconds.
        sleep: waits for a number of seconds; called only to wait for files, or because reading is too fast.
        progress: called with the number of bytes that were read, poll by poll.
        is_given: whether the settings have a broker's own level (`Limiter.is_given`).
    """

    def __init__(
        self,
        log_dirs: LogDirs,
        scope: Callable[[ClusterView], Scope],
        *,
        read_rate: int,
        clock: Callable[[], float],
        sleep: Callable[[float], None],
        progress: Callable[[int], None] = lambda _: None,
        is_given: Callable[[int], bool] = lambda _: False,
    ) -> None:
        def clock_ms() -> int:
            return int(clock() * 1000)

        self.cluster = ClusterView(log_dirs, running_configs(log_dirs, is_given))
        self.complete = True
        """Whether every log was read to its end."""
        self._journal = Journal(most_bytes=sys.maxsize)
        self.watcher = Watcher(
            log_dirs,
            self._journal,
            self.cluster,
            clock_ms,
            producers_limit=_NO_PRODUCERS,
            attached=False,
            scope=scope(self.cluster),
        )
        self.host_status = HostStatus(log_dirs, self.cluster, self.watcher.tails, clock_ms, self.watcher.recovery)
        self._read_rate = read_rate
        self._clock = clock
        self._sleep = sleep
        self._progress = progress
        self._taken = 0  # the seq up to which the journal was read

    @property
    def now_ms(self) -> int:
        """The time at which files are read, Unix milliseconds."""
        return int(self._clock() * 1000)

    @property
    def away(self) -> list[AwayBroker]:
        """The brokers whose log dirs no process holds, as of the last reading."""
        return away_brokers(broker_processes(each_broker(self.host_status.brokers)))

    def begin(self) -> pa.Table:
        """Read all logs; returns rows of `streaming.common.event_row.EVENTS`."""
        self.watcher.begin(Beginning(StartFrom.ACTIVE, resumed=False))
        return self._poll(())

    def again(self, directories: Collection[Path]) -> pa.Table:
        """Poll all logs that were found once more; returns the new rows.

        Args:
            directories: directories of logs that may have new segments.
        """
        self.watcher.check_all()
        return self._poll(directories)

    def _poll(self, directories: Collection[Path]) -> pa.Table:
        hints, waited = set(directories), 0.0
        while True:
            began = self._clock()
            more = self.watcher.poll(hints, min(POLL_BYTES, self._read_rate))
            self._progress(self.watcher.backlog_bytes)
            if self.watcher.caught_up and not more:
                break
            hints = set()
            rest = self.watcher.backlog_bytes / self._read_rate - (self._clock() - began)
            if not more:
                if waited > _PATIENCE_SECONDS:
                    self.complete = False
                    log.error("logs cannot be read to their ends: they change all the time", extra={"waited_seconds": round(waited)})
                    break
                waited += _WAIT_SECONDS
                rest = max(rest, _WAIT_SECONDS)
            if rest > 0:
                self._sleep(rest)
        self.host_status.refresh()
        after, self._taken = self._taken, self._journal.end().seq
        blocks = self._journal.blocks(after, self._taken)
        self._journal.clear()
        return blocks_table(NAME, self._journal.id, blocks)

    def status(self) -> Status:
        """The status that an agent would send; the table needs parts of it."""
        dirs, end = self.watcher.log_dirs, self._journal.end()
        return Status(
            agent=NAME,
            version=streaming.__version__,
            journal=self._journal.id,
            cluster_id=dirs.cluster_id,
            brokers=dirs.brokers,
            unreadable_metadata=self.cluster.unreadable(),
            logs=len(self.watcher.tails()),
            caught_up=self.watcher.caught_up,
            seq=end.seq,
            total=end.total,
            directories=dirs.named,
            log_dirs=self.host_status.log_dirs,
            broker_statuses=self.host_status.brokers,
            unreadable_logs=[UnreadableLog(*each.log, each.path, each.error) for each in self.watcher.unreadable()],
        )

    def close(self) -> None:
        """Close every file."""
        self.watcher.close()
