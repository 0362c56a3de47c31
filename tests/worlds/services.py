"""Parts of segtail as processes that are started again when they end, as a supervisor does, and the parts that can be killed."""

import os
import signal
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from streaming.spark.job import worker_daemon
from tests.marked_processes import Process
from tests.processes import Segtail, left_of

AGENT, CHILD, DRIVER, JVM, SOURCE, WORKER, ALL = "agent", "child", "driver", "jvm", "source", "worker", "all"
PARTS = (AGENT, DRIVER, JVM, SOURCE, WORKER, ALL)
"""What is killed: the agent, the job's driver, its JVM, the Python process that plans, one that reads or folds, the whole job at once.

A job that has an agent of its own has it as a `CHILD`.
"""

_COMMANDS = {
    CHILD: " agent --child ",
    JVM: "org.apache.spark.deploy.SparkSubmit",
    SOURCE: "python_streaming_source_runner",
    WORKER: worker_daemon.__name__,
}


class Service:
    """A `segtail` that somebody keeps running. Each start has its own file of messages."""

    def __init__(self, name: str, arguments: Sequence[object], directory: Path, before: Sequence[str] = ()) -> None:
        self.name = name
        self._before = before
        self._arguments = tuple(arguments)
        self._directory = directory
        self._started: list[Segtail] = []
        self.start()

    @property
    def starts(self) -> int:
        """How often it was started."""
        return len(self._started)

    @property
    def running(self) -> Segtail:
        """The one that was started last."""
        return self._started[-1]

    def start(self) -> None:
        """Start it, whatever is left of the one before."""
        self._started.append(Segtail(self._arguments, self._directory / f"{self.name}.{self.starts}.messages", before=self._before))

    def tend(self) -> None:
        """Start it again if it has ended."""
        if not self.running.running():
            self.start()

    def part(self, part: str, pick: int = 0) -> Process | None:
        """A process of this part that is alive, the ``pick``-th of several."""
        found = [process for process in self.running.family if _COMMANDS[part] in process.command]
        return found[pick % len(found)] if found else None

    def kill(self, part: str, pick: int = 0) -> bool:
        """Kill -9 a part; False if there is none now."""
        if part in (AGENT, DRIVER):
            self.running.kill()
        elif part == ALL:
            self.running.kill_family()
        else:
            process = self.part(part, pick)
            if process is None:
                return False
            try:
                os.kill(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                return False
        if part in (AGENT, DRIVER, ALL):
            self.running.reap()
        return True

    def messages(self) -> Iterator[str]:
        """What each of its processes wrote to standard error."""
        for number in range(self.starts):
            yield (self._directory / f"{self.name}.{number}.messages").read_text(errors="replace")

    def left(self) -> list[Process]:
        """What is alive of those before the last."""
        return left_of(self._started[:-1])

    def end(self) -> None:
        """End it for good."""
        self.running.kill_family()
        self.running.wait()


@contextmanager
def service(name: str, *arguments: object, directory: Path, before: Sequence[str] = ()) -> Iterator[Service]:
    """One, which does not outlive the block."""
    directory.mkdir(parents=True, exist_ok=True)
    made = Service(name, arguments, directory, before)
    try:
        yield made
    finally:
        made.end()


@contextmanager
def services(directory: Path, **arguments: Sequence[object]) -> Iterator[dict[str, Service]]:
    """Services by name, which do not outlive the block."""
    directory.mkdir(parents=True, exist_ok=True)
    made: dict[str, Service] = {}
    try:
        for name, words in arguments.items():
            made[name] = Service(name, words, directory)
        yield made
    finally:
        _end(made.values())


def _end(running: Iterable[Service]) -> None:
    for each in running:
        each.end()
