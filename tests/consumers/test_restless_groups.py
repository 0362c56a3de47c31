"""Groups whose members come and go: where they stand is said from the second time on, and not that nobody is there."""

from streaming.cluster.verdicts.group_judge import judge_groups
from streaming.kafka.groups.rebalance_log import Rebalance, RebalanceKind, packed_rebalances
from tests.consumers.group_agents import GROUP, FakeAgent
from tests.consumers.group_world import GroupJob, world
from tests.tables import each_row

NOW_MS = 60_000_000_000
SECOND = 1_000


def dying(script: str, *, moved_ago: int = 300, appended_ago: int = 200) -> GroupJob:
    """A group of one member that has read 3 of ten records, and what it did by a script: `+9` it has come so many seconds ago, `-9` it has
    left. The log is as old as ``appended_ago`` seconds.
    """
    steps = [(word[0] == "+", NOW_MS - SECOND * int(word[1:])) for word in script.split()]
    seen = [
        Rebalance(raised=7 + number, at_ms=at_ms, kind=RebalanceKind.MEMBERS, members=int(there), joined=int(there), left=int(not there))
        for number, (there, at_ms) in enumerate(steps)
    ]
    numbers, clients, hosts = packed_rebalances(seen)
    there, last_ms = steps[-1]
    minutes = [number for minute in sorted({at_ms // 60_000 for _, at_ms in steps}) for number in (minute, 1, 1)]
    row = {"raised": 6 + len(steps), "raised_by_metadata": 0, "raised_unfinished": 0, "rebalance_ms": last_ms, "rebalance_minutes": minutes}
    row |= {"rebalances": numbers, "rebalance_clients": clients, "rebalance_hosts": hosts, "epoch": 6 + len(steps), "state_ms": last_ms}
    row |= {"type": "Classic", "protocol": "consumer", "members": int(there), "state": "Stable" if there else "Empty"}
    row |= {"topics": ["orders"] if there else [], "last_topics": [] if there else ["orders"]}
    job = world()
    job.now = NOW_MS / 1000
    agent: FakeAgent = job.agents["a1"]
    agent.logs["orders", 0].times = dict.fromkeys(range(10), NOW_MS - SECOND * appended_ago)
    agent.groups_ = [GROUP | row]
    agent.commit(3, commit_ms=NOW_MS - SECOND, moved_ms=NOW_MS - SECOND * moved_ago)
    job.reach()
    job.play("+0")
    return job


@each_row(
    ("why", "script", "values", "restless", "no_members"),
    [
        ("it has left once", "+90 -8", {}, False, True),
        ("it was started again once, and is there", "+90 -30 +20", {}, False, False),
        ("it read on, and was stopped again", "+90 -30 +20 -8", {"moved_ago": 15}, False, True),
        ("it left a second time where it had stood", "+90 -30 +20 -8", {}, True, False),
        ("it fails again and again", "+90 -60 +50 -30 +20 -8", {}, True, False),
        ("and is there now", "+90 -60 +50 -30 +20", {}, True, False),
        ("with a back-off of minutes", "+990 -960 +800 -790 +490 -400", {"moved_ago": 1200, "appended_ago": 1100}, True, False),
        ("it has ended for good", "+990 -960 +950 -930 +920 -400", {"moved_ago": 1200, "appended_ago": 1100}, False, True),
        ("it reads meanwhile", "+90 -60 +50 -30 +20 -8", {"moved_ago": 25}, False, False),
        ("the next record came after that", "+90 -60 +50 -30 +20 -8", {"appended_ago": 9}, False, False),
    ],
)
def test_where_a_group_stands_whose_members_come_and_go(
    why: str, script: str, values: dict[str, int], restless: bool, no_members: bool
) -> None:
    job = dying(script, **values)
    found = {each.verdict: each for each in job.about().findings}
    assert ("rebalancing" in found, "no_members" in found) == (restless, no_members), why
    assert not any("--delete" in each.text for each in found.values()) or no_members
    if restless:
        assert "stands in orders-0 at offset 3" in found["rebalancing"].text
        assert found["rebalancing"].severity == "info"
        assert found["fine"].text.startswith("stands while members come and go: 7 records left")
    judged = judge_groups(job.round(), NOW_MS)
    assert [(each.topic, each.partition, each.offset) for of in judged.restless.values() for each in of.standing] == [
        ("orders", 0, 3)
    ] * restless
