"""The arithmetic of offsets."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.broker.protocol.consumer_messages import NOT_BEGUN, Plan, Range
from streaming.errors import CheckpointError
from streaming.spark.source import offsets
from streaming.spark.source.counted_file import Arrived
from streaming.spark.source.offsets import AgentOffset

agents = st.sampled_from(["a1", "a2", "b"])
journals = st.sampled_from(["j1", "j2"])
numbers = st.integers(0, 50)
plans = st.lists(st.builds(Plan, agents, journals, numbers, numbers, numbers), max_size=3, unique_by=lambda plan: plan.agent)
arrivals = st.dictionaries(agents, st.builds(Arrived, journals, numbers))

NOTHING: dict[str, Arrived] = {}


def plan(seq: int, *, agent: str = "a1", journal: str = "j1", after: int = 0, total: int = 0) -> Plan:
    return Plan(agent, journal, after, seq, total)


@given(st.lists(st.tuples(plans, arrivals), max_size=5))
def test_an_offset_is_json_that_says_the_same_whichever_way_it_was_reached(rounds: list[tuple[list[Plan], dict[str, Arrived]]]) -> None:
    at: dict[str, Any] = {}
    for planned, arrived in rounds:
        following = offsets.advance(at, planned, arrived)
        assert offsets.advance(at, reversed(planned), arrived) == following
        assert json.dumps(following) == json.dumps({agent: following[agent] for agent in sorted(following)})
        assert offsets.parse(json.loads(json.dumps(following))) == offsets.parse(following)
        at = following


@given(plans, plans, arrivals)
def test_what_is_asked_for_is_what_was_planned(first: list[Plan], second: list[Plan], arrived: dict[str, Arrived]) -> None:
    start = offsets.advance({}, first, NOTHING)
    end = offsets.advance(start, second, arrived)
    before, after = offsets.parse(start), offsets.parse(end)
    asked = offsets.ranges(start, end, "job", "run")
    assert set(asked) == {agent for agent in after if before.get(agent) != after[agent]}
    of = {each.agent: each for each in second}
    assert asked == {agent: Range("job", "run", of[agent].journal, of[agent].after, of[agent].seq) for agent in asked}


@given(st.lists(st.tuples(plans, arrivals), max_size=6))
def test_no_offset_comes_twice_while_something_of_it_has_not_arrived(rounds: list[tuple[list[Plan], dict[str, Arrived]]]) -> None:
    """Spark runs no micro-batch to an offset where it is."""
    at: dict[str, Any] = {}
    for planned, arrived in rounds:
        before = offsets.parse(at)
        following = offsets.parse(at := offsets.advance(at, planned, arrived))
        for each in planned:
            since = before.get(each.agent)
            is_there = since is not None and since.journal == each.journal and since.has_arrived(arrived.get(each.agent, Arrived("", -1)))
            assert following[each.agent] != since or (is_there and each.seq <= following[each.agent].seq)


@given(st.lists(st.lists(st.tuples(agents, st.booleans(), numbers), max_size=3, unique_by=lambda step: step[0]), max_size=9))
def test_a_micro_batch_has_one_journal_of_an_agent_and_one_that_was_left_is_not_read_again(
    rounds: list[list[tuple[str, bool, int]]],
) -> None:
    """What lets one mark for each agent do; a run that begins anew at an agent gets a journal of a name that none had."""
    at: dict[str, Any] = {}
    begun: dict[str, int] = {}
    read: dict[str, list[str]] = {}
    for steps in rounds:
        for agent, anew, _ in steps:
            begun[agent] = begun.get(agent, 0) + anew
        following = offsets.advance(at, [plan(seq, agent=agent, journal=f"j.{begun[agent]}") for agent, _, seq in steps], NOTHING)
        for agent, asked in offsets.ranges(at, following, "job", "run").items():
            if read.setdefault(agent, [])[-1:] != [asked.journal]:
                read[agent].append(asked.journal)
        at = following
    assert all(len(set(journals)) == len(journals) for journals in read.values())


def test_without_changes_the_very_start_comes_back() -> None:
    start = offsets.advance({}, [plan(5, total=70)], NOTHING)
    assert offsets.advance(start, [plan(5, after=5, total=70)], {"a1": Arrived("j1", 5)}) is start
    assert offsets.advance(start, [], NOTHING) is start


def test_a_run_that_has_not_begun_stays_where_it_is() -> None:
    start = offsets.advance({}, [plan(5)], NOTHING)
    assert offsets.advance(start, [plan(NOT_BEGUN), plan(NOT_BEGUN, agent="a2"), plan(NOT_BEGUN, journal="j2")], NOTHING) is start


@pytest.mark.parametrize("arrived", [{}, {"a1": Arrived("j1", 4)}, {"a1": Arrived("j0", 9)}])
def test_a_plan_that_only_delivers_again_is_an_offset_of_its_own(arrived: dict[str, Arrived]) -> None:
    start = offsets.advance({}, [plan(5)], NOTHING)
    once = offsets.advance(start, [plan(5, after=4)], arrived)
    twice = offsets.advance(once, [plan(5, after=4)], arrived)
    assert len({json.dumps(each) for each in (start, once, twice)}) == 3
    assert offsets.ranges(once, twice, "job", "run") == {"a1": Range("job", "run", "j1", 4, 5)}


def test_a_budget_may_not_reach_as_far_as_what_was_planned_and_has_not_arrived() -> None:
    start = offsets.advance({}, [plan(9)], NOTHING)
    end = offsets.advance(start, [plan(5, after=2)], {"a1": Arrived("j1", 2)})
    assert offsets.ranges(start, end, "job", "run") == {"a1": Range("job", "run", "j1", 2, 5)}


def test_another_journal_begins_at_its_own_beginning() -> None:
    start = offsets.advance({}, [plan(5, total=70)], NOTHING)
    end = offsets.advance(start, [plan(3, journal="j2", after=1, total=9)], {"a1": Arrived("j1", 5)})
    assert offsets.ranges(start, end, "job", "run") == {"a1": Range("job", "run", "j2", 1, 3)}


def test_an_agent_that_is_away_stays_where_it_was_and_is_asked_for_nothing() -> None:
    start = offsets.advance({}, [plan(5), plan(7, agent="a2")], NOTHING)
    end = offsets.advance(start, [plan(8, agent="a2")], NOTHING)
    assert list(offsets.ranges(start, end, "job", "run")) == ["a2"]
    assert offsets.parse(end)["a1"] == AgentOffset("j1", 0, 5, 0, 0)


def test_an_end_is_reached_when_every_agent_is_there_by_the_same_process() -> None:
    targets = {"a1": Arrived("j1.1", 5), "a2": Arrived("k1", 7)}
    at = offsets.advance({}, [plan(5, journal="j1.2"), plan(6, agent="a2", journal="k1.1")], NOTHING)
    assert not offsets.reached(at, targets)
    assert not offsets.reached({}, targets)
    assert offsets.reached(offsets.advance(at, [plan(9, agent="a2", journal="k1.1")], NOTHING), targets)
    assert not offsets.reached(offsets.advance(at, [plan(9, agent="a2", journal="k2.1")], NOTHING), targets)


@given(st.integers(1, 1000))
def test_its_size_does_not_depend_on_partitions_but_on_agents(events: int) -> None:
    offset = offsets.advance({}, [plan(events, total=events * 10**9)], NOTHING)
    assert len(json.dumps(offset)) < 120


@pytest.mark.parametrize("fields", [{"journal": "j", "seq": 1, "total": 1, "turn": 0, "brokers": [1]}, {"journal": "j"}])
def test_an_offset_of_another_version_is_refused_with_what_to_do(fields: dict[str, Any]) -> None:
    with pytest.raises(CheckpointError, match=r"of another version of segtail .*: name another checkpoint with --checkpoint DIR"):
        offsets.parse({"a1": fields})


def test_what_is_recalled_stands_beside_the_agents_and_stays_when_they_go_on() -> None:
    start = offsets.advance({}, [plan(5, total=100)], NOTHING)
    first = offsets.recall(start, "run", 20)
    assert offsets.parse(first) == offsets.parse(start)
    assert offsets.recalls(start, first) == range(16)
    second = offsets.recall(json.loads(json.dumps(first)), "run", 20)
    assert offsets.recalls(first, second) == range(16, 20)
    assert offsets.recall(second, "run", 20) is second
    following = offsets.advance(second, [plan(6, total=110)], NOTHING)
    assert offsets.recalls(second, following) == range(0, 0)
    assert offsets.recall(following, "run", 20) is following
    assert list(offsets.ranges(second, following, "job", "run")) == ["a1"]
    assert offsets.ranges(start, second, "job", "run") == {}
    assert offsets.recalls(following, offsets.recall(following, "another", 20)) == range(16)


def test_another_journal_begins_to_count_its_turns_anew() -> None:
    again = offsets.advance({}, [plan(5), plan(5, agent="a2")], NOTHING)
    for _ in range(2):
        again = offsets.advance(again, [plan(5), plan(5, agent="a2")], NOTHING)
    end = offsets.parse(offsets.advance(again, [plan(3, journal="j2"), plan(6, agent="a2")], NOTHING))
    assert (end["a1"].turn, end["a2"].turn) == (0, 2)
