"""What is wrong at one moment: each kind where it should be found, and nothing where all is well."""

import re
from dataclasses import replace
from typing import Any

import pytest

from streaming.broker.protocol.cluster_messages import Led, Registered
from streaming.broker.protocol.status_json import CRITICAL, SEVERITIES, WARNING
from streaming.broker.protocol.status_messages import BlockedFile, UnreadableLog, UnreadableLogs
from streaming.cluster.verdicts.circumstances import Circumstances
from streaming.cluster.verdicts.commands import Commands
from streaming.cluster.verdicts.first_lines import freshness, not_current, unknown, verdict
from streaming.cluster.verdicts.group_judge import judge_groups
from streaming.cluster.verdicts.incidents import problems
from streaming.cluster.verdicts.kinds import KINDS
from streaming.cluster.view.family import Export
from streaming.cluster.view.table import Replica
from streaming.kafka.formats.metadata_records import Phase
from tests.tables import each_row
from tests.view.rows import log, new_table
from tests.worlds import transactions
from tests.worlds.hosts import broker, log_dir
from tests.worlds.problems import (
    CASES,
    COMPACT,
    HOUR,
    MINUTE,
    NOW_MS,
    OLD,
    READING,
    abandoned,
    agent,
    around,
    counted,
    group,
    kinds_of,
    only,
    scrub,
    well,
)
from tests.worlds.retention import BELOW, facts, orders


@pytest.mark.parametrize(("wrote", "found"), [(MINUTE, ["log_dir_offline"]), (MINUTE + 1, [])])
def test_a_log_dir_without_a_checkpoint_is_offline_only_if_its_broker_writes_elsewhere(wrote: int, found: list[str]) -> None:
    dirs = (log_dir(checkpoint_ms=NOW_MS - HOUR), log_dir("/elsewhere", checkpoint_ms=NOW_MS - wrote))
    of = around(agent(well(appended_ms=NOW_MS - HOUR), log_dirs=dirs))
    assert sorted({kind for kind in kinds_of(of) if kind == "log_dir_offline"}) == found


@pytest.mark.parametrize(("high_watermark", "found"), [(49, []), (50, ["compaction_stalled"])])
def test_what_may_not_be_compacted_yet_does_not_make_a_log_uncompacted(high_watermark: int, found: list[str]) -> None:
    listed = facts((0, 500, 14_400), (50, 300, 10), configs=COMPACT, cleaner_checkpoint=0, replicas=(1, 2), isr=(1, 2))
    of = around(agent(well()), table=new_table(orders(listed, high_watermark=high_watermark)))
    assert [kind for kind in kinds_of(of) if kind == "compaction_stalled"] == found


def test_where_all_is_well_nothing_is_found() -> None:
    of = around(agent(well(), log_dirs=(log_dir(checkpoint_ms=NOW_MS - 3000),)))
    assert problems(of) == ()
    assert verdict(of, ()) == "Nothing is wrong: 1 partition of 1 broker"
    assert freshness(of, NOW_MS - 2000) == "Everything up to 2023-11-14T22:13:18Z (2s ago) is counted, of 1 agent"
    assert list(unknown(of, ())) == []


DEAD = {"members": 0, "state": "Empty", "epoch": 4, "state_ms": NOW_MS - MINUTE}


@each_row(
    ("name", "facts", "sentence"),
    [
        ("billing", DEAD, "Nothing is critical: 1 partition of 1 broker; 1 group has no members and 9 records left to read"),
        ("console-consumer-17", DEAD, "Nothing is wrong: 1 partition of 1 broker"),
        ("billing", DEAD | {"members": 1, "state": "Stable"}, "Nothing is wrong: 1 partition of 1 broker"),
    ],
)
def test_a_good_day_begins_with_the_groups_that_nobody_reads_for(name: str, facts: dict[str, Any], sentence: str) -> None:
    of = around(agent(well(), log_dirs=(log_dir(checkpoint_ms=NOW_MS - 3000),)), groups=group(name=name, facts=facts))
    assert verdict(of, problems(of)) == sentence


ROLLED = '{"static":{},"topic":{"segment.ms":"3600000","retention.ms":"999999999"}}'


@each_row("kind", CASES)
def test_each_kind_is_found_and_says_what_and_where(kind: str) -> None:
    of = CASES[kind]()
    found = only(of, kind)
    (declared,) = (each for each in KINDS if each.name == kind)
    assert (found.severity, found.runbook) == (declared.severity, declared.alert)
    assert "\n" not in found.what
    assert not found.what.endswith(".")
    assert verdict(of, problems(of))
    assert found.command == "" or found.no_command == ""


