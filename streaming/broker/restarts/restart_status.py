"""What a start costs the log dirs of a host, or how far one has come, in their statuses."""

import logging
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from streaming.broker.disk.contents import DirContents
from streaming.broker.protocol.cluster_messages import Registered
from streaming.broker.protocol.status_messages import BrokerStatus, LogDirStatus, ProcessStatus
from streaming.broker.restarts.restart_costs import NOTHING_KNOWN, DirRestart, RestartCosts
from streaming.broker.restarts.start_progress import DirRecovery, Recovering, ToRecover
from streaming.broker.watcher.offset_checkpoints import RecoveryPositions
from streaming.broker.watcher.tail import Tail
from streaming.kafka.formats.metadata_records import Phase
from streaming.kafka.formats.names import METADATA_TOPIC
from streaming.rules.broker_process import AWAY, LockState

log = logging.getLogger(__name__)


class RestartStatus:
    """What starts of brokers cost, and how far they have come. Only the watcher's thread uses it.

    Args:
        points: the recovery points of logs.
    """

    def __init__(self, points: RecoveryPositions) -> None:
        self._points = points
        self._costs: dict[Path, RestartCosts] = {}
        self._now = -1
        self._found: dict[Path, DirRestart] = {}
        self._all: Sequence[Tail] = ()
        self._tails: dict[Path, list[Tail]] = {}
        self._began: dict[int, int] = {}
        self._away_ms: dict[int, int] = {}  # the last look without a process
        self._came_up: dict[int, int] = {}  # by broker: as of a start that was seen before the process had registered
        self._starts: dict[Path, DirRecovery] = {}
        self._clean_ms: dict[Path, int] = {}  # when the mark of a clean shutdown was last there

    def look(self, tails: Sequence[Tail], brokers: Iterable[BrokerStatus], now_ms: int) -> None:
        """Take over what is known now. ``tails``: as `streaming.broker.watcher.departures.WatchedLogs.all` returns them."""
        self._now = now_ms
        if tails is not self._all:
            self._take(tails)
        self._found = {path: costs.look() for path, costs in self._costs.items()}
        own = ((status.process, each) for status in brokers for each in status.registered if each.broker == status.broker)
        self._began = {each.broker: began for process, each in own if (began := self._began_ms(process, each)) is not None}

    def _take(self, tails: Sequence[Tail]) -> None:
        self._all, self._tails = tails, {}
        for tail in tails:
            if tail.partition.topic != METADATA_TOPIC:
                self._tails.setdefault(tail.partition.log_dir.path, []).append(tail)
        self._costs = {path: RestartCosts(inside, self._points) for path, inside in self._tails.items()}

    def _began_ms(self, process: ProcessStatus | None, registered: Registered) -> int | None:
        """Since when the broker starts, Unix milliseconds, -1 if that is not known; None if it does not start.

        Logs are read as soon as the process has the metadata, which may be long before the controller accepts its registration. So where
        the process was seen to come up, all that is younger than the last look without it is of this start.
        """
        broker = registered.broker
        if process is not None and process.state in AWAY:
            self._away_ms[broker] = self._now
            self._came_up.pop(broker, None)
            return None
        if process is not None and process.has_not_registered(registered.epoch):
            return self._came_up.setdefault(broker, self._away_ms.get(broker, process.since_ms))
        if registered.phase == Phase.STARTING:
            return self._came_up.get(broker, registered.since_ms)
        self._came_up.pop(broker, None)
        return None

    def within(self, status: LogDirStatus, contents: DirContents) -> LogDirStatus:
        """The status of a log dir, with what a restart costs it."""
        path = contents.log_dir.path
        start = self._starts.setdefault(path, DirRecovery())
        tails = self._tails.get(path, [])
        live = len(contents.live)
        found = self._found.get(path, NOTHING_KNOWN) if live else DirRestart(0, 0, 0)
        if len(tails) < live:  # a log is not watched yet: a sum without it would be too small
            found = NOTHING_KNOWN
        if contents.clean:
            self._clean_ms[path] = self._now
            found = DirRestart(0, 0, found.not_fsynced)
        left = self._left(contents, tails, start)
        return replace(
            status,
            recovery_logs=found.logs,
            recovery_bytes=found.scanned,
            not_fsynced_bytes=found.not_fsynced,
            recovery_rate=start.rate,
            clean=contents.clean and LockState(status.lock).is_held_by_nobody,
            recovering_logs=-1 if left is None else left.logs,
            recovering_bytes=-1 if left is None else left.left,
            recovering=[] if left is None else list(left.working),
        )

    def _left(self, contents: DirContents, tails: list[Tail], start: DirRecovery) -> Recovering | None:
        """What is left of a start after a crash that is going on, None if there is none.

        High watermarks are not written before all logs are loaded (`ReplicaManager`), so once they are, the logs are.
        """
        since_ms = self._began.get(contents.log_dir.broker, -1)
        try:
            if contents.clean or since_ms < 0 or contents.checkpoint_ms >= since_ms:
                start.end()
                return None
            found = start.look(since_ms, map(self._to_recover, tails))
        except OSError as error:
            log.warning("how far a start has come cannot be read", extra={"log_dir": str(contents.log_dir.path), "error": str(error)})
            return None
        return None if self._was_clean(contents, tails) and not found.begun else found

    def _was_clean(self, contents: DirContents, tails: list[Tail]) -> bool:
        """Whether the shutdown before was a clean one. Then the mark was there after the last high watermarks, if anybody looked, and
        every recovery point is at the end of its log (`LogManager.shutdown`).
        """
        if self._clean_ms.get(contents.log_dir.path, -1) > contents.checkpoint_ms:
            return True
        return all(point >= tail.cursor.next_offset for tail, (point, _) in zip(tails, self._points.of(tails), strict=True))

    def _to_recover(self, tail: Tail) -> ToRecover:
        """What a start reads of a log: of the segment that grew, also what came after it was listed, up to where it is read here."""
        sizes, cursor = {each.base_offset: each.size for each in tail.segments}, tail.cursor
        sizes[cursor.segment] = max(sizes.get(cursor.segment, 0), cursor.position)
        ((point, _),) = self._points.of([tail])
        offset = max(point, 0)
        held = max((base_offset for base_offset in sizes if base_offset <= offset), default=-1)
        return ToRecover(tail.partition.path, sorted(each for each in sizes.items() if each[0] >= held))
