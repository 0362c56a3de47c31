"""What has changed between two moments of a cluster: what began, what ended, and what only cannot be seen any more."""

from dataclasses import replace
from typing import Any

from streaming.broker.protocol.cluster_messages import Registered
from streaming.broker.protocol.status_json import ClusterEvent, EventKind, Problem
from streaming.cluster.verdicts.circumstances import Circumstances
from streaming.cluster.verdicts.cluster_changes import SURE_MS, Blind, ClusterMoment, Sighting, changes, key_of, moment_of
from streaming.cluster.verdicts.incidents import problems
from streaming.cluster.view.table import Table
from tests.view.rows import log, new_table
from tests.worlds.incidents import groups, stuck, waiting
from tests.worlds.problems import MINUTE, NOW_MS, agent, around, well

NONE: frozenset[Blind] = frozenset()


def seen(*of: Problem, at_ms: int = NOW_MS, blind: frozenset[Blind] = NONE, **more: Any) -> ClusterMoment:
    sightings = {key_of(each): Sighting(problem=each, blind=blind, first_ms=each.since_ms if each.since_ms >= 0 else at_ms) for each in of}
    given: dict[str, Any] = {"epochs": {}, "agents": {}, "controller": -1, "leaders": {}} | more
    return ClusterMoment(at_ms=at_ms, problems=sightings, blind=blind, **given)


def problem(name: str, **more: Any) -> Problem:
    given = {"kind": "transaction_stuck", "severity": "critical", "what": f"Stuck transactions in topic {name}: partition 0"}
    return Problem(**given | {"summary": f"Stuck transactions in topic {name}", "topic": name, "id": name} | more)


def between(before: ClusterMoment, after: ClusterMoment) -> list[tuple[str, str]]:
    return [(each.kind, each.what) for each in changes(before, after).events]


def in_the_end(before: ClusterMoment, *later: ClusterMoment) -> list[tuple[str, str]]:
    """The events between a moment, some later ones, and the last of these again when what it misses is over."""
    found = []
    for after in (*later, replace(later[-1], at_ms=later[-1].at_ms + SURE_MS)):
        step = changes(before, after)
        found += [(each.kind, each.what) for each in step.events]
        before = step.now
    return found


def one(before: ClusterMoment, after: ClusterMoment) -> ClusterEvent:
    (event,) = changes(before, after).events
    return event


def judged(circumstances: Circumstances) -> ClusterMoment:
    return moment_of(circumstances, problems(circumstances))


def test_a_problem_begins_when_it_began_and_ends_when_it_is_not_there_any_more() -> None:
    stuck_orders = problem("orders", since_ms=NOW_MS + 20_000, runbook="TransactionStuck", partition=3)
    began = one(seen(), seen(stuck_orders, at_ms=NOW_MS + MINUTE))
    assert (began.kind, began.at_ms, began.severity, began.problem) == ("problem_began", NOW_MS + 20_000, "critical", "orders")
    assert (began.what, began.topic, began.partition, began.runbook) == (stuck_orders.what, "orders", 3, "TransactionStuck")
    missing = changes(seen(stuck_orders, at_ms=NOW_MS + MINUTE), seen(at_ms=NOW_MS + 3 * MINUTE))
    assert missing.events == ()
    ended = one(missing.now, seen(at_ms=NOW_MS + 4 * MINUTE))
    assert (ended.kind, ended.at_ms, ended.what) == ("problem_ended", NOW_MS + 3 * MINUTE, f"{stuck_orders.summary}, partition 3")
    assert ended.lasted_ms == 3 * MINUTE - 20_000


def test_one_that_becomes_a_problem_late_begins_then() -> None:
    late = problem("orders", since_ms=NOW_MS - 15 * MINUTE)
    assert one(seen(), seen(late, at_ms=NOW_MS + MINUTE)).at_ms == NOW_MS + MINUTE


def test_without_a_time_of_its_own_it_lasts_from_when_it_was_first_seen() -> None:
    first, second = seen(problem("a")), seen(problem("a"), at_ms=NOW_MS + MINUTE)
    last = changes(changes(first, second).now, seen(at_ms=NOW_MS + 5 * MINUTE)).now
    assert one(last, seen(at_ms=NOW_MS + 6 * MINUTE)).lasted_ms == 5 * MINUTE


def test_what_is_there_again_within_a_while_has_not_ended_and_does_not_begin_again() -> None:
    away = changes(seen(problem("a")), seen(at_ms=NOW_MS + MINUTE))
    assert in_the_end(away.now, seen(problem("a"), at_ms=NOW_MS + MINUTE + SURE_MS - 1)) == []


