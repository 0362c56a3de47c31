"""Which problems are one incident: a root with what follows from it, and nothing that has another cause."""

from dataclasses import replace
from typing import Any

from streaming.broker.protocol.cluster_messages import AffectedPartition, PartitionCounts, Registered, TopicCounts
from streaming.broker.protocol.group_json import GroupPartition, PendingOffset
from streaming.broker.protocol.status_json import Problem
from streaming.broker.protocol.status_messages import ProcessStatus
from streaming.cluster.verdicts.circumstances import Circumstances
from streaming.cluster.verdicts.first_lines import verdict
from streaming.cluster.verdicts.group_judge import judge_groups
from streaming.cluster.verdicts.incidents import count, problems
from streaming.cluster.verdicts.transaction_problems import held_back_groups
from streaming.cluster.view.table import Table
from streaming.kafka.formats.metadata_records import Phase
from streaming.rules.broker_process import ProcessState
from tests.group_snapshots import Group, snapshot_of
from tests.tables import each_row
from tests.view.rows import log, new_table, states
from tests.worlds import retention
from tests.worlds.hosts import log_dir
from tests.worlds.incidents import groups, stuck, waiting
from tests.worlds.problems import CASES, HOUR, LATE, MINUTE, NOW_MS, OLD, agent, around, well
from tests.worlds.transactions import coordinator, orders, transaction


def tree(of: Circumstances) -> dict[str, list[str]]:
    """The kinds that follow from each root, roots and consequences in their order; a kind's name has what it is about."""
    every = problems(of)
    names = {each.id: named(each) for each in every}
    assert len(names) == len(every)
    found: dict[str, list[str]] = {names[each.id]: [] for each in every if not each.because}
    for each in every:
        if each.because:
            found[names[each.because]].append(names[each.id])
    return found


def named(problem: Problem) -> str:
    where = problem.group or (f"{problem.topic}-{problem.partition}" if problem.topic else "")
    return f"{problem.kind} {where}".strip()


def behind(partition: int, **values: Any) -> GroupPartition:
    return waiting(partition, **{"held": False, "lag_records_read_committed": 60} | values)


def test_what_a_stuck_transaction_holds_up_follows_from_it() -> None:
    of = around(agent(well()), table=stuck(0), groups=groups(waiting(0, loss_ms=NOW_MS + HOUR)))
    assert tree(of) == {"transaction_stuck orders-0": ["group_will_lose ledger", "group_held ledger"]}


def test_one_transaction_is_one_incident_in_all_of_its_partitions_and_with_the_commits_that_wait_for_it() -> None:
    pending = PendingOffset(producer_id=9, offset=41, coordinator=0, since_ms=NOW_MS - 20 * MINUTE)
    of = groups(behind(5, pending=[pending], stopped_since_ms=OLD), waiting(0))
    assert tree(around(agent(well()), table=stuck(0, 1, offsets=True), groups=of)) == {
        "transaction_stuck orders-0": [
            "transaction_stuck __consumer_offsets-0",
            "transaction_stuck orders-1",
            "group_held ledger",
            "group_pending ledger",
            "group_stopped ledger",
        ]
    }


def test_what_has_another_cause_is_an_incident_of_its_own() -> None:
    poisoned = behind(1, stopped_since_ms=OLD, loss_ms=NOW_MS + 2 * HOUR)
    of = around(agent(well()), table=stuck(0), groups=groups(waiting(0, loss_ms=NOW_MS + HOUR), poisoned))
    assert tree(of) == {
        "transaction_stuck orders-0": ["group_will_lose ledger", "group_held ledger"],
        "group_stopped ledger": ["group_will_lose ledger"],
    }
    assert [(each.partition, each.deadline_ms) for each in problems(of) if each.kind == "group_will_lose"] == [
        (0, NOW_MS + HOUR),
        (1, NOW_MS + 2 * HOUR),
    ]


def test_what_waits_for_another_transaction_does_not_follow_from_this_one() -> None:
    young = orders(transaction(7, 40, age=1000), partition=1)
    entry = {"transactional_id": "ok", "producer_id": 7, "state": "Ongoing", "timeout_ms": 86_400_000, "partitions": ["orders-1"]}
    table = stuck(0)
    table.apply(states(young, coordinator(entry | {"start_ms": NOW_MS - 1_000_000}, partition=1)))
    every = problems(around(agent(well()), table=table, groups=groups(waiting(0), waiting(1))))
    first, second = (each for each in every if not each.because)
    assert [(first.kind, first.partition), (second.kind, second.partition)] == [("transaction_stuck", 0), ("last_stable_offset_stalled", 1)]
    assert [(each.partition, each.because) for each in every if each.because] == [(0, first.id), (1, second.id)]