def test_problems_are_in_the_order_of_severity_and_then_of_age() -> None:
    table = new_table(log(), log("b", corrupt_batches=1, leader=1, leader_epoch=5))
    of = around(
        agent(well(), scrubs=(scrub(corrupt=1),)), agent(name="a2", up=False), table=table, groups=group(lost_records=1, lost_offsets=1)
    )
    found = problems(of)
    assert [each.severity for each in found] == sorted((each.severity for each in found), key=SEVERITIES.index)
    assert len({each.severity for each in found}) == 2
    assert verdict(of, found) == f"2 critical problems and 2 warnings in 2 partitions of 1 broker. {found[0].summary}"
    assert found[0].what.startswith(found[0].summary)


@each_row(
    ("lately", "words", "due_ms"),
    [
        (
            {"lost_lately_records": 140, "lost_lately_offsets": 0, "lost_lately_ms": NOW_MS - 4_000},
            "Group billing is losing records of topic orders: 140 so far, the last at 2023-11-14T22:13:16Z (4s ago); partition 3, ",
            NOW_MS,
        ),
        (
            {"lost_lately_records": 140, "lost_lately_offsets": 2, "lost_lately_ms": NOW_MS - 600_000},
            "Group billing is losing records of topic orders: up to 142 so far, ",
            NOW_MS,
        ),
        (
            {"lost_lately_records": 140, "lost_lately_ms": NOW_MS - 600_001},
            "Group billing will lose records of topic orders: partition 3, its oldest",
            NOW_MS + MINUTE,
        ),
    ],
)
def test_a_loss_that_goes_on_is_a_loss_with_its_number(lately: dict[str, int], words: str, due_ms: int) -> None:
    of = around(agent(well()), groups=group(loss_ms=NOW_MS + MINUTE, stopped_since_ms=OLD, **lately))
    found = only(of, "group_will_lose")
    assert found.what.startswith(words)
    assert found.deadline_ms == due_ms


def test_a_transaction_that_holds_a_group_up_for_a_moment_is_no_problem() -> None:
    held = group(held=True, lag_records_read_committed=0, next_append_ms=NOW_MS - MINUTE)
    assert kinds_of(around(agent(well()), groups=held)) == []


def test_a_consumer_on_a_console_may_stop() -> None:
    assert kinds_of(around(agent(well()), groups=group(name="console-consumer-123", stopped_since_ms=OLD))) == []


def test_of_a_broker_whose_numbers_are_old_nothing_is_reported_that_depends_on_time() -> None:
    table = new_table(orders(facts((0, 500, 9600), (50, 300, 10), configs=BELOW)))
    assert kinds_of(around(agent(up=False), table=table)) == ["agent_down"]
    assert kinds_of(around(agent(well(), catching_up=True), table=table)) == []


def test_what_hangs_stays_a_problem_as_of_when_it_was_seen_while_its_agent_is_away() -> None:
    table = new_table(transactions.orders(transactions.transaction(7, 40, age=2000)), coordinator_partitions=0)
    assert only(around(agent(well()), table=table), "transaction_hanging").what.count("as of") == 0
    table.set_reading({})
    of = around(agent(up=False), table=table)
    what = only(of, "transaction_hanging").what
    assert re.search(r", as of 2023-11-14T22:13:20Z[^:]*: the logs that show whether it has ended are not read now$", what)
    unseen = new_table(transactions.orders(transactions.transaction(7, 40, age=2000)), coordinator_partitions=0)
    unseen.set_reading({})
    assert kinds_of(around(agent(up=False), table=unseen)) == ["agent_down"]


def test_an_agent_that_answers_and_is_not_used_is_distinguished_from_one_that_is_silent() -> None:
    silent, *others = (around(agent(up=False, problems=(each,))) for each in ("silent", "other_cluster", "busy"))
    assert only(silent, "agent_down").what.startswith("segtail's agent a1 does not answer: ")
    for other in others:
        assert only(other, "agent_down").what.startswith("segtail's agent a1 answers but is not used: ")


def test_an_agent_that_went_with_its_broker_is_not_missed_twice() -> None:
    stopping = Registered(broker=2, fenced=True, epoch=5, phase=Phase.STOPPING, since_ms=NOW_MS - HOUR)
    of = around(agent(well(registered=[stopping])), agent(broker(2), name="a2", up=False))
    assert kinds_of(of) == ["broker_stopped"]


