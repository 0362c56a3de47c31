"""What is said about a consumer group that does not go on: each verdict in its words, and their order."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from enum import IntEnum
from runpy import run_path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.broker.protocol import group_json
from streaming.broker.protocol.group_json import (
    FINDINGS,
    BatchCheck,
    GroupFinding,
    GroupPartition,
    GroupSummary,
    GroupVerdict,
    HoldingTransaction,
    MovedOffset,
    PendingOffset,
    Unlike,
)
from streaming.broker.protocol.status_json import SEVERITIES
from streaming.cluster.consumers.group_lag import LagReason
from streaming.cluster.consumers.group_snapshot import GroupSnapshot
from streaming.cluster.verdicts import group_findings
from streaming.cluster.verdicts.commands import Commands
from streaming.cluster.verdicts.group_bounds import GroupBounds
from streaming.cluster.verdicts.group_findings import BECAUSE, NO_OFFSETS, NOT_ON_DISK, SHARES_NOT_READ, GroupFindings, with_damage
from streaming.cluster.verdicts.group_judge import Judgement, judge_groups
from streaming.cluster.verdicts.group_sentences import ENDED_BY_ITSELF, REASONS, Sentences
from streaming.common.units import TimeWords
from streaming.rules.transaction_verdicts import TransactionVerdict
from tests.builders import NOW
from tests.group_snapshots import FACTS, Group, snapshot_of
from tests.tables import each_row

BOUNDS = GroupBounds()
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
NEXT = BatchCheck(
    sound=True,
    base_offset=101,
    last_offset=101,
    size=921_600,
    codec="zstd",
    records=1,
    producer_id=7,
    position=3000,
    segment=40,
    file="/a b/orders-3/00000000000000000040.log",
    format=2,
    record_offset=101,
    record_bytes=2 << 20,
    neighbors=1000,
    unlike=["largest", "producer", "of a later version"],
)
HOLDING = HoldingTransaction(
    producer_id=7, producer_epoch=1, first_offset=100, start_ms=NOW - HOUR, last_append_ms=NOW - HOUR, transactional_id="pay 1"
)
CUT = replace(READING, history_epoch=3, history_ms=NOW - HOUR, history_at=80)
HELD = replace(
    READING,
    held=True,
    held_by=HOLDING,
    last_stable_offset=100,
    lag_records_read_committed=0,
    next_offset=-1,
    next_batch_bytes=-1,
    next_timestamp_ms=NOW - HOUR // 6,
)
SERVER = "--bootstrap-server kafka-1:9092"


def stated(
    *partitions: GroupPartition,
    name: str = "billing",
    redacted: bool = False,
    doubtful: bool = False,
    shares_unread: bool = False,
    away: Collection[int] = (),
    **facts: object,
) -> list[GroupFinding]:
    """The findings about a group with these partitions; ``doubtful``: nothing shows that one of the deleted offsets was a record."""
    group = Group(name=name, partitions=partitions, facts=facts)
    snapshot = snapshot_of(group, now_ms=NOW)
    if doubtful:
        doubts = np.ones(len(snapshot.rows), np.bool_)
        progress = replace(snapshot.progress, lost_ms=np.full(len(snapshot.rows), -1))
        snapshot = replace(snapshot, found=replace(snapshot.found, loss_doubtful=doubts), progress=progress)
    judged = judge_groups(snapshot, NOW)
    by_log = {(each.topic, each.partition): each for each in partitions}
    rows = [(row, by_log[log]) for row, log in enumerate(committed_logs(judged.snapshot))]
    every = [with_damage((of, judged.of_row(row))) for row, of in rows]
    summary = GroupSummary(
        group=name, partitions=len(partitions), **FACTS_OF_SUMMARY | {key: facts[key] for key in facts.keys() & FACTS_OF_SUMMARY}
    )
    findings = GroupFindings(
        summary=summary,
        commands=Commands(server="kafka-1:9092", redacted=redacted).of_group(name, summary.type),
        bounds=BOUNDS,
        now_ms=NOW,
        whole=judged.commits.shares.of(0 if rows else -1),
        shares_unread=shares_unread,
        away=away,
    )
    return findings.all_of(every, list(judged.about(name)))


def committed_logs(snapshot: GroupSnapshot) -> list[tuple[str, int]]:
    return [(snapshot.logs.topics[log], int(snapshot.logs.partition[log])) for log in snapshot.logs.of_row.tolist()]


FACTS_OF_SUMMARY = {name: FACTS[name] for name in ("type", "state", "members", "epoch", "protocol", "state_ms")}


def only(partition: GroupPartition) -> GroupFinding:
    (found,) = stated(partition)
    assert (found.topic, found.partition) == (partition.topic, partition.partition)
    return found


MOVED = MovedOffset(kind="admin", from_offset=40, to_offset=90, from_ms=NOW - 3 * HOUR, at_ms=NOW - 2 * HOUR, records=50)
"""By hand, two hours ago."""

GOLDEN = [
    (
        "lost",
        replace(READING, committed=30, lost_offsets=10, lost_records=8),
        "already deleted: 8 records between the committed offset 30 and the log start 40 were deleted unread, but for what its consumers "
        "had fetched by then. auto.offset.reset decides where its consumers go on: with none they fail until the offset is "
        "reset, with latest they skip what is left, with by_duration "
        "they skip what is older than that. Its consumers have to be stopped before an offset is reset",
        f"kafka-consumer-groups.sh {SERVER} --group billing --topic orders:3 --reset-offsets --to-earliest --execute",
    ),
    (
        "buffered",
        replace(READING, committed=30, buffered_offsets=10, buffered_records=8),
        "reads from memory: 8 records between the committed offset 30 and the log start 40 are deleted, and its consumers may have fetched "
        "them before. 8 records are lost if they are restarted now, or if members join or leave. What they do not have counts as lost when "
        "they go on at the log start",
        "",
    ),
    (
        "will_lose",
        replace(READING, loss_ms=NOW + HOUR, loss_records=20, loss_bytes=2048, retention_ms=6 * HOUR, next_timestamp_ms=NOW - 5 * HOUR),
        "its oldest unread records will be deleted at 2023-11-14T23:13:20Z (in 1h) unless they are read before: 20 records, 2.0 KiB, "
        "with all that is due at the same check. The command raises retention.ms from 6h to 12h: each replica of the topic keeps records "
        "on disk 6h longer",
        f"kafka-configs.sh {SERVER} --alter --entity-type topics --entity-name orders --add-config retention.ms=43200000",
    ),
    (
        "will_lose",
        replace(READING, loss_ms=NOW - 1, loss_records=20, loss_bytes=2048, retention_ms=6 * HOUR, retention_bytes=1000, loss_by_size=True),
        "its oldest unread records will be deleted by retention.bytes with the next check unless they are read before: "
        "20 records, 2.0 KiB, "
        "with all that is due at the same check. The command raises retention.bytes from 1000 B to 2.0 KiB: each replica of the topic "
        "takes up to 1000 B more on disk",
        f"kafka-configs.sh {SERVER} --alter --entity-type topics --entity-name orders --add-config retention.bytes=2000",
    ),
    (
        "lost",
        replace(READING, committed=30, lost_offsets=10, lost_records=10, lost_expired=True),
        "already deleted: 10 records between the committed offset 30 and the log start 40 were deleted unread, but for what its consumers "
        "had fetched by then; they were past the retention of their topic when they were written. auto.offset.reset decides where its "
        "consumers go on: with none they fail until the offset is reset, with latest they skip what is left, with by_duration they skip "
        "what is older than that. Its consumers have to be stopped before an offset is reset",
        f"kafka-consumer-groups.sh {SERVER} --group billing --topic orders:3 --reset-offsets --to-earliest --execute",
    ),
    (
        "will_lose",
        replace(READING, loss_ms=NOW - 1, retention_ms=6 * HOUR, next_timestamp_ms=NOW - 240 * HOUR, next_expired_ms=239 * HOUR),
        "its oldest unread records will be deleted with the next check unless they are read before. The next one was 9d 23h old when it "
        "was written, longer than its topic keeps records: with message.timestamp.type=LogAppendTime their time begins when they are "
        "written. The command raises retention.ms from 6h to 10d 6h: each replica of the topic keeps records on disk 10d longer",
        f"kafka-configs.sh {SERVER} --alter --entity-type topics --entity-name orders --add-config retention.ms=885600000",
    ),
    (
        "damaged",
        replace(READING, batch=BatchCheck(sound=False, error="CRC", position=3000, segment=40, last_offset=110)),
        "the next batch is damaged, and consumers cannot get over it: CRC, at byte 3000 of the segment 00000000000000000040.log, offset "
        "101. Another replica may have it whole, and has to lead then. If none has, a reset of the group to offset 111 loses what is in "
        "the batch",
        "",
    ),
    (
        "too_large",
        replace(READING, next_batch_bytes=3 << 20),
        "the next batch has 3.0 MiB, more than the 1.0 MiB that consumers fetch of a partition, offset 101. Kafka's own client gets it "
        "alone; others need a larger max.partition.fetch.bytes, or more memory",
        "",
    ),
    (
        "held",
        HELD,
        'held up by a transaction of producer 7 (transactional id "pay 1") open since 2023-11-14T21:13:20Z (1h ago): 50 offsets from 100 '
        "on cannot be read with read_committed until it ends",
        "",
    ),
    (
        "held",
        replace(HELD, held_by=replace(HOLDING, verdict="hanging", transactional_id="")),
        "held up by a transaction of producer 7, which is hanging, open since 2023-11-14T21:13:20Z (1h ago): 50 offsets from 100 on "
        "cannot be read with read_committed until it ends. No coordinator will end it. The abort discards its records: first make sure "
        "that its producer has ended",
        f"kafka-transactions.sh {SERVER} abort --topic orders --partition 3 --start-offset 100",
    ),
    (
        "beyond_end",
        GroupPartition(topic="orders", partition=3, committed=200, high_watermark=150, unknown="beyond_end"),
        "the committed offset 200 is beyond the end of the log, 150: perhaps too high an offset was committed, by hand or before its data "
        "was there, the topic was made anew while its consumers went on, or its log lost its end, as in a crash, with its directory, or by "
        "an unclean election that the metadata log does not show any more: nothing on disk shows which; up to 150 records are in the log, "
        "and which of them it has read is not on disk: to begin at the end skips them. auto.offset.reset decides where its consumers go "
        "on. Its consumers have to be stopped before an offset is reset",
        f"kafka-consumer-groups.sh {SERVER} --group billing --topic orders:3 --reset-offsets --to-earliest --execute",
    ),
    (
        "other_history",
        replace(CUT, history="cut_off", history_unclean=True, go_on_at=80, passed_records=20),
        "the committed offset 100 is not valid any more: an unclean election cut its log off at 80, after the commit: leader epoch 3 began "
        "at 2023-11-14T21:13:20Z (1h ago); 20 records are from there on, none of which it has read: its consumers skip them if they go on "
        "at this offset. Its consumers have to be stopped before an offset is reset",
        f"kafka-consumer-groups.sh {SERVER} --group billing --topic orders:3 --reset-offsets --to-offset 80 --execute",
    ),
    (
        "other_history",
        replace(CUT, history="parted", history_unclean=True, go_on_at=40, passed_records=90),
        "the committed offset 100 is perhaps not valid any more: perhaps an unclean election cut its log off at 80, after the commit "
        "(leader epoch 3 began at 2023-11-14T21:13:20Z (1h ago)), or too high an offset was committed before; 90 records are in the log, "
        "and which of them it has read is not on disk: its consumers skip them if they go on at this offset. Its consumers have to be "
        "stopped before an offset is reset",
        f"kafka-consumer-groups.sh {SERVER} --group billing --topic orders:3 --reset-offsets --to-earliest --execute",
    ),
    (
        "other_history",
        replace(CUT, history="parted", go_on_at=40, passed_records=90),
        "the committed offset 100 is perhaps not valid any more: the record before it is not in the log, which is of leader epoch 3 from "
        "80 on since 2023-11-14T21:13:20Z (1h ago). Perhaps its log lost its end, as in a crash, with its directory, or by an unclean "
        "election that the metadata log does not show any more, or the topic was made anew while its consumers went on; 90 records are in "
        "the log, and which of them it has read is not on disk: its consumers skip them if they go on at this offset. Its consumers have "
        "to be stopped before an offset is reset",
        f"kafka-consumer-groups.sh {SERVER} --group billing --topic orders:3 --reset-offsets --to-earliest --execute",
    ),
    (
        "other_history",
        replace(READING, history="resumed", history_ms=NOW - HOUR, history_at=90, go_on_at=40, passed_records=80),
        "the topic was deleted and made anew at 2023-11-14T21:13:20Z (1h ago), and the first offset that was committed in it, 90, is the "
        "one that was deleted with the old topic: offsets 40 to 89 were perhaps never read. Then the command reads them, and all that was "
        "read since once more. Its consumers have to be stopped before an offset is reset",
        f"kafka-consumer-groups.sh {SERVER} --group billing --topic orders:3 --reset-offsets --to-earliest --execute",
    ),
    (
        "pending",
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
        "stopped",
        replace(READING, stopped_since_ms=NOW - HOUR),
        "stopped: the committed offset 100 has not moved since 2023-11-14T21:13:20Z (1h ago) although the record at 101 is readable; 45 "
        "records left, 68.4 KiB, the next from 2023-11-14T22:13:11Z (9s ago). What is in the record was not looked at here. "
        "The disk does not show what its consumers do with the record",
        "",
    ),
    (
        "stopped",
        replace(READING, stopped_since_ms=NOW - HOUR, batch=NEXT),
        "stopped: the committed offset 100 has not moved since 2023-11-14T21:13:20Z (1h ago) although the record at 101 is readable; 45 "
        "records left, 68.4 KiB, the next from 2023-11-14T22:13:11Z (9s ago). The record at 101, the first one from there on, has 2.0 MiB "
        "and lies in a batch of 1 record, 900.0 KiB, zstd, producer 7. That batch is larger than all 1,000 around it; it is the first of "
        "its producer among 1,000 batches around it. The disk does not show what its consumers do with the record",
        "segtail dump --records --from-offset 101 --to-offset 101 '/a b/orders-3/00000000000000000040.log'",
    ),
    (
        "slower",
        replace(READING, consumed_rate=10.0, appended_rate=12.5, next_timestamp_ms=NOW - 30_000),
        "slower than its producers: 10.0 records/s are read and 12.5 appended, so it never catches up; 45 records left, 68.4 KiB, the "
        "next from 2023-11-14T22:12:50Z (30s ago)",
        "",
    ),
    (
        "fine",
        replace(READING, consumed_rate=10.0, appended_rate=12.5, next_timestamp_ms=NOW - 29_999),
        "fine: 45 records left, 68.4 KiB, the next from 2023-11-14T22:12:50Z (30s ago)",
        "",
    ),
    (
        "catching_up",
        replace(READING, consumed_rate=12.5, appended_rate=10.0, next_append_ms=NOW - 48_000),
        "catches up in 18s, at 2023-11-14T22:13:38Z: 12.5 records/s are read and 10.0 appended; 45 records left, 68.4 KiB, the next from "
        "2023-11-14T22:12:32Z (48s ago)",
        "",
    ),
    (
        "unknown",
        GroupPartition(topic="orders", partition=3, committed=200, unknown="leader_not_observed"),
        "not known: the log dirs of the partition's leader are not read here, or their agent does not answer",
        "",
    ),
    (
        "fine",
        GroupPartition(topic="orders", partition=3, committed=200, unknown="topic_gone"),
        "fine: the topic is gone",
        "",
    ),
    (
        "skipped",
        replace(READING, moves=[MOVED, replace(MOVED, from_offset=90, to_offset=100, records=10)]),
        "skipped: the committed offset went from 90 to 100 at 2023-11-14T20:13:20Z (2h ago), the last of 2 such moves, by hand, as "
        "kafka-consumer-groups.sh --reset-offsets does: the group had no members, and the log does not say who it was. "
        "Left unread: 60 records. Its consumers have to be stopped before an offset is reset",
        f"kafka-consumer-groups.sh {SERVER} --group billing --topic orders:3 --reset-offsets --to-offset 40 --execute",
    ),
    (
        "rewound",
        replace(
            READING, high_watermark=900, moves=[replace(MOVED, kind="consumer", from_offset=700, to_offset=100, records=-1, offsets=600)]
        ),
        "set back: the committed offset went from 700 to 100 at 2023-11-14T20:13:20Z (2h ago) by one of its own consumers, further than "
        "they go back to repeat what they had not committed. Between both: up to 600 records",
        "",
    ),
    (
        "rewound",
        replace(READING, moves=[replace(MOVED, kind="reset", from_offset=700, to_offset=100, records=1)]),
        "set back: the committed offset went from 700 to 100 at 2023-11-14T20:13:20Z (2h ago) from beyond the end of the log, as its "
        "consumers do by auto.offset.reset: records were cut off, or somebody had committed that. Between both: 1 record",
        "",
    ),
    (
        "only_markers",
        replace(READING, lag_offsets=2, lag_records_read_committed=0, next_offset=-1, next_batch_bytes=-1),
        "nothing to do: the last 2 offsets are only markers, aborted or compacted records",
        "",
    ),
    (
        "fine",
        READING,
        "fine: 45 records left, 68.4 KiB, the next from 2023-11-14T22:13:11Z (9s ago)",
        "",
    ),
    (
        "fine",
        replace(READING, lag_offsets=0, lag_records_read_committed=0, next_offset=-1, next_batch_bytes=-1),
        "fine: nothing is left to read",
        "",
    ),
]


@each_row(("kind", "partition", "text", "command"), GOLDEN)
def test_each_verdict_in_its_words(kind: str, partition: GroupPartition, text: str, command: str) -> None:
    found = only(partition)
    assert (found.verdict, found.text, found.command) == (kind, text, command)


def test_consumers_are_started_only_after_offsets_that_are_not_valid_are_set_back() -> None:
    ended = replace(CUT, history="cut_off", history_unclean=True, go_on_at=80, passed_records=20)
    texts = [next(each.text for each in stated(of, members=0, state="Empty") if each.verdict == "no_members") for of in (READING, ended)]
    assert ["Set back the offsets that are not valid, and only then start its consumers" in text for text in texts] == [False, True]


def test_nobody_goes_back_to_an_offset_of_a_history_that_has_ended() -> None:
    ended, moved = stated(replace(READING, moves=[MOVED], history="cut_off", history_epoch=3, go_on_at=50, passed_records=20))
    assert (ended.verdict, moved.verdict) == ("other_history", "skipped")
    assert ended.command.endswith("--to-offset 50 --execute")
    assert (moved.command, moved.no_command) == ("", "the history of its log in which it was moved has ended")


def test_what_expires_is_said_beside_how_the_group_goes_on() -> None:
    found = stated(replace(READING, expiration_ms=NOW + HOUR))
    assert [each.verdict for each in found] == ["will_expire", "fine"]
    assert found[0].text == (
        "its coordinator deletes the committed offset 100 at 2023-11-14T23:13:20Z (in 1h), when nobody has used it for "
        "offsets.retention.minutes; auto.offset.reset decides where its consumers begin then"
    )
    assert [each.verdict for each in stated(replace(READING, expiration_ms=NOW + 24 * HOUR))] == ["fine"]


def test_what_was_skipped_is_not_skipped_once_more_by_the_command_that_brings_it_back() -> None:
    for committed, command in ((41, True), (40, False), (30, False)):
        found = only(replace(READING, committed=committed, moves=[MOVED]))
        assert found.verdict == "skipped"
        assert bool(found.command) == command
        assert found.no_command == ("" if command else "it is back before that offset, and reads on from there")


def went_on(records: int, offsets: int, **changes: object) -> str:
    partition = replace(READING, lost_lately_records=records, lost_lately_offsets=offsets, lost_lately_ms=NOW - 2 * HOUR, **changes)
    return stated(partition)[0].text


def test_the_loss_of_a_group_that_has_gone_on_is_shown_with_what_was_not_counted() -> None:
    counts = [went_on(*each).partition(" deleted unread, last at ")[0] for each in ((1, 0), (1200, 0), (0, 1), (3, 2000))]
    what = ["at least 1 record was", "at least 1,200 records were", "up to 1 record was", "at least 3 records and up to 2,000 more were"]
    assert counts == [f"within the last 24 hours {each}" for each in what]
    assert went_on(3, 0).endswith("(2h ago); it has gone on behind them")
    assert went_on(3, 0, unknown="leader_not_observed").endswith("(2h ago)")
    assert went_on(-1, -1).startswith("records were deleted unread, last at "), "as an earlier job says"


LOST = replace(READING, committed=30, lost_offsets=10, lost_records=8)
LOSING = replace(LOST, lost_lately_records=500, lost_lately_offsets=0, lost_lately_ms=NOW - 1000)
"""It has lost something all the time."""


def losing(**changes: object) -> GroupFinding:
    findings = GroupFindings(
        summary=GroupSummary(group="billing", type="Classic", protocol="consumer", members=2),
        commands=Commands(server="kafka-1:9092").of_group("billing", "Classic"),
        bounds=BOUNDS,
        now_ms=NOW,
    )
    return findings.of_partition(replace(LOSING, **changes), Judgement(1, GroupVerdict.LOST, NOW - HOUR))


def test_who_stands_below_the_log_start_is_offered_a_reset_beside_all_that_was_lost_of_late() -> None:
    found = losing()
    assert found.text.startswith("already deleted: 8 records between the committed offset 30 and the log start 40 were deleted unread")
    assert ". Within the last 24 hours at least 500 records were deleted unread in all. auto.offset.reset decides" in found.text
    assert found.command.endswith("--to-earliest --execute")


def test_who_has_in_memory_what_is_deleted_is_offered_no_command_also_where_it_has_lost_other_records() -> None:
    buffered = {"lost_offsets": 0, "lost_records": 0, "buffered_offsets": 10, "buffered_records": -1}
    assert losing(**buffered).text.startswith("within the last 24 hours at least 500 records were deleted unread, last at ")
    found = {
        each.verdict: (each.severity, each.text.lower().count("up to 10 records"), each.command)
        for each in stated(replace(LOSING, **buffered))
    }
    assert found == {"lost": ("warning", 0, ""), "buffered": ("info", 2, "")}


def test_what_is_all_that_was_lost_of_late_is_stated_once() -> None:
    assert "24 hours" not in losing(lost_lately_records=8).text
    assert "24 hours" not in losing(lost_lately_records=-1, lost_lately_offsets=-1, lost_lately_ms=-1).text


NOTHING_LEFT = replace(LOST, lag_offsets=110, lag_records_read_committed=0, next_offset=-1, next_batch_bytes=-1)
BEYOND = replace(READING, committed=900, unknown="beyond_end", lag_records_read_committed=-1, lag_offsets=-1, next_offset=-1)
START_AGAIN = (
    "and something is left to read. Start its consumers: of what they subscribe to, they read on where it has committed. If nobody needs "
    "the group, kafka-consumer-groups.sh --delete removes it"
)
DECIDED = [
    ({"type": "Share", "protocol": "share"}, "Its consumers go on with what is left, without a reset", "until the log has grown so far"),
    ({"type": "Streams", "protocol": "streams"}, "The reset policy that the topology has for the topic decides", "the topology has"),
    (
        {"type": "Classic", "protocol": ""},
        "Its consumers go on where they seek to, or else auto.offset.reset decides",
        "where they seek to",
    ),
    ({"type": "Consumer", "protocol": "consumer"}, "auto.offset.reset decides where its consumers go on", "auto.offset.reset decides"),
]


@each_row(("facts", "lost", "beyond"), DECIDED)
def test_where_consumers_go_on_is_what_decides_it_for_their_type_of_group(facts: Mapping[str, object], lost: str, beyond: str) -> None:
    share = facts["type"] == "Share"
    for partition, text in ((LOST, lost), (BEYOND, beyond)):
        (found,) = stated(partition, members=0, state="Stable", **facts)
        assert text in found.text
        assert ("auto.offset.reset" in found.text) == (not share), "share groups have none"
        assert found.command.startswith("kafka-consumer-groups.sh") == (not share)


@each_row(
    ("facts", "command"),
    [
        ({}, True),  # its members may fail with auto.offset.reset=none until the offset is reset
        ({"type": "Classic", "protocol": "", "members": 0, "epoch": 0, "state": "Empty"}, True),  # so may who assigns partitions to itself
        ({"members": 0, "state": "Empty"}, False),
        ({"members": 0, "state": "Empty", "type": "Share", "protocol": "share"}, False),
    ],
)
def test_who_has_lost_everything_and_has_nothing_left_gets_nothing_back(facts: Mapping[str, object], command: bool) -> None:
    found = next(each for each in stated(NOTHING_LEFT, **facts) if each.verdict == "lost")
    assert "Nothing is left there, and no command brings back what was deleted" in found.text
    assert bool(found.command) == command
    left = next(each for each in stated(LOST, **facts) if each.verdict == "lost")
    assert "Nothing is left" not in left.text
    assert bool(left.command) == (facts.get("type") != "Share")


def test_a_share_group_has_commands_of_its_own_tool_or_none() -> None:
    lost, beyond = (stated(each, type="Share", protocol="share")[0] for each in (LOST, BEYOND))
    assert (lost.command, lost.no_command) == ("", "a share group goes on at the log start by itself")
    assert "between the start offset 30 and the log start 40" in lost.text
    assert "stopped before" not in lost.text, "there is nothing to reset"
    assert beyond.command == f"kafka-share-groups.sh {SERVER} --group billing --topic orders:3 --reset-offsets --to-earliest --execute"
    assert beyond.text.endswith("Its consumers have to be stopped before an offset is reset")
    damaged = replace(READING, batch=BatchCheck(sound=False, error="its CRC is wrong", last_offset=120, segment=40, position=3000))
    (found,) = stated(damaged, type="Share", protocol="share")
    assert (found.command, found.no_command) == ("", "a reset to after it loses its records")
    (stopped,) = stated(replace(READING, stopped_since_ms=NOW - HOUR), type="Share", protocol="share")
    assert "the start offset 100 has not moved, and nothing after it was done with, since" in stopped.text


def test_the_verdicts_about_a_group_as_a_whole() -> None:
    late = replace(READING, partition=4, lag_records_read_committed=9000)
    found = stated(READING, late, members=0, state="Empty", state_ms=NOW - HOUR)
    assert [(each.verdict, each.partition) for each in found if each.verdict not in FINDINGS] == [("fine", 4), ("fine", 3)]
    assert [(each.verdict, each.topic, each.partition, each.text) for each in found if each.verdict in FINDINGS] == [
        ("skewed", "orders", 4, "this partition has 99 % of the lag: 9,000 of 9,045 records"),
        ("no_members", "", -1, f"it has had no member since 2023-11-14T21:13:20Z (1h ago), {START_AGAIN}"),
    ]


def test_of_what_stands_still_in_a_group_without_members_that_is_the_cause() -> None:
    stopped, held = replace(READING, stopped_since_ms=NOW - HOUR), replace(HELD, partition=4, loss_ms=NOW + HOUR)
    found = stated(stopped, held, members=0, state="Empty", state_ms=NOW - HOUR)
    cause, effect = (each for each in found if each.partition in (-1, 3) and each.verdict in ("no_members", "stopped"))
    assert cause.text == f"the cause is that it has had no member since 2023-11-14T21:13:20Z (1h ago), {START_AGAIN}"
    assert (effect.because, "does not show" in effect.text) == ("no_members", False)
    assert {each.because for each in found if each.partition == 4} == {"", "held"}
    assert "does not show" in next(each for each in stated(stopped, members=1) if each.verdict == "stopped").text


UNCOUNTED = {"lag_records_read_committed": -1, "lag_records_read_uncommitted": -1, "lag_bytes": -1, "next_offset": -1}


def skews(*partitions: GroupPartition) -> list[str]:
    """What is said of the partition that has most of the lag."""
    return [each.text for each in stated(*partitions) if each.verdict == "skewed"]


def test_records_are_never_held_against_offsets() -> None:
    """Of a compacted log offsets are many and records few: where one partition is not counted, offsets are compared of all of them."""
    sparse = replace(READING, partition=4, lag_offsets=9000, unknown="filling", **UNCOUNTED)
    dense = replace(READING, partition=5, lag_offsets=9100, lag_records_read_committed=200)
    assert skews(sparse, dense) == [], "9,000 offsets are not 97 % of 9,200"
    few = replace(dense, lag_offsets=1000, lag_records_read_committed=1000)
    assert skews(sparse, few) == ["this partition has 90 % of the lag: 9,000 of 10,000 offsets"]
    assert skews(replace(sparse, lag_offsets=999), replace(dense, lag_offsets=0, lag_records_read_committed=0)) == []
    assert skews(few, replace(few, partition=6, lag_records_read_committed=5)) == [
        "this partition has 99 % of the lag: 1,000 of 1,005 records"
    ]


def test_no_partition_has_most_of_a_lag_that_is_not_known() -> None:
    late = replace(READING, partition=4, lag_records_read_committed=9000, lag_offsets=9000)
    nowhere = replace(READING, partition=5, lag_offsets=-1, unknown="leader_not_observed", **UNCOUNTED)
    assert skews(late, READING) == ["this partition has 99 % of the lag: 9,000 of 9,045 records"]
    assert skews(late, READING, nowhere) == []
    gone = replace(nowhere, unknown="topic_gone")
    assert skews(late, READING, gone) == ["this partition has 99 % of the lag: 9,000 of 9,045 records"], "nothing is left of it"
    assert skews(late, gone) == [], "there is no other"


def test_no_partition_has_most_of_a_lag_while_an_agent_does_not_answer() -> None:
    unanswered = replace(READING, partition=4, lag_offsets=9000, unknown="leader_not_observed", **UNCOUNTED)
    assert skews(unanswered, replace(unanswered, partition=5, lag_offsets=40)) == []
    assert skews(unanswered, READING) == []


REASONS_BESIDE = ("leader_not_observed", "filling", "remote_log_start", "damaged", "commit_newer")


@pytest.mark.parametrize("reason", REASONS_BESIDE)
@pytest.mark.parametrize("verdict", ["lost", "went on", "stopped", "pending", "perhaps_lost"])
def test_why_a_lag_is_not_known_is_reported_beside_what_was_found(reason: str, verdict: str) -> None:
    unknown = replace(READING, unknown=reason, **UNCOUNTED)
    beside = {
        "lost": {"committed": 30, "lost_offsets": 10, "lost_records": 8},
        "went on": {"lost_lately_records": 3, "lost_lately_offsets": 0, "lost_lately_ms": NOW - HOUR},
        "stopped": {"stopped_since_ms": NOW - HOUR},
        "pending": {"pending": [PendingOffset(producer_id=1, offset=2, coordinator=3, since_ms=NOW - HOUR)]},
        "perhaps_lost": {"committed": 30, "lost_offsets": 10, "lost_records": -1},
    }[verdict]
    found = stated(replace(unknown, **beside), doubtful=verdict == "perhaps_lost")
    assert {each.verdict for each in found} == {verdict.replace("went on", "lost"), "unknown"}
    (doubt,) = (each for each in found if each.verdict == "unknown")
    assert (doubt.severity, doubt.text) == ("", only(unknown).text if verdict != "went on" else f"not known: {REASONS[reason]}")


def test_what_no_lag_is_needed_for_is_not_unknown() -> None:
    assert [each.verdict for each in stated(replace(BEYOND, stopped_since_ms=NOW - HOUR))] == ["beyond_end", "stopped"]
    lost = {"committed": 30, "lost_offsets": 10, "lost_records": 8}
    assert [each.verdict for each in stated(replace(READING, unknown="topic_gone", **lost, **UNCOUNTED))] == ["lost"]
    assert [each.verdict for each in stated(replace(READING, **lost))] == ["lost"]


def test_every_kind_has_a_golden_text() -> None:
    others = {
        "skewed",
        "no_members",
        "perhaps_lost",
        "between_runs",
        "no_offsets",
        "not_committed",
        "rebalancing",
        "left_over",
        "will_expire",
    }
    missing = {each.label for each in GroupVerdict} - {kind for kind, *_ in GOLDEN} - others
    assert not missing, f"GOLDEN has no row of {missing}"


@pytest.mark.parametrize(
    ("members", "protocol", "kind"), [(2, "consumer", "unknown"), (0, "consumer", "no_offsets"), (2, "connect", "no_offsets")]
)
def test_what_consumers_without_a_committed_offset_have_read_is_not_known(members: int, protocol: str, kind: str) -> None:
    (verdict,) = stated(members=members, protocol=protocol)
    assert (verdict.verdict, verdict.text) == (kind, NOT_ON_DISK if kind == "unknown" else NO_OFFSETS)


def test_every_reason_for_which_a_lag_is_not_known_has_a_sentence() -> None:
    assert {str(reason) for reason in LagReason} <= set(REASONS)


def test_of_records_that_will_be_lost_those_come_first_that_are_lost_first() -> None:
    far, near = (
        replace(READING, partition=number, lag_records_read_committed=lag, lag_offsets=lag, loss_ms=NOW + loss, next_append_ms=NOW - HOUR)
        for number, lag, loss in ((1, 900, 600_000), (2, 9, 8_000))
    )
    assert [(each.verdict, each.partition) for each in stated(far, near) if each.verdict == "will_lose"] == [
        ("will_lose", 2),
        ("will_lose", 1),
    ]


def test_a_list_of_groups_shows_the_worst_of_what_is_stated_of_their_partitions() -> None:
    def listed(*partitions: GroupPartition, **facts: object) -> tuple[str, str]:
        judged = judge_groups(snapshot_of(Group(partitions=partitions, facts=facts), now_ms=NOW), NOW)
        worst = judged.of_group("billing", 0 if partitions else -1)
        return worst.verdict.label, worst.word

    unknown = replace(READING, partition=5, unknown="filling")
    stopped = replace(READING, partition=6, stopped_since_ms=NOW - HOUR)
    beyond = GroupPartition(topic="orders", partition=7, committed=200, high_watermark=150, unknown="beyond_end")
    gone = GroupPartition(topic="gone", partition=0, committed=2, unknown="topic_gone")
    assert listed(READING) == listed(READING, gone) == ("fine", "")
    assert listed(READING, unknown) == ("unknown", "")
    assert listed(unknown, stopped) == ("stopped", "warning")
    assert listed(replace(READING, partition=6), members=0, state="Empty") == ("no_members", "info")
    assert listed(beyond, stopped) == ("beyond_end", "warning")
    assert listed(replace(HELD, partition=8), LOST) == ("lost", "warning")
    assert listed(replace(LOST, lost_records=0)) == ("fine", "")


@each_row(
    ("partition", "severity"),
    [
        (replace(READING, loss_ms=NOW + 2 * HOUR, next_timestamp_ms=NOW - 9 * HOUR), "critical"),
        (replace(READING, loss_ms=NOW + 10 * HOUR, next_timestamp_ms=NOW - 20 * HOUR), "info"),
        (replace(READING, loss_ms=NOW + 4 * HOUR - 1, next_timestamp_ms=NOW - 4 * HOUR), "critical"),
        (replace(READING, loss_ms=NOW + 4 * HOUR, next_timestamp_ms=NOW - 5 * HOUR), "info"),
        (replace(READING, committed=30, lost_offsets=10, lost_records=5), "warning"),
        (replace(READING, stopped_since_ms=NOW - HOUR), "warning"),
        (replace(HELD, next_offset=101, next_timestamp_ms=NOW - 900_001), "warning"),
        (replace(HELD, next_offset=101, next_timestamp_ms=NOW - 900_000), ""),
    ],
)
def test_how_bad_it_is(partition: GroupPartition, severity: str) -> None:
    """As in the alerts, whose bounds these are."""
    assert stated(partition)[0].severity == severity
    assert stated(partition, name="console-consumer-7")[0].severity == ""


def test_a_group_that_never_had_members_or_has_read_everything_lacks_none() -> None:
    read = replace(READING, lag_offsets=0, lag_records_read_committed=0, next_offset=-1, next_batch_bytes=-1)
    assert not any(each.verdict in FINDINGS for each in stated(READING, members=0, state="Empty", epoch=0))
    assert not any(each.verdict in FINDINGS for each in stated(READING, members=-1, state="", epoch=-1))
    assert not any(each.verdict in FINDINGS for each in stated(read, members=0, state="Empty"))


def test_a_consumer_that_keeps_up_loses_nothing_though_retention_deletes_everything_one_day() -> None:
    soon = replace(READING, loss_ms=NOW + HOUR, loss_records=20, loss_bytes=2048, retention_ms=9 * HOUR)

    def kind(**values: object) -> str:
        return stated(replace(soon, **values))[0].verdict  # type: ignore[arg-type]

    assert kind(next_timestamp_ms=NOW - HOUR) == "will_lose"
    assert kind(next_timestamp_ms=NOW - HOUR + 1) == "fine"
    assert kind(next_timestamp_ms=NOW - HOUR, next_append_ms=NOW - HOUR + 1) == "fine"
    assert kind(next_timestamp_ms=NOW - HOUR + 1, stopped_since_ms=NOW - 1000) == "will_lose"
    assert kind(next_timestamp_ms=-1) == "will_lose"
    assert kind(next_timestamp_ms=NOW + 5) != "will_lose"  # appended after the moment as of which it is judged
    old = NOW - 8 * HOUR
    later = NOW + 5 * HOUR
    assert kind(next_timestamp_ms=old, consumed_rate=1.0, appended_rate=0.0, loss_ms=later) == "catching_up"
    assert kind(next_timestamp_ms=old, consumed_rate=0.001, appended_rate=0.0, loss_ms=later) == "will_lose"
    assert kind(next_timestamp_ms=old, consumed_rate=1.0, appended_rate=0.0) == "catching_up"
    assert kind(next_timestamp_ms=old, consumed_rate=1.0, appended_rate=0.0, stopped_since_ms=NOW - 1000) == "will_lose"
    assert kind(next_timestamp_ms=old, loss_ms=NOW + 25 * HOUR) == "fine"


def test_a_group_that_waits_for_a_transaction_of_seconds_loses_nothing_though_little_is_kept() -> None:
    held = replace(HELD, loss_ms=NOW + 60_000, next_timestamp_ms=NOW - 12_000)
    assert only(held).verdict == "held"
    both = stated(replace(held, next_timestamp_ms=NOW - 60_000))
    assert [(each.verdict, each.because) for each in both] == [("held", ""), ("will_lose", "held")]


def test_the_transaction_that_holds_a_group_up_comes_before_what_it_loses_and_nothing_mends_the_effect() -> None:
    lost = {"committed": 30, "lost_offsets": 9, "lost_records": 9, "loss_ms": NOW + HOUR, "next_timestamp_ms": NOW - 2 * HOUR}
    held = replace(HELD, **lost, loss_by_size=True, retention_bytes=1000)
    stuck = replace(HOLDING, stuck=True, verdict="open", deadline_ms=NOW + HOUR)
    cause, *effects = stated(replace(held, held_by=stuck))
    assert cause.text.startswith('the cause is that it is held up by a transaction of producer 7 (transactional id "pay 1") open since ')
    assert "Its coordinator ends it at 2023-11-14T23:13:20Z (in 1h) if its producer does not. If its producer is gone" in cause.text
    assert cause.command == f"kafka-transactions.sh {SERVER} forceTerminateTransaction --transactionalId 'pay 1'"
    assert [(each.verdict, each.because, each.command) for each in effects] == [("will_lose", "held", ""), ("lost", "held", "")]
    assert effects[1].no_command == "no reset helps before the open transaction has ended"
    assert "Nothing is left" not in effects[1].text
    by_a_client = stated(replace(held, held_by=stuck, log_start=50, next_offset=100, next_segment=0))
    assert {each.verdict: each.because for each in by_a_client} == {"held": "", "will_lose": "held", "lost": ""}
    before = stated(replace(held, held_by=stuck, lost_offsets=0, lost_lately_records=9, lost_lately_ms=NOW - HOUR))
    assert {each.verdict: each.because for each in before} == {"held": "", "will_lose": "held", "lost": ""}


def test_the_limit_that_is_printed_keeps_a_record_of_an_old_stamp_for_a_further_limit() -> None:
    """Rounded up to an hour: twice the limit would delete it at once."""
    loses = replace(READING, next_timestamp_ms=NOW - 40 * HOUR + 1, loss_ms=NOW, retention_ms=6 * HOUR)
    assert stated(loses)[0].command.endswith(f"retention.ms={46 * HOUR}")
    assert stated(replace(loses, next_timestamp_ms=NOW - 40 * HOUR - 1))[0].command.endswith(f"retention.ms={47 * HOUR}")
    assert stated(replace(loses, next_timestamp_ms=-1))[0].command.endswith(f"retention.ms={12 * HOUR}")


def test_what_a_command_that_reads_once_could_not_count_was_deleted_meanwhile() -> None:
    uncounted = replace(READING, unknown="filling", lag_offsets=-1, lag_records_read_committed=-1)
    assert "were deleted while they were read here; ask again, or ask a job" in only(uncounted).text
    watched = replace(uncounted, lost_lately_records=0, lost_lately_offsets=0)
    assert "the segments of the partition are still being counted" in only(watched).text


def test_a_group_that_reads_nothing_is_not_given_a_rate() -> None:
    old = replace(READING, consumed_rate=0.0, appended_rate=100.0, next_timestamp_ms=NOW - HOUR)
    assert only(old).text.startswith("nothing was read lately, while 100.0 records/s are appended; 45 records left")


def test_commits_of_a_transaction_that_has_just_begun_do_not_wait() -> None:
    pending = PendingOffset(producer_id=9, offset=120, coordinator=17, since_ms=NOW - 1000)
    for start_ms in (-1, NOW - HOUR):  # how long the transaction has been open without commits is no matter
        assert only(replace(READING, pending=[replace(pending, start_ms=start_ms)])).verdict == "fine"
        waits = only(replace(READING, pending=[replace(pending, start_ms=start_ms, since_ms=NOW - HOUR)]))
        assert (waits.verdict, waits.severity, waits.since_ms) == ("pending", "", NOW - HOUR)
    stopped = replace(READING, stopped_since_ms=NOW - HOUR)
    assert [(each.verdict, each.severity) for each in stated(replace(stopped, pending=[replace(pending, since_ms=NOW - 600_001)]))] == [
        ("pending", "warning"),
        ("stopped", "warning"),
    ]
    assert stated(replace(stopped, pending=[replace(pending, since_ms=NOW - 600_000)]))[-1].severity == ""


def test_when_a_coordinator_ends_a_transaction_is_stated_where_it_is_known() -> None:
    holding = replace(HOLDING, deadline_ms=NOW + HOUR, verdict="open")
    ends = "Its coordinator ends it at 2023-11-14T23:13:20Z (in 1h) if its producer does not"
    assert only(replace(HELD, held_by=holding)).text.endswith(f"until it ends. {ends}")
    passed = replace(holding, deadline_ms=NOW - HOUR, verdict="overdue")
    assert only(replace(HELD, held_by=passed)).text.endswith("Its timeout has passed at 2023-11-14T21:13:20Z (1h ago)")
    pending = PendingOffset(producer_id=9, offset=120, coordinator=17, since_ms=NOW - HOUR, deadline_ms=NOW + HOUR)
    assert only(replace(READING, pending=[pending])).text.endswith(f"UNSTABLE_OFFSET_COMMIT. {ends}")


@each_row(
    "verdict, ends",
    [
        ("open", "its end is written only when that is started"),
        ("hanging", "no coordinator will end it, and the abort is written only when that is started"),
    ],
)
def test_nobody_ends_the_transaction_that_holds_a_group_up_while_the_broker_of_the_partition_is_away(verdict: str, ends: str) -> None:
    held = replace(HELD, broker=2, held_by=replace(HOLDING, deadline_ms=NOW + HOUR, verdict=verdict))
    (found,) = stated(held, away=[2])
    assert found.text.endswith(f"Broker 2 is down: {ends}")
    assert "its coordinator ends it at" not in found.text
    assert (found.command, found.no_command) == ("", "broker 2 is down: start it first")
    (elsewhere,) = stated(held, away=[1])
    assert "is down" not in elsewhere.text


def test_why_a_transaction_is_not_to_be_aborted_is_stated_of_each_verdict() -> None:
    for label in (each.label for each in TransactionVerdict):
        found = only(replace(HELD, held_by=replace(HOLDING, verdict=label)))
        assert (found.command != "") == (label == "hanging")
        assert (label in ENDED_BY_ITSELF) == (label not in ("hanging", "unknown", "unclaimed"))
        assert found.no_command == ENDED_BY_ITSELF.get(label, found.no_command)


def test_a_transaction_that_begins_after_the_time_of_the_judgement_is_given_no_age() -> None:
    found = only(replace(HELD, held_by=replace(HOLDING, start_ms=NOW + HOUR)))
    assert "open since 2023-11-14T23:13:20Z (after the time asked for): 50 offsets" in found.text


def test_a_group_whose_commits_were_deleted_has_none_any_more() -> None:
    assert stated(members=0)[0].text == "it has no committed offsets, or none any more"


def test_only_markers_that_were_deleted_are_no_loss() -> None:
    assert only(replace(READING, committed=30, lost_offsets=10, lost_records=0)).verdict == "fine"


def test_a_partition_that_has_two_faults_is_given_both() -> None:
    found = stated(replace(READING, loss_ms=NOW, stopped_since_ms=NOW - HOUR))
    assert [each.verdict for each in found] == ["will_lose", "stopped"]


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
    (found,) = stated(LOST, name=name, redacted=redacted)
    assert (found.command, found.no_command) == ("", reason)


def test_a_name_that_a_shell_would_take_apart_is_quoted() -> None:
    (found,) = stated(LOST, name="it's; rm -rf $HOME")
    assert """ --group 'it'"'"'s; rm -rf $HOME' --topic orders:3 """ in found.command


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
    batch=st.sampled_from([None, BatchCheck(sound=True), BatchCheck(sound=False, error="x")]),
    pending=st.lists(
        st.builds(PendingOffset, producer_id=st.just(1), offset=st.just(2), coordinator=st.just(3), since_ms=INTEGERS), max_size=2
    ),
)
FACTS_OF_GROUPS = st.fixed_dictionaries(
    {"members": st.integers(-1, 1), "epoch": st.integers(-1, 1), "state": st.sampled_from(["Empty", "Stable", ""])}
)


@given(st.lists(PARTITIONS, max_size=4, unique_by=lambda each: (each.topic, each.partition)), FACTS_OF_GROUPS, st.randoms())
def test_every_partition_has_a_verdict_the_worst_come_first_and_their_order_is_total(partitions, facts, random) -> None:
    found = stated(*partitions, **facts)
    assert found
    assert {(each.topic, each.partition) for each in partitions} <= {(each.topic, each.partition) for each in found}
    plain = [each for each in found if not each.because and not each.text.startswith(BECAUSE)]
    ranks = [([*SEVERITIES, ""].index(each.severity), GroupVerdict[each.verdict.upper()]) for each in plain]
    assert ranks == sorted(ranks)
    for at, each in enumerate(found):
        places = (each.topic, each.partition), ("", -1)
        causes = [one for one in found[:at] if (one.topic, one.partition) in places and one.verdict == each.because]
        assert bool(causes) == bool(each.because)
    for each in partitions:
        own = [one for one in found if (one.topic, one.partition) == (each.topic, each.partition) and one.verdict != "skewed"]
        assert own
        assert len({one.verdict for one in own}) == len(own)
        assert len(own) == 1 or all(one.verdict in FINDINGS or one.verdict == "unknown" for one in own)
        broken = each.batch is not None and not each.batch.sound  # and that is why
        assert broken or (each.unknown == "filling") <= ("unknown" in {one.verdict for one in own}), "whatever else was found"
    assert stated(*random.sample(partitions, len(partitions)), **facts) == found
    assert all(one.text and (one.command == "" or one.no_command == "") for one in found)


@given(
    st.builds(
        GroupPartition,
        topic=st.just("a"),
        partition=st.just(0),
        committed=st.integers(0, 20),
        log_start=st.integers(0, 9),
        high_watermark=st.integers(9, 15),
        unknown=st.sampled_from(["", "beyond_end"]),
        lost_offsets=st.integers(0, 1),
        history=st.sampled_from(["", "made_anew", "cut_off", "parted", "resumed"]),
        go_on_at=st.integers(0, 9),
        passed_records=st.integers(0, 9),
        batch=st.sampled_from([None, BatchCheck(sound=False, last_offset=12, file="/d/a-0/0.log")]),
        stopped_since_ms=st.sampled_from([-1, NOW - HOUR]),
        moves=st.lists(
            st.builds(
                MovedOffset, kind=st.sampled_from(["admin", "consumer"]), from_offset=st.integers(0, 20), to_offset=st.integers(0, 20)
            ),
            max_size=3,
        ),
    )
)
def test_no_command_goes_over_what_may_not_be_read(partition: GroupPartition) -> None:
    for each in stated(partition):
        assert "--to-latest" not in each.command
        if "--to-offset" in each.command:
            offset = int(each.command.split("--to-offset ")[1].split()[0])
            assert offset <= partition.committed or offset == partition.go_on_at, each


@each_row(("segment", "by_a_client"), [(0, True), (39, True), (40, False), (-1, False)])
def test_a_log_start_inside_a_segment_shows_who_deleted(segment: int, by_a_client: bool) -> None:
    found = only(replace(READING, committed=30, lost_offsets=10, lost_records=8, next_segment=segment))
    assert ("The log start lies inside a segment, as DeleteRecords sets it" in found.text) is by_a_client


def test_consumers_are_to_be_stopped_only_where_there_are_some() -> None:
    lost = replace(READING, committed=30, lost_offsets=1, lost_records=1)
    (found,) = stated(lost, members=0, state="Stable")
    assert found.text.startswith("already deleted: 1 record between the committed offset 30 and the log start 40 was deleted unread.")
    assert "stopped" not in found.text
    (found,) = stated(lost, members=1)
    assert found.text.endswith("Its consumers have to be stopped before an offset is reset")


RAISES = ". The command raises retention.ms from 6h to 12h: each replica of the topic keeps records on disk 6h longer"


def test_a_loss_is_between_two_checks_and_takes_between_two_numbers_of_records() -> None:
    loses = replace(READING, loss_ms=NOW + HOUR, loss_records=36, loss_bytes=2048, retention_ms=6 * HOUR, next_timestamp_ms=NOW - 5 * HOUR)
    between = replace(loses, loss_latest_ms=NOW + HOUR + 300_000, loss_records_least=9, loss_bytes_least=512)
    assert stated(between)[0].text == (
        "its oldest unread records will be deleted between 2023-11-14T23:13:20Z (in 1h) and 2023-11-14T23:18:20Z "
        f"unless they are read before: between 9 and 36 records, at most 2.0 KiB, with all that is due at the same check{RAISES}"
    )
    due = replace(between, loss_ms=NOW - 1000, loss_latest_ms=NOW + 300_000, loss_records_least=36)
    assert stated(due)[0].text == (
        "its oldest unread records will be deleted with the next check, by 2023-11-14T22:18:20Z, unless they are read before: "
        f"36 records, 2.0 KiB, with all that is due at the same check{RAISES}"
    )


def test_what_is_due_where_a_broker_is_away_goes_when_it_is_started_and_is_a_warning_before() -> None:
    """No time is known, and nobody can read it before: whoever starts the broker has to know it."""
    due = replace(READING, loss_start_of=2, loss_records_least=9, loss_bytes_least=512, retention_ms=6 * HOUR, next_timestamp_ms=-1)
    found = only(due)
    assert (found.verdict, found.severity) == ("will_lose", "warning")
    assert found.text == (
        "its oldest unread records will be deleted by the first check after broker 2 is started, some 30 seconds later, unless they are "
        f"read before: at least 9 records, which are due now{RAISES}"
    )
    assert found.command.endswith("--add-config retention.ms=43200000")
    assert only(replace(due, loss_records_least=-1)).text.endswith(f"unless they are read before{RAISES}")


def test_limits_that_are_assumed_are_reported_in_words() -> None:
    later = replace(READING, loss_ms=NOW + 48 * HOUR, limits_assumed=True)
    assert only(later).text.endswith("; when it will be deleted is not sure, because the limits are assumed")
    (soon,) = stated(replace(later, loss_ms=NOW, loss_records=1, loss_bytes=5))
    assert soon.text == (
        "its oldest unread records will be deleted by limits that are assumed, with the next check unless they are read before: "
        "1 record, 5 B, with all that is due at "
        "the same check"
    )
    assert (soon.command, soon.no_command) == ("", "its limits are not known")


BEHIND = replace(READING, consumed_rate=0.0, appended_rate=8.0, next_timestamp_ms=NOW - HOUR)


def test_a_deserted_group_lacks_members_and_is_not_slower() -> None:
    found = stated(BEHIND, members=0, state="Empty")
    assert [each.verdict for each in found] == ["no_members", "fine"]
    assert only(BEHIND).verdict == "slower"


def test_a_deserted_group_lacks_members_and_does_not_catch_up() -> None:
    read_lately = replace(BEHIND, consumed_rate=9.0)
    found = stated(read_lately, members=0, state="Empty")
    assert [each.verdict for each in found] == ["no_members", "fine"]
    assert only(read_lately).verdict == "catching_up"


def test_a_group_whose_commits_wait_in_a_transaction_is_not_slower_for_that() -> None:
    waits = PendingOffset(producer_id=9, offset=120, coordinator=17, since_ms=NOW - BOUNDS.pending_after_ms - 1)
    assert [each.verdict for each in stated(replace(BEHIND, pending=[waits]))] == ["pending"]
    assert only(replace(BEHIND, pending=[replace(waits, since_ms=NOW - BOUNDS.pending_after_ms)])).verdict == "slower"


def test_nobody_is_slower_than_producers_that_append_nothing() -> None:
    assert only(replace(BEHIND, appended_rate=0.049)).verdict == "fine"
    assert only(replace(BEHIND, appended_rate=0.05)).verdict == "slower"


def test_a_group_whose_log_is_counted_anew_is_not_slower_than_its_producers() -> None:
    recounted = replace(BEHIND, unknown="filling", next_offset=-1, next_timestamp_ms=-1, lag_records_read_committed=-1)
    assert only(recounted).verdict == "unknown"


def test_a_group_that_stands_while_its_log_is_counted_anew_has_stopped_in_words() -> None:
    stands = {"unknown": "filling", "next_offset": -1, "next_timestamp_ms": -1, "lag_records_read_committed": -1, "lag_bytes": -1}
    stopped, unknown = stated(replace(READING, stopped_since_ms=NOW - HOUR, **stands))
    assert unknown.verdict == "unknown"
    assert stopped.text == (
        "stopped: the committed offset 100 has not moved since 2023-11-14T21:13:20Z (1h ago) although records were readable; 50 offsets "
        "left. What is in the record was not looked at here. The disk does not show what its consumers do with the record"
    )


@each_row(
    "age_ms, verdict",
    [(0, "fine"), (BOUNDS.held_from_ms - 1, "fine"), (BOUNDS.held_from_ms, "held"), (-1, "held"), (NOW + 1, "held")],
)
def test_each_transaction_holds_readers_back_for_a_moment_and_that_is_nothing(age_ms: int, verdict: str) -> None:
    """A record from a clock that is ahead, and one without a time, do not show that it is a moment."""
    found = only(replace(HELD, next_timestamp_ms=NOW - age_ms))
    assert found.verdict == verdict
    if verdict == "fine":
        assert found.text == "fine: nothing is left to read"


def test_a_group_at_the_tip_of_its_log_does_not_catch_up() -> None:
    reads = replace(READING, consumed_rate=9.0, appended_rate=8.0)
    ages = (BOUNDS.slower_after_ms - 1, BOUNDS.slower_after_ms, NOW + 1)
    assert [only(replace(reads, next_timestamp_ms=NOW - age)).verdict for age in ages] == ["fine", "catching_up", "catching_up"]


def test_markers_in_one_partition_are_nothing_beside_records_in_another() -> None:
    markers = replace(READING, partition=0, lag_records_read_committed=0, lag_offsets=3, next_offset=-1, next_batch_bytes=-1)

    def worst(*partitions: GroupPartition) -> str:
        return judge_groups(snapshot_of(Group(partitions=partitions), now_ms=NOW), NOW).of_group("billing", 0).verdict.label

    done = replace(markers, partition=1, lag_offsets=0)
    assert [worst(markers), worst(markers, done), worst(markers, READING)] == ["only_markers", "only_markers", "fine"]


@each_row("offsets, likely", [(1, "likely no record:"), (2, "likely no records:"), (3, "likely with records among them:")])
def test_one_or_two_offsets_were_likely_markers_and_more_were_likely_records(offsets: int, likely: str) -> None:
    text = Sentences(TimeWords(NOW)).perhaps_lost(replace(READING, committed=40 - offsets, lost_offsets=offsets))
    assert f"deleted, {likely}" in text
    assert text.startswith(
        f"{offsets} offset{'s' if offsets > 1 else ''} between the committed offset {40 - offsets} and the log start 40 w"
    )


def test_the_next_record_of_a_producer_that_is_ahead_is_no_event_to_come() -> None:
    assert "the next from 2023-11-14T22:13:44Z (24s ahead)" in only(replace(READING, next_timestamp_ms=NOW + 24_000)).text


def test_a_group_of_which_only_markers_are_left_needs_no_members() -> None:
    markers = replace(READING, lag_records_read_committed=0, lag_offsets=3, next_offset=-1, next_batch_bytes=-1)
    assert [each.verdict for each in stated(markers, members=0, state="Empty")] == ["only_markers"]


def test_the_record_on_which_a_group_stands_is_told_from_those_around_it() -> None:
    def said(**facts: object) -> tuple[str, str]:
        found = only(replace(READING, stopped_since_ms=NOW - HOUR, batch=replace(NEXT, **facts)))  # type: ignore[arg-type]
        text = found.text.partition("ago). ")[2]
        return text.removesuffix(". The disk does not show what its consumers do with the record"), found.command

    def lies(**facts: object) -> str:
        return said(unlike=[], record_bytes=9, **facts)[0]

    text, command = said(records=-1, record_offset=-1, error="its records cannot be opened: record is cut short")
    assert text.endswith("zstd, producer 7; its records cannot be opened: record is cut short")
    assert "--from-offset 101 --to-offset 101" in command
    in_batch = "lies in a batch of 1 record, 900.0 KiB"
    assert lies(codec="none", producer_id=-1, format=1) == (
        f"The record at 101, the first one from there on, has 9 B and {in_batch}, not compressed, message format 1, no producer id"
    )
    assert "has 9 B and no value and lies" in lies(tombstone=True)
    assert lies(record_offset=100).startswith("The record at 100 has")
    assert said(size=-1, file="") == ("What is in the record was not looked at here", "")
    for each in Unlike:
        assert said(unlike=[each])[0].count(". ") == 1, f"nothing says {each}"


def test_a_group_that_may_have_stopped_before_it_was_looked_at_has_stopped_since_then_at_least() -> None:
    stopped = replace(READING, stopped_since_ms=NOW - HOUR)
    assert "has not moved since 2023-11-14T21:13:20Z" in only(stopped).text
    assert "has not moved at least since 2023-11-14T21:13:20Z" in only(replace(stopped, stopped_earlier=True)).text
    copied = only(replace(stopped, stopped_earlier=True, commit_ms=stopped.stopped_since_ms - 86_400_000)).text
    assert "has not moved since it was last committed, 2023-11-13T21:13:20Z" in copied, "a copy's files are newer than what is in them"
    assert "is readable, at least since 2023-11-14T21:13:20Z" in copied


def test_each_bound_is_the_last_value_that_is_no_verdict_yet() -> None:
    assert only(replace(READING, next_batch_bytes=BOUNDS.fetch_bytes)).verdict == "fine"
    assert only(replace(READING, next_batch_bytes=BOUNDS.fetch_bytes + 1)).verdict == "too_large"
    loses = replace(READING, next_timestamp_ms=NOW - 8 * 24 * HOUR, loss_ms=NOW + BOUNDS.loss_within_ms)
    assert only(loses).verdict == "will_lose"
    assert only(replace(loses, loss_ms=loses.loss_ms + 1)).verdict == "fine"
    waits = PendingOffset(producer_id=9, offset=120, coordinator=17, since_ms=NOW - BOUNDS.pending_after_ms)
    assert only(replace(READING, pending=[waits])).verdict == "fine"
    assert only(replace(READING, pending=[replace(waits, since_ms=waits.since_ms - 1)])).verdict == "pending"
    assert only(replace(READING, pending=[replace(waits, since_ms=-1)])).verdict == "fine"


def test_a_group_reads_before_the_deletion_if_it_reads_what_is_there_in_time_and_more_than_comes() -> None:
    """45,000 records are left: at 2 a second they are read in 6 hours, at 1.7 in 7, which a rate that is measured does not make sure."""
    loses = replace(READING, lag_records_read_committed=45_000, next_timestamp_ms=NOW - 9 * HOUR, loss_ms=NOW + 8 * HOUR, consumed_rate=2.0)
    assert only(replace(loses, appended_rate=0.0)).verdict == "catching_up"
    assert only(replace(loses, appended_rate=1.8)).verdict == "catching_up"
    assert stated(replace(loses, appended_rate=2.0))[0].verdict == "will_lose"
    assert stated(replace(loses, appended_rate=0.0, consumed_rate=1.7))[0].verdict == "will_lose"
    assert stated(replace(loses, appended_rate=-1.0))[0].verdict == "will_lose"  # what comes is not known


@pytest.mark.parametrize(
    ("kind", "unread", "verdict", "text"),
    [("Share", True, "unknown", SHARES_NOT_READ), ("Share", False, "no_offsets", NO_OFFSETS), ("Classic", True, "no_offsets", NO_OFFSETS)],
)
def test_what_share_groups_have_done_is_not_known_where_their_logs_are_not_read(kind: str, unread: bool, verdict: str, text: str) -> None:
    (found,) = stated(type=kind, shares_unread=unread, members=0)
    assert (found.verdict, found.text) == (verdict, text)


def test_what_goes_with_a_segment_that_grows_is_so_much_at_least() -> None:
    loses = replace(READING, loss_ms=NOW + HOUR, loss_records_least=9, loss_bytes_least=512, retention_ms=6 * HOUR)
    (found,) = stated(replace(loses, next_timestamp_ms=NOW - 5 * HOUR))
    assert ": 9 records, and what comes there until then, with all that is due at the same check" in found.text


def test_a_verdict_without_words_is_refused_where_they_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    class Labelled(IntEnum):
        @property
        def label(self) -> str:
            return self.name.lower()

    more = Labelled("GroupVerdict", {**GroupVerdict.__members__, "TOO_WARM": len(GroupVerdict)})  # type: ignore[call-arg]
    monkeypatch.setattr(group_json, "GroupVerdict", more)
    with pytest.raises(TypeError, match="nothing says what TOO_WARM means"):
        run_path(str(group_findings.__file__))