def test_what_one_group_suffers_in_one_topic_is_one_incident() -> None:
    stopped = behind(0, stopped_since_ms=OLD, loss_ms=NOW_MS + HOUR, lost_offsets=3, lost_records=3)
    (root, *rest) = problems(around(agent(well()), groups=groups(stopped)))
    assert (root.kind, root.severity, root.worst, root.deadline_ms) == ("group_stopped", "warning", "critical", NOW_MS + HOUR)
    assert [(each.kind, each.because) for each in rest] == [("group_will_lose", root.id), ("group_lost", root.id)]
    (one,) = root.consequences
    assert one.text == "group ledger: has lost records, loses records from 2023-11-14T23:13:20Z on (in 1h)"
    assert (one.severity, one.deadline_ms, one.problems) == ("critical", NOW_MS + HOUR, [each.id for each in rest])


def test_a_consequence_has_no_command_that_mends_the_effect() -> None:
    of = around(agent(well()), table=stuck(0), groups=groups(waiting(0, loss_ms=NOW_MS + HOUR, retention_bytes=1000, loss_by_size=True)))
    root, *rest = problems(of)
    assert root.command.startswith("kafka-transactions.sh")
    assert [(each.command, each.no_command) for each in rest] == [("", "it ends with its cause")] * 2


def test_a_hanging_transaction_is_ended_in_each_of_its_partitions() -> None:
    table = new_table(*(orders(transaction(9, 40, age=7200), partition=each) for each in (0, 1)), coordinator_partitions=0)
    root, other = problems(around(agent(well()), table=table))
    assert (root.kind, other.kind, other.because) == ("transaction_hanging", "transaction_hanging", root.id)
    assert [each.command.partition(" abort ")[2] for each in (root, other)] == [
        "--topic orders --partition 0 --start-offset 40",
        "--topic orders --partition 1 --start-offset 40",
    ]


@each_row(
    "state, live, offered",
    [
        (ProcessState.FREE, True, ("", "broker 1 is down: start it first")),
        (ProcessState.UP, True, ("--topic orders --partition 0 --start-offset 40", "")),
        (ProcessState.FREE, False, ("--topic orders --partition 0 --start-offset 40", "")),
    ],
)
def test_no_command_ends_a_transaction_on_a_broker_without_a_process(state: ProcessState, live: bool, offered: tuple[str, str]) -> None:
    """A copy of log dirs has no process either, and its broker may run elsewhere."""
    table = new_table(orders(transaction(9, 40, age=7200)), coordinator_partitions=0)
    gone = well(process=ProcessStatus(state=state, since_ms=NOW_MS - 9_000, last_ms=NOW_MS - 9_000))
    (found,) = (each for each in problems(around(agent(gone), table=table, live=live)) if each.kind == "transaction_hanging")
    assert (found.command.partition(" abort ")[2], found.no_command) == offered
    assert ("is written only when that is started" in found.what) == (not offered[0])


def crashed(broker: int, **values: Any) -> Circumstances:
    """A broker that has crashed, by the metadata of another one, and what consumer groups make of it."""
    gone = Registered(broker=broker, fenced=True, epoch=5, phase=Phase.DOWN, since_ms=OLD, replicas=True)
    metadata = {"appended_ms": NOW_MS - 500} | {each: values.pop(each) for each in ("appended_ms",) if each in values}
    return around(agent(well(registered=[gone], **metadata)), **values)


def test_what_a_group_loses_by_the_start_of_a_broker_follows_from_that_and_keeps_its_own_remedy_for_the_time_before() -> None:
    due = waiting(0, held=False, lag_records_read_committed=60, loss_start_of=2)
    root, loss = problems(crashed(2, groups=groups(due)))
    assert (root.kind, loss.kind, loss.because) == ("broker_down", "group_will_lose", root.id)
    assert [each.text for each in root.consequences] == ["group ledger in orders-0: loses records after the start of broker 2"]
    assert root.no_command.endswith("start it on its host")
    assert loss.no_command == "its limits are not known"  # else a command that raises them
    elsewhere = problems(crashed(3, groups=groups(due)))
    assert [each.because for each in elsewhere] == ["", ""]