def test_a_problem_goes_on_where_more_comes_to_be_known_of_it_or_another_partition_joins() -> None:
    first = problem("a", id="x", partition=1, kind="group_held", group="billing")
    for later in (replace(first, id="y"), replace(first, id="z", partition=-1), replace(first, because="root")):
        assert in_the_end(seen(first), seen(later, at_ms=NOW_MS + MINUTE)) == []
    hanging = problem("a", kind="transaction_hanging", partition=1)
    assert in_the_end(seen(hanging), seen(hanging, replace(hanging, partition=2), at_ms=NOW_MS + MINUTE)) == [
        ("problem_began", hanging.what)
    ]


def test_a_stalled_offset_is_not_over_when_its_transaction_is_known_to_hang() -> None:
    stalled, hanging = problem("a", kind="last_stable_offset_stalled"), problem("a", kind="transaction_hanging", partition=1)
    assert in_the_end(seen(stalled), seen(hanging, at_ms=NOW_MS + MINUTE)) == [("problem_began", hanging.what)]
    assert in_the_end(seen(stalled), seen(at_ms=NOW_MS + MINUTE)) == [("problem_ended", stalled.summary)]


def test_nothing_changes_where_everything_stays() -> None:
    assert between(seen(problem("a")), seen(problem("a"), at_ms=NOW_MS + MINUTE)) == []


def test_a_higher_severity_is_a_change_and_a_lower_one_is_none() -> None:
    ticket, page = problem("a", severity="warning"), problem("a")
    assert between(seen(ticket), seen(page)) == [("problem_worsened", page.what)]
    assert between(seen(page), seen(ticket)) == []
    assert between(seen(ticket), seen(replace(ticket, worst="critical"))) == [("problem_worsened", ticket.what)]


def test_what_follows_from_a_problem_begins_and_ends_too_and_names_it_and_is_no_event_when_it_becomes_a_root() -> None:
    root, effect = problem("a"), problem("b", because="a", kind="group_lost", severity="warning")
    named = f"{effect.what}, which follows from: {root.summary}"
    assert between(seen(), seen(root, effect)) == [("problem_began", root.what), ("problem_began", named)]
    began = one(seen(root), seen(root, effect))
    assert (began.what, began.because, began.problem, began.severity) == (named, "a", "b", "warning")
    assert between(seen(root, effect), seen(root, replace(effect, severity="critical"))) == [("problem_worsened", named)]
    assert in_the_end(seen(root, effect), seen(replace(effect, because=""))) == [("problem_ended", root.summary)]
    assert in_the_end(seen(root, effect), seen(root)) == [("problem_ended", effect.summary)]
    assert in_the_end(seen(root), seen(problem("c"), replace(root, because="c"))) == [("problem_began", problem("c").what)]


def test_from_three_of_a_kind_on_they_are_one_event() -> None:
    some = [problem(name) for name in "abcd"]
    assert between(seen(), seen(*some)) == [("problem_began", f"{some[0].what}; and 3 more of this kind")]
    assert in_the_end(seen(*some), seen()) == [("problem_ended", f"{some[0].summary}; and 3 more of this kind")]
    assert len(between(seen(), seen(*some[:2]))) == 2


def test_what_follows_from_a_broker_that_is_gone_is_an_event_a_kind_however_much_it_is() -> None:
    root = problem("", id="down", kind="broker_down", what="Broker 1 is down", summary="")
    those = [problem(f"t{n}", because="down", kind=kind) for kind in ("group_held", "offline_partition") for n in range(500)]
    assert [each[1] for each in between(seen(), seen(root, *those))] == [
        root.what,
        f"{those[0].what}, which follows from: Broker 1 is down; and 499 more of this kind",
        f"{those[500].what}, which follows from: Broker 1 is down; and 499 more of this kind",
    ]


def test_what_cannot_be_seen_has_not_ended_and_does_not_begin_again() -> None:
    one_there, away = problem("a", broker=1), frozenset({Blind("agent", 1)})
    first = seen(one_there)
    blind = changes(first, seen(at_ms=NOW_MS + MINUTE, blind=away))
    still = changes(blind.now, seen(at_ms=NOW_MS + 2 * MINUTE, blind=away))
    assert (blind.events, still.events) == ((), ())
    assert between(still.now, seen(one_there, at_ms=NOW_MS + 3 * MINUTE)) == []
    assert in_the_end(still.now, seen(at_ms=NOW_MS + 3 * MINUTE)) == [("problem_ended", one_there.summary)]


