"""Two agents of one broker report the same broker, log dirs and scrubs: each counts once, for metrics and for problems alike."""

from dataclasses import replace

import pytest

from streaming.broker.protocol.status_messages import BrokerStatus, LogDirStatus, ScrubStatus
from streaming.cluster.view.broker_status import each_broker, each_log_dir, each_scrub
from tests.worlds.hosts import agent, broker, log_dir, observer, reported

NEWER = broker(metadata_offset=12, appended_ms=7_000, controller=3)
OLDER = broker(metadata_offset=10, appended_ms=5_000, controller=4, snapshot=False)
DOWN = log_dir(up=False, checkpoint_ms=-1, free=-1, capacity=-1)


@pytest.mark.parametrize("statuses", [(NEWER, OLDER), (OLDER, NEWER)])
def test_the_most_advanced_copy_of_the_metadata_log_counts_whichever_agent_reads_it(statuses: tuple[BrokerStatus, ...]) -> None:
    made = observer(*(agent(f"a{number}", each) for number, each in enumerate(statuses)))
    assert reported(made, "segtail_broker_metadata_offset", "broker") == {("1",): 12}
    assert reported(made, "segtail_broker_metadata_last_append_timestamp_seconds", "broker") == {("1",): 7}
    assert reported(made, "segtail_broker_metadata_snapshot_readable", "broker") == {("1",): 1}
    assert reported(made, "segtail_cluster_controller_id") == {(): 3}


def test_a_broker_has_one_vote_for_the_controller() -> None:
    made = observer(agent("a1", NEWER), agent("a2", NEWER), agent("a3", broker(2, controller=5)), agent("a4", broker(3, controller=5)))
    assert reported(made, "segtail_cluster_controller_id") == {(): 5}


def test_a_copy_that_can_be_read_counts_and_what_any_agent_has_found_out() -> None:
    unread = broker(readable=False, metadata_offset=-1, snapshot=True, clean=True)
    assert each_broker([unread, OLDER]) == [replace(OLDER, clean=True)]
    assert each_broker([OLDER, unread]) == [replace(OLDER, clean=True)]
    assert each_broker([OLDER, NEWER, broker(2)]) == [NEWER, broker(2)]


@pytest.mark.parametrize("dirs", [(log_dir(), DOWN), (DOWN, log_dir())])
def test_a_log_dir_is_up_if_an_agent_can_read_it(dirs: tuple[LogDirStatus, ...]) -> None:
    made = observer(*(agent(f"a{number}", broker(), log_dirs=(each,)) for number, each in enumerate(dirs)))
    assert reported(made, "segtail_log_dir_up", "log_dir") == {("/d0",): 1}
    assert reported(made, "segtail_log_dir_free_bytes", "log_dir") == {("/d0",): 10}


def test_of_two_that_can_be_read_the_latest_checkpoint_counts() -> None:
    later = log_dir(checkpoint_ms=1_800_000_000_000, registered=False)
    assert each_log_dir([log_dir(), later, log_dir("/d1")]) == [later, log_dir("/d1")]


def test_the_scrub_that_has_found_most_counts() -> None:
    clean = ScrubStatus(broker=1, log_dir="/d0", began_ms=5, ended_ms=9, logs=1, logs_checked=1, checked=5, corrupt=0, unreadable=0)
    damaged = replace(clean, corrupt=2, ended_ms=7)
    assert each_scrub([damaged, clean]) == [damaged] == each_scrub([clean, damaged])
