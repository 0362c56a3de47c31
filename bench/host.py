"""The inside of an agent: what its watcher's thread and its ladders' thread do, turned by hand in the process of a bench or in one of
its own.

The agent's own parts, put together as `streaming.broker.agent.parts` does. What is left out is what answers others: servers, jobs that
ask, consumer groups.

A process of its own (`HostProcess`) is without what an agent leaves out. It does what each line of its input names, and prints what it
took.
"""

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import pyarrow as pa

from bench.measuring import ROOT
from bench.partitions import now_ms
from bench.processes import Holdings, holdings
from streaming.broker.agent.cluster_view import ClusterView
from streaming.broker.agent.host_status import HostStatus
from streaming.broker.agent.ladders import Ladders
from streaming.broker.agent.process import collect_rarely, raise_limit
from streaming.broker.agent.topic_configs import running_configs
from streaming.broker.disk.logdirs import open_log_dirs
from streaming.broker.journal.journal import Journal
from streaming.broker.journal.scan_cache import ScanCache
from streaming.broker.watcher.beginnings import Beginning
from streaming.broker.watcher.structure import Structure
from streaming.broker.watcher.tail import Tail
from streaming.broker.watcher.watcher import Watcher
from streaming.common.settings import Settings
from streaming.common.start_from import StartFrom

START_SECONDS = 60.0
"""How long the partitions of a broker may be unknown after a start of its agent that has a core for itself."""


_AS_AN_AGENT = "from streaming.terminal.cli.spark_extra import leave_out_pandas; leave_out_pandas(); from bench import host; host.main()"
_ENVIRONMENT = os.environ | {"ARROW_DEFAULT_MEMORY_POOL": "system"}
"""As `segtail agent` sets it."""


@dataclass(frozen=True, slots=True)
class Took:
    """CPU seconds of all threads of a process, and seconds of the clock; whether all was done that there was to do."""

    cpu_seconds: float
    seconds: float
    done: bool = True


class Host:
    """An agent of one log dir, which a job begins to read at once.

    Args:
        cache: where it keeps what costs a scan; None: nowhere.
    """

    def __init__(self, log_dir: Path, cache: Path | None) -> None:
        pa.set_memory_pool(pa.system_memory_pool())  # as an agent does
        collect_rarely()
        settings = Settings()
        self._log_dirs = open_log_dirs([log_dir])
        self.journal, self._cache = Journal(), ScanCache(cache)
        cluster = ClusterView(self._log_dirs, running_configs(self._log_dirs))
        self._ladders = Ladders(self._log_dirs, self._tails, self._cache, now_ms, rate=settings.ladder_rate, wait=_do_not_wait)
        self.watcher = Watcher(
            self._log_dirs,
            self.journal,
            cluster,
            now_ms,
            producers_limit=settings.producers_limit,
            attached=False,
            noting=self._ladders,
            cache=self._cache,
        )
        self._status = HostStatus(self._log_dirs, cluster, self.watcher.tails, now_ms, self.watcher.recovery)
        self.structure = Structure(self._log_dirs, lambda: None, now_ms)
        self.watcher.begin(Beginning(StartFrom.ACTIVE, resumed=False))

    def poll(self) -> bool:
        """What the watcher's thread does at each poll; returns whether there is more to do at once."""
        more = self.watcher.poll(self.structure.take())
        self._status.refresh()
        return more

    def climb(self) -> None:
        """What the ladders' thread does before it rests."""
        while not self._ladders.step(self._log_dirs[0].path):
            pass

    def catch_up(self) -> bool:
        """Poll until everything is published that is there, for `START_SECONDS` of CPU at most; returns whether it is."""
        ends = time.process_time() + START_SECONDS
        while self.poll() or not self.watcher.caught_up:
            if time.process_time() >= ends:
                return False
        return True

    def settle(self) -> None:
        """Poll until no list of a log has to be looked at again, as it is of logs that have been watched for some minutes."""
        while any(tail.list_due for tail in self._tails()):
            self.poll()
            time.sleep(0.02)

    def close(self) -> None:
        """End it, as an agent that ends does."""
        self.watcher.close()
        self.structure.stop()
        self._ladders.join(0.0)
        self._cache.close()

    def _tails(self) -> list[Tail]:
        return self.watcher.tails()


class HostProcess:
    """A host in a process of its own, which holds what an agent's holds; until the block is left."""

    def __init__(self, log_dir: Path, cache: Path | None = None) -> None:
        self._command = [sys.executable, "-c", _AS_AN_AGENT, str(log_dir), *([] if cache is None else [str(cache)])]

    def __enter__(self) -> Self:
        root = ROOT
        self._process = subprocess.Popen(
            self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=root, env=_ENVIRONMENT
        )
        self._answer()  # the code is loaded
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if error is not None:
            self._process.kill()
        self._process.communicate()

    def do(self, work: str) -> Took:
        """One of ``open``, ``catch_up``, ``poll``, ``climb``, ``close``. RuntimeError if the process has ended."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{work}\n")
        self._process.stdin.flush()
        return Took(*json.loads(self._answer()))

    def _answer(self) -> str:
        assert self._process.stdout is not None
        answer = self._process.stdout.readline()
        if not answer:
            raise RuntimeError(f"the host has ended, with status {self._process.wait()}")
        return answer

    def start(self) -> Took:
        """Open the log dirs and catch up; `Took.done` is False if that is given up, and then may be gone on with."""
        opened, caught_up = self.do("open"), self.do("catch_up")
        return Took(opened.cpu_seconds + caught_up.cpu_seconds, opened.seconds + caught_up.seconds, caught_up.done)

    def catch_up(self) -> Took:
        """Go on until everything is published."""
        took = Took(0.0, 0.0, done=False)
        while not took.done:
            more = self.do("catch_up")
            took = Took(took.cpu_seconds + more.cpu_seconds, took.seconds + more.seconds, more.done)
        return took

    def holds(self) -> Holdings:
        """Of the process now."""
        return holdings(self._process.pid)


def main() -> None:
    """Do what is read from standard input, until it ends."""
    raise_limit()
    host: Host | None = None
    print(flush=True)
    for line in sys.stdin:
        began, before = time.monotonic(), time.process_time()
        if line.strip() == "open":
            host, done = Host(Path(sys.argv[1]), Path(sys.argv[2]) if len(sys.argv) > 2 else None), True
        else:
            done = getattr(host, line.strip())() is not False
        print(json.dumps([time.process_time() - before, time.monotonic() - began, done]), flush=True)


def _do_not_wait(_seconds: float) -> bool:
    """The pace of ladders is not measured, and the agent does not end."""
    return False
