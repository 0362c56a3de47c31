"""What problems say of brokers whose process is seen, or is not."""

from dataclasses import replace
from typing import Any

import pytest

from streaming.broker.protocol.cluster_messages import Registered
from streaming.broker.protocol.status_json import Problem
from streaming.broker.protocol.status_messages import ProcessStatus
from streaming.cluster.verdicts.circumstances import Circumstances
from streaming.cluster.verdicts.first_lines import freshness
from streaming.kafka.formats.metadata_records import Phase
from streaming.rules.broker_process import LockState, ProcessState
from tests.worlds.hosts import broker, log_dir
from tests.worlds.problems import HOUR, MINUTE, NOW_MS, OLD, agent, around, kinds_of, only, well

UP = ProcessStatus(state=ProcessState.UP)
ENDED = ProcessStatus(state=ProcessState.ENDED, since_ms=NOW_MS - 5_000, last_ms=NOW_MS - 9_000)
FREE = ProcessStatus(state=ProcessState.FREE, last_ms=NOW_MS - HOUR)
UNKNOWN = ProcessStatus(state=ProcessState.UNKNOWN, why="/d0/.lock may not be read")
SERVES = Registered(broker=1, fenced=False, epoch=5, phase=Phase.RUNNING, since_ms=OLD, replicas=True)
FENCED = Registered(broker=1, fenced=True, epoch=5, phase=Phase.DOWN, since_ms=OLD, replicas=True)
STARTS = Registered(broker=1, fenced=True, epoch=5, phase=Phase.STARTING, since_ms=NOW_MS - HOUR, replicas=True)


def of(process: ProcessStatus | None, registered: Registered = SERVES, checkpoint_ms: int = OLD, *, live: bool = True) -> Circumstances:
    status = well(appended_ms=-1, registered=[registered], process=process)
    return around(agent(status, log_dirs=(log_dir(checkpoint_ms=checkpoint_ms),)), live=live)


@pytest.mark.parametrize(
    ("process", "words"),
    [
        (None, "it is down, it hangs, or its disks do"),
        (UNKNOWN, "it is down, it hangs, or its disks do"),
        (UP, "its process is there: it hangs, or its disks do"),
        (FREE, "nobody holds the locks of its log dirs: its process has ended, or they are a copy"),
    ],
)
def test_one_that_writes_nothing(process: ProcessStatus | None, words: str) -> None:
    assert words in only(of(process), "broker_not_writing").what


def test_one_whose_process_was_seen_to_end_is_down_at_once_and_nothing_else() -> None:
    found = of(ENDED, checkpoint_ms=NOW_MS - 9_000)
    assert kinds_of(found) == ["broker_down"]
    problem = only(found, "broker_down")
    assert problem.since_ms == NOW_MS - 5_000
    assert "its process has ended between 2023-11-14T22:13:11Z and 2023-11-14T22:13:15Z; it was not shut down" in problem.what


@pytest.mark.parametrize(
    ("process", "words"),
    [
        (None, "it sends no heartbeats, and was not shut down"),
        (UP, "it sends no heartbeats, although its process is there: it hangs, or the network is cut"),
        (FREE, "nobody holds the locks of its log dirs"),
    ],
)
def test_one_that_is_fenced(process: ProcessStatus | None, words: str) -> None:
    other = agent(broker(2, appended_ms=NOW_MS - 500, registered=[FENCED]), name="a2")
    own = agent(well(metadata_offset=5, registered=[SERVES], process=process))
    assert words in only(around(own, other), "broker_down").what


def test_one_that_starts_says_so_only_where_it_is_seen() -> None:
    assert only(of(UP, STARTS), "broker_starting").what.endswith("still serves nothing; its process is there")
    assert only(of(None, STARTS), "broker_starting").what.endswith("still serves nothing")
    assert "broker_starting" not in kinds_of(of(FREE, STARTS))
    assert "broker_down" in kinds_of(of(FREE, STARTS))