@each_row(
    "quiet_ms, moved",
    [
        (30_000, True),
        (30_001, False),
    ],
)
def test_nobody_has_moved_leaderships_while_no_controller_writes(quiet_ms: int, moved: bool) -> None:
    """Its own agent may be all that is left to see it."""
    (root,) = (each for each in problems(crashed(2, appended_ms=NOW_MS - quiet_ms)) if each.kind == "broker_down")
    assert ("no controller is active that would move its leaderships" not in root.what) == moved


def test_incidents_are_counted_once_by_their_worst_and_ordered_by_what_is_lost_first() -> None:
    late = Group(name="ledger", partitions=[waiting(0, loss_ms=NOW_MS + 3 * HOUR)])
    early = Group(name="audit", partitions=[behind(1, loss_ms=NOW_MS + HOUR)])
    of = around(agent(well()), table=stuck(0), groups=judge_groups(snapshot_of(late, early, now_ms=NOW_MS), NOW_MS))
    every = problems(of)
    assert [each.kind for each in every if not each.because] == ["group_will_lose", "transaction_stuck"]
    assert count(every) == {"critical": 2, "warning": 0, "info": 0}
    assert verdict(of, every).startswith("2 critical problems in ")
    assert {each.worst for each in every if not each.because} == {"critical"}


def lacking(problem: str, *missing: list[int], partitions: int = 1) -> str:
    affected = [
        AffectedPartition(topic="orders", partition=at, problem=problem, leader=-1, in_sync=[1], out_of_sync=each, electable=each)
        for at, each in enumerate(missing)
    ]
    return PartitionCounts(topics=[TopicCounts(topic="orders", partitions=8, **{problem: partitions})], affected=affected).pack()


def away(*brokers: int, phase: Phase, **values: Any) -> Any:
    since_ms = OLD if phase is Phase.DOWN else NOW_MS - 5_000
    registered = [Registered(broker=each, fenced=True, epoch=5, phase=phase, since_ms=since_ms, replicas=True) for each in brokers]
    return well(registered=[Registered(broker=1, fenced=False), *registered], **values)


def down(*brokers: int, **values: Any) -> Any:
    return away(*brokers, phase=Phase.DOWN, **values)


@each_row(
    "status, follows",
    [
        (down(2, counts=lacking("under_replicated", [2])), True),
        (down(2, counts=lacking("under_min_isr", [2])), True),
        (down(2, counts=lacking("offline", [2])), True),
        (down(2, counts=lacking("under_replicated", [3])), False),
        (down(2, counts=lacking("under_replicated", [2, 3])), False),
        (down(2, counts=lacking("under_replicated", [2], [3], partitions=2)), False),
        (down(2, counts=lacking("under_replicated", [2], partitions=2)), False),  # the other is not named
    ],
)
def test_partitions_follow_from_a_broker_only_if_they_lack_it_alone(status: Any, *, follows: bool) -> None:
    every = problems(around(agent(status)))
    (replicas,) = (each for each in every if each.topic == "orders")
    assert bool(replicas.because) == follows


@each_row("phase, kind", [(Phase.STARTING, "broker_starting"), (Phase.STOPPING, "broker_stopped")])
def test_partitions_follow_from_a_broker_that_began_to_start_or_was_stopped_seconds_ago(phase: Phase, kind: str) -> None:
    of = around(agent(away(2, phase=phase, counts=lacking("offline", [2]))))
    assert tree(of) == {kind: ["partition_offline orders-0"]}
    root = problems(of)[0]
    assert (root.severity, root.worst) == ("info", "critical")
    assert tree(around(agent(away(2, phase=phase, counts=lacking("offline", [2, 3]))))) == {"partition_offline orders-0": [], kind: []}


def test_what_partitions_without_a_leader_lack_besides_follows_from_the_same_broker() -> None:
    """Each is named once, as without a leader: none of its replicas is in sync, so it is short of them in every way."""
    left = [
        AffectedPartition(topic="orders", partition=each, problem="offline", leader=-1, in_sync=[], out_of_sync=[2], electable=[2])
        for each in (0, 1)
    ]

    def of(*affected: AffectedPartition, **values: Any) -> Circumstances:
        counts = {"offline": 2, "under_min_isr": 2, "under_replicated": 2} | values
        packed = PartitionCounts(topics=[TopicCounts(topic="orders", partitions=8, **counts)], affected=[*affected]).pack()
        return around(agent(away(2, phase=Phase.STARTING, counts=packed)))

    follow = ["partition_offline orders--1", "under_min_isr orders--1", "under_replicated orders--1"]
    assert tree(of(*left)) == {"broker_starting": follow}
    other = AffectedPartition(topic="orders", partition=2, problem="under_min_isr", leader=1, in_sync=[1], out_of_sync=[3], electable=[1])
    assert tree(of(*left, other, under_min_isr=3, under_replicated=3)) == {"broker_starting": follow[:1], follow[1]: [], follow[2]: []}
    kept = [replace(each, in_sync=[2], out_of_sync=[]) for each in left]
    assert tree(of(*kept, under_min_isr=0, under_replicated=0)) == {"broker_starting": follow[:1]}


