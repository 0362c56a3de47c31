"""What pages say of brokers and log dirs as a whole."""

from dataclasses import replace

from streaming.broker.protocol.cluster_messages import Led, Registered
from streaming.broker.protocol.status_messages import BlockedFile, UnreadableLogs
from streaming.cluster.view.host_families import coordinator_partitions, fenced
from streaming.cluster.view.observer import AgentStatus
from tests.exposition.reading import named
from tests.view.rows import new_table
from tests.worlds.hosts import agent, broker, log_dir, observer, reported

DIR = "segtail_log_dir_"


def test_a_log_dir_shows_its_space_and_when_its_broker_last_wrote() -> None:
    made = observer(agent("a1", broker(), log_dirs=(log_dir(),)))
    where = ("broker", "log_dir")
    assert reported(made, f"{DIR}up", *where) == {("1", "/d0"): 1}
    assert reported(made, f"{DIR}free_bytes", *where) == {("1", "/d0"): 10}
    assert reported(made, f"{DIR}capacity_bytes", *where) == {("1", "/d0"): 90}
    assert reported(made, f"{DIR}checkpoint_timestamp_seconds", *where) == {("1", "/d0"): 1_700_000_000.5}
    other = reported(made, f"{DIR}other_bytes", "kind")
    assert other == {("deleted",): 1, ("delete",): 2, ("stray",): 3, ("future",): 4, ("index",): 5, ("metadata",): 6}


def test_one_that_cannot_be_read_or_that_its_broker_gave_up_is_down_and_shows_no_space_it_does_not_know() -> None:
    gone = log_dir("/gone", up=False, checkpoint_ms=-1, free=-1, capacity=-1)
    made = observer(agent("a1", broker(), log_dirs=(gone, log_dir("/offline", registered=False), log_dir("/old", registered=None))))
    assert reported(made, f"{DIR}up", "log_dir") == {("/gone",): 0, ("/offline",): 0, ("/old",): 1}
    assert set(reported(made, f"{DIR}free_bytes", "log_dir")) == {("/offline",), ("/old",)}


def test_what_an_agent_stated_before_it_went_down_is_not_repeated() -> None:
    made = observer(agent("a1", broker(), log_dirs=(log_dir(),), up=False))
    assert reported(made, f"{DIR}checkpoint_timestamp_seconds", "log_dir") == {}
    assert reported(made, "segtail_broker_fenced", "broker") == {}


def test_partitions_led_by_brokers_that_nobody_watches_are_counted() -> None:
    led = [Led(1, 5), Led(2, 4), Led(9, 3)]
    made = observer(agent("a1", broker(1, led=led)), agent("a2", broker(2, led=[*led[:2], Led(9, 2)]), up=False))
    assert reported(made, "segtail_partitions_unobserved", "broker") == {("9",): 3}


def test_fenced_brokers_and_the_controller_are_reported() -> None:
    others = [Registered(1, False), Registered(2, True), Registered(3, False)]
    down = broker(2, metadata_offset=8, registered=[Registered(1, False), Registered(2, False)], controller=-1)
    made = observer(agent("a1", broker(1, registered=others)), agent("a2", down), agent("a3", broker(3, metadata_offset=-1)))
    assert reported(made, "segtail_broker_fenced", "broker") == {("1",): 0, ("2",): 1, ("3",): 0}
    assert fenced([down, broker(1, registered=others)]) == [2]
    assert fenced([]) == []
    assert reported(made, "segtail_cluster_controller_id") == {(): 3}
    assert reported(observer(), "segtail_cluster_controller_id") == {}


def test_the_coordinators_partitions_are_known_if_any_broker_shows() -> None:
    assert coordinator_partitions([]) is None
    assert coordinator_partitions([broker(transaction_partitions=None)]) is None
    assert coordinator_partitions([broker(transaction_partitions=None), broker(2, transaction_partitions=0)]) == 0
    assert coordinator_partitions([broker(transaction_partitions=0), broker(2, transaction_partitions=50)]) == 50


def test_what_an_agent_could_not_believe_is_counted_also_while_it_is_down() -> None:
    doubting = AgentStatus(name="a1", up=False, doubts=(("configuration", 2), ("time_index", 0)))
    assert reported(observer(doubting), "segtail_agent_doubts_total", "agent", "kind") == {
        ("a1", "configuration"): 2,
        ("a1", "time_index"): 0,
    }


