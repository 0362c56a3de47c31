"""Asks the locks of all log dirs whether the processes of their brokers are there, look by look."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from streaming.broker.disk.broker_processes import ask_lock, last_write_ms
from streaming.broker.disk.logdirs import LogDir, LogDirs
from streaming.broker.disk.opening import shortage
from streaming.broker.protocol.status_messages import BrokerStatus, ProcessStatus
from streaming.common.units import format_name
from streaming.rules.broker_process import AWAY, NEVER_LOOKED, DirLock, LockState, ProcessLook, look

_WHY_LENGTH = 500


class ProcessWatch:
    """Looks whether brokers' processes are there. Only the watcher's thread uses it, as a call into a log dir may not return.

    Args:
        ask: returns the answer about the lock of a log dir; raises OSError if no descriptor is free.
        wrote_ms: returns when a broker last wrote into a log dir.
    """

    def __init__(
        self,
        log_dirs: LogDirs,
        clock_ms: Callable[[], int],
        *,
        ask: Callable[[Path], DirLock] = ask_lock,
        wrote_ms: Callable[[Path], int] = last_write_ms,
    ) -> None:
        self._log_dirs = log_dirs
        self._clock_ms = clock_ms
        self._ask = ask
        self._wrote_ms = wrote_ms
        self._looks: dict[int, ProcessLook] = {}
        self._locks: dict[Path, DirLock] = {}
        self._before: dict[int, int] = {}  # the epoch of each broker's registration when it last had no process

    def refresh(self) -> None:
        """Look at all log dirs once. If no descriptor is free, everything is as it was."""
        for broker in self._log_dirs.brokers:
            dirs = [log_dir for log_dir in self._log_dirs if log_dir.broker == broker]
            try:
                locks = self._asked(dirs)
            except OSError:
                shortage.note()
                continue
            available = [each.path for each in dirs if each.path not in self._log_dirs.unavailable]
            written_ms = max(map(self._wrote_ms, available), default=-1)
            self._looks[broker] = look(self._looks.get(broker, NEVER_LOOKED), list(locks.values()), written_ms, self._clock_ms())
            self._locks |= locks

    def lock_of(self, log_dir: LogDir) -> LockState:
        """Whether a process holds the lock of a log dir, by the last look."""
        found = self._locks.get(log_dir.path)
        return LockState.UNKNOWN if found is None else found.state

    def last_looks(self) -> dict[int, ProcessLook]:
        """The last look at the process of each broker, by its id."""
        return {broker: self._looks.get(broker, NEVER_LOOKED) for broker in self._log_dirs.brokers}

    def status_of(self, broker: int) -> ProcessStatus | None:
        """What the last look has found out about a broker's process; None if there was none."""
        found = self._looks.get(broker)
        if found is None:
            return None
        dirs = [each for each in self._log_dirs.known if each.broker == broker and self.lock_of(each).is_held_by_nobody]
        free = [each.directory_id for each in dirs if each.directory_id is not None]
        return ProcessStatus(
            state=found.state,
            why=found.why,
            since_ms=found.since_ms,
            last_ms=found.last_ms,
            free=free,
            before=self._before.get(broker, -1),
            keeps_metadata=any(self._locks[each.path].keeps_metadata for each in dirs),
        )

    def look(self, statuses: Sequence[BrokerStatus]) -> list[BrokerStatus]:
        """Look once, and return the statuses of brokers with what is known of their processes then.

        Their registrations were read before the look, so none of them is of a process that it has not found yet. They are remembered for
        brokers that are away.
        """
        self.refresh()
        for each in (registered for status in statuses for registered in status.registered):
            if each.epoch >= 0 and each.broker in self._looks and self._looks[each.broker].state in AWAY:
                self._before[each.broker] = max(each.epoch, self._before.get(each.broker, -1))
        return [replace(each, process=self.status_of(each.broker)) for each in statuses]

    def _asked(self, dirs: Iterable[LogDir]) -> Mapping[Path, DirLock]:
        """The answers about these log dirs, at one moment: a broker that ends lets go of one after the other."""
        locks = {each.path: self._of(each) for each in dirs}
        states = {each.state for each in locks.values()}
        mixed = LockState.LOCKED in states and any(each.is_held_by_nobody for each in states)
        return {each.path: self._of(each) for each in dirs} if mixed else locks

    def _of(self, log_dir: LogDir) -> DirLock:
        unavailable = self._log_dirs.unavailable.get(log_dir.path)
        return self._ask(log_dir.path) if unavailable is None else DirLock(LockState.UNKNOWN, why=format_name(unavailable, _WHY_LENGTH))
