"""Rebalances are counted once, whoever says so, and however often."""

from collections.abc import Sequence
from dataclasses import replace

from streaming.broker.protocol.group_json import GroupFinding
from streaming.cluster.consumers.group_rebalances import RebalanceMemory, lately
from streaming.cluster.verdicts.conditions import rebalance_storms
from streaming.cluster.view.family import EVERYTHING
from streaming.kafka.groups.group_rows import GroupFacts
from streaming.kafka.groups.group_states import SIMPLE
from streaming.kafka.groups.rebalance_log import COUNTED, MINUTE_MS, MemberName, Rebalance, RebalanceKind, packed_rebalances
from tests.consumers.group_agents import GROUP, FakeAgent
from tests.consumers.group_world import GroupJob, world
from tests.tables import each_row

NOW_MS = 1_000_000 * MINUTE_MS
MEMBERS, METADATA, UNFINISHED = COUNTED

Counts = tuple[int, int, int]


def group(raised: int, metadata: int = 0, unfinished: int = 0, *, offset: int = -1, seen: Sequence[Rebalance] = ()) -> GroupFacts:
    """What an agent knows of a group by its records up to ``offset``; of a later generation they go further."""
    numbers, clients, hosts = packed_rebalances(seen)
    return GroupFacts(
        group="g",
        coordinator=0,
        effective_offset=raised if offset < 0 else offset,
        type="Consumer",
        protocol="consumer",
        state="Stable",
        members=2,
        epoch=raised,
        state_ms=-1,
        clients=(),
        hosts=(),
        topics=(),
        raised=raised,
        raised_by_metadata=metadata,
        raised_unfinished=unfinished,
        rebalance_ms=NOW_MS,
        rebalances=numbers,
        rebalance_clients=tuple(clients),
        rebalance_hosts=tuple(hosts),
    )


def one(raised: int, kind: RebalanceKind = MEMBERS, generations: int = 1, unfinished: int = 0) -> Rebalance:
    return Rebalance(raised=raised, at_ms=NOW_MS, kind=kind, generations=generations, unfinished=unfinished)


def counted(*seen: GroupFacts | None) -> list[Counts | None]:
    """What a job counts after each of these; None: the group is not there."""
    memory, found = RebalanceMemory(EVERYTHING), list[Counts | None]()
    for facts in seen:
        known = memory.update({"g": facts} if facts else {})
        found.append(tuple(known.counts[:, known.names.index("g")].tolist()) if known.names else None)  # type: ignore[arg-type]
    return found


@each_row(
    ("why", "seen", "expected"),
    [
        (
            "all kinds together are the generation, from the first sight on",
            [group(57, 5, 2), group(60, 6, 2, seen=[one(58), one(59, METADATA), one(60)])],
            [(50, 5, 2), (52, 6, 2)],
        ),
        (
            "a replica of which compaction has left less changes no kind",
            [group(57, 5, 2), group(58, 0, 0, seen=[one(58)]), group(59, 1, 0, seen=[one(58), one(59, METADATA)])],
            [(50, 5, 2), (51, 5, 2), (51, 6, 2)],
        ),
        (
            "a replica that is behind takes nothing back",
            [group(57, offset=900), group(55, offset=800), group(57, offset=900), group(58, offset=950)],
            [(57, 0, 0)] * 3 + [(58, 0, 0)],
        ),
        (
            "generations between two looks that were never assigned",
            [group(5), group(9, 0, 3, seen=[one(9, generations=4, unfinished=3)])],
            [(5, 0, 0), (6, 0, 3)],
        ),
        (
            "a group that was made anew begins anew, as a counter does",
            [group(57, 5, offset=900), group(1, offset=950, seen=[one(1)])],
            [(52, 5, 0), (1, 0, 0)],
        ),
        ("it was deleted between", [group(57, offset=900), None, group(3, offset=10)], [(57, 0, 0), None, (3, 0, 0)]),
        (
            "what is not known for a moment counts on",
            [group(57, 5, offset=900), group(-1, -1, -1, offset=901), group(58, 5, offset=901, seen=[one(58)])],
            [(52, 5, 0)] * 2 + [(53, 5, 0)],
        ),
    ],
)
def test_rebalances_are_counted_once(why: str, seen: list[GroupFacts | None], expected: list[Counts | None]) -> None:
    assert counted(*seen) == expected, why