def test_a_file_that_does_not_answer_is_named_while_its_agent_is_up() -> None:
    blocked = (BlockedFile(1, "/d1", "/d1/t-0/0.log", 34.5),)
    down = (BlockedFile(2, "/d2", "/d2/t-0/0.log", 1.0),)
    reported = observer(AgentStatus(name="a1", up=True, brokers=(1,), blocked=blocked), AgentStatus(name="a2", up=False, blocked=down))
    found = [
        (sample.labels, sample.value)
        for family in reported.families({}, 0.0).collect()
        for sample in family.samples
        if sample.name == "segtail_log_dir_blocked_seconds"
    ]
    assert found == [({"broker": "1", "log_dir": "/d1", "path": "/d1/t-0/0.log"}, 34.5)]


def test_logs_that_cannot_be_read_are_counted_for_each_broker_of_agents_that_are_up() -> None:
    first = AgentStatus(name="a1", up=True, brokers=(1, 2), unreadable=(UnreadableLogs(1, 3),))
    second = AgentStatus(name="a2", up=True, brokers=(1,), unreadable=(UnreadableLogs(1, 4),))
    third = AgentStatus(name="a3", up=False, brokers=(3,), unreadable=(UnreadableLogs(3, 5),))
    assert reported(observer(first, second, third), "segtail_unreadable_logs", "broker") == {("1",): 7, ("2",): 0}


# --- where brokers stand


def test_each_broker_has_one_status_and_the_time_since_which_it_has_it() -> None:
    registered = [Registered(1, False, 3, "running", 5_000), Registered(2, True, 4, "down", 9_000)]
    made = observer(agent("a1", broker(1, registered=registered)))
    found = reported(made, "segtail_broker_status", "broker", "status")
    assert {each for each, value in found.items() if value} == {("1", "running"), ("2", "down")}
    assert len(found) == 8
    assert reported(made, "segtail_broker_status_since_timestamp_seconds", "broker") == {("1",): 5, ("2",): 9}


def test_how_a_copy_grows_is_reported_where_an_idle_controller_makes_it_grow() -> None:
    made = observer(agent("a1", broker(1, appended_ms=7_500)), agent("a2", broker(2)), agent("a3", broker(3, metadata_offset=-1)))
    assert reported(made, "segtail_broker_metadata_offset", "broker") == {("1",): 10, ("2",): 10}
    assert reported(made, "segtail_broker_metadata_last_append_timestamp_seconds", "broker") == {("1",): 7.5}


def test_an_agent_that_was_not_asked_for_long_shows_nothing_of_its_broker() -> None:
    made = observer()
    made.know([agent("a1", broker(1, appended_ms=7_500), log_dirs=(log_dir(),))], at=100.0)
    name = "segtail_broker_metadata_last_append_timestamp_seconds"
    assert set(named(new_table(), name, made, now=120.0).values()) == {7.5}
    assert named(new_table(), name, made, now=140.0) == {}


def test_no_checkpoint_is_judged_where_no_replica_is_or_the_log_dir_is_not_used() -> None:
    dirs = (log_dir("/full", hosts=True), log_dir("/empty", hosts=False), log_dir("/given-up", registered=False))
    made = observer(agent("a1", broker(), log_dirs=dirs))
    assert set(reported(made, f"{DIR}checkpoint_timestamp_seconds", "log_dir")) == {("/full",)}


def test_registered_log_dirs_that_no_agent_watches_are_counted_over_agents_up_and_down() -> None:
    first = replace(agent("a1", broker(1, log_dirs=["x", "y", "z"])), directories=("1:x",))
    second = replace(agent("a2", broker(1), up=False), directories=("1:y",))
    assert reported(observer(first, second), "segtail_broker_unwatched_log_dirs", "broker") == {("1",): 1}
    unknown = AgentStatus(name="a3", up=False)
    assert reported(observer(first, second, unknown), "segtail_broker_unwatched_log_dirs", "broker") == {}, "it may watch the third"


def test_a_log_dir_that_could_never_be_read_is_watched_all_the_same() -> None:
    dirs = (log_dir("/d0"), log_dir("/d1", up=False))
    first = replace(agent("a1", broker(1, log_dirs=["x", "y"]), log_dirs=dirs), directories=("1:x",))
    assert reported(observer(first), "segtail_broker_unwatched_log_dirs", "broker") == {("1",): 0}


def test_metadata_that_a_cluster_of_before_kraft_does_not_have_is_not_called_unreadable() -> None:
    old = broker(1, readable=False, metadata_offset=-1, expected=False)
    blind = broker(2, readable=False, metadata_offset=-1)
    assert reported(observer(agent("a1", old), agent("a2", blind)), "segtail_broker_metadata_readable", "broker") == {("2",): 0}


def test_a_snapshot_that_the_next_start_cannot_read_is_reported_before() -> None:
    made = observer(agent("a1", broker(1, snapshot=False)), agent("a2", broker(2, snapshot=True)))
    assert reported(made, "segtail_broker_metadata_snapshot_readable", "broker") == {("1",): 0, ("2",): 1}
