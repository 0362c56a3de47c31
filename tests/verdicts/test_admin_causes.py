"""Which change a problem began with, and that others are not named."""

from dataclasses import replace
from typing import Any

from streaming.broker.protocol.cluster_messages import MetadataChange, MetadataChanges
from streaming.broker.protocol.group_json import GroupPartition, GroupSummary, GroupVerdict
from streaming.cluster.verdicts.admin_causes import AdminCauses
from streaming.cluster.verdicts.admin_events import value_text
from streaming.cluster.verdicts.commands import Commands
from streaming.cluster.verdicts.group_bounds import GroupBounds
from streaming.cluster.verdicts.group_findings import GroupFindings
from streaming.cluster.verdicts.group_judge import Judgement
from streaming.common.units import TimeWords
from streaming.rules.config_values import MAX_LONG
from tests.tables import each_row
from tests.worlds.problems import CASES, agent, only, well

NOW = 1_795_000_000_000
HOUR = 3_600_000
WEEK, DAY = 168 * HOUR, 24 * HOUR
TIMES = TimeWords(NOW)
LOWERED = "retention.ms of orders went from 7d to 1h at 2026-11-18T10:06:40Z (1h ago)"


HOURS = "log.retention.hours of all brokers went from 168 to 1 at 2026-11-18T10:06:40Z (1h ago)"


def config(name: str = "retention.ms", before: int | None = WEEK, now: int | None = HOUR, **others: Any) -> MetadataChange:
    values = {"before": None if before is None else str(before), "now": None if now is None else str(now)}
    about = {"topic": "orders", "offset": 5, "at_ms": NOW - HOUR, **others}
    return MetadataChange(kind="config_changed", name=name, **values, **about)


def created(offset: int, topic: str = "orders") -> MetadataChange:
    return MetadataChange(kind="topic_created", topic=topic, offset=offset, at_ms=NOW - DAY)


LATER = {"offset": 9, "at_ms": NOW - 1}
OF_ALL = {"topic": "", "name": "log.retention.ms"}


@each_row(
    ("changes", "said"),
    [
        ([config()], LOWERED),
        ([config(topic="other")], ""),
        ([config(before=HOUR, now=WEEK)], ""),
        ([config(), config(before=HOUR, now=WEEK, **LATER)], ""),  # it was put back
        ([config(at_ms=NOW + 1)], ""),
        ([config(), created(7)], ""),  # of a topic of the same name before
        ([created(3), config()], LOWERED),
        ([config(before=None)], LOWERED.replace("from 7d", "from not set (Kafka's default is 7d)")),
        ([config(before=None, now=WEEK)], ""),
        ([config(before=-1)], LOWERED.replace("7d", "unlimited")),
        ([config(now=-1)], ""),
        ([config("retention.bytes")], ""),
        ([config(**OF_ALL)], LOWERED.replace("retention.ms of orders", "log.retention.ms of all brokers")),
        ([config(**OF_ALL, broker=1)], LOWERED.replace("retention.ms of orders", "log.retention.ms of broker 1")),
        ([config(**OF_ALL, broker=2)], ""),
        ([config(**OF_ALL), config(before=WEEK, now=DAY)], LOWERED.replace("1h at", "1d at")),
        (
            [config("log.retention.hours", 168, 1, topic="")],
            HOURS,
        ),
    ],
)
def test_a_limit_that_was_lowered_is_named_and_nothing_else(changes: list[MetadataChange], said: str) -> None:
    causes = AdminCauses(changes)
    assert causes.lowered("orders", 1, TIMES) == said
    assert causes.of_deletion("orders", 1, TIMES) == (f"; this began when {said}" if said else "")


def test_limits_of_brokers_do_not_count_for_a_topic_that_sets_its_own() -> None:
    assert AdminCauses([config(**OF_ALL)], lambda topic: topic == "orders").lowered("orders", 1, TIMES) == ""
    assert AdminCauses([config(**OF_ALL)], lambda topic: topic == "orders").lowered("other", 1, TIMES)


def test_a_limit_of_size_counts_for_what_it_deletes() -> None:
    causes = AdminCauses([config("retention.bytes", -1, 1 << 20)])
    assert causes.lowered("orders", 1, TIMES, by_size=True).startswith("retention.bytes of orders went from unlimited to 1MiB at")


def test_min_insync_replicas_that_were_raised_and_topics_that_were_deleted() -> None:
    raised = config("min.insync.replicas", 1, 2)
    assert (
        AdminCauses([raised]).of_min_isr("orders", TIMES).startswith("; this began when min.insync.replicas of orders went from 1 to 2 at")
    )
    assert AdminCauses([config("min.insync.replicas", 2, 1)]).of_min_isr("orders", TIMES) == ""
    deleted = MetadataChange(kind="topic_deleted", topic="orders", count=3, offset=5, at_ms=NOW - HOUR)
    said = "; it was deleted at 2026-11-18T10:06:40Z (1h ago)"
    assert (AdminCauses([deleted]).of_end("orders", TIMES), AdminCauses([deleted]).of_end("other", TIMES)) == (said, "")


def finding(verdict: GroupVerdict, **fields: Any) -> str:
    of = GroupPartition(topic="orders", partition=0, committed=10, log_start=10, high_watermark=90, broker=1, **fields)
    words = GroupFindings(
        summary=GroupSummary(group="billing", type="Classic"),
        commands=Commands(server="kafka-1:9092").of_group("billing", "Classic"),
        bounds=GroupBounds(),
        now_ms=NOW,
        causes=AdminCauses([config()]),
    )
    return words.of_partition(of, Judgement(1, verdict, NOW)).text


