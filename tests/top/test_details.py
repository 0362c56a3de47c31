"""What the details of a partition, a group and a problem say: each line its own value."""

from dataclasses import replace
from typing import Any

from streaming.broker.protocol.group_json import GroupDetail, GroupFinding, GroupPartition, GroupSummary
from streaming.broker.protocol.listing_json import PartitionDetail, PartitionRow, ReplicaRow, RetentionRow, SegmentRow, TransactionRow
from streaming.broker.protocol.status_json import WARNING, Problem
from streaming.pages.listings.listing import Times
from streaming.terminal.top.frame import DetailLine, group_lines, partition_lines, problem_lines

NOW_MS = 1_700_000_000_000
HOUR = 3_600_000
TIMES = Times(NOW_MS, relative=True)
WIDTH = 300


def facts(lines: list[DetailLine]) -> dict[str, str]:
    """The texts behind labels, which are 18 columns wide."""
    return {line.text[:18].strip(): line.text[18:].strip() for line in lines if line.text[:18].strip() and not line.style}


def words(lines: list[DetailLine]) -> list[list[str]]:
    return [line.text.split() for line in lines]


def partition(retention: RetentionRow | None = None, *, row: dict[str, Any] | None = None, **values: Any) -> list[DetailLine]:
    given = {
        **{"log_start_offset": 1, "last_stable_offset": 2, "high_watermark": 5, "log_end_offset": 6, "unread_offsets": 3},
        **{"bytes_rate": 1024.0, "records_rate": 9.5, "size_bytes": 2 << 20, "segments": 7},
        **{"last_append_ms": NOW_MS - HOUR, "oldest_record_ms": NOW_MS - 2 * HOUR},
        **{"records_data": 11, "records_aborted": 12, "records_control": 13},
    }
    shown = PartitionRow(broker=1, topic="t", partition=0, **given | (row or {}))
    return partition_lines(PartitionDetail(at_ms=NOW_MS, row=shown, retention=retention, **values), TIMES, WIDTH)


def test_the_facts_of_a_partition() -> None:
    found = facts(partition())
    assert (found["broker"], found["log start"], found["last stable"], found["high watermark"]) == ("1", "1", "2", "5")
    assert (found["end offset"], found["held back"]) == ("6", "3")
    assert (found["bytes/s"], found["records/s"], found["last append"], found["size"]) == ("1.0 KiB", "9.5", "1h ago", "2.0 MiB")
    assert (found["records on disk"], found["of these aborted"], found["control records"]) == ("11", "12", "13")
    little = facts(partition(row={"records_data": -1, "last_stable_offset": -1}))
    assert not {"records on disk", "last stable", "verdict"} & little.keys(), "what is not known has no line"
    uncounted = facts(partition(row={"records_data": -1}, records_why="its agent a1 has not counted all of it yet"))
    assert uncounted["records on disk"] == "its agent a1 has not counted all of it yet"


def test_what_is_kept_of_a_partition() -> None:
    def kept(**values: Any) -> dict[str, str]:
        return facts(partition(RetentionRow(broker=1, topic="t", partition=0, **values)))

    assert not {"time limit", "size limit", "overdue", "next deletion"} & kept().keys()
    late = {"retention_overdue_ms": 2 * HOUR, "retention_reclaimable_bytes": 3 << 20, "next_deletion_ms": NOW_MS + 4 * HOUR}
    found = kept(retention_limit_ms=HOUR, retention_limit_bytes=1 << 20, limits_assumed=True, **late)
    assert (found["time limit"], found["size limit"], found["overdue"]) == ("1h?", "1.0 MiB?", "2h?")
    assert (found["reclaimable"], found["next deletion"]) == ("3.0 MiB", "in 4h by time")
    assert kept(next_deletion_start_of=3)["next deletion"] == "after broker 3 starts"


def test_an_open_transaction_of_a_partition() -> None:
    given = {"start_ms": NOW_MS - HOUR, "last_append_ms": NOW_MS - 2 * HOUR, "first_offset": 3, "holds_offsets": 4}
    named = {"transactional_id": "id", "coordinator_state": "Ongoing", "groups": ["g"], "no_command": "it ends by itself"}
    row = TransactionRow(broker=1, topic="t", partition=0, producer_id=9, producer_epoch=8, verdict="overdue", stuck=True, **given, **named)
    lines = partition(transactions=[row])
    assert "open transaction of producer 9, epoch 8: overdue, stuck" in [line.text for line in lines]
    found = facts(lines)
    assert (found["open since"], found["last append"], found["first offset"], found["holds back"]) == ("1h ago", "2h ago", "3", "4")
    assert (found["transactional id"], found["coordinator"], found["commits that wait"]) == ("id", "Ongoing", "g")
    assert any("it ends by itself" in line.text for line in lines)
    aborted = replace(row, command="kafka-transactions.sh abort", advice="first look. The abort discards")
    texts = [line.text for line in partition(transactions=[aborted])]
    assert texts.index("First look. The abort discards.") == texts.index("kafka-transactions.sh abort") - 1


