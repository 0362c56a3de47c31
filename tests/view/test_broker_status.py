"""Where brokers stand by several copies of the metadata log, and which of their log dirs nobody watches."""

from dataclasses import replace

from streaming.broker.protocol.cluster_messages import Registered
from streaming.broker.protocol.status_messages import BrokerStatus
from streaming.cluster.view.broker_status import broker_phases, server_of_cluster, unwatched_log_dirs
from streaming.kafka.formats.metadata_records import Phase
from tests.worlds.copies import DOWN, FENCED, RUNS, copy


def phases(*copies: BrokerStatus) -> dict[int, Phase]:
    return {each.broker: each.phase for each in broker_phases(copies)}


def test_the_copy_that_has_come_furthest_shows_and_not_the_own_one_of_a_broker_that_is_down() -> None:
    assert phases(copy(2, 90, RUNS), copy(1, 100, DOWN)) == {2: Phase.DOWN}
    assert [each.since for each in broker_phases([copy(1, 100, DOWN)])] == [9.5]


def test_nobody_knows_anything_without_metadata() -> None:
    assert phases() == {}
    assert phases(copy(1, -1)) == {}


def test_what_a_snapshot_leaves_open_another_copy_shows() -> None:
    assert phases(copy(1, 100, FENCED), copy(3, 99, DOWN)) == {2: Phase.DOWN}
    starts = Registered(2, True, epoch=7, phase="starting")
    assert phases(copy(1, 100, FENCED), copy(3, 99, starts)) == {2: Phase.STARTING}
    before = Registered(2, True, epoch=6, phase="down")
    assert phases(copy(1, 1000, FENCED), copy(3, 99, before), copy(2, 999)) == {2: Phase.STARTING}, "of another registration"


def test_else_its_own_copy_grows_only_while_its_process_runs() -> None:
    assert phases(copy(1, 1000, FENCED), copy(2, 990, FENCED)) == {2: Phase.STARTING}
    assert phases(copy(1, 1000, FENCED), copy(2, 100, RUNS)) == {2: Phase.DOWN}
    assert phases(copy(1, 1000, FENCED)) == {2: Phase.DOWN}


def test_an_agent_of_an_earlier_version_shows_who_is_fenced_and_no_more() -> None:
    assert phases(copy(1, 100, Registered(2, True), Registered(3, False))) == {3: Phase.RUNNING}
    assert [each.since for each in broker_phases([copy(1, 100, Registered(3, False))])] == [None]


def test_a_broker_that_is_not_registered_any_more_is_not_reported() -> None:
    assert phases(copy(1, 100), copy(2, 90, DOWN)) == {}


def test_clients_are_sent_to_a_broker_that_is_not_fenced() -> None:
    one, two = Registered(1, True, server="kafka-1:9092"), Registered(2, False, server="kafka-2:9092")
    assert server_of_cluster([copy(1, 100, one, two), copy(2, 50, replace(one, fenced=False))]) == "kafka-2:9092"
    assert server_of_cluster([copy(1, 100, one, Registered(3, False))]) == "kafka-1:9092"
    assert server_of_cluster([copy(1, 100, Registered(3, False))]) == ""
    assert server_of_cluster([]) == ""


def test_one_that_led_nothing_when_it_was_stopped_is_fenced_like_one_that_was_killed_and_its_own_disk_shows_which() -> None:
    killed, heard, clean = copy(2, 90, RUNS), copy(2, 99, DOWN), copy(2, 90, RUNS, clean=True)
    assert phases(copy(1, 100, DOWN), killed) == {2: Phase.DOWN}
    assert phases(copy(1, 100, DOWN), heard) == {2: Phase.STOPPING}
    assert phases(copy(1, 100, DOWN), clean) == {2: Phase.STOPPING}
    assert [each.phase for each in broker_phases([copy(1, 100, DOWN)], [clean])] == [Phase.STOPPING], "also where its host went afterwards"


def test_what_its_disk_stated_of_an_earlier_registration_does_not_count() -> None:
    before = copy(2, 50, Registered(2, True, epoch=6, phase="down"), clean=True)
    assert phases(copy(1, 100, DOWN), before) == {2: Phase.DOWN}
    other = copy(3, 100, DOWN, clean=True)
    assert phases(copy(1, 100, DOWN), other) == {2: Phase.DOWN}, "of another broker"


def test_one_without_any_replica_is_missed_by_nobody() -> None:
    assert phases(copy(1, 100, replace(DOWN, replicas=False))) == {2: Phase.STOPPING}
    assert phases(copy(1, 100, replace(DOWN, replicas=True))) == {2: Phase.DOWN}


def test_registered_log_dirs_that_nobody_watches_are_counted() -> None:
    brokers = [copy(1, 100, log_dirs=["a", "b", "c"]), copy(2, 100, log_dirs=["d"]), copy(3, 100)]
    watched = {1: frozenset({"a", "x"}), 2: frozenset({"d"})}
    assert unwatched_log_dirs(brokers, watched, {}) == {1: 2, 2: 0}
    assert unwatched_log_dirs(brokers, watched, {1: 1}) == {1: 1, 2: 0}, "one that could never be read may be one of them"


def test_of_two_agents_of_one_broker_the_newer_registration_counts() -> None:
    brokers = [copy(1, 100, log_dirs=["a", "new"]), copy(1, 90, log_dirs=["a", "old"])]
    assert unwatched_log_dirs(brokers, {1: frozenset({"a", "new"})}, {}) == {1: 0}