def test_the_last_replica_in_sync_lacks_nothing_after_a_clean_stop() -> None:
    left = AffectedPartition(topic="orders", partition=0, problem="offline", leader=-1, in_sync=[], out_of_sync=[1], electable=[1])
    counts = PartitionCounts(topics=[TopicCounts(topic="orders", partitions=8, offline=1)], affected=[left]).pack()
    stopped = [Registered(broker=1, fenced=True, epoch=5, phase=Phase.STOPPING, since_ms=NOW_MS - 5_000, replicas=True)]

    def what(*, clean: bool) -> str:
        of = around(agent(well(registered=stopped, counts=counts, clean=clean)))
        assert tree(of) == {"broker_stopped": ["partition_offline orders-0"]}
        return problems(of)[1].what

    assert what(clean=True).endswith("partition 0, broker 1 must come back so that nothing is lost")
    assert what(clean=False).endswith("it may lack the end of its log if kafka-topics.sh names it as LastKnownElr")


def test_an_agent_is_away_with_its_broker_and_what_cannot_be_seen_with_the_agent() -> None:
    gone = agent(well(), name="a2", up=False)
    of = around(agent(down(2, led=[])), replace(gone, brokers=(2,)))
    assert tree(of) == {"broker_down": ["agent_down"]}
    assert tree(around(agent(down(2)), replace(gone, brokers=(2, 3)))) == {"broker_down": [], "agent_down": []}


def test_replicas_follow_from_the_log_dir_that_was_given_up_if_all_of_them_are_in_it() -> None:
    status = well(counts=lacking("under_replicated", [1]))
    dirs = (log_dir("/data", registered=False), log_dir("/other", checkpoint_ms=NOW_MS))
    assert tree(around(agent(status, log_dirs=dirs), table=new_table(log()))) == {"log_dir_offline": ["under_replicated orders-0"]}
    elsewhere = (log_dir("/other", registered=False), log_dir("/data", checkpoint_ms=NOW_MS))
    assert len(tree(around(agent(status, log_dirs=elsewhere), table=new_table(log())))) == 2


def test_retention_that_future_timestamps_block_follows_from_them() -> None:
    assert tree(CASES["retention_blocked"]()) == {"timestamps_in_future orders-0": ["retention_blocked orders-0"]}


@each_row("kind", CASES)
def test_every_consequence_has_its_root_before_it_and_every_problem_its_own_id(kind: str) -> None:
    every = problems(CASES[kind]())
    assert len({each.id for each in every}) == len(every)
    roots = set()
    for each in every:
        assert not each.because or each.because in roots
        roots |= {each.id} if not each.because else set()


def test_groups_that_wait_as_readers_are_distinguished_from_those_whose_commits_wait() -> None:
    pending = PendingOffset(producer_id=9, offset=41, coordinator=0, since_ms=NOW_MS - 20 * MINUTE)
    of = around(agent(well()), table=stuck(0, offsets=True), groups=groups(behind(5, pending=[pending]), waiting(0)))
    found = held_back_groups(of.groups)
    assert (found.readers(("orders", 0)), found.readers(("orders", 5))) == (["ledger"], [])
    assert found.committers(9, ("__consumer_offsets", 0)) == ["ledger"]
    assert (found.committers(9, ("orders", 0)), found.committers(8, ("__consumer_offsets", 0))) == ([], [])


