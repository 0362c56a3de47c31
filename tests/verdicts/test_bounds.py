"""From when on something is a problem: at its bound it is none yet, and beyond it it is."""

from collections.abc import Callable

import pytest

from streaming.broker.protocol.cluster_messages import Registered
from streaming.broker.protocol.group_json import PendingOffset
from streaming.broker.protocol.status_json import INFO
from streaming.cluster.verdicts.circumstances import Circumstances, thresholds_of
from streaming.cluster.verdicts.incidents import problems
from streaming.cluster.view.observer import FAR_LAG_S
from streaming.common.settings import Settings
from streaming.kafka.formats.metadata_records import Phase
from streaming.kafka.groups.rebalance_log import LEAST_OF_STORM
from tests.view.rows import log, new_table
from tests.worlds.hosts import broker, log_dir
from tests.worlds.problems import HOUR, MINUTE, NOW_MS, agent, around, group, kinds_of, rebalancing, scrub, well
from tests.worlds.retention import BELOW, facts, orders

GIVEN = thresholds_of(Settings())

Made = Callable[[int], Circumstances]
"""What there is if something has lasted for so many milliseconds, or is so large."""


def registered(phase: Phase, age_ms: int) -> Circumstances:
    return around(agent(well(registered=[Registered(broker=2, fenced=True, epoch=5, phase=phase, since_ms=NOW_MS - age_ms)])))


def of_log(**values: int) -> Circumstances:
    return around(agent(well()), table=new_table(log(**values)))


def held(age_ms: int) -> Circumstances:
    return around(agent(well()), groups=group(held=True, lag_records_read_committed=0, next_append_ms=NOW_MS - age_ms))


def pending(age_ms: int) -> Circumstances:
    waits = PendingOffset(producer_id=1, offset=2, coordinator=0, since_ms=NOW_MS - age_ms)
    return around(agent(well()), groups=group(pending=[waits], stopped_since_ms=NOW_MS - HOUR))


def past_limit(age_ms: int) -> Circumstances:
    """A segment that could have been deleted for so long."""
    return around(agent(well()), table=new_table(orders(facts((0, 500, 3600 + age_ms // 1000), (50, 300, 10), configs=BELOW))))


BOUNDS: dict[str, tuple[Made, int, int]] = {
    "quorum_lost": (lambda age: around(agent(well(appended_ms=NOW_MS - age), log_dirs=(log_dir(checkpoint_ms=NOW_MS),))), 30_000, 1),
    "broker_starting": (lambda age: registered(Phase.STARTING, age), GIVEN.starting_after_ms, 1),
    "broker_stopped": (lambda age: registered(Phase.STOPPING, age), HOUR // 2, 1),
    "broker_not_writing": (lambda age: around(agent(well(appended_ms=-1), log_dirs=(log_dir(checkpoint_ms=NOW_MS - age),))), MINUTE, 1),
    "broker_metadata_stalled": (lambda age: around(agent(broker(2, appended_ms=NOW_MS - age), well())), MINUTE, 1),
    "group_rebalancing": (lambda generations: around(agent(well()), groups=rebalancing(generations)), LEAST_OF_STORM - 1, 1),
    "log_dir_offline": (lambda age: around(agent(well(), log_dirs=(log_dir(checkpoint_ms=NOW_MS - age),))), MINUTE, 1),
    "log_dir_full": (
        lambda taken: around(agent(well(), log_dirs=(log_dir(checkpoint_ms=NOW_MS, free=10_000 - taken, capacity=10_000),))),
        10_000 - round(10_000 * GIVEN.free_ratio / 3),
        1,
    ),
    "scrub_unreadable": (lambda age: around(agent(well(), scrubs=(scrub(waits_at="/d/x", waits_seconds=age / 1000),))), 300_000, 1),
    "scrub_overdue": (lambda age: around(agent(well(), scrubs=(scrub(ended_ms=NOW_MS - age),))), GIVEN.scrub_overdue_after_ms, 1),
    "behind": (lambda age: around(agent(well()), lags={"a1": (None, age / 1000)}), round(1000 * FAR_LAG_S), 1),
    "group_held": (held, 15 * MINUTE, 1),
    "group_pending": (pending, 10 * MINUTE, 1),
    "retention_overdue": (past_limit, GIVEN.overdue_after_ms, 1000),
    "timestamps_in_future": (
        lambda ahead: around(agent(well()), table=new_table(orders(facts((0, 500, -ahead // 1000), (50, 300, 10), configs=BELOW)))),
        GIVEN.ahead_limit_ms,
        1000,
    ),
}


def alerted(of: Circumstances) -> list[str]:
    """The kinds of all problems but of notes: that a broker starts is one before it takes long."""
    return [each.kind for each in problems(of) if each.severity != INFO]


@pytest.mark.parametrize("kind", BOUNDS)
def test_at_its_bound_it_is_no_problem_yet(kind: str) -> None:
    made, bound, step = BOUNDS[kind]
    assert kind not in alerted(made(bound))
    assert kind in alerted(made(bound + step))


def test_an_unclean_election_is_a_problem_for_an_hour() -> None:
    def of(age_ms: int) -> list[str]:
        return kinds_of(of_log(unclean_elections=1, unclean_ms=NOW_MS - age_ms, unclean_from=2))

    assert (of(HOUR - 1), of(HOUR)) == (["unclean_election"], [])


def test_a_loss_within_four_hours_is_critical_and_one_within_a_day_is_worth_knowing() -> None:
    def of(within_ms: int) -> list[str]:
        found = problems(around(agent(well()), groups=group(loss_ms=NOW_MS + within_ms, next_append_ms=NOW_MS - 30 * HOUR)))
        return [each.severity for each in found if each.kind == "group_will_lose"]

    assert (of(4 * HOUR - 1), of(4 * HOUR), of(24 * HOUR), of(24 * HOUR + 1)) == (["critical"], ["info"], ["info"], [])