def test_segments_and_replicas_of_a_partition() -> None:
    segments = [
        SegmentRow(base_offset=1, size_bytes=1 << 20, max_timestamp_ms=NOW_MS - 3 * HOUR, deletable=True),
        SegmentRow(base_offset=2, size_bytes=2 << 20, max_timestamp_ms=NOW_MS - 2 * HOUR, deletion_ms=NOW_MS + HOUR),
        SegmentRow(base_offset=3, size_bytes=3 << 20, max_timestamp_ms=NOW_MS - HOUR, active=True, deletable=True),
    ]
    replica = ReplicaRow(
        broker=4, role="follower", in_sync="yes", size_bytes=5 << 20, log_end_offset=6, last_append_ms=NOW_MS - HOUR, log_dir="/d"
    )
    lines = partition(segments=segments, replicas=[replica], omitted=7)
    assert ["1", "beyond", "the", "limit", "1.0", "MiB", "3h", "ago", "due"] in words(lines)
    assert ["2", "closed", "2.0", "MiB", "2h", "ago", "in", "1h", "by", "time"] in words(lines)
    assert ["3", "active", "3.0", "MiB", "1h", "ago", "due"] in words(lines)
    assert ["4", "follower", "yes", "6", "5.0", "MiB", "1h", "ago", "/d"] in words(lines)
    assert "segments, 7 left out" in [line.text for line in lines]


def test_the_facts_partitions_and_verdicts_of_a_group() -> None:
    lag = {"lag_records_read_committed": 2, "lag_bytes": 3 << 20}
    sums = lag | {"partitions": 2, "unknown": 1}
    held = GroupPartition(topic="t", partition=0, committed=5, high_watermark=9, held=True, next_timestamp_ms=NOW_MS - HOUR, **lag)
    calm = GroupPartition(topic="t", partition=1, committed=7, high_watermark=7, lag_records_read_committed=0, lag_bytes=0, lag_offsets=0)
    summary = GroupSummary(group="g", type="Classic", state="Stable", members=1, last_commit_ms=NOW_MS - 2 * HOUR, **sums)
    findings = [
        GroupFinding(verdict="held", severity="warning", topic="t", partition=0, text="held up by an open transaction"),
        GroupFinding(verdict="fine", topic="t", partition=1, text="nothing to do"),
    ]
    known = {"clients": ["c1", "c2"], "hosts": ["/h"], "omitted": 3}
    group = GroupDetail(at_ms=NOW_MS, summary=summary, partitions=[held, calm], findings=findings, **known)
    lines = group_lines(group, TIMES, WIDTH)
    found = facts(lines)
    assert (found["type"], found["state"], found["members"]) == ("Classic", "Stable", "1")
    assert (found["records left"], found["bytes"], found["partitions"]) == ("2+", "3.0 MiB", "2")
    assert (found["last commit"], found["clients"], found["hosts"]) == ("2h ago", "c1, c2", "/h")
    texts = [line.text for line in lines]
    assert any(text.startswith("t-0: held up by an open transaction") for text in texts)
    assert "nothing to do for 1 of 2 partitions" in texts
    assert "partitions, 3 left out" in texts
    assert ["t-0", "-", "2", "1h", "ago", "-", "3.0", "MiB", "-", "5", "9", "-", "-"] in words(lines)
    assert ["t-1", "-", "0", "-", "-", "0", "B", "0", "7", "7", "-", "-"] in words(lines)


def test_the_facts_of_a_problem() -> None:
    about = {"topic": "t", "partition": 3, "group": "g", "broker": 2, "log_dir": "/d", "agent": "a", "runbook": "R"}
    problem = Problem(kind="k", severity=WARNING, what="what", since_ms=NOW_MS - HOUR, holds_back="much", command="do it", **about)
    found = facts(problem_lines(problem, TIMES, WIDTH))
    assert (found["severity"], found["holds back"], found["partition"], "topic" in found) == (WARNING, "much", "t-3", False)
    assert (found["group"], found["broker"], found["log dir"], found["agent"]) == ("g", "2", "/d", "a")
    assert found["runbook"] == "segtail runbook R"
    assert found["since"] == "2023-11-14T21:13:20Z, 1h ago"
    assert "due" not in found
    for deadline_ms, due in ((NOW_MS + HOUR, "2023-11-14T23:13:20Z, in 1h"), (NOW_MS, "now"), (NOW_MS - 23 * 24 * HOUR, "now")):
        assert facts(problem_lines(replace(problem, deadline_ms=deadline_ms), TIMES, WIDTH))["due"] == due
    whole = facts(problem_lines(Problem(kind="k", severity=WARNING, what="what", topic="t", broker=0), TIMES, WIDTH))
    assert (whole["topic"], whole["broker"], {"partition", "since", "group"} & whole.keys()) == ("t", "0", set())
