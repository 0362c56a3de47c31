"""The arithmetic of offsets."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from streaming.broker.protocol.consumer_messages import NOT_BEGUN, Plan, Range
from streaming.spark.source import offsets
from streaming.spark.source.offsets import OWN_BEGINNING, AgentOffset

agents = st.sampled_from(["a1", "a2", "b"])
journals = st.sampled_from(["j1", "j2"])
numbers = st.integers(0, 50)
plans = st.lists(st.builds(Plan, agents, journals, numbers, numbers, st.booleans()), max_size=3, unique_by=lambda plan: plan.agent)


def plan(seq: int, *, agent: str = "a1", journal: str = "j1", total: int = 0, again: bool = False) -> Plan:
    return Plan(agent, journal, seq, total, again)


@given(st.lists(plans, max_size=5))
def test_an_offset_is_json_that_says_the_same_whichever_way_it_was_reached(rounds: list[list[Plan]]) -> None:
    at: dict[str, Any] = {}
    for planned in rounds:
        following = offsets.advance(at, planned)
        assert offsets.advance(at, reversed(planned)) == following
        assert json.dumps(following) == json.dumps({agent: following[agent] for agent in sorted(following)})
        assert offsets.parse(json.loads(json.dumps(following))) == offsets.parse(following)
        at = following


@given(plans, plans)
def test_what_is_asked_for_reaches_from_one_offset_to_the_other(first: list[Plan], second: list[Plan]) -> None:
    start = offsets.advance({}, first)
    end = offsets.advance(start, second)
    before, after = offsets.parse(start), offsets.parse(end)
    asked = offsets.ranges(start, end, "job", "run")
    assert set(asked) == {agent for agent in after if before.get(agent) != after[agent]}
    for agent, one in asked.items():
        assert (one.journal, one.upto) == (after[agent].journal, after[agent].seq)
        goes_on = agent in before and before[agent].journal == one.journal and before[agent].seq <= one.upto
        assert (one.after, one.after_total) == ((before[agent].seq, before[agent].total) if goes_on else (OWN_BEGINNING, 0))


@given(st.lists(st.lists(st.tuples(agents, st.booleans(), numbers), max_size=3, unique_by=lambda step: step[0]), max_size=9))
def test_a_micro_batch_has_one_journal_of_an_agent_and_one_that_was_left_is_not_read_again(
    rounds: list[list[tuple[str, bool, int]]],
) -> None:
    """What lets one mark for each agent do; a consumer that begins anew at an agent gets a journal of a name that none had."""
    at: dict[str, Any] = {}
    begun: dict[str, int] = {}
    read: dict[str, list[str]] = {}
    for steps in rounds:
        for agent, anew, _ in steps:
            begun[agent] = begun.get(agent, 0) + anew
        following = offsets.advance(at, [plan(seq, agent=agent, journal=f"j.{begun[agent]}") for agent, _, seq in steps])
        for agent, asked in offsets.ranges(at, following, "job", "run").items():
            if read.setdefault(agent, [])[-1:] != [asked.journal]:
                read[agent].append(asked.journal)
        at = following
    assert all(len(set(journals)) == len(journals) for journals in read.values())


def test_without_changes_the_very_start_comes_back() -> None:
    start = offsets.advance({}, [plan(5, total=70)])
    assert offsets.advance(start, [plan(5, total=70)]) is start
    assert offsets.advance(start, []) is start


def test_a_consumer_that_has_not_begun_stays_where_it_is() -> None:
    start = offsets.advance({}, [plan(5)])
    assert offsets.advance(start, [plan(NOT_BEGUN), plan(NOT_BEGUN, agent="a2"), plan(NOT_BEGUN, journal="j2")]) is start


def test_a_plan_that_only_delivers_again_is_an_offset_of_its_own() -> None:
    start = offsets.advance({}, [plan(5)])
    once = offsets.advance(start, [plan(5, again=True)])
    twice = offsets.advance(once, [plan(5, again=True)])
    assert len({json.dumps(each) for each in (start, once, twice)}) == 3
    assert offsets.ranges(once, twice, "job", "run") == {"a1": Range("job", "run", "j1", 5, 0, 5)}


def test_another_journal_begins_at_its_own_beginning() -> None:
    start = offsets.advance({}, [plan(5, total=70)])
    end = offsets.advance(start, [plan(3, journal="j2", total=9)])
    assert offsets.ranges(start, end, "job", "run") == {"a1": Range("job", "run", "j2", OWN_BEGINNING, 0, 3)}


def test_an_agent_that_is_away_stays_where_it_was_and_is_asked_for_nothing() -> None:
    start = offsets.advance({}, [plan(5), plan(7, agent="a2")])
    end = offsets.advance(start, [plan(8, agent="a2")])
    assert list(offsets.ranges(start, end, "job", "run")) == ["a2"]
    assert offsets.parse(end)["a1"] == AgentOffset("j1", 5, 0, 0)


def test_an_end_is_reached_when_every_agent_is_there_in_the_journal_that_was_meant() -> None:
    targets = {"a1": AgentOffset("j1", 5, 0, 0), "a2": AgentOffset("k1", 7, 0, 0)}
    at = offsets.advance({}, [plan(5), plan(6, agent="a2", journal="k1")])
    assert not offsets.reached(at, targets)
    assert not offsets.reached({}, targets)
    assert offsets.reached(offsets.advance(at, [plan(9, agent="a2", journal="k1")]), targets)
    assert not offsets.reached(offsets.advance(at, [plan(9, agent="a2", journal="k2")]), targets)


@given(st.integers(1, 1000))
def test_its_size_does_not_depend_on_partitions_but_on_agents(events: int) -> None:
    offset = offsets.advance({}, [plan(events, total=events * 10**9)])
    assert len(json.dumps(offset)) < 120


def test_an_agent_is_known_by_its_name_or_by_its_brokers_and_of_an_earlier_version_any_may_be() -> None:
    start = offsets.advance({}, [plan(5), plan(7, agent="a2")], {"a1": [1], "a2": [3, 2]})
    assert start["a2"]["brokers"] == [2, 3]
    assert offsets.advance(json.loads(json.dumps(start)), [plan(5)], {"a1": [1]}) == start
    known = offsets.parse(start)
    reported = {(agent, *brokers): offsets.knows(known, agent, brokers) for agent, brokers in (("a1", [9]), ("b", [3, 4]), ("b", [4]))}
    assert reported == {("a1", 9): True, ("b", 3, 4): True, ("b", 4): False}
    assert not offsets.knows({}, "a1", [1])
    earlier = {"a1": {"journal": "j1", "seq": 5, "total": 0, "turn": 0}}
    assert offsets.knows(offsets.parse(earlier), "b", [4])
    assert offsets.advance(earlier, [plan(5)]) is earlier
    assert offsets.ranges(earlier, offsets.advance(earlier, [plan(5)], {"a1": [1]}), "job", "run") == {}


def test_what_is_recalled_stands_beside_the_agents_and_stays_when_they_go_on() -> None:
    start = offsets.advance({}, [plan(5, total=100)])
    first = offsets.recall(start, "run", 20)
    assert offsets.parse(first) == offsets.parse(start)
    assert offsets.recalls(start, first) == range(16)
    second = offsets.recall(json.loads(json.dumps(first)), "run", 20)
    assert offsets.recalls(first, second) == range(16, 20)
    assert offsets.recall(second, "run", 20) is second
    following = offsets.advance(second, [plan(6, total=110)])
    assert offsets.recalls(second, following) == range(0, 0)
    assert offsets.recall(following, "run", 20) is following
    assert list(offsets.ranges(second, following, "job", "run")) == ["a1"]
    assert offsets.ranges(start, second, "job", "run") == {}
    assert offsets.recalls(following, offsets.recall(following, "another", 20)) == range(16)


def test_another_journal_begins_to_count_its_turns_anew() -> None:
    again = offsets.advance({}, [plan(5), plan(5, agent="a2")])
    for _ in range(2):
        again = offsets.advance(again, [plan(5, again=True), plan(5, agent="a2", again=True)])
    end = offsets.parse(offsets.advance(again, [plan(3, journal="j2"), plan(6, agent="a2")]))
    assert (end["a1"].turn, end["a2"].turn) == (0, 2)
