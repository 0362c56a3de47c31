"""Topic counters over elections: what a leader appended is counted once, whenever which agent reads it."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.broker.protocol.consumer_messages import NOT_BEGUN
from tests.elections import Election
from tests.scratch import scratch


@pytest.fixture
def election(tmp_path: Path) -> Iterator[Election]:
    made = Election(tmp_path)
    yield made
    made.close()


def begin(election: Election) -> None:
    """A hundred records in epoch 0 are counted."""
    for broker in election.brokers:
        broker.up()
    election.produce(100)
    election.replicate()
    election.look()
    election.read()
    assert election.counted == 100


@pytest.mark.parametrize("away", [1, 2])
def test_an_agent_that_was_down_before_an_election_counts_what_its_broker_led(election: Election, away: int) -> None:
    begin(election)
    election.broker(away).down()
    for _ in range(3):
        election.produce(100)
    election.replicate()
    election.look()
    election.read()
    election.elect(2)
    election.produce(10)
    election.finish()
    assert election.counted == election.appended == 410


def test_what_is_read_on_either_side_of_an_election_is_counted_once(election: Election) -> None:
    """Nobody is down: the follower's agent reads before the election, the old leader's after it."""
    begin(election)
    election.produce(250)
    election.replicate()
    election.look()
    election.produce(50)
    election.replicate()
    election.look(2)
    election.elect(2)
    election.look(1)
    election.produce(10)
    election.finish()
    assert election.counted == election.appended == 410


def test_an_agent_that_begins_after_elections_knows_who_led(election: Election) -> None:
    for leader in (2, 1, 2, 2, 1):
        election.produce(10)
        election.elect(leader)
    election.produce(5)
    election.finish()
    assert election.counted == 55
    (one, two) = (
        election.fold.log(topic_id=election.brokers[0].reader.agent.watcher.tails()[0].cursor.log.topic_id, broker=n) for n in (1, 2)
    )
    assert (one.share_records, two.share_records) == (25, 30)


def test_an_agent_that_is_restarted_behind_a_snapshot_knows_who_led_before_it(election: Election) -> None:
    begin(election)
    for broker in election.brokers:
        broker.down()
    for leader in (2, 1, 2):
        election.produce(10)
        election.elect(leader)
        election.snapshot(1)
        election.snapshot(2)
    election.produce(1)
    election.finish()
    assert election.counted == election.appended == 131


def test_of_epochs_that_no_metadata_reports_the_first_assigned_replica_counts(election: Election) -> None:
    for leader in (2, 1, 2):
        election.produce(10)
        election.elect(leader)
        election.snapshot(1)
        election.snapshot(2)
    for broker in election.brokers:
        broker.metadata.forget_log()
    election.produce(1)
    election.finish()
    assert election.counted == 31
    assert [state.share_records for state in election.replicas] == [30, 1]


def test_a_range_waits_for_the_metadata_that_shows_its_epoch(election: Election) -> None:
    begin(election)
    election.elect(2, published=False)
    election.produce(10)
    election.replicate()
    election.look(passing_ms=1000)
    election.read()
    assert [state.appended_records for state in election.replicas] == [100, 100]
    assert not any(broker.agent is None or broker.agent.watcher.caught_up is False for broker in election.brokers)
    election.publish_metadata()
    election.look(passing_ms=200)
    election.read()
    assert [state.appended_records for state in election.replicas] == [110, 110]
    assert election.counted == 110


def test_a_range_waits_for_five_seconds_and_no_longer(election: Election) -> None:
    begin(election)
    election.elect(2, published=False)
    election.produce(10)
    election.replicate()
    for passing_ms in (100, 4900, 200):
        election.look(passing_ms=passing_ms)
    election.read()
    assert [state.appended_records for state in election.replicas] == [110, 110]


def test_where_no_metadata_can_be_read_every_record_counts_once(election: Election) -> None:
    for broker in election.brokers:
        broker.metadata.log.close()
        shutil.rmtree(broker.metadata.log.directory)
        broker.up()
    for leader in (2, 1):
        election.produce(100)
        election.look()
        election.read()
        election.replicate()
        election.look()
        election.elect(leader, published=False)
    election.produce(10)
    election.replicate()
    election.look()
    election.read()
    assert election.counted == 210


brokers = st.integers(1, 2)
Step = tuple[str, int, int]

steps = st.one_of(
    st.tuples(st.just("produce"), brokers, st.integers(1, 50)),
    st.tuples(st.just("produce"), brokers, st.integers(1, 50)),
    *(
        st.tuples(st.just(name), brokers, st.just(0))
        for name in (
            *("replicate", "replicate", "elect", "elect", "elect_unheard", "tell", "snapshot", "look", "look", "look", "read"),
            *("up", "down", "restart"),
        )
    ),
)


def do(election: Election, name: str, number: int, records: int) -> None:
    broker = election.broker(number)
    match name:
        case "produce":
            election.produce(records)
        case "elect" | "elect_unheard":
            election.elect(number, published=name == "elect")
        case "look":
            if broker.known < election.changes:
                election.look(number, passing_ms=100)
                election.publish(broker)  # it does not take five seconds
            else:
                election.look(number)
        case "tell":
            election.publish(broker)
        case "up" | "down":
            getattr(broker, name)()
        case "restart":
            broker.down()
            broker.up()
        case "replicate":
            election.replicate()
        case _:
            getattr(election, name)(number)


@given(st.lists(steps, max_size=30))
def test_every_record_is_counted_once_over_elections_restarts_and_metadata_that_comes_late(done: list[Step]) -> None:
    with scratch() as root:
        election = Election(Path(root))
        try:
            for broker in election.brokers:
                broker.up()
            for name, number, records in done:
                do(election, name, number, records)
            election.finish()
            assert all(broker.reader.plan().seq != NOT_BEGUN for broker in election.brokers)
            assert election.counted == election.appended
        finally:
            election.close()
