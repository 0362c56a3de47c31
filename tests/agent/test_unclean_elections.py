"""Unclean elections, from the metadata of the new leader's broker to what the fold counts."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from streaming.broker.watcher.watcher import EPOCH_MS, LOG_MS
from streaming.rules.log_state import LogState
from tests.elections import Election

OLD, NEW = 1, 2


@pytest.fixture
def election(tmp_path: Path) -> Iterator[Election]:
    made = Election(tmp_path)
    for broker in made.brokers:
        broker.up()
    made.produce(30)
    made.replicate()
    made.produce(50)
    made.broker(OLD).directory.write_checkpoint("replication-offset-checkpoint", [("orders", 0, 70)])
    made.look(passing_ms=60_000)
    made.read()
    yield made
    made.close()


def new_leader(election: Election) -> LogState:
    return election.replicas[1]


def reported(election: Election) -> tuple[int, int, int]:
    state = new_leader(election)
    return state.unclean_elections, state.unclean_lost_acknowledged, state.unclean_lost_upper


def test_it_is_counted_once_with_what_the_old_leader_had_over_restarts_replays_and_another_journal(election: Election) -> None:
    election.broker(OLD).down()
    election.elect_uncleanly(NEW)
    election.produce(5)
    election.look(NEW)
    election.read(NEW)
    assert reported(election) == (1, 40, 50)
    for again in (election.broker(NEW).down, election.broker(NEW).restart):
        again()
        election.broker(NEW).up()
        election.look(NEW)
        election.read(NEW)
    election.broker(OLD).up()
    election.hear(OLD)
    election.look()
    election.read()
    assert reported(election) == (1, 40, 50)
    assert (election.replicas[0].truncations, election.replicas[0].truncated_committed) == (1, 40)


def test_what_the_old_leader_s_agent_shows_later_is_lost_too(election: Election) -> None:
    election.produce(20)
    election.look(OLD)  # published, and not read by the job
    election.elect_uncleanly(NEW)
    election.produce(5)
    election.look(NEW)
    election.read(NEW)
    assert reported(election) == (1, 40, 50)
    election.read(OLD)
    assert reported(election) == (1, 40, 70)


def test_it_waits_for_the_epoch_to_be_written_down_and_goes_without_where_it_is_not(election: Election) -> None:
    election.elect_uncleanly(NEW)
    election.look(NEW, passing_ms=1_000)
    election.read(NEW)
    assert reported(election)[0] == 0
    election.produce(5)
    election.look(NEW, passing_ms=1_000)
    election.read(NEW)
    assert reported(election) == (1, 40, 50)
    election.elect_uncleanly(OLD)
    election.look(OLD, passing_ms=1_000)
    election.look(OLD, passing_ms=EPOCH_MS)
    election.read(OLD)
    state = election.replicas[0]
    assert (state.unclean_elections, state.unclean_lost_upper) == (1, -1)


def test_one_that_was_held_while_the_agent_was_down_is_found_behind_a_newer_snapshot(election: Election) -> None:
    election.broker(NEW).down()
    election.elect_uncleanly(NEW)
    election.snapshot(NEW, recovering=True)
    election.produce(5)
    election.broker(NEW).up()
    election.look(NEW)
    election.read(NEW)
    election.look(NEW)
    election.read(NEW)
    assert reported(election) == (1, 40, 50)


def test_a_log_that_is_not_there_is_waited_for_and_let_go_of(election: Election, caplog: pytest.LogCaptureFixture) -> None:
    election.elect_uncleanly(NEW)
    directory = election.broker(NEW).log.directory
    shutil.rmtree(directory)
    election.look(NEW, passing_ms=60_000)
    election.look(NEW, passing_ms=LOG_MS)
    election.look(NEW, passing_ms=60_000)
    assert "a leader was elected that is asked to recover, and its log is not watched: it is not counted" in caplog.messages
