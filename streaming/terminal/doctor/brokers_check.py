"""Finds whether the brokers of the log dirs run, by the locks that they hold, and why that cannot be known."""

from collections.abc import Iterator
from dataclasses import dataclass

from streaming.broker.agent.process_watch import ProcessWatch
from streaming.broker.disk.logdirs import LogDir, LogDirs
from streaming.broker.protocol.status_messages import ProcessStatus
from streaming.common.formatting import format_age, format_list, format_time
from streaming.rules.broker_process import LockState, ProcessState
from streaming.terminal.doctor.diagnosis import Diagnosis, Outcome, Setup

_CHECK = "brokers"
_MOST_NAMED = 5


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
            last = self.process.last_ms
            since = f", as of the last write {format_time(last)} ({format_age(self.now - last / 1000)})" if last >= 0 else ""
            yield self._says(
                Outcome.FINE, f"broker {self.broker} does not run, or its log dirs are a copy{since}: nobody holds their locks"
            )

    def _dirs(self, state: LockState) -> list[LogDir]:
        return [each for each in self.log_dirs if each.broker == self.broker and self.watch.lock_of(each) is state]

    @staticmethod
    def _says(state: Outcome, what: str) -> Diagnosis:
        return Diagnosis(check=_CHECK, state=state, what=what)