def test_a_group_that_loses_records_is_told_what_that_began_with() -> None:
    loses = finding(GroupVerdict.WILL_LOSE, loss_ms=NOW + HOUR, loss_latest_ms=NOW + HOUR, loss_records=80, loss_bytes=5000)
    assert f"80 records, 4.9 KiB, with all that is due at the same check; this began when {LOWERED}" in loses
    lost = finding(GroupVerdict.LOST, lost_records=5, lost_offsets=5, lost_lately_ms=NOW - 1)
    assert f"were deleted unread; this began when {LOWERED}. " in lost
    before = finding(GroupVerdict.LOST, lost_records=5, lost_offsets=5, lost_lately_ms=NOW - DAY)
    assert "this began" not in before, "it was lost before the limit was lowered"
    late = finding(GroupVerdict.LOST, lost_records=5, lost_offsets=5, lost_expired=True)
    assert "this began" not in late, "it came too late"


@each_row(
    ("kind", "change", "said"),
    [
        ("under_min_isr", config("min.insync.replicas", 1, 2), "min.insync.replicas of orders went from 1 to 2"),
        ("retention_overdue", config(), "retention.ms of orders went from 7d to 1h"),
    ],
)
def test_problems_name_what_they_began_with(kind: str, change: MetadataChange, said: str) -> None:
    of = CASES[kind]()
    packed = MetadataChanges([replace(change, at_ms=of.now_ms - HOUR)], 0, -1).pack()
    statuses = tuple(replace(each, changes=packed) for each in of.agents[0].broker_statuses) if of.agents else ()
    known = replace(of, agents=(agent(*(statuses or (well(changes=packed),))), *of.agents[1:]))
    assert f"; this began when {said} at " in only(known, kind).what
    assert "this began" not in only(of, kind).what


@each_row(
    ("name", "value", "said"),
    [
        ("leader.replication.throttled.rate", None, "not set (Kafka's default is unlimited)"),
        ("max.compaction.lag.ms", str(MAX_LONG), "unlimited"),
        ("retention.bytes", "-1", "unlimited"),
        ("segment.bytes", "-1", "-1"),
    ],
)
def test_the_largest_number_is_no_limit(name: str, value: str | None, said: str) -> None:
    assert value_text(name, value) == said


def commanded(change: MetadataChange, **fields: Any) -> tuple[str, str]:
    """The command and the sentence about a group that will lose records."""
    of = GroupPartition(topic="orders", partition=0, committed=10, log_start=10, high_watermark=90, broker=1, loss_ms=NOW + HOUR, **fields)
    words = GroupFindings(
        summary=GroupSummary(group="billing", type="Classic"),
        commands=Commands(server="kafka-1:9092").of_group("billing", "Classic"),
        bounds=GroupBounds(),
        now_ms=NOW,
        causes=AdminCauses([change]),
    )
    found = words.of_partition(of, Judgement(1, GroupVerdict.WILL_LOSE, NOW))
    return found.command.partition(" --alter ")[2], found.text


@each_row(
    ("change", "fields", "command"),
    [
        (config(before=WEEK), {}, f"--entity-type topics --entity-name orders --add-config retention.ms={WEEK}"),
        (config(before=None), {}, "--entity-type topics --entity-name orders --delete-config retention.ms"),
        (config(**OF_ALL), {}, f"--entity-type brokers --entity-default --add-config log.retention.ms={WEEK}"),
        (config(**OF_ALL, broker=1), {}, f"--entity-type brokers --entity-name 1 --add-config log.retention.ms={WEEK}"),
        (
            config("retention.bytes", -1, 1 << 20),
            {"loss_by_size": True},
            "--entity-type topics --entity-name orders --add-config retention.bytes=-1",
        ),
        # the former limit would not keep what is older than that; nothing was lowered; it is due for another reason
        (
            config(before=2 * HOUR),
            {"next_timestamp_ms": NOW - 5 * HOUR, "retention_ms": HOUR},
            f"--entity-type topics --entity-name orders --add-config retention.ms={6 * HOUR}",
        ),
        (
            config(before=HOUR, now=DAY),
            {"retention_ms": DAY, "next_timestamp_ms": NOW},
            f"--entity-type topics --entity-name orders --add-config retention.ms={2 * DAY}",
        ),
    ],
)
def test_the_command_takes_back_what_was_lowered_where_that_saves_the_records(change: MetadataChange, fields: Any, command: str) -> None:
    line, text = commanded(change, **fields)
    assert line == command
    assert ("takes that back" in text) == (str(WEEK) in command or "delete" in command or "bytes=-1" in command)


def test_to_take_it_back_comes_before_to_start_consumers() -> None:
    of = GroupPartition(topic="orders", partition=0, committed=10, log_start=10, high_watermark=90, broker=1, loss_ms=NOW + HOUR)

    def verdicts(*changes: MetadataChange) -> list[str]:
        words = GroupFindings(
            summary=GroupSummary(group="billing", type="Classic", partitions=1, state="Empty", state_ms=NOW - DAY),
            commands=Commands(server="kafka-1:9092").of_group("billing", "Classic"),
            bounds=GroupBounds(),
            now_ms=NOW,
            causes=AdminCauses(changes),
        )
        judgements = [(of, [Judgement(1, GroupVerdict.WILL_LOSE, NOW)])]
        return [each.verdict for each in words.all_of(judgements, [Judgement(2, GroupVerdict.NO_MEMBERS, NOW)])]

    assert verdicts(config()) == ["will_lose", "no_members"]
    assert verdicts() == ["no_members", "will_lose"]
