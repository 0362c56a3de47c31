"""docs/internals/ways.md: each file that it names is entered on the way of a range, or of a commit, from the disk to the page."""

import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any
from uuid import UUID

import streaming
from streaming.broker.agent.call_answers import answers
from streaming.cluster.consumers.group_rounds import GroupRounds, Surroundings
from streaming.cluster.consumers.group_snapshot import GroupBoard
from streaming.cluster.consumers.group_tracker import GroupTracker
from streaming.cluster.verdicts.group_judge import judge_groups
from streaming.cluster.view.family import EVERYTHING
from streaming.common.rows import ROWS, SHARD
from streaming.common.settings import Settings
from streaming.pages.exposition.render import render
from streaming.simulator.metadata_writer import ReplicaSet, partition_record, topic_record
from streaming.spark.client.agent_client import AgentClient
from streaming.spark.source import agent_connections
from tests.agent.followed import OFFSETS, committed
from tests.agents import Agent, served
from tests.builders import NOW, batch, log_dir, partition
from tests.elections import MetadataCopy
from tests.job_without_spark import Folding
from tests.one_agent_job import OneAgentJob
from tests.source.event_reading import next_batch, reader_of
from tests.view.rows import new_observer

_HOME = Path(streaming.__file__).parent
_PAGE = _HOME.parent / "docs" / "internals" / "ways.md"


class _Entered:
    """The functions that run while it is on, in all threads, as ``room/file.py`` and name."""

    def __init__(self) -> None:
        self.on = False
        self.found: dict[str, set[str]] = {}

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if self.on and event == "call" and code.co_filename.startswith(f"{_HOME}/"):
            self.found.setdefault(code.co_filename.removeprefix(f"{_HOME}/"), set()).add(code.co_qualname)

    @contextmanager
    def during(self) -> Iterator[None]:
        self.on = True
        try:
            yield
        finally:
            self.on = False


@contextmanager
def _profiled() -> Iterator[_Entered]:
    entered, before = _Entered(), sys.getprofile()
    agent_connections._background.cache_clear()  # threads that were begun before are not profiled
    threading.setprofile(entered)
    sys.setprofile(entered)
    try:
        yield entered
    finally:
        sys.setprofile(before)
        threading.setprofile(before)


def _named(heading: str) -> list[tuple[str, str]]:
    """(file, function) of each item of the list below a heading."""
    (section,) = [part for part in re.split(r"^## ", _PAGE.read_text(), flags=re.M) if part.startswith(heading)]
    return re.findall(r"^\d+\. `([\w/.]+)`, `([\w.]+)`: ", section, flags=re.M)


def _check(heading: str, entered: _Entered) -> None:
    named = _named(heading)
    assert named
    assert [each for each in named if each[1] not in entered.found.get(each[0], ())] == []


def _led(topic: str, topic_id: UUID) -> list[bytes]:
    """Broker 1 leads the only partition of a topic."""
    return [topic_record(topic, topic_id), partition_record(ReplicaSet(partition=0, topic_id=topic_id, replicas=(1,), isr=(1,), leader=1))]


def test_the_way_of_a_range(tmp_path: Path) -> None:
    log = partition(log_dir(tmp_path), "orders")
    agent = Agent(log.directory.parent)
    with _profiled() as entered, served(answers(agent.service)) as address:
        job, folding, reader = OneAgentJob(agent, Settings()), Folding(), reader_of(address, run="run 1")  # that which has begun
        at = reader.initialOffset()
        for offset in range(3):  # the first rows of a log are none that are usual
            log.append(batch(3, timestamp=NOW + offset))
            with entered.during():
                agent.look()
                end = next_batch(reader, at)
                packed: dict[int, list[bytes]] = {}
                for task in reader.partitions(at, end):
                    for row in (row for found in reader.read(task) for row in found.to_pylist()):
                        packed.setdefault(row[SHARD], []).append(row[ROWS])
                job.table.apply(folding.fold(packed))
                reader.commit(end)
            at = end
        job.table.series_limit = 10_000
        job.table.set_agents([])
        job.table.set_whole()
        with entered.during():
            page = render(job.table, new_observer(), agent.now / 1000)
        assert b'segtail_partition_appended_records_total{broker="1",topic="orders",partition="0"} 9' in page
    agent.close()
    _check("The way of a range", entered)


def test_the_way_of_a_commit(tmp_path: Path) -> None:
    disk = log_dir(tmp_path)
    log, orders = partition(disk, OFFSETS), partition(disk, "orders", topic_id=2)
    orders.append(batch(9, timestamp=NOW))
    MetadataCopy(disk.path).write([made for number, topic in enumerate((OFFSETS, "orders"), 1) for made in _led(topic, UUID(int=number))])
    agent = Agent(log.directory.parent)
    with _profiled() as entered, served(answers(agent.service)) as address:
        job, client, board = OneAgentJob(agent, Settings()), AgentClient(address), GroupBoard(monotonic=lambda: agent.now / 1000)
        around = Surroundings(
            agents=lambda: {agent.name: client},
            consumer=lambda: "job",
            cluster_topics=lambda: {OFFSETS: 1, "orders": 1},
            clock=lambda: agent.now / 1000,
            monotonic=lambda: agent.now / 1000,
        )
        rounds = GroupRounds(job.table, board, GroupTracker(EVERYTHING, 600_000), around)
        for offset in (3, 5):
            log.append(committed("g", offset))
            with entered.during():
                agent.look()
                agent.follow_groups()
                agent.count()
            job.round(agent.now)
            job.table.series_limit = 10_000
            job.table.set_agents([])
            job.table.set_whole()
            with entered.during():
                rounds.round()
                rounds.round()
                snapshot = board.last
                assert snapshot is not None
                judge_groups(snapshot, snapshot.at_ms)
        with entered.during():
            page = render(job.table, new_observer(), agent.now / 1000, groups=board)
        assert b'segtail_group_lag_offsets{group="g",topic="orders"} 4' in page
        client.close()
    agent.close()
    _check("The way of a commit", entered)
