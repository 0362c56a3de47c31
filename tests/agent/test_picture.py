"""The full picture that a beat stands for."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from streaming.agent.picture import picture
from streaming.facts import decode
from streaming.rows import Kind
from streaming.simulator.log_dir import LogDir
from streaming.watcher.events import Event
from tests.agents import Agent, Reader
from tests.builders import batch, log_dir, partition


@pytest.fixture
def directory(tmp_path: Path) -> LogDir:
    return log_dir(tmp_path)


@pytest.fixture
def agent(directory: LogDir, tmp_path: Path) -> Iterator[Agent]:
    partition(directory, "orders", 0).append(batch(3))
    partition(directory, "orders", 1).append(batch(3))
    made = Agent(directory.path, journal=tmp_path / "journal")
    yield made
    made.close()


def drawn(agent: Agent, *, settled: bool) -> list[Event]:
    return picture(Event(kind=Kind.BEAT, settled=settled), agent.watcher.tails(), agent.watcher.unseen())


def test_it_has_a_row_for_every_log_and_a_closing_one(agent: Agent, directory: LogDir) -> None:
    Reader(agent).begin()
    rows = drawn(agent, settled=True)
    assert sorted((row.kind, row.topic, row.partition, row.log_dir, row.settled) for row in rows) == [
        (Kind.BEAT, "orders", 0, str(directory.path), True),
        (Kind.BEAT, "orders", 1, str(directory.path), True),
        (Kind.BEAT_END, "", -1, "", True),
    ]
    assert rows[-1].kind is Kind.BEAT_END


def test_it_never_tells_counters_or_how_far_a_log_is_read(agent: Agent) -> None:
    Reader(agent).begin()
    untold = Event(kind=Kind.BEAT)
    names = (
        "bytes",
        "batches",
        "records",
        "base_offset",
        "next_offset",
        "log_epoch",
        "seen_at",
        "codec_bytes",
        "start_position",
        "end_position",
    )
    assert all(getattr(row, name) == getattr(untold, name) for row in drawn(agent, settled=True) for name in names)


def test_a_log_starts_where_the_checkpoint_says_if_that_is_later(agent: Agent, directory: LogDir) -> None:
    directory.write_checkpoint("log-start-offset-checkpoint", [("orders", 1, 2)])
    Reader(agent).begin()
    assert {row.partition: row.log_start_offset for row in drawn(agent, settled=True)[:-1]} == {0: 0, 1: 2}


def test_a_backlog_that_was_read_behind_the_beat_is_not_settled_by_it(agent: Agent) -> None:
    """The picture is drawn when it is read; the rows of that backlog come after it."""
    Reader(agent).begin()
    assert not any(row.settled for row in drawn(agent, settled=False))


def test_it_tells_what_stands_in_other_files_than_the_segments(agent: Agent, directory: LogDir) -> None:
    directory.write_high_watermarks()
    Reader(agent).begin()
    (row, other) = sorted(drawn(agent, settled=True)[:-1], key=lambda row: row.partition)
    assert row.facts is not None
    assert decode(row.facts).segments["base_offset"].tolist() == [0]
    assert (row.high_watermark, other.high_watermark, row.active_producers) == (3, 3, 0)


def test_a_log_that_is_still_being_read_is_in_it_too(agent: Agent) -> None:
    Reader(agent).begin()
    for tail in agent.watcher.tails():
        tail.told = None
    assert [(row.log_start_offset, row.leader, row.facts) for row in drawn(agent, settled=False)[:-1]] == [(0, -2, None)] * 2


def test_without_metadata_nobody_knows_who_leads(agent: Agent) -> None:
    Reader(agent).begin()
    assert {(row.leader, row.leader_epoch) for row in drawn(agent, settled=True)} == {(-2, -1)}


def test_it_names_the_log_dirs_of_which_it_tells_nothing(agent: Agent, directory: LogDir, tmp_path: Path) -> None:
    other = log_dir(tmp_path, "d1")
    partition(other, "orders", 2).append(batch(3))
    both = Agent(directory.path, other.path, journal=tmp_path / "both")
    Reader(both).begin()
    assert drawn(both, settled=True)[-1].reason == ""
    away = other.path.with_name("away")
    other.path.rename(away)
    both.lose_journal()  # and with it all that is known of the log in there
    Reader(both).begin()
    rows = drawn(both, settled=True)
    assert sorted(row.partition for row in rows[:-1]) == [0, 1]
    assert rows[-1].reason == str(other.path)
    away.rename(other.path)
    both.look()
    assert drawn(both, settled=True)[-1].reason == ""
    both.close()
