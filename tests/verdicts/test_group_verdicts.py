"""What is said about a consumer group that does not go on: each verdict in its words, and their order."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.metrics.group_lag import Reason
from streaming.protocol.group_json import GroupDetail, GroupPartition, GroupSummary, HoldingTransaction, NextBatch, PendingOffset
from streaming.rules.verdicts import Verdict
from streaming.verdicts.commands import Command
from streaming.verdicts.group_sentences import ENDED_BY_ITSELF, REASONS
from streaming.verdicts.group_verdicts import NO_OFFSETS, NOT_ON_DISK, Bounds, GroupVerdict, Kind, judge, worst
from tests.builders import NOW
from tests.tables import each_row

BOUNDS = Bounds()
HOUR = 3_600_000

READING = GroupPartition(
    topic="orders",
    partition=3,
    committed=100,
    commit_ms=NOW - 5000,
    log_start=40,
    high_watermark=150,
    last_stable_offset=150,
    lag_offsets=50,
    lag_records_read_committed=45,
    lag_records_read_uncommitted=48,
    lag_bytes=70_000,
    next_offset=101,
    next_timestamp_ms=NOW - 9000,
    next_batch_bytes=900,
    next_segment=40,
    next_position=3000,
)
HOLDING = HoldingTransaction(
    producer_id=7, producer_epoch=1, first_offset=100, start_ms=NOW - HOUR, last_append_ms=NOW - HOUR, transactional_id="pay 1"
)
HELD = replace(
    READING, held=True, held_by=HOLDING, last_stable_offset=100, lag_records_read_committed=0, next_offset=-1, next_batch_bytes=-1
)
SERVER = "--bootstrap-server kafka-1:9092"


def group(*partitions: GroupPartition, **summary: object) -> GroupDetail:
    found = GroupSummary(**{"group": "billing", "state": "Stable", "members": 2, "epoch": 4, **summary})
    return GroupDetail(at_ms=NOW, summary=found, partitions=list(partitions), server="kafka-1:9092")


def only(partition: GroupPartition) -> GroupVerdict:
    (found,) = judge(group(partition), NOW, BOUNDS)
    assert (found.topic, found.partition) == (partition.topic, partition.partition)
    return found


GOLDEN = [
    (
        Kind.LOST,
        replace(READING, committed=30, lost_offsets=10, lost_records=8),
        "already deleted: 8 records between the committed offset 30 and the log start 40 were deleted unread. auto.offset.reset decides "
        "where its consumers go on: with none they fail until the offset is reset, with latest they skip what is left. "
        "Its consumers have to be stopped before an offset is reset",
        f"kafka-consumer-groups.sh {SERVER} --group billing --topic orders:3 --reset-offsets --to-earliest --execute",
    ),
    (
        Kind.WILL_LOSE,
        replace(READING, loss_ms=NOW + HOUR, loss_records=20, loss_bytes=2048, retention_ms=6 * HOUR, next_timestamp_ms=NOW - 5 * HOUR),
        "its oldest unread records will be deleted at 2023-11-14T23:13:20Z (in 1h) unless they are read before: 20 records, 2.0 KiB, "
        "with all that is due at the same check",
        f"kafka-configs.sh {SERVER} --alter --entity-type topics --entity-name orders --add-config retention.ms=43200000",
    ),
    (
        Kind.WILL_LOSE,
        replace(READING, loss_ms=NOW - 1, loss_records=20, loss_bytes=2048, retention_ms=6 * HOUR, retention_bytes=1000, loss_by_size=True),
        "its oldest unread records will be deleted by retention.bytes with the next check unless they are read before: "
        "20 records, 2.0 KiB, "
        "with all that is due at the same check",
        f"kafka-configs.sh {SERVER} --alter --entity-type topics --entity-name orders --add-config retention.bytes=2000",
    ),
    (
        Kind.DAMAGED,
        replace(READING, batch=NextBatch(sound=False, error="CRC", position=3000, segment=40, last_offset=110)),
        "the next batch is damaged, and consumers cannot get over it: CRC, at byte 3000 of the segment 00000000000000000040.log, offset "
        "101. Another replica may have it whole. Its consumers have to be stopped before an offset is reset",
        f"kafka-consumer-groups.sh {SERVER} --group billing --topic orders:3 --reset-offsets --to-offset 111 --execute",
    ),
    (
        Kind.TOO_LARGE,
        replace(READING, next_batch_bytes=3 << 20),
        "the next batch has 3.0 MiB, more than the 1.0 MiB that consumers fetch of a partition, offset 101. Kafka's own client gets it "
        "alone; others need a larger max.partition.fetch.bytes, or more memory",
        "",
    ),
    (
        Kind.HELD,
        HELD,
        'held up by a transaction of producer 7 (transactional id "pay 1") open since 2023-11-14T21:13:20Z (1h ago): 50 offsets from 100 '
        "on cannot be read with read_committed until it ends",
        "",
    ),
    (
        Kind.HELD,
        replace(HELD, held_by=replace(HOLDING, verdict="hanging", transactional_id="")),
        "held up by a transaction of producer 7, which is hanging, open since 2023-11-14T21:13:20Z (1h ago): 50 offsets from 100 on "
        "cannot be read with read_committed until it ends",
        f"kafka-transactions.sh {SERVER} abort --topic orders --partition 3 --start-offset 100",
    ),
    (
        Kind.BEYOND_END,
        GroupPartition(topic="orders", partition=3, committed=200, high_watermark=150, unknown="beyond_end"),
        "the committed offset 200 is beyond the end of the log, 150: records were cut off, as by an unclean election, or too high an "
        "offset was committed. Where its consumers go on, auto.offset.reset decides. Its consumers have to be stopped before an offset "
        "is reset",
        f"kafka-consumer-groups.sh {SERVER} --group billing --topic orders:3 --reset-offsets --to-latest --execute",
    ),
    (
        Kind.PENDING,
        replace(
            READING,
            pending=[
                PendingOffset(producer_id=9, offset=120, coordinator=17, since_ms=NOW - HOUR, verdict="hanging", transactional_id="pay 1")
            ]
            * 2,
        ),
        'commits wait in an open transaction of producer 9 (transactional id "pay 1") in '
        "__consumer_offsets-17 since 2023-11-14T21:13:20Z (1h ago), which is "
        "hanging, and 1 more: its consumers get UNSTABLE_OFFSET_COMMIT. `segtail transactions --topic __consumer_offsets` shows who will "
        "end it",
        "",
    ),
    (
        Kind.STOPPED,
        replace(READING, stopped_since_ms=NOW - HOUR),
        "stopped: the committed offset 100 has not moved since 2023-11-14T21:13:20Z (1h ago) although the record at 101 is readable; 45 "
        "records left, 68.4 KiB, the next from 2023-11-14T22:13:11Z (9s ago). The disk does not show what its consumers do with the record",
        "",
    ),
    (
        Kind.SLOWER,
        replace(READING, consumed_rate=10.0, appended_rate=12.5, next_timestamp_ms=NOW - 30_000),
        "slower than its producers: 10.0 records/s are read and 12.5 appended, so it never catches up; 45 records left, 68.4 KiB, the "
        "next from 2023-11-14T22:12:50Z (30s ago)",
        "",
    ),
    (
        Kind.FINE,
        replace(READING, consumed_rate=10.0, appended_rate=12.5, next_timestamp_ms=NOW - 29_999),
        "nothing found: 45 records left, 68.4 KiB, the next from 2023-11-14T22:12:50Z (30s ago)",
        "",
    ),
    (
        Kind.CATCHING_UP,
        replace(READING, consumed_rate=12.5, appended_rate=10.0, next_append_ms=NOW - 8000),
        "catches up in 18s, at 2023-11-14T22:13:38Z: 12.5 records/s are read and 10.0 appended; 45 records left, 68.4 KiB, the next from "
        "2023-11-14T22:13:12Z (8s ago)",
        "",
    ),
    (
        Kind.UNKNOWN,
        GroupPartition(topic="orders", partition=3, committed=200, unknown="leader_not_observed"),
        "not known: the log dirs of the partition's leader are not read here",
        "",
    ),
    (
        Kind.FINE,
        GroupPartition(topic="orders", partition=3, committed=200, unknown="topic_gone"),
        "nothing to do: the topic is gone",
        "",
    ),
    (
        Kind.ONLY_MARKERS,
        replace(READING, lag_offsets=2, lag_records_read_committed=0, next_offset=-1, next_batch_bytes=-1),
        "nothing to do: the last 2 offsets are only markers, aborted or compacted records",
        "",
    ),
    (
        Kind.FINE,
        READING,
        "nothing found: 45 records left, 68.4 KiB, the next from 2023-11-14T22:13:11Z (9s ago)",
        "",
    ),
    (
        Kind.FINE,
        replace(READING, lag_offsets=0, lag_records_read_committed=0, next_offset=-1, next_batch_bytes=-1),
        "nothing to do: everything is read",
        "",
    ),
]


@each_row(("kind", "partition", "text", "command"), GOLDEN)
def test_each_verdict_in_its_words(kind: Kind, partition: GroupPartition, text: str, command: str) -> None:
    found = only(partition)
    assert (found.kind, found.text, found.command.line) == (kind, text, command)


def test_the_verdicts_about_a_group_as_a_whole() -> None:
    late = replace(READING, partition=4, lag_records_read_committed=9000)
    found = judge(group(READING, late, members=0, state="Empty", state_ms=NOW - HOUR), NOW, BOUNDS)
    assert [(each.kind, each.topic, each.partition, each.text) for each in found if each.kind.found] == [
        (Kind.SKEWED, "orders", 4, "this partition has 99 % of the lag: 9,000 of 9,045 records"),
        (Kind.NO_MEMBERS, "", -1, "no member since 2023-11-14T21:13:20Z (1h ago), and not everything is read"),
    ]


def test_every_kind_has_a_golden_text() -> None:
    assert {kind for kind, *_ in GOLDEN} | {Kind.SKEWED, Kind.NO_MEMBERS} == set(Kind)


@pytest.mark.parametrize(
    ("members", "protocol", "kind"), [(2, "consumer", Kind.UNKNOWN), (0, "consumer", Kind.FINE), (2, "connect", Kind.FINE)]
)
def test_what_consumers_without_a_committed_offset_have_read_is_not_known(members: int, protocol: str, kind: Kind) -> None:
    (verdict,) = judge(group(partitions=0, members=members, protocol=protocol), NOW, BOUNDS)
    assert (verdict.kind, verdict.text) == (kind, NOT_ON_DISK if kind is Kind.UNKNOWN else NO_OFFSETS)


def test_every_reason_for_which_a_lag_is_not_known_has_a_sentence() -> None:
    assert {str(reason) for reason in Reason} <= set(REASONS)


def test_a_list_of_groups_shows_the_worst_of_what_its_summary_counts_and_of_the_partitions_that_are_there() -> None:
    def listed(**summary: object) -> Kind:
        return worst(replace(group(**{"partitions": 5, "lag_offsets": 9, **summary}), partitions=[]), NOW, BOUNDS)

    assert listed() is Kind.FINE
    assert listed(unknown=1) is Kind.UNKNOWN
    assert listed(unknown=1, stopped=2) is Kind.STOPPED
    assert listed(stopped=2, members=0, state="Empty") is Kind.NO_MEMBERS
    assert listed(beyond_end=1, pending=1) is Kind.BEYOND_END
    assert listed(held=1, below_start=1) is Kind.LOST
    gone = GroupPartition(topic="gone", partition=0, committed=2, unknown="topic_gone")
    assert worst(group(READING, gone, partitions=2, unknown=1), NOW, BOUNDS) is Kind.FINE
    assert worst(group(LOST, partitions=1, below_start=1), NOW, BOUNDS) is Kind.LOST
    assert worst(group(replace(LOST, lost_records=0), partitions=1, below_start=1), NOW, BOUNDS) is Kind.FINE


def test_a_group_that_never_had_members_or_has_read_everything_lacks_none() -> None:
    read = replace(READING, lag_offsets=0, lag_records_read_committed=0, next_offset=-1, next_batch_bytes=-1)
    assert not any(each.kind.found for each in judge(group(READING, members=0, state="Empty", epoch=0), NOW, BOUNDS))
    assert not any(each.kind.found for each in judge(group(READING, members=-1, state="", epoch=-1), NOW, BOUNDS))
    assert not any(each.kind.found for each in judge(group(read, members=0, state="Empty"), NOW, BOUNDS))


def test_a_consumer_that_keeps_up_loses_nothing_though_retention_deletes_everything_one_day() -> None:
    soon = replace(READING, loss_ms=NOW + HOUR, loss_records=20, loss_bytes=2048, retention_ms=9 * HOUR)

    def kind(**values: object) -> Kind:
        return judge(group(replace(soon, **values)), NOW, BOUNDS)[0].kind  # type: ignore[arg-type]

    assert kind(next_timestamp_ms=NOW - HOUR) is Kind.WILL_LOSE
    assert kind(next_timestamp_ms=NOW - HOUR + 1) is Kind.FINE
    assert kind(next_timestamp_ms=NOW - HOUR, next_append_ms=NOW - HOUR + 1) is Kind.FINE
    assert kind(next_timestamp_ms=NOW - HOUR + 1, stopped_since_ms=NOW - 1000) is Kind.WILL_LOSE
    assert (kind(next_timestamp_ms=-1), kind(next_timestamp_ms=-1, retention_ms=HOUR + 1)) == (Kind.WILL_LOSE, Kind.FINE)
    old = NOW - 8 * HOUR
    assert kind(next_timestamp_ms=old, consumed_rate=1.0, appended_rate=0.0) is Kind.CATCHING_UP
    assert kind(next_timestamp_ms=old, consumed_rate=0.01, appended_rate=0.0) is Kind.WILL_LOSE
    assert kind(next_timestamp_ms=old, loss_ms=NOW + 25 * HOUR) is Kind.FINE


def test_a_group_that_waits_for_a_transaction_of_seconds_loses_nothing_though_little_is_kept() -> None:
    held = replace(HELD, loss_ms=NOW + 60_000, next_timestamp_ms=NOW - 2_000)
    assert only(held).kind is Kind.HELD
    both = judge(group(replace(held, next_timestamp_ms=NOW - 60_000)), NOW, BOUNDS)
    assert [each.kind for each in both] == [Kind.WILL_LOSE, Kind.HELD]


def test_a_group_that_reads_nothing_is_not_given_a_rate() -> None:
    old = replace(READING, consumed_rate=0.0, appended_rate=100.0, next_timestamp_ms=NOW - HOUR)
    assert only(old).text.startswith("nothing is read lately, and 100.0 records/s are appended; 45 records left")


def test_commits_of_a_transaction_that_has_just_begun_do_not_wait() -> None:
    pending = PendingOffset(producer_id=9, offset=120, coordinator=17, since_ms=NOW - 1000)
    for start_ms in (-1, NOW - HOUR):  # how long the transaction has been open without commits is no matter
        assert only(replace(READING, pending=[replace(pending, start_ms=start_ms)])).kind is Kind.FINE
        assert only(replace(READING, pending=[replace(pending, start_ms=start_ms, since_ms=NOW - HOUR)])).kind is Kind.PENDING
    assert worst(group(pending=1, partitions=1, oldest_pending_ms=NOW - 1000), NOW, BOUNDS) is Kind.FINE
    assert worst(group(pending=1, partitions=1, oldest_pending_ms=NOW - HOUR), NOW, BOUNDS) is Kind.PENDING


def test_when_a_coordinator_ends_a_transaction_is_said_where_it_is_known() -> None:
    holding = replace(HOLDING, deadline_ms=NOW + HOUR, verdict="open")
    ends = "If its producer does not end it, its coordinator does at 2023-11-14T23:13:20Z (in 1h)"
    assert only(replace(HELD, held_by=holding)).text.endswith(f"until it ends. {ends}")
    passed = replace(holding, deadline_ms=NOW - HOUR, verdict="overdue")
    assert only(replace(HELD, held_by=passed)).text.endswith("Its timeout has passed at 2023-11-14T21:13:20Z (1h ago)")
    pending = PendingOffset(producer_id=9, offset=120, coordinator=17, since_ms=NOW - HOUR, deadline_ms=NOW + HOUR)
    assert only(replace(READING, pending=[pending])).text.endswith(f"UNSTABLE_OFFSET_COMMIT. {ends}")


def test_why_a_transaction_is_not_to_be_aborted_is_said_of_each_verdict() -> None:
    for label in (each.label for each in Verdict):
        command = only(replace(HELD, held_by=replace(HOLDING, verdict=label))).command
        assert (command.line != "") == (label == "hanging")
        assert (label in ENDED_BY_ITSELF) == (label not in ("hanging", "unknown", "unclaimed"))
        assert command.reason == ENDED_BY_ITSELF.get(label, command.reason)


def test_a_transaction_that_begins_after_the_time_of_the_judgement_is_given_no_age() -> None:
    found = only(replace(HELD, held_by=replace(HOLDING, start_ms=NOW + HOUR)))
    assert "open since 2023-11-14T23:13:20Z (after the time asked for): 50 offsets" in found.text


def test_a_group_whose_commits_were_deleted_has_none_any_more() -> None:
    assert judge(group(), NOW, BOUNDS)[0].text == "it has no committed offsets, or none any more"


def test_only_markers_that_were_deleted_are_no_loss() -> None:
    assert only(replace(READING, committed=30, lost_offsets=10, lost_records=0)).kind is Kind.FINE


def test_a_partition_that_has_two_faults_is_given_both() -> None:
    found = judge(group(replace(READING, loss_ms=NOW, stopped_since_ms=NOW - HOUR)), NOW, BOUNDS)
    assert [each.kind for each in found] == [Kind.WILL_LOSE, Kind.STOPPED]


LOST = replace(READING, committed=30, lost_offsets=10, lost_records=8)


@each_row(
    ("name", "redacted", "reason"),
    [
        ("a\x1b[2Jb", False, "a name holds control characters"),
        ("a\nb", False, "a name holds control characters"),
        ("", False, "a name is empty"),
        ("g" * 10_240, False, "a name has 10,240 characters"),
        ("billing", True, "names are redacted here"),
    ],
)
def test_a_name_that_cannot_be_copied_gives_no_command_but_the_reason(name: str, redacted: bool, reason: str) -> None:
    (found,) = judge(replace(group(LOST, group=name), redacted=redacted), NOW, BOUNDS)
    assert found.command == Command(reason=reason)


def test_a_name_that_a_shell_would_take_apart_is_quoted() -> None:
    (found,) = judge(group(LOST, group="it's; rm -rf $HOME"), NOW, BOUNDS)
    assert """ --group 'it'"'"'s; rm -rf $HOME' --topic orders:3 """ in found.command.line


INTEGERS = st.sampled_from([-1, 0, 1, 5, 2000, NOW - HOUR, NOW, NOW + HOUR])
RATES = st.sampled_from([-1.0, 0.0, 0.5, 100.0])
PARTITIONS = st.builds(
    GroupPartition,
    topic=st.sampled_from(["a", "b"]),
    partition=st.integers(0, 3),
    unknown=st.sampled_from(["", "", "beyond_end", "filling"]),
    lag_offsets=INTEGERS,
    lag_records_read_committed=INTEGERS,
    lost_records=st.integers(-1, 2),
    lost_offsets=st.integers(0, 2),
    loss_ms=INTEGERS,
    retention_ms=INTEGERS,
    next_batch_bytes=st.sampled_from([-1, 100, 1 << 30]),
    stopped_since_ms=INTEGERS,
    held=st.booleans(),
    held_by=st.sampled_from([None, HOLDING]),
    consumed_rate=RATES,
    appended_rate=RATES,
    batch=st.sampled_from([None, NextBatch(sound=True), NextBatch(sound=False, error="x")]),
    pending=st.lists(
        st.builds(PendingOffset, producer_id=st.just(1), offset=st.just(2), coordinator=st.just(3), since_ms=INTEGERS), max_size=2
    ),
)
SUMMARIES = st.builds(
    GroupSummary,
    group=st.text(max_size=3),
    members=st.integers(-1, 1),
    epoch=st.integers(-1, 1),
    state=st.sampled_from(["Empty", "Stable", ""]),
)


@given(st.lists(PARTITIONS, max_size=4, unique_by=lambda each: (each.topic, each.partition)), SUMMARIES, st.randoms())
def test_every_partition_has_a_verdict_the_most_severe_come_first_and_their_order_is_total(partitions, summary, random) -> None:
    detail = GroupDetail(at_ms=NOW, summary=summary, partitions=partitions)
    found = judge(detail, NOW, BOUNDS)
    assert found
    assert {(each.topic, each.partition) for each in partitions} <= {(each.topic, each.partition) for each in found}
    assert [each.kind for each in found] == sorted(each.kind for each in found)
    for each in partitions:
        own = [one for one in found if (one.topic, one.partition) == (each.topic, each.partition) and one.kind is not Kind.SKEWED]
        assert len({one.kind for one in own}) == len(own)
        assert len(own) == 1 or all(one.kind.found for one in own)
    shuffled = random.sample(partitions, len(partitions))
    if len({each.lag for each in partitions}) == len(partitions):  # of two that lag alike, either may be the one with most of it
        assert judge(replace(detail, partitions=shuffled), NOW, BOUNDS) == found
    assert all(one.text and (one.command.line == "" or one.command.reason == "") for one in found)


def test_consumers_are_to_be_stopped_only_where_there_are_some() -> None:
    lost = replace(READING, committed=30, lost_offsets=1, lost_records=1)
    (found,) = judge(group(lost, members=0, state="Stable"), NOW, BOUNDS)
    assert found.text.startswith("already deleted: 1 record between the committed offset 30 and the log start 40 was deleted unread.")
    assert "stopped" not in found.text
    (found,) = judge(group(lost, members=1), NOW, BOUNDS)
    assert found.text.endswith("Its consumers have to be stopped before an offset is reset")


def test_limits_that_are_assumed_are_told_in_words() -> None:
    later = replace(READING, loss_ms=NOW + 48 * HOUR, limits_assumed=True)
    assert only(later).text.endswith("; when it will be deleted is not sure, because the limits are assumed")
    (soon,) = judge(group(replace(later, loss_ms=NOW, loss_records=1, loss_bytes=5)), NOW, BOUNDS)
    assert soon.text == (
        "its oldest unread records will be deleted by limits that are assumed, with the next check unless they are read before: "
        "1 record, 5 B, with all that is due at "
        "the same check"
    )
    assert soon.command == Command(reason="its limits are not known")


BEHIND = replace(READING, consumed_rate=0.0, appended_rate=8.0, next_timestamp_ms=NOW - HOUR)


def test_a_deserted_group_lacks_members_and_is_not_slower() -> None:
    found = judge(group(BEHIND, members=0, state="Empty"), NOW, BOUNDS)
    assert [each.kind for each in found] == [Kind.NO_MEMBERS, Kind.FINE]
    assert only(BEHIND).kind is Kind.SLOWER


def test_nobody_is_slower_than_producers_that_append_nothing() -> None:
    assert only(replace(BEHIND, appended_rate=0.049)).kind is Kind.FINE
    assert only(replace(BEHIND, appended_rate=0.05)).kind is Kind.SLOWER


def test_a_group_that_is_only_known_by_its_sums_is_not_said_to_have_committed_nothing() -> None:
    assert judge(group(partitions=3), NOW, BOUNDS) == ()
    (verdict,) = judge(group(partitions=0), NOW, BOUNDS)
    assert verdict.text == "it has no committed offsets, or none any more"


def test_a_group_of_which_only_markers_are_left_needs_no_members() -> None:
    markers = replace(READING, lag_records_read_committed=0, lag_offsets=3, next_offset=-1, next_batch_bytes=-1)
    empty = group(markers, members=0, state="Empty", partitions=1, lag_offsets=3, lag_records_read_committed=0)
    assert worst(empty, NOW, BOUNDS) is judge(empty, NOW, BOUNDS)[0].kind is Kind.ONLY_MARKERS
    assert worst(replace(empty, partitions=[]), NOW, BOUNDS) is Kind.FINE


def test_a_group_that_may_have_stopped_before_it_was_looked_at_has_stopped_since_then_at_least() -> None:
    stopped = replace(READING, stopped_since_ms=NOW - HOUR)
    assert "has not moved since 2023-11-14T21:13:20Z" in only(stopped).text
    assert "has not moved at least since 2023-11-14T21:13:20Z" in only(replace(stopped, stopped_earlier=True)).text


def test_each_bound_is_the_last_value_that_is_no_verdict_yet() -> None:
    assert only(replace(READING, next_batch_bytes=BOUNDS.fetch_bytes)).kind is Kind.FINE
    assert only(replace(READING, next_batch_bytes=BOUNDS.fetch_bytes + 1)).kind is Kind.TOO_LARGE
    loses = replace(READING, next_timestamp_ms=NOW - 8 * 24 * HOUR, loss_ms=NOW + BOUNDS.loss_within_ms)
    assert only(loses).kind is Kind.WILL_LOSE
    assert only(replace(loses, loss_ms=loses.loss_ms + 1)).kind is Kind.FINE
    waits = PendingOffset(producer_id=9, offset=120, coordinator=17, since_ms=NOW - BOUNDS.pending_after_ms)
    assert only(replace(READING, pending=[waits])).kind is Kind.FINE
    assert only(replace(READING, pending=[replace(waits, since_ms=waits.since_ms - 1)])).kind is Kind.PENDING
    assert only(replace(READING, pending=[replace(waits, since_ms=-1)])).kind is Kind.FINE


def test_a_group_reads_before_the_deletion_only_by_what_it_gains_on_its_producers() -> None:
    """45 records are left: at 1.0 a second they are read in 45 s, at 0.1 more than is appended in 450 s."""
    loses = replace(READING, next_timestamp_ms=NOW - HOUR, loss_ms=NOW + 60_000, consumed_rate=1.0)
    assert only(replace(loses, appended_rate=0.0)).kind is Kind.CATCHING_UP
    assert judge(group(replace(loses, appended_rate=0.9)), NOW, BOUNDS)[0].kind is Kind.WILL_LOSE
    assert only(replace(loses, appended_rate=-1.0)).kind is Kind.FINE
