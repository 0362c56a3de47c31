"""Finds whether the brokers of the log dirs run, by the locks that they hold, and why that cannot be known."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from streaming.broker.agent.process_watch import ProcessWatch
from streaming.broker.disk.logdirs import LogDir, LogDirs
from streaming.broker.protocol.status_messages import ProcessStatus
from streaming.common.formatting import format_age, format_list, format_time
from streaming.kafka.formats.names import OFFSET_CHECKPOINTS
from streaming.rules.broker_process import LockState, ProcessState
from streaming.terminal.doctor.diagnosis import Diagnosis, Outcome, Setup

_CHECK = "brokers"
_MOST_NAMED = 5

_COPIED_S = 60.0
"""A file whose status has changed so long after its content was not put there by a broker."""


def check(setup: Setup) -> Iterator[Diagnosis]:
    """Ask the lock of each log dir once."""
    if setup.log_dirs is None:
        return
    watch = ProcessWatch(setup.log_dirs, lambda: round(setup.now * 1000))
    watch.refresh()
    for broker in setup.log_dirs.brokers:
        process = watch.status_of(broker)
        if process is not None:
            yield from _Broker(broker, process, setup.now, setup.log_dirs, watch).findings()


@dataclass(frozen=True, slots=True)
class _Broker:
    broker: int
    process: ProcessStatus
    now: float
    log_dirs: LogDirs
    watch: ProcessWatch

    def findings(self) -> Iterator[Diagnosis]:
        if self.process.state == ProcessState.UP:
            names = format_list([str(each.path) for each in self._dirs(LockState.LOCKED)], _MOST_NAMED)
            yield self._says(Outcome.FINE, f"broker {self.broker} runs: it holds the lock of {names}")
            for each in self._dirs(LockState.FREE):
                what = (
                    f"broker {self.broker} runs, and does not hold the lock of {each.path}: it has given the log dir up, or has another one"
                )
                yield self._says(Outcome.WARNING, what)
        elif self.process.state == ProcessState.UNKNOWN:
            yield self._says(Outcome.UNKNOWN, f"whether broker {self.broker} runs is not known: {self.process.why}")
        else:
            yield self._of_nobody()

    def _of_nobody(self) -> Diagnosis:
        last = self.process.last_ms
        since = f", as of the last write {format_time(last)} ({format_age(self.now - last / 1000)})" if last >= 0 else ""
        came_ms = _came_ms([each.path for each in self.log_dirs if each.broker == self.broker])
        if came_ms is None:
            what = f"broker {self.broker} does not run, or its log dirs are a copy{since}: nobody holds their locks"
            return self._says(Outcome.WARNING, what)
        what = (
            f"the log dirs of broker {self.broker} are a copy{since}, it seems: nobody holds their locks, and files came there, or got "
            f"another owner or mode, at {format_time(came_ms)}"
        )
        return self._says(Outcome.NOT_APPLICABLE, what)

    def _dirs(self, state: LockState) -> list[LogDir]:
        return [each for each in self.log_dirs if each.broker == self.broker and self.watch.lock_of(each) is state]

    @staticmethod
    def _says(state: Outcome, what: str) -> Diagnosis:
        return Diagnosis(check=_CHECK, state=state, what=what)


def _came_ms(log_dirs: Iterable[Path]) -> int | None:
    """When the files that a broker writes all the time came there as a copy with their dates, Unix milliseconds; None if they did not.

    A broker writes such a file beside it and renames it into its place at once: its status changes then, and no more.
    """
    changed = []
    for path in (log_dir / name for log_dir in log_dirs for name in OFFSET_CHECKPOINTS):
        try:
            stat = path.stat()
        except OSError:
            continue
        if stat.st_ctime - stat.st_mtime < _COPIED_S:
            return None
        changed.append(stat.st_ctime_ns // 1_000_000)
    return min(changed, default=None)
