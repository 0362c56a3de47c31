"""How far behind the metrics are, as reported: by what has arrived, whatever was planned."""

import itertools
import json
import pickle
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from streaming.cluster.view.observer import AgentStatus
from streaming.common.event_row import EVENTS
from streaming.common.rows import ROWS, unpack_rows
from streaming.common.state_row import STATES
from streaming.rules.shard import state_rows
from streaming.simulator.log import PartitionLog
from streaming.spark.job.counting import Counting
from streaming.spark.job.query_progress import QueryProgress
from streaming.spark.source import agent_connections
from streaming.spark.source.stream import EventStreamReader
from tests.agents import Agent, event_rows
from tests.builders import batch
from tests.events import Shard
from tests.exposition.reading import named
from tests.source.event_reading import agent_has_seen, next_batch, reader_of
from tests.view.rows import new_observer, new_table

NOBODY = "127.0.0.1:1"


class Job:
    """What the driver knows of an agent's bytes: from micro-batches, and from polls a second apart."""

    def __init__(self, agent: Agent, counted: Path, recalls: int = 0) -> None:
        self._agent = agent
        self._counting = Counting(counted, recalls)
        self._observer = new_observer()
        self._observer.know([AgentStatus(name=agent.name, up=True, brokers=(1,))])
        self._progress = QueryProgress(self._observer, lambda: 0.0, lambda: None, lambda first, seconds: None)
        self._shard = Shard()
        self._now = 0.0

    def poll(self) -> None:
        self._now += 1.0
        self._observer.published(self._agent.name, self._agent.jobs.journal("", "job"), self._agent.journal.end().total, self._now)

    def run(self, reader: EventStreamReader, reads: EventStreamReader, start: dict[str, object]) -> dict[str, object]:
        """A micro-batch; ``reads`` is the reader as the tasks have it."""
        end = next_batch(reader, start)
        tasks = pickle.loads(pickle.dumps(reader.partitions(start, end)))
        packed = [row for task in tasks for found in reads.read(task) for row in found[ROWS].to_pylist()]
        rows = [row for each in packed for row in event_rows(pa.Table.from_batches([unpack_rows(each, EVENTS)]))]
        changes = self._shard.fold(*rows)
        states = [state_rows(changes)] if changes else []
        self._progress.arrived(pa.Table.from_batches(states, STATES), 0)
        self._counting.take(pa.Table.from_batches(states, STATES))
        reader.commit(end)
        return end

    @property
    def lag(self) -> tuple[list[float], list[float]]:
        """Bytes and seconds, none where it is not reported."""
        bytes_, seconds = (
            list(named(new_table(), f"segtail_tail_lag_{name}", self._observer, now=self._now).values()) for name in ("bytes", "seconds")
        )
        return bytes_, seconds


def test_what_is_planned_and_does_not_arrive_is_behind_until_it_does(
    agent: Agent, log: PartitionLog, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(agent_connections, "PATIENCE_SECONDS", 0.0)
    with agent.served() as address:
        reader, job = reader_of(address, counted=tmp_path / "counted"), Job(agent, tmp_path / "counted")
        reader._backoff = agent_connections.Backoff(itertools.count(0, 1000).__next__)
        job.poll()
        end = job.run(reader, reader, {})
        assert job.lag == ([0], [0])
        arrived = agent.journal.end().total
        for micro_batch in range(8):
            log.append(batch(2))
            agent_has_seen(agent, log)
            job.poll()
            end = job.run(reader, reader_of(NOBODY), end)
            assert job.lag == ([agent.journal.end().total - arrived], [micro_batch])
        job.run(reader, reader, end)
        assert job.lag == ([0], [0])


def test_after_a_restart_it_is_known_as_soon_as_anything_arrives(agent: Agent, log: PartitionLog, tmp_path: Path) -> None:
    counted = tmp_path / "counted"
    with agent.served() as address:
        reader = reader_of(address, counted=counted)
        end = Job(agent, counted).run(reader, reader, {})
        log.append(batch(2))
        agent_has_seen(agent, log)
        again, job = reader_of(address, counted=counted), Job(agent, counted, recalls=1)
        job.poll()
        job.poll()
        assert job.lag == ([], [1.0])
        recalled = job.run(again, again, end)
        assert job.lag == ([], [1.0])
        job.run(again, again, recalled)
        assert job.lag == ([0], [0])


def planned(batch: int, start: object, end: object) -> dict[str, object]:
    """What Spark says of a micro-batch."""
    source = {"startOffset": "None" if start is None else json.dumps(start), "endOffset": json.dumps(end)}
    return {"batchId": batch, "batchDuration": 5, "durationMs": {}, "sources": [source]}


def test_a_query_has_delivered_when_all_that_it_planned_has_arrived(tmp_path: Path) -> None:
    def at(seq: int) -> dict[str, object]:
        return {"journal": "j", "after": 0, "seq": seq, "total": 0, "turn": 0}

    def arrived(seq: int) -> pa.Table:
        return pa.Table.from_pylist([{"change": "arrived", "agent": "a", "topic_id": "j", "log_end_offset": seq}], schema=STATES)

    progress = QueryProgress(new_observer(), lambda: 0.0, lambda: None, lambda first, seconds: None)
    progress.begins(tmp_path / "checks")
    assert not progress.delivered(["a"])
    reported = [planned(0, None, {"a": at(3)}), planned(1, {"a": at(3)}, {"a": at(5)})]
    query: Any = SimpleNamespace(recentProgress=reported, lastProgress=reported[-1])
    progress.arrived(arrived(3), 1)
    progress.poll(query)
    assert not progress.delivered(["a"])
    progress.arrived(arrived(5), 2)
    assert progress.delivered(["a"])
    assert not progress.delivered(["a", "b"])
    progress.begins(tmp_path / "checks")  # one that goes on, in which nothing is new
    query.lastProgress = planned(2, {"a": at(5), "b": at(1)}, {"": {"run": "r", "shards": 4}, "a": at(5), "b": at(1)})
    query.recentProgress = [query.lastProgress]
    progress.arrived(arrived(5), 2)
    progress.poll(query)
    assert progress.delivered(["a", "b"])