@each_row("members, gone", [(2, False), (0, True)])
def test_a_producer_is_seen_to_be_gone_if_no_group_that_it_commits_for_has_a_member(members: int, *, gone: bool) -> None:
    pending = PendingOffset(producer_id=9, offset=41, coordinator=0, since_ms=NOW_MS - 20 * MINUTE)
    group = Group(name="ledger", partitions=[behind(5, pending=[pending])], facts={"members": members})
    judged = judge_groups(snapshot_of(group, now_ms=NOW_MS), NOW_MS)
    root = problems(around(agent(well()), table=stuck(0, offsets=True), groups=judged))[0]
    seen = "Its producer is gone, for no group that it commits for has a member (ledger): the command ends it at once"
    assert (seen in root.what) == gone
    assert ("If its producer is gone, and only then, the command ends it at once" in root.what) != gone
    assert root.command == "kafka-transactions.sh --bootstrap-server HOST:PORT forceTerminateTransaction --transactionalId pay"


def late_log() -> Table:
    """Records from offset 14 to 20 were past their retention when they were written, each of them."""
    return new_table(retention.orders(retention.facts((0, 500, 9600), configs=retention.BELOW), **LATE))


LOST_LATE = {"committed": 15, "log_start": 18, "lost_offsets": 3, "lost_records": 3, "next_offset": -1}


def test_a_group_that_loses_what_came_too_late_follows_from_that() -> None:
    of = around(agent(well()), table=late_log(), groups=groups(behind(0, **LOST_LATE)))
    assert tree(of)["arrives_expired orders-0"] == ["group_lost ledger"]
    (effect,) = (each for each in problems(of) if each.because)
    assert effect.command.endswith("--to-earliest --execute"), "the cause's own command brings no record back"
    also = around(agent(well()), table=late_log(), groups=groups(behind(0, **LOST_LATE | {"committed": 13})))
    assert tree(also)["group_lost ledger"] == [], "the first of them was not late"


def test_a_group_that_will_lose_what_came_too_late_follows_from_that() -> None:
    soon = {"loss_ms": NOW_MS - 1, "stopped_since_ms": OLD, "committed": 14, "next_offset": 14, "log_start": 0}
    came = {"next_timestamp_ms": LATE["expired_since_timestamp"], "next_append_ms": LATE["expired_since_ms"]}
    of = around(agent(well()), table=late_log(), groups=groups(behind(0, **soon | came)))
    assert tree(of)["arrives_expired orders-0"] == ["group_will_lose ledger"]
    in_time = around(agent(well()), table=late_log(), groups=groups(behind(0, **soon | came | {"next_timestamp_ms": NOW_MS - 70_000})))
    assert tree(in_time)["arrives_expired orders-0"] == []


def test_a_full_log_dir_is_the_cause_of_all_that_follows_from_it() -> None:
    def of(free: int, *, process: ProcessState = ProcessState.UP, phase: str = Phase.RUNNING, given_up: bool = True) -> Circumstances:
        lacks = AffectedPartition(
            topic="orders", partition=0, problem="under_replicated", leader=2, in_sync=[2], out_of_sync=[1], electable=[2]
        )
        counts = PartitionCounts(topics=[TopicCounts(topic="orders", partitions=1, under_replicated=1)], affected=[lacks])
        registered = [Registered(broker=1, fenced=phase == Phase.DOWN, phase=phase, since_ms=NOW_MS - MINUTE, replicas=True)]
        dirs = (
            log_dir("/data", 1, free=free, capacity=1 << 30, registered=not given_up, checkpoint_ms=NOW_MS),
            log_dir("/metadata", 1, free=0 if phase == Phase.DOWN else 1 << 29, capacity=1 << 30, checkpoint_ms=NOW_MS),
        )
        seen = well(counts=counts.pack(), registered=registered, process=ProcessStatus(state=process))
        return around(agent(seen, log_dirs=dirs), table=new_table(orders(log_dir="/data")))

    given_up = problems(of(0))
    assert tree(of(0)) == {"log_dir_full": ["log_dir_offline", "under_replicated orders-0"]}
    assert given_up[0].summary == "Log dir /data of broker 1 is full"
    assert "it is full, and after such an I/O error" in given_up[1].what
    assert tree(of(1 << 29)) == {"log_dir_offline": ["under_replicated orders-0"]}, "there is room again, and the broker has to be started"
    assert tree(of(1 << 29, given_up=False)).keys() == {"under_replicated orders-0"}
    down = tree(of(0, process=ProcessState.ENDED, phase=Phase.DOWN, given_up=False))
    assert down == {"log_dir_full": ["broker_down", "under_replicated orders-0"]}
    assert "broker_down" in tree(of(1 << 29, process=ProcessState.ENDED, phase=Phase.DOWN, given_up=False)), "its disks have room"
