"""A census: which logs an agent has, and what a reader lets go of by it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from streaming.broker.journal.census import expanded
from streaming.common.event_row import Event, EventRow
from streaming.common.rows import Kind
from streaming.simulator.log import LogDir
from tests.agents import Agent, Reader
from tests.builders import batch, log_dir, partition
from tests.events import Shard
from tests.watcher.journalled import events_of


@pytest.fixture
def directory(tmp_path: Path) -> LogDir:
    return log_dir(tmp_path)


@pytest.fixture
def agent(directory: LogDir, tmp_path: Path) -> Iterator[Agent]:
    partition(directory, "orders", 0).append(batch(3))
    partition(directory, "orders", 1).append(batch(3))
    made = Agent(directory.path)
    yield made
    made.close()


def census_of(rows: list[EventRow]) -> list[EventRow]:
    return [row for row in rows if row.kind in (Kind.CENSUS, Kind.CENSUS_END)]


def censuses(agent: Agent) -> int:
    return sum(event.kind is Kind.CENSUS for _, event in events_of(agent.journal, 0, agent.journal.end().seq))


def test_it_has_a_row_for_every_log_and_a_closing_one(agent: Agent, directory: LogDir) -> None:
    rows = census_of(Reader(agent).begin().step())
    assert [(row.kind, row.topic, row.partition, row.log_dir) for row in rows] == [
        (Kind.CENSUS, "orders", 0, str(directory.path)),
        (Kind.CENSUS, "orders", 1, str(directory.path)),
        (Kind.CENSUS_END, "", -1, f"1:{directory.path}"),
    ]


def test_it_shows_keys_and_log_dirs_and_nothing_else(agent: Agent) -> None:
    Reader(agent).begin()
    (event,) = [event for _, event in events_of(agent.journal, 0, agent.journal.end().seq) if event.kind is Kind.CENSUS]
    for each in expanded(event)[:-1]:
        of_key = {name: getattr(each, name) for name in ("broker", "log_dir", "topic", "partition", "topic_id")}
        assert each == Event(kind=Kind.CENSUS, **of_key)


def test_an_agent_without_logs_says_so(tmp_path: Path) -> None:
    agent = Agent(log_dir(tmp_path).path)
    assert [row.kind for row in Reader(agent).begin().step()] == [Kind.CENSUS_END]
    agent.close()


def test_it_is_published_for_each_beginning_and_by_another_watcher_and_not_again(agent: Agent) -> None:
    Reader(agent).begin()
    for published in (1, 2):
        for _ in range(3):
            agent.look()
        assert censuses(agent) == published
        agent.replace_watcher()  # its log dirs may have been another agent's
    agent.look()
    Reader(agent, "second").begin()
    assert censuses(agent) == 4


def test_it_names_the_log_dirs_of_which_it_shows_nothing(agent: Agent, directory: LogDir, tmp_path: Path) -> None:
    other = log_dir(tmp_path, "d1")
    partition(other, "orders", 2).append(batch(3))
    both = Agent(directory.path, other.path)
    assert census_of(Reader(both).begin().step())[-1].reason == ""
    away = other.path.with_name("away")
    other.path.rename(away)
    both.restart()  # and with it all that is known of the log in there
    rows = census_of(Reader(both).begin().step())
    assert sorted(row.partition for row in rows[:-1]) == [0, 1]
    assert rows[-1].reason == str(other.path)
    away.rename(other.path)
    both.look()
    assert census_of(Reader(both, "later").begin().step())[-1].reason == ""
    both.close()


def lost_with_the_process(directory: LogDir, other: LogDir) -> tuple[Agent, Shard, Reader, Path]:
    """A log dir is away, and what was known of its only log; meanwhile that log is deleted. Where the log dir is now."""
    partition(other, "orders", 2).append(batch(3))
    both, shard = Agent(directory.path, other.path), Shard()
    reader = Reader(both)
    shard.fold(*reader.begin().step())
    gone(other, 2)
    away = other.path.with_name("away")
    other.path.rename(away)
    both.restart()
    shard.fold(*reader.begin().step())
    assert there(shard) == {0, 1, 2}  # nobody knows better
    return both, shard, reader, away


def there(shard: Shard) -> set[int]:
    return {key.partition for key, state in shard.states.items() if not state.departed}


def test_what_it_left_out_is_reported_once_by_the_next_one(agent: Agent, directory: LogDir, tmp_path: Path) -> None:
    other = log_dir(tmp_path, "d1")
    both, shard, reader, away = lost_with_the_process(directory, other)
    both.look()
    assert censuses(both) == 1
    away.rename(other.path)
    for _ in range(3):
        both.look()
    assert censuses(both) == 2
    shard.fold(*reader.step())
    assert there(shard) == {0, 1}
    both.close()


def test_what_that_of_an_earlier_process_left_out_is_reported_too(agent: Agent, directory: LogDir, tmp_path: Path) -> None:
    other = log_dir(tmp_path, "d1")
    both, shard, reader, away = lost_with_the_process(directory, other)
    away.rename(other.path)
    both.restart()
    shard.fold(*reader.begin().step())
    assert there(shard) == {0, 1}
    both.close()


def test_a_log_that_cannot_be_looked_at_is_there(agent: Agent, directory: LogDir, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(path: Path, *_: object) -> None:
        raise PermissionError(13, "no", str(path))

    monkeypatch.setattr("streaming.broker.watcher.beginnings.list_segments", refused)
    rows = census_of(Reader(agent).begin().step())
    assert [row.partition for row in rows] == [0, 1, -1]


def gone(directory: LogDir, number: int) -> None:
    for file in (directory.path / f"orders-{number}").iterdir():
        file.unlink()
    (directory.path / f"orders-{number}").rmdir()


def test_a_log_that_vanishes_between_two_watchers_is_reported_as_gone(agent: Agent, directory: LogDir) -> None:
    shard, reader = Shard(), Reader(agent)
    shard.fold(*reader.begin().step())
    gone(directory, 1)
    agent.replace_watcher()
    agent.look()
    rows = reader.step()
    assert [(row.kind, row.partition) for row in rows if row.kind == Kind.GONE] == [(Kind.GONE, 1)]
    shard.fold(*rows)
    assert {key.partition for key, state in shard.states.items() if not state.departed} == {0}


def test_a_log_that_vanishes_while_no_agent_runs_leaves_by_the_census(agent: Agent, directory: LogDir) -> None:
    shard, reader = Shard(), Reader(agent)
    shard.fold(*reader.begin().step())
    gone(directory, 1)
    agent.restart()
    rows = reader.begin().step()
    assert Kind.GONE not in {row.kind for row in rows}
    shard.fold(*rows)
    assert {key.partition: state.departed for key, state in shard.states.items()} == {0: False, 1: True}


def test_nothing_is_written_while_nothing_happens(agent: Agent, directory: LogDir) -> None:
    """So that nothing runs through Spark."""
    directory.write_high_watermarks()
    reader = Reader(agent).begin()
    agent.look()
    reader.step()
    end = agent.journal.end()
    for _ in range(100):
        agent.look()
        plan = reader.plan()
        assert (agent.journal.end(), plan.seq) == (end, end.seq)
