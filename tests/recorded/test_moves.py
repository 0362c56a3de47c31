"""Offsets that were moved on a real broker: what is said and counted of them, held against what was done and what a consumer got."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from streaming.broker.disk.logdirs import open_log_dirs
from streaming.broker.protocol.group_json import GroupDetail, GroupFinding
from streaming.broker.protocol.history_json import GroupHistoryPage
from streaming.cluster.consumers.group_counting import PAIR_BITS
from streaming.cluster.consumers.group_moves import CERTAIN_MS, SETTLED_MS, Moved
from streaming.cluster.consumers.group_tracker import GroupTracker
from streaming.cluster.view.family import EVERYTHING
from streaming.common.settings import Settings
from streaming.terminal.offline.group_reading import read_groups
from tests.broker.install import KAFKA_VERSION
from tests.commands import run_command
from tests.group_answers import detailed
from tests.recorded.recordings import Replayed, replay
from tests.recorded.worlds.moves import FAR
from tests.worlds.group_job import STOPPED_AFTER_MS, reported_by_job

Key = tuple[str, str, str]
"""Group, kind and direction."""


@pytest.fixture(scope="module")
def replayed(tmp_path_factory: pytest.TempPathFactory) -> Replayed:
    """Groups before and after their offsets are moved."""
    return replay("moves", KAFKA_VERSION, tmp_path_factory.mktemp("moves"))


def answers(replayed: Replayed, state: str, at_ms: int = 0) -> Mapping[str, GroupDetail]:
    disk = replayed.disk(state)
    answer = detailed(read_groups(open_log_dirs(disk.log_dirs), (), Settings(server_properties=disk.properties), at_ms or disk.now_ms))
    assert answer.doubts == ()
    return {group.summary.group: group for group in answer.groups}


def moved(group: GroupDetail) -> Sequence[GroupFinding]:
    return [each for each in group.findings if each.verdict in ("skipped", "rewound")]


def done(replayed: Replayed) -> Sequence[Mapping[str, Any]]:
    found: list[Mapping[str, Any]] = replayed.json("done")
    return found


def direction(move: Mapping[str, Any]) -> str:
    return "skipped" if move["offset"] > move["before"] else "rewound"


NOTABLE: Mapping[tuple[str, int], tuple[str, Sequence[tuple[int, int | None]]]] = {
    ("by-hand", 0): ("skipped", [(20, None)]),
    ("by-hand", 1): ("rewound", [(10, 3)]),
    ("by-hand", 2): ("rewound", [(30, 12)]),
    ("by-client", 0): ("skipped", [(10, 33)]),
    ("beyond-earliest", 1): ("rewound", [(FAR, 1)]),
    ("beyond-latest", 1): ("skipped", [(10, FAR)]),
    ("seeks", 1): ("rewound", [(200, 50)]),
}
"""What somebody should know of each partition, and from where to where it was moved; None: to the end."""

ONE_AFTER_THE_OTHER = {(30, 12): [(30, 40), (40, 12)]}
"""Moves by hand that are shown as one: nobody read between them."""


def test_nothing_is_reported_where_groups_have_only_read(replayed: Replayed) -> None:
    before = answers(replayed, "before")
    assert len(before) > 10
    assert [finding for group in before.values() for finding in moved(group)] == []
    assert [of.moves for group in before.values() for of in group.partitions if of.moves] == []


def test_what_was_moved_is_reported_with_its_records_and_what_was_not_is_not(replayed: Replayed) -> None:
    after = answers(replayed, "after")
    found = {(name, each.partition): each.verdict for name, group in after.items() for each in moved(group)}
    assert found == {key: verdict for key, (verdict, _) in NOTABLE.items()}
    truth = {(each["group"], each["partition"], each["before"], each["offset"]): each for each in done(replayed)}
    for (name, partition), (_, moves) in NOTABLE.items():
        (of,) = (each for each in after[name].partitions if each.partition == partition)
        assert [each.from_offset for each in of.moves] == [before for before, _ in moves]
        for each, (before, offset) in zip(of.moves, moves, strict=True):
            assert offset in (None, each.to_offset)
            did = [truth[name, partition, *one] for one in ONE_AFTER_THE_OTHER.get((before, each.to_offset), [(before, each.to_offset)])]
            records = abs(sum(one["records"] if direction(one) == "skipped" else -one["records"] for one in did))
            assert (each.kind, each.records, each.offsets) == (did[0]["kind"], records, 0), did
            assert 0 < each.from_ms < each.at_ms < replayed.disk("after").now_ms


def test_each_command_sets_back_to_where_it_was(replayed: Replayed) -> None:
    after = answers(replayed, "after")
    for (name, partition), (verdict, ((before, _), *_)) in NOTABLE.items():
        (finding,) = (each for each in moved(after[name]) if each.partition == partition)
        assert finding.verdict == verdict
        if finding.command:
            assert f"--group {name} --topic orders:{partition} --reset-offsets --to-offset {before} --execute" in finding.command
        else:
            assert verdict == "rewound"
            assert finding.no_command == "it reads on from there, and a reset forwards might skip what it has not read"


def test_it_is_reported_for_a_day(replayed: Replayed) -> None:
    at_ms = replayed.disk("after").now_ms
    assert any(map(moved, answers(replayed, "after", at_ms + 23 * 3_600_000).values()))
    assert not any(map(moved, answers(replayed, "after", at_ms + 25 * 3_600_000).values()))


def amounts(snapshot: Moved, names: Mapping[int, str]) -> dict[Key, tuple[int, int]]:
    found: Counter[Key] = Counter()
    uncounted: Counter[Key] = Counter()
    for name, amount in snapshot.amounts.items():
        key = names[name.pair], str(name.kind), "skipped" if name.forwards else "rewound"
        found[key] += amount.records
        uncounted[key] += amount.offsets
    return {key: (records, uncounted[key]) for key, records in found.items()}


def test_a_job_counts_each_move_once_and_as_a_consumer_does(replayed: Replayed, tmp_path: Any) -> None:
    """Its agent is another process each time, which reads the coordinators' logs from the first byte on."""
    tracker = GroupTracker(EVERYTHING, STOPPED_AFTER_MS)
    before, after = replayed.disk("before"), replayed.disk("after")
    snapshots: list[Moved] = []
    names: dict[int, str] = {}
    for number, (disk, later_ms) in enumerate([(before, 0), (after, 0), (after, CERTAIN_MS), (after, SETTLED_MS), (after, 3 * SETTLED_MS)]):
        settings = Settings(server_properties=disk.properties)
        reported_by_job(disk.log_dirs, tmp_path / f"journal{number}", after.now_ms + later_ms, tracker, settings)
        snapshot = tracker.finish()
        snapshots.append(snapshot.moved)
        rows = snapshot.rows
        names |= {int(key >> PAIR_BITS): rows.group_names[group] for key, group in zip(rows.key, rows.group, strict=True)}
    truth: Counter[Key] = Counter()
    for each in done(replayed):
        truth[each["group"], each["kind"], direction(each)] += each["records"]
    assert snapshots[0].amounts == {}
    members = {key for key in truth if key[1] in ("consumer", "reset")}
    assert amounts(snapshots[1], names) == dict.fromkeys(truth.keys() - members, (0, 0)), "of the others it is not certain yet"
    assert amounts(snapshots[2], names) == dict.fromkeys(truth, (0, 0)), "a counter is there before it counts"
    assert amounts(snapshots[3], names) == {key: (records, 0) for key, records in truth.items()}
    assert snapshots[4].amounts == snapshots[3].amounts


