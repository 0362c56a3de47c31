"""Many simulated agents in one process: real events, plans, rows and servers, for brokers that exist on no disk.

``python -m bench.fleet DIRECTORY AGENTS PARTITIONS APPENDS_A_SECOND`` prints its addresses in a line and serves until
its input ends.
"""

import os
import sys
import threading
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from bench.partitions import now_ms
from streaming.broker.agent.call_answers import answers
from streaming.broker.agent.call_server import AgentServer
from streaming.broker.agent.host_status import HostStatus
from streaming.broker.agent.jobs import Jobs
from streaming.broker.agent.polling_thread import HostWatch, Polls
from streaming.broker.agent.security import ServerFiles, open_security
from streaming.broker.agent.service import Service
from streaming.broker.disk.availability import LogDirs
from streaming.broker.disk.logdirs import LogDir
from streaming.broker.journal.census import census
from streaming.broker.journal.journal import Begun, Journal
from streaming.broker.watcher.beginnings import Beginning
from streaming.broker.watcher.found_events import partitions_of, topics_of
from streaming.broker.watcher.unreadable import StuckTail
from streaming.broker.watcher.watcher import Doubt
from streaming.common.catalog import LOGS, Catalog, Changes, Editions, Version
from streaming.common.event_row import Event
from streaming.common.log_key import LogKey
from streaming.common.rows import Kind
from streaming.common.units import Address
from streaming.kafka.formats.metadata_partitions import PartitionState
from streaming.rules.whereabouts import place

CLUSTER_ID = "AAECAwQFBgcICQoLDA0ODw"
BATCH_BYTES, RECORDS = 16_384, 100
_BEGINNINGS = ThreadPoolExecutor(1)
_NOTHING_STORED = (-1, -1, -1, -1, 0, 0, b"")
"""In the columns of `LOGS` after the key: no checkpoint, not moving, no epochs."""


@dataclass(frozen=True, slots=True)
class _Cursor:
    log: LogKey
    settled: bool = True


@dataclass(frozen=True, slots=True)
class _Where:
    log_dir: LogDir


class _Log:
    """A log that grows by one batch at a time."""

    log_start = 0

    def __init__(self, log_dir: LogDir, topic: str, number: int) -> None:
        self.cursor = _Cursor(LogKey(log_dir.broker, topic, number, f"{log_dir.broker:022}"))
        self.partition = _Where(log_dir)
        self.batches = 0

    def event(self, kind: Kind, **values: Any) -> Event:
        """An event of it, as it stands."""
        log = self.cursor.log
        offset = self.batches * RECORDS
        made = Event(
            kind=kind,
            broker=log.broker,
            log_dir=str(self.partition.log_dir.path),
            topic=log.topic,
            partition=log.partition,
            topic_id=log.topic_id,
            segment=0,
            base_offset=offset,
            next_offset=offset,
            log_epoch=0,
            settled=True,
            log_start_offset=0,
        )
        return replace(made, **values)

    def appended(self, now_ms: int) -> Event:
        """One more batch."""
        position, offset = self.batches * BATCH_BYTES, self.batches * RECORDS
        event = self.event(
            Kind.APPENDED, start_position=position, end_position=position + BATCH_BYTES, next_offset=offset + RECORDS, leads=1
        )
        self.batches += 1
        return replace(event, bytes=BATCH_BYTES, batches=1, records=RECORDS, seen_at=now_ms, max_timestamp=now_ms)