def test_one_that_has_just_begun_to_start_says_what_is_left() -> None:
    came_up = replace(UP, since_ms=NOW_MS - 8_000, before=SERVES.epoch)

    def starting(**values: Any) -> Problem:
        of = around(agent(well(registered=[SERVES], process=came_up), log_dirs=(log_dir("/d0", checkpoint_ms=OLD, **values),)))
        return only(of, "broker_starting")

    clean = starting()
    assert (clean.summary, clean.what) == (
        "Broker 1 is starting",
        "Broker 1 is starting: its process came up 8s ago and serves nothing yet",
    )
    left = "; after a crash it reads its logs, and 2.0 KiB in 3 logs are left, for about 2s"
    crashed = starting(recovering_logs=3, recovering_bytes=2048, recovery_rate=1024.0)
    assert crashed.what == clean.what + left
    assert (crashed.severity, crashed.since_ms) == ("info", NOW_MS - 8_000)
    fenced = replace(STARTS, since_ms=NOW_MS - 3_000)
    assert only(of(UP, fenced), "broker_starting").what == (
        "Broker 1 is starting: it registered 3s ago and serves nothing yet; its process is there"
    )
    late = only(of(replace(came_up, since_ms=NOW_MS - HOUR)), "broker_starting")
    assert late.severity == "warning"
    assert late.what == "Broker 1 does not finish its start: its process came up 1h ago and still serves nothing"


def test_one_that_was_just_stopped_has_no_command_for_those_that_are_gone() -> None:
    stopped = only(of(ENDED, replace(FENCED, phase=Phase.STOPPING, since_ms=NOW_MS - 5_000)), "broker_stopped")
    assert (stopped.severity, stopped.command) == ("info", "")
    assert stopped.what == "Broker 1 is shut down: it was shut down cleanly, or it is away and has no replica"
    assert stopped.no_command == "it goes on when it is started again"


def test_a_log_dir_is_not_given_up_by_a_broker_that_has_not_loaded_its_logs() -> None:
    """It came up seconds ago. Its checkpoints are of the process before, which was down for longer; its controller already writes."""
    dirs = (log_dir("/d0", checkpoint_ms=NOW_MS - 2 * MINUTE), log_dir("/d1", checkpoint_ms=NOW_MS - 2 * MINUTE))

    def kinds(process: ProcessStatus, registered: Registered = SERVES) -> list[str]:
        return kinds_of(around(agent(well(appended_ms=NOW_MS, registered=[registered], process=process), log_dirs=dirs)))

    came_up = replace(UP, since_ms=NOW_MS - 8_000, before=SERVES.epoch)
    assert "log_dir_offline" not in kinds(came_up)
    assert kinds(came_up, replace(SERVES, epoch=6)) == ["log_dir_offline"] * 2
    assert kinds(UP) == ["log_dir_offline"] * 2


def test_a_log_dir_that_was_let_go_is_offline() -> None:
    def kinds(process: ProcessStatus | None, lock: LockState) -> list[str]:
        dirs = (log_dir("/d0", checkpoint_ms=NOW_MS, lock=LockState.LOCKED), log_dir("/d1", checkpoint_ms=NOW_MS, lock=lock))
        return kinds_of(around(agent(well(process=process), log_dirs=dirs)))

    assert kinds(UP, LockState.FREE) == ["log_dir_offline"]
    assert kinds(UP, LockState.LOCKED) == []
    assert kinds(UP, LockState.UNKNOWN) == []
    assert kinds(None, LockState.FREE) == []


@pytest.mark.parametrize(
    ("process", "checkpoint_ms", "idle"),
    [(UP, OLD, False), (FREE, NOW_MS, True), (ENDED, NOW_MS, True), (UNKNOWN, OLD, True), (UNKNOWN, NOW_MS, False), (None, OLD, True)],
)
def test_of_log_dirs_that_are_read_once_the_locks_say_whether_the_broker_is_down(
    process: ProcessStatus | None, checkpoint_ms: int, idle: bool
) -> None:
    found = of(process, checkpoint_ms=checkpoint_ms, live=False)
    assert (found.idle == {1}) is idle
    assert ("it is down" in freshness(found, -1)) is idle
    assert ("a copy" in freshness(found, -1)) is (idle and process is not ENDED), "a process that was seen to end was here"