def test_log_dirs_of_brokers_that_are_stopped_have_no_problem_because_nothing_is_written() -> None:
    of = around(agent(well(appended_ms=OLD), log_dirs=(log_dir(checkpoint_ms=OLD),)), live=False)
    assert problems(of) == ()
    down = "no broker has written there for 10m: it is down, or this is a copy"
    assert freshness(of, NOW_MS) == f"Read from log dirs as of 2023-11-14T22:13:20Z; {down}"
    runs = around(agent(well(), log_dirs=(log_dir(checkpoint_ms=NOW_MS - MINUTE),)), live=False)
    assert freshness(runs, NOW_MS) == "Read from log dirs as of 2023-11-14T22:13:20Z"


def test_topics_that_are_not_exported_are_not_named() -> None:
    export = Export(exclude=re.compile("orders"))
    of = around(
        agent(
            well(counts=counted(offline=1)),
            unreadable=(UnreadableLogs(1, 1),),
            unreadable_logs=(UnreadableLog(1, "orders", 0, "", "/d/orders-0", "x"),),
        ),
        table=new_table(log(corrupt_batches=1), export=export),
        export=export,
    )
    assert "orders" not in " ".join(each.what for each in problems(of))


def test_what_the_scrub_finds_counts_for_the_log_that_has_it() -> None:
    table = new_table(log(leader=1, leader_epoch=5))
    table.set_scrubbed({Replica(1, "orders", 0): 3})
    assert only(around(agent(well()), table=table), "log_corrupt").command == "segtail dump --verify /data/orders-0"


UNCOUNTED = {"lag_offsets": 700, "lag_records_read_committed": -1, "unknown": "filling"}


@each_row(
    "others, left",
    [
        ([{}], "18 records still to be read there."),
        ([UNCOUNTED], "At least 9 records still to be read there; 1 partition is not counted."),
        ([UNCOUNTED, UNCOUNTED], "At least 9 records still to be read there; 2 partitions are not counted."),
    ],
)
def test_what_is_left_of_a_problem_is_a_sum_of_records_alone(others: list[dict[str, Any]], left: str) -> None:
    of = around(agent(well()), groups=group(*others, stopped_since_ms=OLD))
    assert only(of, "group_stopped").holds_back == left


def test_offsets_stand_for_records_of_which_none_is_counted_and_are_called_so() -> None:
    left = "700 offsets still to be read there, of which the records are not counted."
    assert only(around(agent(well()), groups=group(stopped_since_ms=OLD, **UNCOUNTED)), "group_stopped").holds_back == left
    gone = {"lost_offsets": 650, "lost_records": -1, "committed": 0}
    those = "50 offsets still to be read there, of which the records are not counted."
    assert only(around(agent(well()), groups=group(stopped_since_ms=OLD, **UNCOUNTED | gone)), "group_stopped").holds_back == those
    nothing = UNCOUNTED | {"lag_offsets": -1}
    assert only(around(agent(well()), groups=group(stopped_since_ms=OLD, **nothing)), "group_stopped").holds_back == ""


def test_names_can_neither_hide_nor_pretend_anything() -> None:
    name = "a\x1b[2J\u202e<script>\n--help"
    of = around(agent(well()), groups=group(name=name, stopped_since_ms=OLD))
    found = only(of, "group_stopped")
    assert found.what.isprintable()
    assert found.group == name  # who shows it escapes it
    assert (found.command, found.no_command) == ("", "a name holds control characters")


def test_where_names_are_redacted_there_is_no_command_but_the_reason() -> None:
    of = around(agent(well()), groups=group(stopped_since_ms=OLD), commands=Commands(redacted=True))
    assert only(of, "group_stopped").no_command == "names are redacted here"


def test_a_log_dir_that_will_be_full_within_six_hours_is_a_problem_however_much_is_free() -> None:
    half = log_dir(checkpoint_ms=NOW_MS, free=50, capacity=100)

    def of(hours: float) -> Circumstances:
        return around(agent(well(), log_dirs=(half,)), full={(half.broker, half.log_dir): NOW_MS / 1000 + hours * 3600})

    assert only(of(5), "log_dir_full").what == (
        "Log dir /d0 of broker 1 is filling up: full in 5h (2023-11-15T03:13:20Z), with what retention frees by then; "
        "50 B of 100 B are free, 50.0 %"
    )
    assert kinds_of(of(6.1)) == []


@each_row("free, severity", [(199, CRITICAL), (200, WARNING), (499, WARNING)])
def test_a_log_dir_that_is_kept_nearly_full_is_nothing_for_the_night_before_two_percent(free: int, severity: str) -> None:
    steady = log_dir(checkpoint_ms=NOW_MS, free=free, capacity=10_000)
    assert only(around(agent(well(), log_dirs=(steady,))), "log_dir_full").severity == severity


