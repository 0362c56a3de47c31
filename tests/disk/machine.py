"""What runs on a broker's host: processes as /proc shows them, and one that holds a lock."""

import fcntl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from streaming.broker.disk.broker_processes import RunningBrokers
from streaming.broker.disk.logdirs import open_log_dirs
from streaming.rules.config_values import ValueSource, topic_configs
from streaming.rules.limits import effective_limits
from tests.builders import log_dir

_HOLDS = "import fcntl, sys; file = open(sys.argv[1], 'r+'); fcntl.lockf(file, int(sys.argv[2])); print(1, flush=True); sys.stdin.read()"


@contextmanager
def holder(path: Path, how: int = fcntl.LOCK_EX) -> Iterator[subprocess.Popen[bytes]]:
    """Another process that holds a POSIX lock on the whole of a file, as a JVM does."""
    process = subprocess.Popen([sys.executable, "-c", _HOLDS, str(path), str(how)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        assert process.stdout.readline()
        yield process
    finally:
        process.kill()
        process.communicate()


@dataclass
class Machine:
    """A directory like /proc, and a log dir of each of three brokers: `d0` is that of broker 1, `d2` and `d3` are those of the others."""

    path: Path
    now: float = 0.0

    def __post_init__(self) -> None:
        self.proc = self.path / "proc"
        self.proc.mkdir()
        (self.proc / "self").mkdir()
        self.log_dirs = open_log_dirs([log_dir(self.path).path, *(log_dir(self.path, f"d{node}", broker=node).path for node in (2, 3))])
        self.given = set[int]()
        self.brokers = RunningBrokers(self.proc, lambda: self.now, self.given.__contains__)

    def properties(self, name: str = "server.properties", *, node: int = 1, dirs: str = "", hours: int = 2) -> Path:
        file = self.path / name
        file.write_text(f"node.id={node}\nlog.dirs={dirs or self.path / 'd0'}\nlog.retention.hours={hours}\n")
        return file

    def run(self, *arguments: object, number: int = 77, main: str = "kafka.Kafka") -> None:
        directory = self.proc / str(number)
        directory.mkdir()
        (directory / "cmdline").write_bytes(b"\0".join(str(each).encode() for each in ("java", "-Xmx1g", main, *arguments)) + b"\0")
        (directory / "root").symlink_to("/")
        (directory / "cwd").symlink_to(self.path)

    def retention_ms(self, node: int = 1) -> int:
        """What is found of the broker, -1 for nothing."""
        found = self.brokers.configs(node, self.log_dirs.of(node))
        if found is None:
            return -1
        limits = effective_limits("t", topic_configs([]).over(found))
        assert limits.source is ValueSource.STATIC
        return limits.retention_ms
