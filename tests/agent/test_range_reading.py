"""What a range holds of the journal, when its consumer is forgotten before, while and after it is read."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from streaming.broker.agent import service
from streaming.broker.agent.service import RangeReading
from streaming.broker.journal.consumers import MOST_READS
from streaming.broker.protocol.consumer_messages import Range
from streaming.errors import AgentError, ConsumerError
from tests.agents import Agent, Reader, event_rows, read_range
from tests.builders import PartitionLog, batch, log_dir, partition
from tests.events import Shard


@pytest.fixture
def log(tmp_path: Path) -> PartitionLog:
    return partition(log_dir(tmp_path), "orders")


@pytest.fixture
def agent(log: PartitionLog, tmp_path: Path) -> Iterator[Agent]:
    made = Agent(tmp_path / "d0", journal=tmp_path / "journal")
    log.append(batch(3))
    yield made
    made.close()


def test_one_that_was_planned_before_its_consumer_was_forgotten_is_empty(agent: Agent) -> None:
    reader = Reader(agent).begin()
    asked = reader.asked(reader.plan())
    agent.consumers.forget("job")
    assert read_range(agent.service, asked).num_rows == 0
    reader.begin()
    assert read_range(agent.service, asked).num_rows == 0
    assert read_range(agent.service, reader.asked(reader.plan())).num_rows > 0


@pytest.mark.parametrize("journal", ["the journal's own", "as another knows it"])
def test_whoever_has_not_registered_gets_nothing(agent: Agent, journal: str) -> None:
    reader = Reader(agent).begin()
    name = agent.journal.id if journal == "the journal's own" else reader.plan().journal
    assert read_range(agent.service, Range("stranger", "run", name, -1, 0, 10**9)).num_rows == 0


def test_a_consumer_is_not_forgotten_while_its_place_is_looked_up(agent: Agent, log: PartitionLog, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once, another thread forgot it right then: it got all that the journal held, and what had been cut off there was counted twice."""
    reader, shard = Reader(agent).begin(), Shard()
    shard.fold(*reader.step())
    log.truncate(0)
    log.append(batch(4), leader_epoch=1)
    agent.look()
    agent.consumers.forget("job")
    reader.begin()
    begin, forgotten = RangeReading._begin, threading.Event()

    def forget() -> None:
        agent.consumers.forget("job")
        forgotten.set()

    def meanwhile(self: RangeReading, asked: Range) -> Any:
        other = threading.Thread(target=forget)
        other.start()
        others.append(other)
        found = begin(self, asked)
        assert not forgotten.is_set()
        return found

    others: list[threading.Thread] = []
    plan = reader.plan()
    asked = reader.asked(plan)
    monkeypatch.setattr(RangeReading, "_begin", meanwhile)
    try:
        rows = read_range(agent.service, asked)
    except AgentError:
        rows = None  # it was forgotten behind that
    monkeypatch.undo()
    for other in others:
        other.join()
    assert forgotten.is_set()
    if rows is not None:
        shard.fold(*event_rows(rows))
    reader.at = (plan.journal, plan.seq, plan.total)
    reader.begin()
    shard.fold(*reader.step())
    (state,) = shard.states.values()
    assert (state.appended_records, sum(state.skipped_bytes)) == (3 + 4, 0)


def test_one_that_is_forgotten_between_two_parts_of_it_gets_an_error(
    agent: Agent, log: PartitionLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "BLOCKS_AT_ONCE", 1)
    reader = Reader(agent).begin()
    for _ in range(3):
        log.append(batch(1))
        agent.look()
    rows = agent.service.read(reader.asked(reader.plan()))
    next(rows)
    agent.consumers.forget("job")
    with pytest.raises(AgentError, match="begun anew"):
        list(rows)


@pytest.mark.parametrize("blocks", [1, 2, 100])
def test_it_is_the_same_in_parts_of_any_size(agent: Agent, log: PartitionLog, monkeypatch: pytest.MonkeyPatch, blocks: int) -> None:
    reader = Reader(agent).begin()
    for _ in range(5):
        log.append(batch(1))
        agent.look()
    asked = reader.asked(reader.plan())
    whole = read_range(agent.service, asked)
    monkeypatch.setattr(service, "BLOCKS_AT_ONCE", blocks)
    assert read_range(agent.service, asked) == whole


def test_a_consumer_that_reads_on_without_a_commit_is_refused(agent: Agent, log: PartitionLog) -> None:
    """All that it was sent is kept for it, so a journal would grow without an end."""
    reader = Reader(agent).begin()
    journal = reader.plan().journal
    for _ in range(MOST_READS):
        log.append(batch(1))
        agent.look()
        read_range(agent.service, Range("job", "run 1", journal, -1, 0, agent.journal.end().seq))
    log.append(batch(1))
    agent.look()
    with pytest.raises(ConsumerError, match="commits nothing"):
        read_range(agent.service, Range("job", "run 1", journal, -1, 0, agent.journal.end().seq))


def test_a_range_beyond_the_journal_s_end_holds_no_later_event_for_its_consumer(agent: Agent, log: PartitionLog) -> None:
    reader = Reader(agent).begin()
    journal, end = reader.plan().journal, agent.journal.end().seq
    read_range(agent.service, Range("job", "run 1", journal, -1, 0, 10**12))
    log.append(batch(1))
    agent.look()
    agent.trim(keep_ms=-1, expiry_ms=0)
    assert agent.journal.blocks(end, agent.journal.end().seq) == []
