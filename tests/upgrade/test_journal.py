"""An agent takes up the journal of the version before it: nothing lost, nothing twice, for a job in its middle and one at its beginning."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from streaming.client.column_versions import as_events
from streaming.protocol.consumer_messages import Range
from streaming.rows import TRANSACTIONS
from tests.agents import Agent, Reader, event_rows, read_range
from tests.builders import batch, commit
from tests.events import Shard
from tests.upgrade import before

DAMAGED = 388
"""Bytes behind the place where the log ``damaged`` is understood no more."""


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[Agent]:
    before.unpack("agent", tmp_path)
    made = Agent(tmp_path / "d0", journal=tmp_path / "journal")
    yield made
    made.close()


def counted(shard: Shard) -> dict[tuple[str, int], int]:
    return {(state.topic, state.partition): state.appended_bytes + sum(state.skipped_bytes) for state in shard.states.values()}


def open_at(shard: Shard, topic: str, partition: int) -> list[int]:
    (state,) = [each for each in shard.states.values() if (each.topic, each.partition) == (topic, partition)]
    found = np.frombuffer(state.transactions or b"", TRANSACTIONS)
    return [int(each["producer_id"]) for each in found if each["committed"] < 0]


def grow(log_dir: Path) -> None:
    before.append(log_dir / "orders-0" / "00000000000000000000.log", 13, commit(9), batch(2, producer=8, sequence=4))
    before.append(log_dir / "orders-1" / "00000000000000000003.log", 17, batch(3))


def test_a_job_in_the_middle_of_it_goes_on(agent: Agent, tmp_path: Path) -> None:
    shard, planned = Shard(), before.plan()
    shard.fold(*event_rows(as_events(before.answer("committed"))))
    committed = agent.consumers.committed("job")
    assert committed is not None
    assert (agent.journal.id, committed < planned.seq < agent.journal.end().seq) == (planned.journal, True)

    reader = Reader(agent)
    reader.run = "after the upgrade"
    again = Range("job", reader.run, planned.journal, committed, agent.journal.at(committed).total, planned.seq)
    shard.fold(*event_rows(read_range(agent.service, again)))  # Spark runs the micro-batch again that was not committed
    agent.service.received(again)
    reader.at = (planned.journal, planned.seq, planned.total)
    reader.commit()
    assert open_at(shard, "orders", 0) == [9]

    grow(tmp_path / "d0")
    agent.look()
    shard.fold(*reader.step())
    assert counted(shard) == before.sizes(tmp_path / "d0")
    assert open_at(shard, "orders", 0) == []
    of_log = {(state.topic, state.partition): state for state in shard.states.values()}
    assert {key: state.appended_records for key, state in of_log.items()} == {
        ("orders", 0): 3 + 2 + 4 + 2 + 1 + 2,
        ("orders", 1): 2 + 1 + 5 + 3 + 6 + 3,
        ("damaged", 0): 2,
        ("empty", 0): 0,
    }
    assert {key: sum(state.skipped_bytes) for key, state in of_log.items() if any(state.skipped_bytes)} == {("damaged", 0): DAMAGED}
    assert (of_log["orders", 0].active_producers, of_log["orders", 0].sequence_gaps) == (3, 0)


def test_a_job_that_had_not_read_yet_gets_all_of_it(agent: Agent, tmp_path: Path) -> None:
    shard, reader = Shard(), Reader(agent, "other")
    grow(tmp_path / "d0")
    agent.look()
    while counted(shard) != before.sizes(tmp_path / "d0"):
        shard.fold(*reader.step(budget=500))
    assert shard.states


def test_what_was_told_reads_as_it_did(agent: Agent) -> None:
    """The same rows as the version before made of the same events."""
    wanted = before.answer("arrived").to_pylist()
    first, last = min(row["seq"] for row in wanted), max(row["seq"] for row in wanted)
    planned, committed = before.plan(), agent.consumers.committed("job")
    assert committed is not None
    assert committed < first
    found = read_range(agent.service, Range("job", "run", planned.journal, committed, 0, last)).to_pylist()
    names = wanted[0].keys()
    assert [{name: row[name] for name in names} for row in found] == wanted
