"""What is said of log dirs whose broker writes no more."""

from streaming.broker.protocol.cluster_messages import Registered
from streaming.terminal.offline.doubts import silent
from tests.worlds.hosts import log_dir
from tests.worlds.problems import NOW_MS, agent, well

CLUSTER = [Registered(broker=number, fenced=False) for number in (1, 2)]


def sentences(written_ms_ago: int, appended_ms_ago: int, registered: list[Registered]) -> list[str]:
    directory = log_dir(checkpoint_ms=NOW_MS - written_ms_ago)
    status = well(appended_ms=NOW_MS - appended_ms_ago, registered=registered)
    return [*silent(agent(status, log_dirs=(directory,)), NOW_MS)]


def test_a_broker_that_has_written_nothing_lately_is_named_where_others_may_have_taken_over() -> None:
    assert sentences(31_000, 33_000, CLUSTER) == ["broker 1 has written nothing for 31s: what its log dirs say may be old"]
    assert sentences(31_000, 500, CLUSTER) == []
    assert sentences(12_000, 33_000, CLUSTER) == []


def test_nobody_takes_over_from_a_broker_that_is_alone() -> None:
    assert sentences(31_000, 33_000, CLUSTER[:1]) == []


def test_log_dirs_as_of_an_earlier_time_are_not_old() -> None:
    assert sentences(-31_000, -33_000, CLUSTER) == []