def test_the_sentence_of_a_problem_begins_with_its_summary() -> None:
    for case in CASES.values():
        for each in problems(case()):
            assert each.what == each.summary or each.what.startswith(f"{each.summary}: ")


def test_a_file_that_hangs_is_reported_once_for_its_log_dir() -> None:
    blocked = BlockedFile(1, "/d0", "/d0/t-0/x.log", 90.0)
    found = only(around(agent(well(), log_dirs=(log_dir(up=False),), blocked=(blocked,))), "log_dir_unreadable")
    assert found.what.endswith("a call to /d0/t-0/x.log has not come back for 1m 30s")
    assert found.since_ms == NOW_MS - 90_000


def test_partitions_led_by_a_broker_without_an_agent_are_not_seen() -> None:
    found = only(around(agent(well(led=[Led(2, 40)]))), "blind")
    assert found.what == "segtail does not see everything (broker_unwatched): Broker 2 leads partitions and has no agent: 40"


def test_while_an_agent_reads_nothing_is_wrong_only_as_far_as_is_known() -> None:
    of = around(agent(well(), catching_up=True))
    assert verdict(of, ()) == "Nothing is wrong, as far as is known: 1 partition of 1 broker"
    assert list(unknown(of, ())) == ["a1 is still reading its disk: what is wrong there may not be known yet"]
    both = around(agent(well(), catching_up=True), agent(name="a2", catching_up=True))
    assert list(unknown(both, ())) == ["a1, a2 are still reading their disks: what is wrong there may not be known yet"]


def test_freshness_names_the_agents_that_are_missing() -> None:
    of = around(agent(well()), agent(name="a2", up=False))
    assert freshness(of, -1) == "The age of the numbers of 1 of 2 agents is not known yet; nothing new from a2"
    assert freshness(around(agent(up=False)), -1) == "No agent answers: a1"
    assert freshness(around(), -1) == "No agent answers: none is known"


def test_the_future_is_not_counted() -> None:
    assert freshness(around(agent(well())), NOW_MS + 1000) == "Everything up to 2023-11-14T22:13:20Z (0s ago) is counted, of 1 agent"


def test_while_a_job_starts_what_is_not_known_yet_is_no_problem_and_nothing_is_claimed() -> None:
    unread = well(transaction_partitions=4, readable=False)
    known = {"table": new_table(), "lags": {"a1": (5, 90.0)}}
    assert {"metadata_unreadable", "behind"} <= set(kinds_of(around(agent(unread), **known)))
    of = around(agent(unread), start=READING, **known)
    assert kinds_of(of) == []
    assert verdict(of, ()) == "Reading the disks: 41 %, 82 B of 197 B, 12s left"
    assert freshness(of, NOW_MS) == "Brokers and disks are known from 1 agent; partitions, transactions and groups follow"
    assert not_current(of, -1) == ""
    assert freshness(around(start=READING), -1) == "Nothing is known yet"


def test_what_agents_report_while_a_job_starts_is_a_problem_at_once() -> None:
    of = around(agent(well()), agent(name="a2", up=False), start=READING)
    assert kinds_of(of) == ["agent_down"]
    assert verdict(of, problems(of)).startswith(
        "Reading the disks: 41 %, 82 B of 197 B, 12s left. So far: 1 critical problem. segtail's agent a2"
    )
    assert freshness(of, -1).startswith("Brokers and disks are known from 1 of 2 agents; nothing new from a2;")


def test_why_nothing_is_current() -> None:
    up = agent(well())
    assert not_current(around(up, lags={"a1": (0, 0.0)}), NOW_MS) == ""
    assert not_current(around(up, stale=True), NOW_MS) == "No agent has been asked for half a minute"
    assert not_current(around(agent(up=False)), -1) == "No agent answers: a1"
    behind = {"a1": (5, 90.0), "a2": (5, 31.0)}
    assert not_current(around(up, agent(name="a2"), lags=behind), NOW_MS - 90_000) == (
        "Appends since 2023-11-14T22:11:50Z are not counted yet: the oldest has waited for 1m 30s"
    )
    assert not_current(around(up, agent(name="a2"), lags=behind | {"a2": (5, 30.0)}), NOW_MS - 90_000) == ""
    assert not_current(around(live=False), -1) == ""


def test_every_kind_has_a_case_here_or_on_the_disks_of_real_clusters() -> None:
    transactions = {"transaction_hanging", "transaction_stuck", "transaction_overdue", "last_stable_offset_stalled"}
    missing = {each.name for each in KINDS} - CASES.keys() - transactions
    assert not missing, f"CASES of tests/worlds/problems.py has not {missing}"
    assert CASES.keys() <= {each.name for each in KINDS}