def test_a_job_that_is_started_again_counts_on_where_it_was() -> None:
    before, after = group(57, 5, 2, seen=[one(57)]), group(60, 6, 2, seen=[one(57), one(58), one(59, METADATA), one(60)])
    assert counted(before, after)[-1] == counted(after)[0], "what happened while it was away is in"


def test_groups_of_which_nothing_is_known_have_no_counters() -> None:
    memory = RebalanceMemory(EVERYTHING)
    assert memory.update({"s": SIMPLE.facts("s", 0, -1), "old": group(57, -1, -1)}).names == ()


def test_the_same_groups_are_looked_at_once() -> None:
    memory, groups = RebalanceMemory(EVERYTHING), {"g": group(57)}
    first = memory.update(groups)
    assert memory.update(groups) is first
    assert memory.update({"g": group(57, offset=58)}) is first, "other records of it are no rebalance"
    assert memory.update({"g": group(58)}).labels is first.labels, "labels are those of the names"


def storming(*minutes: int, members: int = 2, last_ms: int = NOW_MS) -> dict[str, object]:
    """A row of a group with that many rebalances in each of the last minutes, the last number is of now."""
    flat = [number for ago, count in enumerate(reversed(minutes)) for number in (NOW_MS // MINUTE_MS - ago, count, members) if count]
    ordered = [number for at in range(len(flat) - 3, -1, -3) for number in flat[at : at + 3]]
    names = [MemberName("app-2", "/10.0.0.7")]
    seen = [
        Rebalance(raised=100 + number, at_ms=NOW_MS - 1000 * (10 - number), kind=MEMBERS, members=members, joined=number % 2,
                  left=1 - number % 2, joined_names=tuple(names[: number % 2]), left_names=tuple(names[: 1 - number % 2]))
        for number in range(10)
    ]  # fmt: skip
    numbers, clients, hosts = packed_rebalances(seen)
    return GROUP | {
        "raised": 109,
        "raised_by_metadata": 0,
        "raised_unfinished": 0,
        "rebalance_ms": last_ms,
        "rebalance_minutes": ordered,
        "rebalances": numbers,
        "rebalance_clients": clients,
        "rebalance_hosts": hosts,
        "members": members,
    }


def job_of(row: dict[str, object]) -> GroupJob:
    job = world()
    job.now = NOW_MS / 1000
    agent: FakeAgent = job.agents["a1"]
    agent.groups_ = [row]
    agent.commit(10, commit_ms=NOW_MS - 1000)
    job.reach()
    job.play("+0")
    return job


def storms(row: dict[str, object], ago_ms: int = 0) -> list[str]:
    job = job_of(row)
    snapshot = job.board.latest(NOW_MS)
    assert snapshot is not None
    return list(rebalance_storms(snapshot, NOW_MS + ago_ms))


def storm_details(row: dict[str, object]) -> list[GroupFinding]:
    detail = job_of(row).about()
    return detail.findings


LOOP, QUIET = [12, 12, 12, 12], [0] * 20
EVERY_NINE = [*[0] * 8, 3] * 4
GONE = {"members": 0, "state": "Empty"}


@each_row(
    ("why", "minutes", "members", "storm"),
    [
        ("three generations a member within half an hour", [3, 5, 4], 4, False),
        ("more than three", [4, 5, 4], 4, True),
        ("12 within half an hour, of which the first are 27 minutes ago", EVERY_NINE, 3, True),
        ("9 within half an hour", [*EVERY_NINE, 0, 0, 0], 3, False),
        *[("fewer than ten: a member is stopped and started twice, and joins twice each time", [3, 0, 6], few, False) for few in range(3)],
        *[("ten", [4, 0, 6], few, True) for few in range(3)],
        ("a container is started again after five minutes", [*LOOP, *[0] * 8, 2], 3, True),
        ("two ordinary restarts after a pause of more than ten minutes", [*LOOP, *QUIET, 2, 2], 3, False),
        *[("a rolling deployment: a cooperative one takes three generations each", [most] * 3, most, False) for most in (1, 2, 20, 300)],
        ("each of twenty members crashes twice", [20, 20], 20, False),
        ("and a generation more than three each", [3 * 20 + 1], 20, True),
        ("it last rebalanced now, but by no member", [12, *[0] * 9], 2, True),
        ("what topics have raised since does not keep a storm alive", [12, *[0] * 10], 2, False),
    ],
)
def test_what_a_storm_is(why: str, minutes: list[int], members: int, storm: bool) -> None:
    assert storms(storming(*minutes, members=members)) == ["g"] * storm, why


def test_a_storm_ends_ten_minutes_after_the_last_rebalance_and_may_be_of_a_group_that_has_no_member_left() -> None:
    assert [storms(storming(10), ago_ms=ago_ms) for ago_ms in (599_999, 600_000)] == [["g"], []]
    assert [storms(storming(10, members=members) | GONE) for members in (1, 0)] == [["g"]] * 2
    assert "group_rebalance_ratio{g}" not in job_of(storming(9, members=1)).page()
    assert job_of(storming(10, members=1)).page()["group_rebalance_ratio{g}"] == 10


def test_what_comes_after_a_pause_of_ten_minutes_is_no_part_of_the_storm_before() -> None:
    restarts = job_of(storming(*LOOP, *QUIET, 2, 2, members=3))
    assert "group_rebalance_ratio{g}" not in restarts.page(), "the alert goes by that"
    detail = restarts.about()
    assert (detail.summary.verdict, detail.summary.rebalances_lately) == ("fine", 52)
    (again,) = (each for each in storm_details(storming(*[9] * 3, *[0] * 10, 6, 6, members=3)) if each.verdict == "rebalancing")
    assert "rebalanced 12 times within 1m, with 3 members at most" in again.text, "what was before the pause does not count"
    assert again.since_ms == NOW_MS // MINUTE_MS * MINUTE_MS - MINUTE_MS


def test_every_face_says_the_same_of_a_storm() -> None:
    job = job_of(storming(4, 6))
    page = job.page()
    assert page["group_rebalances_total{g,members}"] == 109
    assert page["group_rebalances_total{g,metadata}"] == 0
    assert "group_rebalances_total{g,unfinished}" not in page, "only a classic group has them"
    assert page["group_last_rebalance_timestamp_seconds{g}"] == NOW_MS / 1000
    assert page["group_rebalance_ratio{g}"] == 5
    assert not any("app-2" in key or "10.0.0.7" in key for key in page), "who it is is no label"
    detail = job.about()
    assert (detail.summary.verdict, detail.summary.severity) == ("rebalancing", "warning")
    assert (detail.summary.rebalances_lately, detail.summary.last_rebalance_ms) == (10, NOW_MS)
    assert detail.findings[0].text == (
        "it has rebalanced 10 times within 1m, with 2 members at most, last 0s ago; of the last 10 rebalances, since "
        "1971-11-26T10:39:50Z (10s ago), app-2 (/10.0.0.7) left 5 times and joined 5 times"
    )
    assert [(each.generation, each.joined_members, each.left_members) for each in detail.rebalances[:2]] == [(109, 1, 0), (108, 0, 1)]
    assert [(each.client, each.host) for each in detail.rebalances[0].joined] == [("app-2", "/10.0.0.7")]


def test_a_group_at_rest_has_no_ratio_and_says_when_it_last_rebalanced() -> None:
    job = job_of(storming() | {"rebalance_ms": NOW_MS - 3_600_000})
    assert "group_rebalance_ratio{g}" not in job.page()
    detail = job.about()
    assert (detail.summary.rebalances_lately, detail.summary.verdict) == (0, "fine")


def test_when_one_was_that_is_dated_ahead_is_not_known() -> None:
    job = job_of(storming(10) | {"rebalance_ms": NOW_MS + 120_000})
    assert "group_last_rebalance_timestamp_seconds{g}" not in job.page()
    detail = job.about()
    assert (detail.summary.last_rebalance_ms, detail.summary.verdict) == (-1, "rebalancing")


def test_what_a_coordinator_dates_far_ahead_is_none_of_now() -> None:
    at = NOW_MS // MINUTE_MS
    ahead, next_minute = (replace(group(5), rebalance_minutes=(at + minutes, 9, 1)) for minutes in (2, 1))
    assert lately(ahead, NOW_MS) is None
    assert lately(next_minute, NOW_MS) is not None, "a coordinator's clock may be some seconds ahead"