class _Watcher:
    """What `Service` asks of a watcher."""

    caught_up = True

    def __init__(self, log_dir: LogDir, logs: list[_Log], journal: Journal, cluster: "_Cluster") -> None:
        self.log_dirs = LogDirs({log_dir.path: log_dir}, {}, {})
        self._logs = logs
        self._journal = journal
        self._editions = Editions()
        self._editions.update(_decided([log.cursor.log for log in logs], cluster))

    def tails(self) -> list[_Log]:
        return self._logs

    def decided(self, versions: Iterable[Version]) -> Changes | None:
        return self._editions.since(versions)

    def unreadable(self) -> list[StuckTail]:
        """Every log can be read."""
        return []

    def doubts(self) -> dict[Doubt, int]:
        """Nothing is doubted."""
        return {}

    def begin(self, beginning: Beginning) -> Begun:
        del beginning
        begun = Begun()

        def publish() -> None:
            places = [place(each.broker, each.path) for each in self.log_dirs]
            whole = census({log.cursor.log: log.partition.log_dir.path for log in self._logs}, places, (), None)
            self._journal.publish([*(log.event(Kind.APPEARED) for log in self._logs), whole], begun=begun)
            begun.done.set()

        _BEGINNINGS.submit(publish)
        return begun


class _Cluster:
    """Every log leads, alone."""

    def partition(self, log: LogKey) -> PartitionState:
        alone = (log.broker,)
        return PartitionState(replicas=alone, isr=alone, leader=log.broker, leader_epoch=0, partition_epoch=0)

    def metadata_version(self, broker: int) -> int:
        del broker
        return 30

    def configs(self, log: LogKey) -> str:
        del log
        return ""

    def unreadable(self) -> list[int]:
        return []

    def rejected_configs(self) -> int:
        return 0


def _decided(logs: list[LogKey], cluster: Any) -> Catalog:
    rows = [(log.broker, log.topic, log.topic_id, log.partition, *_NOTHING_STORED) for log in logs]
    offsets = [pa.array(column, each.type) for column, each in zip(zip(*rows, strict=True), LOGS, strict=True)]
    return Catalog(
        topics=topics_of(logs, cluster), partitions=partitions_of(logs, cluster), logs=pa.Table.from_arrays(offsets, schema=LOGS)
    )


class Simulated:
    """One agent with so many logs."""

    def __init__(self, directory: Path, broker: int, partitions: int) -> None:
        log_dir = LogDir(directory / f"data-{broker}", broker, CLUSTER_ID, None)
        self.logs = [_Log(log_dir, f"topic-{broker}", number) for number in range(partitions)]
        self.journal = Journal()
        cluster: Any = _Cluster()
        self.watcher: Any = _Watcher(log_dir, self.logs, self.journal, cluster)
        looking = HostWatch(self.watcher, cluster, HostStatus((), cluster, self.watcher.tails, now_ms))
        self.service = Service(f"agent-{broker}", self.journal, Jobs(self.journal.id), lambda: looking, Polls())
        self._next = 0

    def serve(self) -> AgentServer:
        """Answer calls on loopback."""
        listen = Address("127.0.0.1", 0)
        return AgentServer(answers(self.service), listen, open_security(ServerFiles(), listen))

    def append(self, count: int) -> None:
        """One batch to each of the next ``count`` logs."""
        now = now_ms()
        events = []
        for _ in range(count):
            events.append(self.logs[self._next].appended(now))
            self._next = (self._next + 1) % len(self.logs)
        self.journal.publish(events)


def _live(fleet: list[Simulated], appends_a_second: int, ends: threading.Event) -> None:
    began, done = time.monotonic(), 0
    while not ends.wait(0.2):
        now = time.monotonic() - began
        due = int(now * appends_a_second) - done
        done += due
        for agent in fleet:
            if due and agent.journal.begun:
                agent.append(due)


def main() -> None:
    """Serve until standard input ends."""
    directory, (agents, partitions, appends) = Path(sys.argv[1]), map(int, sys.argv[2:5])
    fleet = [Simulated(directory, broker, partitions) for broker in range(1, agents + 1)]
    servers = [agent.serve() for agent in fleet]
    ends = threading.Event()
    threading.Thread(target=_live, args=(fleet, appends, ends), daemon=True).start()
    print(",".join(f"http://{server.address}" for server in servers), flush=True)
    sys.stdin.read()
    ends.set()
    os._exit(0)  # a hundred servers end one after the other otherwise


if __name__ == "__main__":
    main()
