"""Whether brokers run by their locks, in the light of what the cluster knows, and what that makes of their phases and log dirs."""

from dataclasses import replace
from typing import Any

from streaming.broker.protocol.cluster_messages import Registered
from streaming.broker.protocol.status_messages import BrokerStatus, ProcessStatus
from streaming.cluster.view.answers import by_our_clock
from streaming.cluster.view.broker_status import away_brokers, broker_phases, broker_processes, each_broker
from streaming.cluster.view.observer import Observer
from streaming.kafka.formats.metadata_records import Phase
from streaming.rules.broker_process import LockState, ProcessState
from tests.worlds.broker_states import ENDED, FREE, UNKNOWN, UP
from tests.worlds.copies import DOWN, FENCED, RUNS, copy
from tests.worlds.hosts import agent, broker, log_dir, observer, reported

STARTED = replace(UP, since_ms=9_600)
STARTS = Registered(2, True, epoch=7, phase="starting", since_ms=5_000)
STOPS = Registered(2, False, epoch=7, phase="stopping", since_ms=5_000)


def phase(registered: Registered, process: ProcessStatus | None, **own: Any) -> tuple[Phase, float | None]:
    """Of broker 2, by the copy of another broker."""
    before = RUNS if registered is DOWN else registered  # a broker that is down has not read that it was fenced
    (found,) = broker_phases([copy(1, 100, registered), copy(2, 90, before, process=process, **own)])
    return found.phase, found.since


def test_a_process_that_was_seen_to_end_is_down_before_its_controller_knows_it() -> None:
    assert phase(RUNS, UP) == (Phase.RUNNING, 5.0)
    assert phase(RUNS, ENDED) == (Phase.DOWN, 9.0)
    assert phase(RUNS, ENDED, clean=True) == (Phase.STOPPING, 9.0)
    assert phase(STOPS, ENDED) == (Phase.STOPPING, 5.0)


def test_log_dirs_that_nobody_was_seen_to_hold_may_be_a_copy() -> None:
    assert phase(RUNS, FREE) == (Phase.RUNNING, 5.0)
    assert phase(RUNS, UNKNOWN) == (Phase.RUNNING, 5.0)
    assert phase(RUNS, None) == (Phase.RUNNING, 5.0)


def test_it_is_down_since_its_end_or_since_it_was_fenced_whichever_is_earlier() -> None:
    assert phase(DOWN, ENDED) == (Phase.DOWN, 9.0)
    hung = replace(ENDED, since_ms=600_000, last_ms=599_000)
    assert phase(DOWN, hung) == (Phase.DOWN, 9.5)
    assert phase(DOWN, UP) == (Phase.DOWN, 9.5)
    assert phase(DOWN, FREE) == (Phase.DOWN, 9.5)


def test_a_start_without_a_process_is_none() -> None:
    assert phase(STARTS, UP) == (Phase.STARTING, 5.0)
    assert phase(STARTS, ENDED) == (Phase.DOWN, 9.0), "although its copy has read that it is fenced"
    assert phase(STARTS, FREE) == (Phase.DOWN, None)
    assert phase(STARTS, ENDED, clean=True) == (Phase.STOPPING, 9.0)


def test_what_a_snapshot_leaves_open_the_process_shows() -> None:
    own = copy(2, 100, FENCED)
    assert [each.phase for each in broker_phases([copy(1, 1000, FENCED), replace(own, process=STARTED)])] == [Phase.STARTING]
    current = copy(2, 990, RUNS)
    assert [each.phase for each in broker_phases([copy(1, 1000, FENCED), current])] == [Phase.STARTING]
    assert [each.phase for each in broker_phases([copy(1, 1000, FENCED), replace(current, process=ENDED)])] == [Phase.DOWN]


def test_a_process_that_has_come_up_and_not_registered_yet_starts() -> None:
    """Until it registers, the metadata log has its broker as it left it: for as long as the session lasts as one that serves."""
    new = replace(STARTED, before=7)
    assert phase(RUNS, new) == (Phase.STARTING, 9.6)
    assert phase(DOWN, new) == (Phase.STARTING, 9.6)
    assert phase(STOPS, new) == (Phase.STARTING, 9.6)
    assert phase(STOPS, new, clean=True) == (Phase.STARTING, 9.6)
    assert phase(replace(RUNS, epoch=8), new) == (Phase.RUNNING, 5.0), "the registration is its own"
    assert phase(replace(RUNS, epoch=-1), STARTED) == (Phase.RUNNING, 5.0)
    assert phase(RUNS, STARTED) == (Phase.RUNNING, 5.0), "an earlier agent does not tell"
    assert phase(RUNS, replace(new, state=ProcessState.UNKNOWN)) == (Phase.RUNNING, 5.0)
    assert phase(RUNS, replace(ENDED, before=7)) == (Phase.DOWN, 9.0)


def known(*statuses: BrokerStatus) -> dict[int, tuple[str, str]]:
    return {number: (each.state, each.why) for number, each in broker_processes(each_broker(statuses)).items()}