def test_what_was_seen_by_as_little_ends_and_so_does_what_another_broker_hides_nothing_of() -> None:
    away = frozenset({Blind("agent", 2)})
    assert in_the_end(seen(problem("a"), blind=away), seen(blind=away)) == [("problem_ended", problem("a").summary)]
    assert in_the_end(seen(problem("a", broker=1)), seen(blind=away)) == [("problem_ended", problem("a").summary)]
    assert in_the_end(seen(problem("a")), seen(blind=away)) == []
    unread = frozenset({Blind("groups", groups=True)})
    assert in_the_end(seen(problem("a", group="billing"), problem("b")), seen(blind=unread)) == [("problem_ended", problem("b").summary)]


def test_a_broker_that_was_started_again_is_a_change_and_of_those_that_come_or_go_the_metadata_log_tells() -> None:
    before, after = seen(epochs={1: 10, 2: 11, 3: -1}), seen(epochs={1: 40, 3: 50, 4: 60})
    assert between(before, after) == [("broker_restarted", "Broker 1 was started again")]


def test_an_agent_that_was_started_again_is_a_change_and_one_that_comes_or_does_not_answer_is_none() -> None:
    before = seen(agents={"a1": NOW_MS - MINUTE, "a2": NOW_MS - MINUTE, "earlier version": -1})
    event = one(
        before, seen(agents={"a1": NOW_MS + 7_000, "a2": NOW_MS - MINUTE, "a3": NOW_MS, "earlier version": -1}, at_ms=NOW_MS + 9_000)
    )
    assert (event.kind, event.what, event.agent) == ("agent_restarted", "segtail's agent a1 was started again", "a1")
    assert event.at_ms == NOW_MS + 7_000
    away = changes(before, seen(agents={"a1": -1, "a2": NOW_MS - MINUTE}))
    assert away.events == ()
    behind = one(away.now, seen(agents={"a1": NOW_MS - 2 * MINUTE, "a2": NOW_MS - MINUTE}))
    assert (behind.agent, behind.at_ms) == ("a1", NOW_MS), "its clock was set back, or is behind: then it was seen"
    assert judged(around(agent(well(), started_ms=7))).agents == {"a1": 7}


def test_what_no_copy_of_the_metadata_shows_is_compared_with_what_was_known_before() -> None:
    known = seen(epochs={1: 10}, controller=3, leaders={("orders", "", 0): 1})
    away = changes(known, seen(blind=frozenset({Blind("agents")})))
    assert away.events == ()
    back = seen(epochs={1: 12}, controller=2, leaders={("orders", "", 0): 2})
    assert [each[0] for each in between(away.now, back)] == [
        EventKind.BROKER_RESTARTED,
        EventKind.CONTROLLER_CHANGED,
        EventKind.LEADERS_CHANGED,
    ]
    assert between(seen(), known) == []


def test_elections_are_one_event_that_counts_the_ways_of_the_leaders() -> None:
    before = seen(leaders={("a", "x", number): 1 for number in range(3)} | {("b", "y", 0): 2})
    after = seen(leaders={("a", "x", 0): 2, ("a", "x", 1): 2, ("a", "x", 2): 3, ("b", "y", 0): 2})
    event = one(before, after)
    assert event.what == "3 partitions of a got another leader: 2 from broker 1 to 2, 1 from broker 1 to 3"
    assert (event.topic, event.partition) == ("a", -1)
    single = one(seen(leaders={("a", "x", 7): 1}), seen(leaders={("a", "x", 7): 2}))
    assert (single.topic, single.partition) == ("a", 7)
    made_anew = seen(leaders={("a", "z", 7): 2})
    assert between(seen(leaders={("a", "x", 7): 1}), made_anew) == []


def test_a_moment_is_taken_from_what_is_judged() -> None:
    fenced = well(registered=[Registered(broker=1, fenced=False, epoch=7)], controller=1)
    before = judged(around(agent(fenced), table=_led(1), groups=groups()))
    assert (dict(before.epochs), before.controller, before.blind) == ({1: 7}, 1, NONE)
    assert dict(before.leaders) == {("orders", "", 0): 1}
    held = judged(around(agent(well()), table=stuck(0), groups=groups(waiting(0))))
    root, effect = (each for each in changes(before, held).events if each.kind == EventKind.PROBLEM_BEGAN)
    assert root.what.startswith("Stuck transactions in topic orders")
    assert (effect.because, "which follows from: Stuck transactions in topic orders" in effect.what) == (root.problem, True)


def test_an_agent_that_is_away_hides_what_its_broker_has_and_groups_that_are_not_known_hide_groups() -> None:
    away = judged(around(agent(well(), up=False)))
    names = {(each.broker, each.groups) for each in away.blind}
    assert (1, False) in names
    assert (-1, True) in names
    assert {(each.broker, each.name) for each in judged(around(agent(well()), stale=True, groups=groups())).blind} >= {(-1, "agents")}


def _led(leader: int) -> Table:
    return new_table(log(leader=leader, leader_epoch=1))
