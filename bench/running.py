"""A job as users run it, ``segtail run``, and what it says of itself."""

import gzip
import os
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from bench.measuring import ROOT
from bench.processes import PARTS, Held, Usage, held, usage

START_SECONDS = 600.0
_END_SECONDS = 30.0
_BATCHES = re.compile(rb"^segtail_query_batch_duration_seconds_(count|sum)\{[^}]*\} (\S+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Cost:
    """What a job did in some seconds: CPU seconds and bytes written by part, micro-batches and how long they took together."""

    seconds: float
    cpu_seconds: dict[str, float]
    batches: int
    batch_seconds: float
    resident_bytes: dict[str, int]
    written_bytes: dict[str, int]

    @property
    def cores(self) -> float:
        """CPU seconds a second."""
        return sum(self.cpu_seconds.values()) / self.seconds


class RunningJob:
    """``segtail run`` on a log dir, or on what other options name, until the block is left. Entering waits until it is ready."""

    def __init__(self, watched: Path | Sequence[str], checkpoint: Path, *options: str) -> None:
        of = ["--log-dirs", str(watched)] if isinstance(watched, Path) else watched
        command = [sys.executable, "-m", "streaming.terminal.cli", "run", *of, "--checkpoint", str(checkpoint)]
        self._command = [*command, "--listen", "127.0.0.1:0", "--set", "log_level=error", *options]
        self._messages = checkpoint.with_name(f"{checkpoint.name}.messages")
        self.url = ""

    def __enter__(self) -> Self:
        environ = {name: value for name, value in os.environ.items() if not name.startswith("SEGTAIL_")}
        with self._messages.open("wb") as messages:
            self._process = subprocess.Popen(self._command, stderr=messages, env=environ, cwd=ROOT)
        try:
            wait_for(self._says_url)
            wait_for(self._ready)
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._stop()

    def scrape(self) -> bytes:
        """A page of /metrics, packed on its way as Prometheus asks for it."""
        request = urllib.request.Request(self.url, headers={"Accept-Encoding": "gzip"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            page: bytes = answer.read()
        return gzip.decompress(page)

    def cost(self, seconds: float, meanwhile: Callable[[float], None]) -> Cost:
        """Measure for so long. ``meanwhile`` is given the moment, of `time.monotonic`, at which to return."""
        began, batches, spent = time.monotonic(), batches_of(self.scrape()), self.usage()
        meanwhile(began + seconds)
        ended, batches_then, spent_then = time.monotonic(), batches_of(self.scrape()), self.usage()
        return Cost(
            seconds=ended - began,
            cpu_seconds={part: spent_then.cpu_seconds[part] - spent.cpu_seconds[part] for part in PARTS},
            batches=int(batches_then[0] - batches[0]),
            batch_seconds=batches_then[1] - batches[1],
            resident_bytes=spent_then.resident_bytes,
            written_bytes={part: spent_then.written_bytes[part] - spent.written_bytes[part] for part in PARTS},
        )

    def usage(self) -> Usage:
        """Of all its processes so far."""
        return usage(self._process.pid)

    def processes(self) -> list[Held]:
        """What each of them holds in memory."""
        return held(self._process.pid)

    def _says_url(self) -> bool:
        stated = self._messages.read_text(errors="replace")
        if self._process.poll() is not None:
            raise RuntimeError(f"the job did not start: {stated[-2000:]}")
        found = re.search(r"http://\S+/metrics(?=\s)", stated)
        self.url = found[0] if found else ""
        return found is not None

    def _ready(self) -> bool:
        try:
            urllib.request.urlopen(self.url.removesuffix("metrics") + "-/ready", timeout=60).close()
        except urllib.error.HTTPError:
            return False
        return True

    def _stop(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def batches_of(page: bytes) -> tuple[float, float]:
    """How many micro-batches there were, and how many seconds they took together."""
    found = {name: float(value) for name, value in _BATCHES.findall(page)}
    return found.get(b"count", 0.0), found.get(b"sum", 0.0)


def wait_for(condition: Callable[[], bool], seconds: float = START_SECONDS) -> None:
    """Wait until something holds. TimeoutError if it does not."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"not ready after {seconds:.0f} s")
        time.sleep(0.1)


def nothing(until: float) -> None:
    """Let time pass."""
    time.sleep(max(0.0, until - time.monotonic()))