def test_why_retention_is_blocked_is_reported_with_what_it_keeps() -> None:
    found = only(CASES["retention_blocked"](), "retention_blocked")
    assert found.what == ("Retention of topic orders is blocked on broker 1 (future_timestamp): partition 0, past the limit for 1h 40m")
    assert found.holds_back == (
        "The first segment holds a record dated in the future, so nothing behind it is deleted by time before that date. "
        "All of these logs together: 800 B. Mend the producer, or set message.timestamp.type=LogAppendTime on the topic; then "
        "kafka-delete-records.sh up to the end of that segment frees the space: no reader gets anything from before that offset any more."
    )
    assert found.no_command == "it ends with its cause"
    cause = only(CASES["retention_blocked"](), "timestamps_in_future")
    assert cause.what.endswith("; the command reads partition 0 on broker 1")
    assert cause.command == 'segtail dump --from-time "$(($(date +%s) + 60))" /data/orders-0'
    assert "kafka-delete-records.sh up to the end of that segment" in cause.holds_back


@each_row(("parts", "unit"), [(1_000, "microseconds"), (1_000_000, "nanoseconds"), (10, "")])
def test_a_date_in_another_unit_is_called_so(parts: int, unit: str) -> None:
    ages = (-(NOW_MS * parts - NOW_MS) // 1000, 10)
    found = only(
        around(agent(well()), table=new_table(orders(facts((0, 500, ages[0]), (50, 300, 10), configs=BELOW)))), "timestamps_in_future"
    )
    said = f"It looks as if {unit} were taken for milliseconds: the record is of 2023-11-14T22:13:20Z, so delete none"
    assert (said in found.holds_back) is bool(unit)


def test_blocked_retention_has_the_command_that_shows_what_holds_it() -> None:
    past = NOW_MS - 1000 * (3600 + 601)
    held = facts((0, 500, 4201), (50, 300, 10), configs=BELOW, oldest_timestamp=past, isr=(1, 2), replicas=(1, 2))
    found = only(around(agent(well()), table=new_table(orders(held, high_watermark=40))), "retention_blocked")
    assert found.command == "kafka-topics.sh --bootstrap-server HOST:PORT --describe --topic orders"
    assert found.holds_back.endswith("Bring the replica back, or take it out by a reassignment.")
    near = facts((0, 500, -1800), (50, 300, 9600), configs=BELOW, oldest_timestamp=NOW_MS - 9_600_000)
    alone = only(around(agent(well()), table=new_table(orders(near))), "retention_blocked")
    assert (alone.because, alone.command) == ("", 'segtail dump --from-time "$(($(date +%s) + 60))" /data/orders-0')


def test_of_one_kind_the_oldest_comes_first_and_what_has_no_time_last() -> None:
    since = {2: -1, 3: NOW_MS - HOUR, 4: NOW_MS - 2 * HOUR}
    stopped = [Registered(broker=broker, fenced=True, epoch=5, phase=Phase.STOPPING, since_ms=at) for broker, at in since.items()]
    found = [each for each in problems(around(agent(well(registered=stopped)))) if each.kind == "broker_stopped"]
    assert [each.broker for each in found] == [4, 3, 2]


def test_abandoned_groups_are_one_problem_whatever_they_suffer_from() -> None:
    (only_one,) = problems(around(agent(well()), groups=abandoned()))
    assert (only_one.kind, only_one.severity, only_one.what) == ("groups_abandoned", "info", "Abandoned consumer groups: 1: billing")


def test_one_agent_of_three_is_no_page_and_two_are() -> None:
    def severities(*up: bool) -> list[str]:
        agents = [agent(broker(number), name=f"a{number}", up=each) for number, each in enumerate(up, 1)]
        return [each.severity for each in problems(around(*agents)) if each.kind == "agent_down"]

    assert severities(False, True, True) == ["warning"]
    assert severities(False, False, True) == ["critical", "critical"]
    assert severities(False) == ["critical"]


def test_groups_that_cannot_be_read_are_a_page_once_the_disks_are_read() -> None:
    unread = judge_groups(replace(group().snapshot, unread={"__consumer_offsets": 3}, omitted=5), NOW_MS)
    found = problems(around(agent(well()), groups=unread))
    assert [(each.severity, each.topic, each.summary) for each in found] == [
        ("critical", "", "segtail does not see everything (groups_omitted)"),
        ("critical", "__consumer_offsets", "segtail does not see everything (groups_unread)"),
    ]
    assert kinds_of(around(agent(well(), catching_up=True), groups=unread)) == []