def test_who_gets_heartbeats_knows_better() -> None:
    """A broker without a process is fenced after some seconds: one that is not for a minute runs elsewhere, and this is a copy."""
    own = copy(2, 90, RUNS, process=FREE)
    assert known(copy(1, 100, RUNS, appended_ms=68_000), own)[2][0] == "free"
    state, why = known(copy(1, 100, RUNS, appended_ms=68_001), own)[2]
    assert (state, "copy" in why) == ("unknown", True)
    assert known(copy(1, 100, DOWN, appended_ms=900_000), own)[2][0] == "free"
    assert known(copy(1, 100, RUNS), own)[2][0] == "free", "no controller is known to be active"
    assert known(replace(own, appended_ms=900_000))[2][0] == "free", "its own copy: the growth of that is judged by the agent"
    ended = replace(own, process=ENDED)
    assert known(copy(1, 100, RUNS, appended_ms=69_001), ended)[2][0] == "unknown"


def test_all_log_dirs_that_it_is_registered_with_must_be_free() -> None:
    own = copy(2, 90, RUNS, log_dirs=["a", "b"])
    state, why = known(replace(own, process=replace(FREE, free=["a"])))[2]
    assert (state, why) == ("unknown", "not all log dirs that it is registered with are asked")
    assert known(replace(own, process=replace(FREE, free=["a", "b", "c"])))[2][0] == "free"
    assert known(replace(own, process=replace(UP, free=["b"])))[2][0] == "up"
    main = {"free": ["a"], "keeps_metadata": True}  # no node runs without its metadata log
    assert known(replace(own, process=replace(FREE, **main)))[2][0] == "free"
    assert known(replace(own, process=replace(ENDED, **main)))[2][0] == "unknown", "it may have given up that one a moment ago"


def test_agents_that_share_a_broker_know_it_together() -> None:
    def both(one: ProcessStatus | None, other: ProcessStatus | None) -> str | None:
        statuses = [copy(2, 90, RUNS, log_dirs=["a", "b"], process=one), copy(2, 80, RUNS, log_dirs=["a", "b"], process=other)]
        return known(*statuses).get(2, (None, ""))[0]

    half, rest = replace(FREE, free=["a"]), replace(FREE, free=["b"])
    assert both(half, rest) == "free"
    assert both(half, None) == "unknown", "an earlier agent does not ask"
    assert both(half, UP) == "up"
    assert both(UNKNOWN, rest) == "unknown"
    assert both(replace(ENDED, free=["a"]), rest) == "ended"
    assert both(None, None) is None


def test_what_one_agent_knows_of_the_registration_before_is_known() -> None:
    both = broker_processes(each_broker([copy(2, 90, RUNS, process=UP), copy(2, 80, RUNS, process=replace(STARTED, before=7))]))
    assert both[2] == replace(STARTED, before=7)


def test_it_is_exported_only_where_it_is_known() -> None:
    statuses = [broker(number, process=process) for number, process in enumerate((UP, ENDED, FREE, UNKNOWN, None))]
    found: Observer = observer(agent("a1", *statuses))
    assert reported(found, "segtail_broker_process_up", "broker") == {("0",): 1, ("1",): 0, ("2",): 0}
    assert reported(observer(agent("a1", broker(1, process=UP), up=False)), "segtail_broker_process_up", "broker") == {}


def test_a_log_dir_that_is_free_beside_one_that_is_held_was_given_up() -> None:
    def up(process: ProcessStatus | None, lock: LockState) -> dict[tuple[str, ...], float]:
        dirs = (log_dir("/d0", lock=LockState.LOCKED), log_dir("/d1", lock=lock))
        return reported(observer(agent("a1", broker(1, process=process), log_dirs=dirs)), "segtail_log_dir_up", "log_dir")

    assert up(UP, LockState.FREE) == {("/d0",): 1, ("/d1",): 0}
    for lock in set(LockState) - {LockState.FREE}:
        assert up(UP, lock) == {("/d0",): 1, ("/d1",): 1}
    assert up(ENDED, LockState.FREE)[("/d1",)] == 1
    assert up(None, LockState.FREE)[("/d1",)] == 1


def test_times_of_a_host_whose_clock_is_wrong_are_moved() -> None:
    wrong = replace(agent("a1", broker(1, process=ENDED)), problems=("clock",), clock_ahead_seconds=3.0)
    moved = by_our_clock(wrong).broker_statuses[0].process
    assert moved is not None
    assert (moved.since_ms, moved.last_ms) == (6_000, 5_000)
    started = by_our_clock(replace(wrong, broker_statuses=(broker(1, process=UP),))).broker_statuses[0].process
    assert started is not None
    assert started.since_ms == -1


def test_pages_name_brokers_without_a_process() -> None:
    found = away_brokers({1: UP, 2: ENDED, 3: FREE, 4: UNKNOWN})
    assert [(each.broker, each.last_ms, each.ended_ms) for each in found] == [(2, 8_000, 9_000), (3, 8_000, -1)]
