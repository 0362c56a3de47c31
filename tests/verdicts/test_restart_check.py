"""Whether a broker may be restarted: what each reason, cost and doubt needs, and sets of partitions against a plain reckoning."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from streaming.broker.protocol.cluster_messages import MetadataChange, MetadataChanges, PartitionCounts, Reassignment, TopicCounts
from streaming.broker.protocol.restart_json import SAFE, UNKNOWN, UNSAFE, RestartRow
from streaming.broker.protocol.status_messages import ProcessStatus
from streaming.cluster.verdicts.restart_check import HANGS_MS, QUIET_MS, STANDS_MS, RestartCheck, restart_page
from streaming.common.catalog import packed_epochs
from streaming.common.rows import SEGMENTS
from streaming.errors import UsageError
from streaming.kafka.formats.metadata_partitions import by_unclean
from streaming.rules.broker_process import LOCKS_NOT_SEEN, ProcessState
from streaming.rules.limits import KAFKA_3_7
from tests.view.reported import Facts
from tests.view.rows import new_table
from tests.worlds.hosts import log_dir
from tests.worlds.problems import MINUTE, NOW_MS, READING, agent, around, group
from tests.worlds.restarts import BROKERS, NEW, check, cluster, registered, replicas
from tests.worlds.transactions import coordinator


def codes(row: RestartRow) -> list[str]:
    return [each.code for each in row.reasons]


def test_where_nothing_happens_it_is_safe_and_says_who_leads_instead() -> None:
    row = check(replicas("t", BROKERS, least=2)).row(1)
    assert (row.verdict, row.reasons, row.doubts, row.behind) == (SAFE, [], [], [])
    assert [(each.code, each.what) for each in row.costs] == [("leaders", "another broker leads 1 partition: t-0")]


@pytest.mark.parametrize(
    ("partition", "found"),
    [
        ({"isr": (1,)}, ["offline"]),
        ({"isr": (1,), "of": (1,)}, ["single_replica"]),
        ({"isr": (1,), "eligible": (2,)}, []),
        ({"isr": (1, 2), "least": 2}, ["under_min_isr"]),
        ({"isr": (1, 2), "least": 1}, []),
        ({"isr": BROKERS, "least": 3}, ["under_min_isr"]),
        ({"isr": BROKERS, "least": 2}, []),
        ({"isr": (1, 2), "of": (1, 2), "least": 3}, ["under_min_isr"]),
        ({"isr": (2, 3), "leader": 2, "least": 2}, []),
        ({"isr": (1, 2), "leader": -1}, []),
    ],
)
def test_partitions_without_another_replica_or_with_too_few_are_reasons(partition: dict[str, Any], found: list[str]) -> None:
    assert codes(check(replicas("t", **partition)).row(1)) == found


def test_what_is_accepted_costs_and_is_no_reason() -> None:
    found = check(replicas("one", (1,), of=(1,)), replicas("t", (1, 2), least=2))
    assert codes(found.row(1)) == ["under_min_isr", "single_replica"]
    assert found.verdict_of(1) == (UNSAFE, "under_min_isr")
    first = replace(found, accepted=frozenset({"single_replica"}))
    assert (codes(first.row(1)), first.verdict_of(1)) == (["under_min_isr"], (UNSAFE, "under_min_isr"))
    both = replace(found, accepted=frozenset({"single_replica", "under_min_isr"}))
    row = both.row(1)
    assert (row.verdict, row.reasons, both.verdict_of(1)) == (SAFE, [], (SAFE, ""))
    assert [(each.code, each.partitions) for each in row.costs[:2]] == [("under_min_isr", ["t-0"]), ("single_replica", ["one-0"])]


def test_what_is_offline_already_is_told_besides() -> None:
    row = check(replicas("gone", (3,), leader=-1), replicas("t", BROKERS)).row(1)
    assert row.verdict == SAFE
    assert "1 partition is offline already: gone-0" in [each.what for each in row.costs]


def test_a_log_dir_of_a_broker_that_is_not_seen_is_named_as_one() -> None:
    row = check(replicas("t", BROKERS), of_broker={"log_dirs": ["a", "b"]}).row(1)
    assert (row.verdict, row.doubts) == (UNKNOWN, ["some log dirs of brokers 1, 2, 3 are not seen"])


def test_a_replica_on_a_broker_that_is_down_does_not_count() -> None:
    row = check(replicas("t", (1, 2)), replicas("u", (1,), eligible=(2,)), down=(2,)).row(1)
    assert [(each.code, each.partitions) for each in row.reasons] == [("offline", ["t-0", "u-0"])]


@pytest.mark.parametrize(
    ("ends", "seen_ms", "found", "cost"),
    [
        ({2: 90, 3: 100}, {}, [], True),
        ({2: 90, 3: 100}, {1: NOW_MS, 2: NOW_MS - STANDS_MS}, [], True),
        ({2: 90, 3: 100}, {1: NOW_MS, 2: NOW_MS - STANDS_MS - 1}, ["not_replicated"], False),
        ({2: 90, 3: 100}, {1: NOW_MS - STANDS_MS - 1, 2: NOW_MS - STANDS_MS - 1}, ["not_replicated"], False),
        ({2: 100, 3: 90}, {3: 0}, [], False),
        ({}, dict.fromkeys(BROKERS, NOW_MS - STANDS_MS - 1), [], False),
    ],
)
def test_what_the_next_leader_lacks_is_lost_if_it_has_lacked_it_for_long(
    ends: dict[int, int], seen_ms: dict[int, int], found: list[str], cost: bool
) -> None:
    row = check(replicas("t", BROKERS, ends=ends, seen_ms=seen_ms)).row(1)
    assert codes(row) == found
    assert [each.what for each in row.costs if each.code == "in_flight"] == (
        ["of 1 partition up to 10 records were just being copied: with acks=0 or 1 a restart may lose such ones: t-0"] if cost else []
    )


def test_the_next_leader_is_the_first_in_the_order_of_replicas_and_an_eligible_one_only_where_no_other_is_in_sync() -> None:
    late = {2: NOW_MS - MINUTE, 3: NOW_MS - MINUTE}
    by_order = check(replicas("t", BROKERS, of=(1, 3, 2), ends={3: 40}, seen_ms=late)).row(1)
    assert by_order.reasons[0].what.startswith("1 partition would lose up to 60 records")
    eligible = check(replicas("t", (1, 3), of=(1, 2, 3), eligible=(2,), ends={2: 10, 3: 70}, seen_ms=late)).row(1)
    assert eligible.reasons[0].what.startswith("1 partition would lose up to 30 records")


def test_brokers_and_partitions_that_nobody_sees_make_it_unknown_and_never_safe() -> None:
    row = check(replicas("t", BROKERS, on=(1,)), away=(2, 3)).row(1)
    assert (row.verdict, row.doubts) == (
        UNKNOWN,
        ["the log dirs of brokers 2, 3 are not seen", "what the next leader of 1 partition has copied is not seen: t-0"],
    )
    unseen = PartitionCounts([TopicCounts(topic="t", partitions=3)], []).pack()
    assert check(replicas("t", BROKERS), of_broker={"counts": unseen}).row(1).doubts == ["of 2 partitions no replica is seen: t-1, t-2"]


@pytest.mark.parametrize("old", [1, 2])
@pytest.mark.parametrize("lags", [{}, {"a1": (5 << 20, 130.0), "a2": (5 << 20, 130.0)}])
def test_what_the_next_leader_lacks_is_not_told_by_an_end_that_is_old(old: int, lags: dict[str, tuple[int, float]]) -> None:
    """The follower copies on while nobody looks at its disk, and the leader is written to."""
    table, agents = cluster(replicas("t", BROKERS, ends={2: 90}, seen_ms={2: NOW_MS - MINUTE}))
    agents = [each if lags or old not in each.brokers else replace(each, up=False) for each in agents]
    row = RestartCheck(circumstances=around(*agents, table=table, lags=lags), limits_of=table.limiter.now()).row(1)
    assert (row.verdict, codes(row)) == (UNKNOWN, [])
    assert "what the next leader of 1 partition has copied is not seen: t-0" in row.doubts
    assert "in_flight" not in [each.code for each in row.costs]


def test_what_a_follower_lacks_of_what_the_leader_had_a_moment_ago_stands() -> None:
    rows = [*replicas("t", BROKERS, ends={2: 90}), *replicas("u", BROKERS, ends={2: 100})]
    first = check(rows)
    assert first.ends() == {("t", 0): 100}
    assert codes(replace(first, before={("t", 0): 90}).row(1)) == []
    assert codes(replace(first, before={("t", 0): 91}).row(1)) == ["not_replicated"]


def test_a_broker_whose_metadata_log_does_not_grow_with_the_others_hangs_and_does_not_count() -> None:
    def hanging(ms: int) -> RestartCheck:
        rows = replicas("t", (1, 2), least=1)
        table, agents = cluster(rows)
        late = replace(agents[1], broker_statuses=(replace(agents[1].broker_statuses[0], appended_ms=NOW_MS - 500 - ms),))
        return RestartCheck(circumstances=around(agents[0], late, agents[2], table=table), limits_of=table.limiter.now())

    assert codes(hanging(HANGS_MS).row(1)) == []
    assert codes(hanging(HANGS_MS + 1).row(1)) == ["offline"]
    assert not hanging(HANGS_MS + 1).row(2).running


def test_records_that_only_a_replica_that_hangs_would_lead_without_are_lost() -> None:
    """The controller takes it for alive for some seconds, and elects it."""
    rows = replicas("t", BROKERS, ends={2: 90}, seen_ms={2: NOW_MS - MINUTE})
    table, agents = cluster(rows)
    late = replace(agents[1], broker_statuses=(replace(agents[1].broker_statuses[0], appended_ms=NOW_MS - 9_000),))
    of = RestartCheck(circumstances=around(agents[0], late, agents[2], table=table), limits_of=table.limiter.now())
    assert codes(of.row(1)) == ["not_replicated"]


@pytest.mark.parametrize(
    ("given", "doubt"),
    [
        ({"start": READING}, "the job is still reading what is on the disks"),
        ({"stale": True}, "no agent has answered lately"),
        ({"lags": {"a2": (5 << 20, 130.0)}}, "what is known of broker 2 is old"),
        (
            {"live": False, "of_broker": {"appended_ms": NOW_MS - QUIET_MS - 1}},
            "no metadata log has grown for 10s: there is no active controller, or these are copies",
        ),
        (
            {"of_broker": {"appended_ms": -1}},
            "whether a controller is active, and whether a broker hangs, is not known: the metadata log does not grow while nothing"
            " changes (metadata.max.idle.interval.ms)",
        ),
        (
            {"of_broker": {"process": ProcessStatus(state=ProcessState.UNKNOWN, why="changed lately", free=["x"])}},
            "whether broker 1, 2, 3 runs is not known: nobody holds the locks of its log dirs, and it wrote a moment ago. If broker 1 has "
            "ended, start it: what speaks against a restart holds while it runs",
        ),
        ({"of_broker": {"readable": False}}, "the log dirs of brokers 1, 2, 3 are not seen"),
        ({"of_broker": {"counts": ""}}, "no metadata log can be read"),
    ],
)
def test_what_is_not_known_or_old_is_said(given: dict[str, Any], doubt: str) -> None:
    assert doubt in check(replicas("t", BROKERS), **given).row(1).doubts
    assert check(replicas("t", BROKERS), **given).verdict_of(1) == (UNKNOWN, "")


def test_where_min_isr_is_not_known_and_counts_it_is_doubted() -> None:
    facts = Facts(replicas=(1, 2), isr=(1, 2), leader_metadata_version=NEW, configs="{}").encode()
    rows = [row | {"facts": facts} for row in replicas("t", (1, 2), of=(1, 2))]
    told = "min.insync.replicas of 1 partition is not known; --server-properties names the files that have it: t-0"
    assert check(rows).row(1).doubts == [told]
    assert check(rows).row(3).doubts == []


def test_open_transactions_and_copies_between_log_dirs_cost() -> None:
    states = ("Ongoing", "Ongoing", "Empty")
    entries = [{"transactional_id": f"t{at}", "producer_id": at, "state": state} for at, state in enumerate(states)]
    packed = {"coordinator": coordinator(*entries)["coordinator"]}
    of = check([row | packed for row in replicas("__transaction_state", BROKERS)])
    assert "another broker coordinates 2 open transactions" in [each.what for each in of.row(1).costs]
    assert [each.code for each in of.row(2).costs] == []
    follower = [row | packed for row in replicas("__transaction_state", BROKERS, leader=3, on=(1,))]
    led = [row | {"partition": 1} for row in replicas("__transaction_state", BROKERS)]
    assert [each.code for each in check(follower, led, away=(2, 3)).row(1).costs] == ["leaders"], "of a log that it only follows"


def test_a_reason_counts_more_than_a_doubt() -> None:
    row = check(replicas("t", (1,)), away=(3,)).row(1)
    assert (row.verdict, bool(row.doubts)) == (UNSAFE, True)


def test_two_clusters_at_once_are_doubted() -> None:
    one = check(replicas("t", BROKERS))
    agents = [*one.circumstances.agents, agent(name="other", cluster_id="another")]
    both = RestartCheck(circumstances=around(*agents, table=new_table(*replicas("t", BROKERS))), limits_of=one.limits_of)
    assert "the log dirs are of 2 clusters" in both.row(1).doubts


def test_no_controller_or_a_quorum_without_a_majority_is_a_reason() -> None:
    quiet = check(replicas("t", BROKERS), of_broker={"appended_ms": NOW_MS - MINUTE}).row(1)
    assert codes(quiet) == ["no_controller"]
    voters = {"voters": [1, 2, 3]}
    assert codes(check(replicas("t", BROKERS), of_broker=voters).row(1)) == []
    lost = check(replicas("t", BROKERS), of_broker=voters, down=(3,), away=(3,)).row(1)
    assert [each.what for each in lost.reasons] == ["it is one of 3 voters of the quorum, 1 is down, and the rest is no majority"]
    assert codes(check(replicas("t", BROKERS), of_broker={"voters": [1, 11, 12]}).row(1)) == []
    dedicated = check(replicas("t", BROKERS), of_broker={"voters": [1, 11, 12]}).row(1)
    assert dedicated.doubts == ["whether controller 11, 12 is up is not seen, and the quorum hangs on it"]
    assert check(replicas("t", BROKERS), of_broker={"voters": [11, 12, 13]}).row(1).verdict == SAFE
    alone = check(replicas("t", (2,), of=(2,), leader=2), of_broker={"voters": [1], "controller": 1}).row(1)
    assert ([each.what for each in alone.reasons], alone.costs) == (["it is the only controller"], [])


def test_what_goes_offline_gets_no_other_leader_or_coordinator() -> None:
    row = check(replicas("__consumer_offsets", (1,)), replicas("t", (1,)), groups=group()).row(1)
    assert (codes(row), row.costs) == (["offline"], [])
    assert [each.code for each in check(replicas("__consumer_offsets", (1, 2))).row(1).costs] == ["leaders"]
    row = check(replicas("__consumer_offsets", (1, 2)), groups=group()).row(1)
    assert [each.what for each in row.costs] == [
        "another broker leads 1 partition: __consumer_offsets-0",
        "another broker coordinates 1 consumer group",
    ]


def test_what_is_due_and_unread_is_told_before_a_start_deletes_it() -> None:
    def told(broker: int, running: bool, **values: Any) -> list[str]:
        led = [row | {"partition": 3} for row in replicas("orders", (1, 2))]
        of = check(led, groups=group(**values), **({} if running else {"down": (broker,)}))
        return [each.what for each in of.row(broker).costs if each.code == "unread_due"]

    due = "deletes up to 9 records that group billing has not read: orders-3"
    assert told(1, True, loss_ms=NOW_MS - 1) == [f"the next check, at the latest 30 seconds after a start, {due}"]
    assert told(1, True, loss_ms=NOW_MS + 1) == []
    assert told(2, True, loss_ms=NOW_MS - 1) == [], "another broker leads there"
    assert told(1, False, loss_start_of=1) == [f"its first check, 30 seconds after the start, {due}"]
    assert told(2, False, loss_start_of=1) == []


def test_a_log_dir_that_cannot_be_read_is_a_reason() -> None:
    dirs = {1: (log_dir(checkpoint_ms=NOW_MS), log_dir("/d1", up=False, problem="Input/output error"))}
    row = check(replicas("t", BROKERS), log_dirs=dirs).row(1)
    assert [each.what for each in row.reasons] == ["log dir /d1 cannot be read (Input/output error): a start may do without it, or fail"]


def test_a_stopped_broker_may_be_started_unless_it_would_lead_with_less_than_another_has() -> None:
    row = check(replicas("t", (2, 3), leader=2, ends={1: 40}), down=(1,)).row(1)
    assert (row.verdict, row.running, [each.what for each in row.behind]) == (
        SAFE,
        False,
        ["1 replica not in sync: t-0", "another broker leads 1 partition, and this one is the preferred leader: t-0"],
    )
    wiped = check(replicas("t", (1,), leader=-1, ends={1: 0}), down=(1,)).row(1)
    assert [each.what for each in wiped.reasons] == ["it would lead 1 partition, and lacks 100 records that another replica has: t-0"]
    assert check(replicas("t", (1,), leader=-1, ends={2: 90, 3: 90}), down=(1,)).row(1).verdict == SAFE


@pytest.mark.parametrize(
    ("own", "leader", "cut"),
    [
        (({0: 0}, {}), ({0: 0, 2: 70}, {2: by_unclean(NOW_MS)}), 30),
        (({0: 0}, {}), ({0: 0}, {2: by_unclean(NOW_MS)}), 20),  # nothing was written since, so its end counts
        (({0: 0}, {}), ({0: 0, 1: 60, 2: 70}, {2: by_unclean(NOW_MS)}), 40),
        (({0: 0}, {}), ({0: 0, 2: 70}, {2: NOW_MS}), 0),  # what no replica in sync had was not acknowledged by all
        (({0: 0, 2: 70}, {}), ({0: 0, 2: 70}, {2: by_unclean(NOW_MS)}), 0),  # it was back since
        (({0: 0}, {}), ({0: 0, 2: 100}, {2: by_unclean(NOW_MS)}), 0),
        (({}, {}), ({0: 0, 2: 70}, {2: by_unclean(NOW_MS)}), 0),
    ],
)
def test_an_old_leader_is_not_started_before_what_its_start_cuts_off_is_copied(
    own: tuple[dict[int, int], dict[int, int]], leader: tuple[dict[int, int], dict[int, int]], cut: int
) -> None:
    epochs = {1: packed_epochs(*own), 2: packed_epochs(*leader)}
    rows = [
        row | {"facts": Facts(replicas=(1, 2), isr=(2,), leader_metadata_version=NEW, epochs=epochs[row["broker"]]).encode()}
        for row in replicas("t", (2,), of=(1, 2), leader=2, ends={2: max(80, *leader[0].values())})
    ]
    found = check(rows, down=(1,)).row(1)
    told = (
        f"it cuts off up to {cut} records of 1 partition, which the leader lacks since an unclean election: first copy its directory: t-0"
    )
    assert [each.what for each in found.reasons] == ([told] if cut else [])
    assert codes(check(rows).row(1)) == [], "it serves, and has cut that off"


@pytest.mark.parametrize(
    ("name", "now", "offset", "leader", "doubted"),
    [
        ("retention.ms", "60000", 100, -1, True),
        ("retention.bytes", "1000", 100, -1, True),
        ("retention.ms", "60000", 99, -1, False),  # it knows that: what is due is told
        ("retention.ms", "900000", 100, -1, False),  # it keeps more
        ("segment.bytes", "1000", 100, -1, False),
        ("retention.ms", "60000", 100, 2, False),  # another one leads, and has deleted what was due
    ],
)
def test_what_a_start_deletes_by_a_limit_lowered_meanwhile_is_not_known(
    name: str, now: str, offset: int, leader: int, doubted: bool
) -> None:
    """Its own copy of the metadata log, by which its limits are read, ends before the change."""
    change = MetadataChange(kind="config_changed", topic="t", name=name, before="600000", now=now, offset=offset, at_ms=NOW_MS - MINUTE)
    table, agents = cluster(replicas("t", (1, 2) if leader > 0 else (1,), of=(1, 2), leader=leader), down=(1,))
    told = {"metadata_offset": 200, "changes": MetadataChanges([change], 0, 0).pack()}
    statuses = {1: {"metadata_offset": 100}, 2: told, 3: told}
    agents = [replace(each, broker_statuses=(replace(each.broker_statuses[0], **statuses[each.brokers[0]]),)) for each in agents]
    row = RestartCheck(circumstances=around(*agents, table=table), limits_of=table.limiter.now()).row(1)
    doubt = "what its first check deletes is not known: retention of 1 topic was lowered while it was away: t"
    assert (row.verdict, row.doubts) == ((UNKNOWN, [doubt]) if doubted else (SAFE, []))


def test_how_much_a_replica_is_behind_is_told_in_bytes() -> None:
    segments = np.array([(0, 600), (60, 400)], np.dtype([("base_offset", "<i8"), ("size", "<i8")]))
    listed = np.zeros(2, SEGMENTS)
    listed["base_offset"], listed["size"] = segments["base_offset"], segments["size"]
    facts = Facts(replicas=BROKERS, isr=(1, 2), segments=listed).encode()
    sizes = {"listed_bytes": 1000, "last_segment": 60, "last_bytes": 400, "active_segment": 60, "active_position": 400}
    rows = [row | {"facts": facts} | sizes for row in replicas("t", (1, 2), ends={3: 80})]
    assert [each.what for each in check(rows).row(3).behind] == ["1 replica not in sync (200 B behind): t-0"]
    unseen = replicas("u", (1, 2), on=(3,))
    assert [each.what for each in check(rows, unseen).row(3).behind] == ["2 replicas not in sync (at least 200 B behind): t-0, u-0"]
    whole = [row | {"facts": facts} | sizes for row in replicas("t", (1, 2))]
    assert [each.what for each in check(whole, unseen).row(3).behind] == ["2 replicas not in sync: t-0, u-0"]


def test_moves_and_what_a_start_after_a_kill_reads_cost() -> None:
    moving = [Reassignment(topic="t", partition=0, leader=2, adding=[1], removing=[3])]
    dirs = {1: (log_dir(checkpoint_ms=NOW_MS, recovery_logs=4, recovery_bytes=1 << 20, recovery_rate=float(1 << 14)),)}
    row = check(replicas("t", BROKERS, leader=2), moving=moving, log_dirs=dirs, of_broker={"controller": 1}).row(1)
    assert [each.what for each in row.costs] == [
        "it is the active controller: another one is elected",
        "until it is back, 1 reassignment cannot end: t-0",
        "after a kill its start reads 1.0 MiB, for about 1m 4s; after an orderly stop nothing",
    ]


def test_the_order_of_all_has_the_active_controller_last_and_says_what_to_wait_for() -> None:
    page = restart_page(check(replicas("t", BROKERS), of_broker={"controller": 1}))
    assert (page.order, page.next_step) == (
        [2, 3, 1],
        "Restart broker 2 now, then wait until this check says the same of the next one.",
    )
    page = restart_page(check(replicas("t", (1, 2), least=2)))
    assert (page.order, page.next_step) == ([3], "Restart broker 3 now, then wait until this check says the same of the next one.")
    page = restart_page(check(replicas("t", (1, 2), least=2), replicas("u", (3,), leader=3)))
    assert (page.order, page.next_step) == ([], "Restart none now: wait until brokers 1, 2, 3 have caught up.")


def test_the_one_that_has_run_longest_is_first_and_one_that_is_stopped_is_started_before() -> None:
    lately = [replace(each, since_ms=NOW_MS - 5 if each.broker == 2 else each.since_ms) for each in registered()]
    assert restart_page(check(replicas("t", BROKERS), of_broker={"registered": lately, "controller": 1})).order == [3, 2, 1]
    page = restart_page(check(replicas("t", (1, 3)), down=(2,)))
    assert page.next_step == "Restart none now: first start broker 2."


def test_where_locks_are_not_seen_a_process_that_writes_counts() -> None:
    unseen = ProcessStatus(state=ProcessState.UNKNOWN, why=LOCKS_NOT_SEEN, free=["x"])
    assert check(replicas("t", BROKERS), of_broker={"process": unseen}).row(1).verdict == SAFE


def test_one_that_hangs_holds_its_locks() -> None:
    def of(process: ProcessStatus) -> RestartCheck:
        table, agents = cluster(replicas("t", BROKERS))
        own = replace(agents[1].broker_statuses[0], appended_ms=NOW_MS - 9_000, process=process)
        late = replace(agents[1], broker_statuses=(own,))
        return RestartCheck(circumstances=around(agents[0], late, agents[2], table=table), limits_of=table.limiter.now())

    assert [(row.running, row.hangs) for row in (of(ProcessStatus(state=ProcessState.UP)).row(2),)] == [(False, True)]
    ended = ProcessStatus(state=ProcessState.UNKNOWN, why="changed lately", free=["x"])
    assert [(row.running, row.hangs) for row in (of(ended).row(2),)] == [(False, False)]


def test_a_broker_that_is_not_registered_is_refused_with_those_that_are() -> None:
    with pytest.raises(UsageError, match=r"there is no broker '9': registered are 1, 2, 3"):
        restart_page(check(replicas("t", BROKERS)), "9")


@st.composite
def partitions(draw: st.DrawFn) -> dict[str, Any]:
    of = tuple(draw(st.permutations(BROKERS)))[: draw(st.integers(1, 3))]
    isr = tuple(each for each in of if draw(st.booleans()))
    eligible = tuple(each for each in of if each not in isr and draw(st.booleans()))
    leader = draw(st.sampled_from([*isr, -1]))
    return {
        "of": of,
        "isr": isr,
        "eligible": eligible,
        "leader": leader,
        "least": draw(st.integers(1, 3)),
        "version": draw(st.sampled_from([NEW - 1, NEW])),
    }


@example([{"of": BROKERS, "isr": (1, 2), "eligible": (3,), "leader": 1, "least": 2, "version": NEW}], (2,))
@given(st.lists(partitions(), min_size=1, max_size=6), st.sampled_from([(), (2,), (3,)]))
def test_the_sets_of_partitions_are_those_of_a_plain_reckoning(every: list[dict[str, Any]], down: tuple[int, ...]) -> None:
    found = check(*(replicas(f"t{number}", **each) for number, each in enumerate(every)), down=down).row(1)
    offline, alone, refused = [], [], []
    for number, each in enumerate(every):
        up = {*each["isr"]} - {*down}
        others = (up | {*each["eligible"]}) - {*down} - {1}
        least = each["least"] if each["version"] < KAFKA_3_7 else min(each["least"], len(each["of"]))
        if each["leader"] < 0 or 1 not in {*each["isr"], *each["eligible"]}:
            continue
        if not others:
            (alone if len(each["of"]) == 1 else offline).append(f"t{number}-0")
        elif 1 in each["isr"] and max(len(up - {1}), 1) < least:  # an eligible one that is elected is in sync alone
            refused += [f"t{number}-0"]
    told = {each.code: each.partitions for each in found.reasons}
    assert [told.get(code, []) for code in ("offline", "single_replica", "under_min_isr")] == [offline, alone, refused]
