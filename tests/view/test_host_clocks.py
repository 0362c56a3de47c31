"""A host whose clock is wrong: its broker writes, its metadata grow, and its coordinators are in time."""

from dataclasses import replace

from streaming.cluster.verdicts.circumstances import NOT_WRITING_MS
from streaming.cluster.view.answers import by_our_clock, clocks_ahead
from streaming.cluster.view.observer import AgentStatus
from tests.tables import each_row
from tests.view.rows import new_table
from tests.worlds.hosts import log_dir
from tests.worlds.problems import NOW_MS, agent, around, kinds_of, well
from tests.worlds.transactions import MS, coordinator, orders, transaction, verdict

AWAY_MS = NOT_WRITING_MS + 30_000


def stamped(ahead_ms: int) -> AgentStatus:
    """An agent all of whose files were written a second ago, by a clock that is so far ahead."""
    written = NOW_MS - 1_000 + ahead_ms
    status = agent(well(appended_ms=written), log_dirs=(log_dir(checkpoint_ms=written),))
    return replace(status, clock_ahead_seconds=ahead_ms / 1000, problems=("clock",))


@each_row("ahead_ms", [-AWAY_MS, AWAY_MS])
def test_a_broker_writes_however_wrong_its_clock_is(ahead_ms: int) -> None:
    assert kinds_of(around(by_our_clock(stamped(ahead_ms)))) == ["blind"]
    assert by_our_clock(stamped(ahead_ms)).log_dirs[0].checkpoint_ms == NOW_MS - 1_000


def test_without_its_clock_it_would_not_write() -> None:
    assert "broker_not_writing" in kinds_of(around(stamped(-AWAY_MS)))


def test_a_clock_that_is_right_moves_nothing_and_what_is_not_known_stays_so() -> None:
    right = replace(stamped(0), clock_ahead_seconds=0.02, problems=())
    assert by_our_clock(right) is right
    unknown = replace(stamped(AWAY_MS), log_dirs=(log_dir(checkpoint_ms=-1),))
    assert by_our_clock(unknown).log_dirs[0].checkpoint_ms == -1
    assert clocks_ahead([right, stamped(AWAY_MS)]) == {1: AWAY_MS}


@each_row("ahead_ms, expected", [(0, "overdue"), (-120_000, "open"), (-5_000, "overdue")])
def test_a_coordinator_is_late_by_its_own_clock(ahead_ms: int, expected: str) -> None:
    entry = {"transactional_id": "pay-1", "producer_id": 7, "state": "Ongoing", "timeout_ms": 60_000, "start_ms": MS - 230_000}
    table = new_table(orders(transaction(7, 40, age=110)), coordinator(entry), coordinator_partitions=1)
    table.set_context(clocks_ahead_ms={1: ahead_ms} if ahead_ms else {})
    assert verdict(table) == expected