def history(replayed: Replayed, *names: str, more: Sequence[str] = ()) -> Any:
    log_dirs = ",".join(str(each) for each in replayed.disk("after").log_dirs)
    return run_command("groups", *names, "--history", "--log-dirs", log_dirs, *more)


def test_the_history_has_commits_generations_and_moves_in_their_order(replayed: Replayed) -> None:
    printed = history(replayed, "by-hand")
    head, *lines = printed.stdout.splitlines()
    why = "; for a day `segtail why by-hand` says how many records, and the command"
    assert printed.returncode == 0
    assert head.startswith("by-hand: what ")
    assert " From offset 0 (20" in head
    assert [line.split("  ", 2)[2] for line in lines] == [
        "generation 0: 0 members",
        "generation 1: 1 member: client-of-by-hand /127.0.0.1",
        "orders-0: committed 20",
        "orders-1: committed 10",
        "orders-2: committed 30",
        "generation 2: 0 members",
        f"orders-0: committed 57 (+37, moved by hand). 37 offsets lie between{why}",
        f"orders-1: committed 3 (-7, moved by hand). 7 offsets lie between{why}",
        f"orders-2: committed 40 (+10, moved by hand). 10 offsets lie between{why}",
        f"orders-2: committed 12 (-28, moved by hand). 28 offsets lie between{why}",
    ]


def test_the_history_of_each_group_has_what_was_done(replayed: Replayed) -> None:
    names = sorted({each["group"] for each in done(replayed)})
    printed = GroupHistoryPage.decode(history(replayed, *names, more=("--json",)).stdout.encode())
    assert ([row.group for row in printed.rows], printed.doubts) == (names, [])
    assert {row.omitted for row in printed.rows} == {0}
    found = {
        (row.group, each.topic, each.partition, each.before, each.committed): each.moved
        for row in printed.rows
        for each in row.events
        if each.moved
    }
    by_log = {"reset": "consumer"}  # where other logs ended the coordinator's log does not show
    assert found == {
        (each["group"], each["topic"], each["partition"], each["before"], each["offset"]): by_log.get(each["kind"], each["kind"])
        for each in done(replayed)
    }
    generations = {row.group: [each.members for each in row.events if each.event == "generation"] for row in printed.rows}
    assert generations["by-client"] == [1, 0], "of the newer protocol"
    assert generations["assigned"] == []


def test_there_is_no_history_of_a_group_that_is_not_there(replayed: Replayed) -> None:
    printed = history(replayed, "by-hand", "nobody")
    assert (printed.returncode, printed.stderr.splitlines()[-1]) == (4, "segtail: no group nobody is known here")
