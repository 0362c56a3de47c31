"""A stream of log dirs without an agent: each batch and record once, whatever happens to the logs and to the query between two plans."""

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql.streaming.datasource import ReadMaxBytes

from streaming.broker.disk.logdirs import partitions_by_name
from streaming.broker.excerpts.position_plan import OpenLog
from streaming.errors import LogDirError, UsageError
from streaming.kafka.formats.names import LEADER_EPOCH_CHECKPOINT
from streaming.simulator.log import LogDir, PartitionLog
from streaming.simulator.segment_writer import uuid_text
from streaming.spark.source.public_stream import PublicStreamReader
from tests.builders import NOW, abort, batch, commit, delete, log_dir, partition
from tests.scratch import scratch
from tests.source.local_streaming import ALL, batches, read, step, stream, to_the_end


@pytest.fixture
def disk(tmp_path: Path) -> LogDir:
    return log_dir(tmp_path)


@pytest.fixture
def log(disk: LogDir) -> PartitionLog:
    return partition(disk, "t")


def test_the_offset_says_topic_partition_and_offset(disk: LogDir, log: PartitionLog) -> None:
    log.append(batch(3))
    partition(disk, "u", 2, topic_id=2).append(batch(1), batch(4))
    reader = stream(disk.path)
    rows, at = step(reader, {})
    assert batches(rows) == [("t", 0, 0, 2), ("u", 2, 0, 0), ("u", 2, 1, 4)]
    assert at["1"]["offsets"] == {"t": {"0": 3}, "u": {"2": 5}}
    assert at["1"]["epochs"] == {"t": {"0": "0@0"}, "u": {"2": "0@0"}}
    log.append(batch(4))
    rows, at = step(reader, at)
    assert batches(rows) == [("t", 0, 3, 6)]
    assert step(reader, at) == ([], at), "nothing is new"


def test_progress_says_how_far_the_logs_go(disk: LogDir, log: PartitionLog) -> None:
    for _ in range(8):
        log.append(batch(1))
        log.roll()
    reader = stream(disk.path)
    assert reader.reportLatestOffset() is None
    _, at = step(reader, {}, ReadMaxBytes(1))
    there = reader.reportLatestOffset()
    assert there is not None
    assert (at["1"]["offsets"], there["1"]["offsets"]) == ({"t": {"0": 1}}, {"t": {"0": 8}})


def test_a_log_at_rest_is_not_opened_again(disk: LogDir, log: PartitionLog, monkeypatch: pytest.MonkeyPatch) -> None:
    log.append(batch(3))
    other = partition(disk, "u", topic_id=2)
    other.append(batch(3))
    for each in (log, other):
        os.utime(disk.path / each.name, (1, 1))
    reader, opened = stream(disk.path), list[str]()
    _, at = step(reader, {})
    assert step(reader, at)[0] == []
    real = OpenLog.open
    monkeypatch.setattr(OpenLog, "open", lambda *given: opened.append(given[0].topic) or real(*given))
    assert step(reader, at)[0] == []
    assert opened == []
    other.append(batch(1))
    rows, end = step(reader, at)
    assert (batches(rows), {*opened}) == ([("u", 0, 3, 3)], {"u"})
    assert step(reader, end)[0] == []
    assert [row["base_offset"] for row in step(reader, at)[0]] == [3], "for an earlier position nothing is known"
    assert [row["base_offset"] for row in step(reader, {})[0]] == [0, 0, 3]


def test_a_directory_that_was_changed_just_now_may_change_again_within_the_same_time(disk: LogDir, log: PartitionLog) -> None:
    log.append(batch(3))
    now = time.time_ns()
    os.utime(disk.path / log.name, ns=(now, now))
    reader = stream(disk.path)
    _, at = step(reader, {})
    assert step(reader, at)[0] == []
    log.roll()
    log.append(batch(2))
    os.utime(disk.path / log.name, ns=(now, now))
    assert batches(step(reader, at)[0]) == [("t", 0, 3, 4)]


def test_from_a_time_on(disk: LogDir, log: PartitionLog) -> None:
    for number in range(5):
        log.append(batch(1, timestamp=NOW + 1000 * number))
    reader = stream(disk.path, startingPosition=None, startingTimestamp=NOW + 2500)
    assert batches(step(reader, {})[0]) == [("t", 0, 3, 3), ("t", 0, 4, 4)]


@pytest.mark.parametrize("position", ["latest", "active", "earliest"])
def test_where_a_query_begins_is_in_its_first_offset(disk: LogDir, log: PartitionLog, position: str) -> None:
    log.append(batch(2))
    log.roll()
    log.append(batch(2))
    reader = stream(disk.path, startingPosition=position)
    end = reader.latestOffset({}, ALL)
    log.roll()  # before it is read the active segment is another one
    log.append(batch(5))
    expected = {"latest": [], "active": [("t", 0, 2, 3)], "earliest": [("t", 0, 0, 1), ("t", 0, 2, 3)]}
    assert batches(read(stream(disk.path, startingPosition=position), {}, end)) == expected[position]
    assert batches(to_the_end(stream(disk.path, startingPosition=position), end)[0]) == [("t", 0, 4, 8)]


def test_a_partition_that_comes_later_is_read_from_its_beginning(disk: LogDir, log: PartitionLog) -> None:
    log.append(batch(3))
    reader = stream(disk.path, startingPosition="latest")
    rows, at = step(reader, {})
    partition(disk, "t", 1).append(batch(2))
    assert (batches(rows), batches(step(reader, at)[0])) == ([], [("t", 1, 0, 1)])


@pytest.mark.parametrize("relation", ["batches", "records"])
def test_a_pattern_waits_for_topics_and_misses_nothing_of_them(disk: LogDir, relation: str) -> None:
    disk.write_high_watermarks()
    reader = stream(disk.path, relation=relation, topicsPattern="order.*", startingPosition="latest")
    rows, at = to_the_end(reader, {})
    partition(disk, "orders").append(batch(3))
    disk.write_high_watermarks()
    assert rows == []
    assert len(step(reader, at)[0]) == (1 if relation == "batches" else 3)


def test_a_micro_batch_goes_no_further_than_its_budget_and_is_fair(disk: LogDir, log: PartitionLog) -> None:
    other = partition(disk, "u", topic_id=2)
    for _ in range(400):
        log.append(batch(1, value_bytes=1000))
    other.append(batch(1))
    rows, _ = step(stream(disk.path), {}, ReadMaxBytes(100_000))
    assert ("u", 0, 0, 0) in batches(rows)
    assert 50_000 < sum(row["size"] for row in rows) <= 100_000


@pytest.mark.parametrize("logs", [1, 2])
def test_a_budget_reaches_over_segments_and_is_used_up(disk: LogDir, logs: int) -> None:
    sizes = []
    for number in range(logs):
        log = partition(disk, "many", number, topic_id=3, index_interval_bytes=100)
        for _ in range(10):
            log.append(batch(1, value_bytes=1000), batch(1, value_bytes=1000))
            sizes.append(log.active.size)
            log.roll()
    budget = int(5.6 * sizes[0])
    at, came = {}, []
    while True:
        rows, end = step(reader := stream(disk.path), at, ReadMaxBytes(budget))
        if end is at:
            break
        came.append(sum(row["size"] for row in rows))
        at = end
    assert reader.latestOffset(at, ALL) is at
    assert sum(came) == sum(sizes)
    assert len(came) > 1
    assert all(budget - logs * sizes[0] < each <= budget for each in came[:-1]), (came, budget)


def test_what_is_cut_off_below_a_part_of_a_budget_shows_by_its_epoch(disk: LogDir, log: PartitionLog) -> None:
    log.append(batch(1, value_bytes=1000), leader_epoch=1)
    log.roll()
    log.append(batch(2), leader_epoch=2)
    reader = stream(disk.path)
    _, at = step(reader, {}, ReadMaxBytes(1))
    assert at["1"]["epochs"] == {"t": {"0": "1@0"}}
    log.truncate(0)
    log.append(batch(7), leader_epoch=3)
    assert batches(step(reader, at)[0]) == [("t", 0, 0, 6)]


def test_available_now_ends_where_the_logs_ended_at_first(disk: LogDir, log: PartitionLog) -> None:
    log.append(batch(3))
    reader = stream(disk.path)
    reader.prepareForTriggerAvailableNow()
    first = reader.latestOffset({}, ReadMaxBytes(1))
    log.append(batch(4))
    rows, at = to_the_end(reader, first)
    assert (rows, at["1"]["offsets"]) == ([], {"t": {"0": 3}})


def test_a_log_that_was_cut_off_and_has_grown_past_the_position_is_read_from_where_they_part(disk: LogDir, log: PartitionLog) -> None:
    log.append(batch(3), batch(4))
    reader = stream(disk.path, relation="ranges")
    _, at = step(reader, {})
    log.truncate(3)
    log.append(batch(9), leader_epoch=2)
    rows, end = step(reader, at)
    assert [(row["kind"], row["base_offset"], row["next_offset"], row["reason"]) for row in rows] == [
        ("appended", 3, 12, None),
        ("truncated", None, 3, "truncated: 4 offsets"),
    ]
    assert (end["1"]["offsets"], end["1"]["epochs"]) == ({"t": {"0": 12}}, {"t": {"0": "0@0 2@3"}})


def test_what_is_cut_off_between_a_plan_and_its_read_is_said_and_read_again_of_the_next_leader(disk: LogDir, log: PartitionLog) -> None:
    log.append(batch(3), batch(4))
    reader = stream(disk.path)
    end = reader.latestOffset({}, ALL)
    log.truncate(3)  # a broker that lost its last writes has them again from its leader, in the same epoch
    rows = read(reader, {}, end)
    assert [(row["kind"], row["base_offset"], row["last_offset"], row["reason"]) for row in rows] == [
        ("batch", 0, 2, None),
        ("skipped", 3, 6, "truncated: 4 offsets"),
    ]
    log.append(batch(5), leader_epoch=1)
    assert batches(step(reader, end)[0]) == [("t", 0, 3, 7)]


def test_what_retention_took_before_it_was_read_is_a_hole(disk: LogDir, log: PartitionLog) -> None:
    log.append(batch(3))
    reader = stream(disk.path)
    _, at = step(reader, {})
    log.append(batch(4))
    log.roll()
    log.append(batch(5))
    log.delete_records(7)
    disk.write_log_starts()
    rows, _ = step(reader, at)
    assert batches(rows) == [("t", 0, 7, 11)]
    (hole,) = [row for row in rows if row["kind"] == "skipped"]
    assert (hole["base_offset"], hole["last_offset"], hole["reason"]) == (3, 6, "deleted: 4 offsets; their bytes are an estimate")
    assert hole["missing_bytes"] > 0


def test_a_log_that_is_cut_off_below_where_it_began_is_read_from_there(disk: LogDir, log: PartitionLog) -> None:
    log.append(batch(4), batch(2))
    log.append(batch(2), batch(2))
    log.delete_records(7)
    disk.write_log_starts()
    rows, at = step(stream(disk.path), {})
    assert batches(rows) == [("t", 0, 6, 7), ("t", 0, 8, 9)]
    log.truncate(4)
    log.append(batch(1), batch(5), leader_epoch=1)
    disk.write_log_starts()
    assert batches(step(stream(disk.path), at)[0]) == [("t", 0, 4, 4), ("t", 0, 5, 9)]


def test_leader_epochs_that_cannot_be_read_for_a_while_bring_nothing_twice(disk: LogDir, log: PartitionLog) -> None:
    log.append(batch(3))
    _, at = step(stream(disk.path), {})
    path = disk.path / log.name / LEADER_EPOCH_CHECKPOINT
    content = path.read_bytes()
    path.write_bytes(b"")
    log.append(batch(4))
    rows, at = step(stream(disk.path), at)
    assert batches(rows) == [("t", 0, 3, 6)]
    path.write_bytes(content)
    assert step(stream(disk.path), at)[0] == []


@pytest.mark.parametrize("relation", ["ranges", "batches"])
def test_damage_is_a_row_once_and_in_the_newest_segment_when_that_is_rolled(disk: LogDir, log: PartitionLog, relation: str) -> None:
    log.append(batch(3), batch(2), batch(4))
    with log.active.path("log").open("r+b") as file:
        file.seek(log.active.positions[1] + 16)
        file.write(b"\x09")
    lost = log.active.size - log.active.positions[1]
    reader = stream(disk.path, relation=relation)
    rows, at = step(reader, {})
    log.append(batch(1))
    assert step(reader, at) == ([], at), "it ends there, for all that is known"
    lost += log.active.entries[-1].size
    log.roll()
    log.append(batch(1))
    more, at = step(reader, at)
    assert [(row["kind"], row["base_offset"], row["missing_bytes"]) for row in rows] == [(rows[0]["kind"], 0, 0)]
    skipped, appended = sorted(more, key=lambda row: row["kind"] != "skipped")
    assert (skipped["missing_bytes"], skipped["reason"][:19], appended["base_offset"]) == (lost, "corrupt: bad magic ", 10)
    assert step(reader, at) == ([], at)


def test_a_topic_that_is_made_anew_is_another_log(disk: LogDir, log: PartitionLog) -> None:
    log.append(batch(3))
    reader = stream(disk.path, relation="ranges")
    _, at = step(reader, {})
    delete(disk, log)
    partition(disk, "t", topic_id=7).append(batch(5))
    rows, at = step(reader, at)
    assert [(row["kind"], row["base_offset"], row["reason"]) for row in rows] == [("appended", 0, None), ("gone", None, "made anew")]
    assert at["1"]["offsets"] == {"t": {"0": 5}}


def test_a_log_that_is_gone_is_said_once(disk: LogDir, log: PartitionLog) -> None:
    log.append(batch(3))
    partition(disk, "u", topic_id=2).append(batch(3))
    reader = stream(disk.path, relation="ranges")
    _, at = step(reader, {})
    delete(disk, log)
    rows, at = to_the_end(reader, at)
    assert [(row["kind"], row["topic"], row["reason"]) for row in rows] == [("gone", "t", "deleted")]
    assert to_the_end(reader, at) == ([], at)


def test_a_log_dir_that_is_away_loses_no_position(tmp_path: Path) -> None:
    disks = [log_dir(tmp_path, name) for name in ("d0", "d1")]
    logs = [partition(each, topic, topic_id=1 + number) for number, (each, topic) in enumerate(zip(disks, "tu", strict=True))]
    for each in logs:
        each.append(batch(3))
    reader = stream(*(each.path for each in disks))
    _, at = step(reader, {})
    disks[1].path.rename(tmp_path / "away")
    logs[0].append(batch(1))
    rows, at = step(reader, at)
    assert batches(rows) == [("t", 0, 3, 3)]
    with pytest.raises(LogDirError, match=r"d1 cannot be used now, and u-0 may be there: start the query again when it is back"):
        read(reader, {}, at)
    (tmp_path / "away").rename(disks[1].path)
    logs[1].append(batch(2))
    assert batches(step(reader, at)[0]) == [("u", 0, 3, 4)]


def test_a_log_that_moves_while_log_dirs_are_listed_is_not_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker has it in both for a moment: who looks into the one before, and into the other one after, sees it in neither."""
    disks = [log_dir(tmp_path, name) for name in ("d0", "d1")]
    log = partition(disks[1], "t")
    log.append(batch(3))
    reader = stream(*(each.path for each in disks), relation="ranges")
    _, at = step(reader, {})

    def listed(directory: Any, *more: Any) -> Any:
        found = partitions_by_name(directory, *more)
        if (disks[1].path / "t-0").exists():
            (disks[1].path / "t-0").rename(disks[0].path / "t-0")
        return found

    monkeypatch.setattr("streaming.broker.excerpts.position_plan.partitions_by_name", listed)
    assert step(reader, at) == ([], at)


def test_transactions_that_end_in_a_micro_batch_whenever_they_began(disk: LogDir, log: PartitionLog) -> None:
    log.append(batch(2, producer=7, transactional=True), batch(1, producer=8, transactional=True))
    reader = stream(disk.path, relation="transactions")
    rows, at = step(reader, {})
    assert rows == []
    log.append(commit(7))
    rows, at = step(reader, at)
    assert [(row["kind"], row["producer_id"], row["first_offset"]) for row in rows] == [("committed", 7, 0)]
    log.append(abort(8))
    rows, _ = step(stream(disk.path, relation="transactions"), at)
    assert [(row["kind"], row["producer_id"], row["first_offset"]) for row in rows] == [("aborted", 8, 2)]


def records(path: Path, **options: Any) -> PublicStreamReader:
    return stream(path, **{"relation": "records", **options})


def offsets(rows: list[dict[str, Any]]) -> list[int]:
    return [row["offset"] for row in rows]


def test_records_come_up_to_where_they_are_replicated_and_decided(disk: LogDir, log: PartitionLog) -> None:
    log.append(batch(2), batch(2, producer=7, transactional=True), batch(1))
    disk.write_high_watermarks()
    os.utime(disk.path / log.name, (1, 1))
    reader = records(disk.path)
    rows, at = step(reader, {})
    assert (offsets(rows), at["records"]["offsets"]) == ([0, 1], {"t": {"0": 2}})
    log.append(abort(7), batch(3))
    rows, at = step(reader, at)
    assert rows == [], "the high watermark was not written yet"
    assert step(reader, at)[0] == []
    disk.write_high_watermarks()
    rows, end = step(records(disk.path), at)
    assert offsets(rows) == [4, 6, 7, 8], "without those that were aborted"
    assert step(reader, at) == (rows, end)
    assert step(reader, end)[0] == []


def test_a_running_broker_s_log_dir_is_said_once_to_be_read_up_to_the_high_watermark(
    disk: LogDir, log: PartitionLog, caplog: pytest.LogCaptureFixture
) -> None:
    log.append(batch(2))
    disk.write_high_watermarks()
    reader = records(disk.path, until="end")
    _, at = step(reader, {})
    assert step(reader, at)[0] == []
    assert caplog.text.count("records are read up to the high watermark") == 1


def test_records_that_are_gone_before_they_were_read_fail_the_query(disk: LogDir, log: PartitionLog) -> None:
    log.append(batch(3))
    disk.write_high_watermarks()
    _, at = step(records(disk.path), {})
    log.append(batch(4))
    log.roll()
    log.append(batch(5))
    log.delete_records(7)
    disk.write_log_starts()
    disk.write_high_watermarks()
    with pytest.raises(LogDirError, match=r"t-0: deleted: 4 offsets.*failOnDataLoss=false goes on with what is there"):
        step(records(disk.path), at)
    assert offsets(step(records(disk.path, failOnDataLoss="false"), at)[0]) == [7, 8, 9, 10, 11]


@pytest.mark.parametrize(("begin", "come"), [(2, [2, 3, 4]), (-2, [0, 1, 2, 3, 4]), (-1, [3, 4])])
def test_records_from_given_offsets(disk: LogDir, log: PartitionLog, begin: int, come: list[int]) -> None:
    log.append(batch(3))
    disk.write_high_watermarks()
    reader = records(disk.path, startingPosition=None, startingOffsets=json.dumps({"t": {"0": begin}}))
    rows, at = step(reader, {})
    log.append(batch(2))
    disk.write_high_watermarks()
    assert offsets(rows + step(reader, at)[0]) == come


def test_wrong_options_and_offsets_are_refused_with_what_to_do(disk: LogDir, log: PartitionLog) -> None:
    log.append(batch(1))
    disk.write_high_watermarks()
    with pytest.raises(UsageError, match=r"option topics: no partition fits; did you mean t\?|there are t"):
        stream(disk.path, topics="tt").latestOffset({}, ALL)
    with pytest.raises(UsageError, match="option endingOffsets: it goes with read, and a stream has no end"):
        records(disk.path, endingOffsets='{"t": {"0": 1}}')
    with pytest.raises(UsageError, match="option startingOffsets: t-1 is not there, or not selected"):
        records(disk.path, startingPosition=None, startingOffsets='{"t": {"0": 0, "1": 0}}').latestOffset({}, ALL)
    for wrong in ({"version": 2}, {"journal": "x", "seq": 1}, 7, {"version": 1}, {"version": 1, "logs": 1, "packed": "AAAA"}):
        with pytest.raises(UsageError, match=r"the checkpoint's offset is .*: begin the query with a new checkpointLocation"):
            stream(disk.path).latestOffset({"1": wrong}, ALL)


# --- generated histories: every batch that is on the disk when the query looks next comes once


class History:
    """Two logs, and a query that reads them by one micro-batch after the other."""

    def __init__(self, path: Path) -> None:
        self.disk = log_dir(path)
        self.logs = [partition(self.disk, "t", number, topic_id=1, index_interval_bytes=200) for number in (0, 1)]
        self.reader, self.at = stream(self.disk.path), dict[str, Any]()
        self.epoch = self.ids = 1
        self._times: set[int] = set()
        self.came: dict[tuple[int, str], dict[int, int]] = {}
        """Of each log the batches that came and were not cut off since then: base offset, last offset."""

    def append(self, number: int, size: int) -> None:
        self.logs[number].append(batch(1 + size), leader_epoch=self.epoch)

    def roll(self, number: int, _: int) -> None:
        if self.logs[number].active.size:
            self.logs[number].roll()

    def truncate(self, number: int, size: int) -> None:
        """Whatever comes after that is of another leader."""
        log = self.logs[number]
        if log.log_end_offset > log.log_start_offset:
            log.truncate(max(log.log_end_offset - 1 - size, log.log_start_offset))
            self.epoch += 1

    def retain(self, number: int, _: int) -> None:
        log = self.logs[number]
        if len(log.segments) > 1:
            log.delete_records(log.segments[1].base_offset)
            log.delete_old_segments(0)
            self.disk.write_log_starts()

    def make_anew(self, number: int, _: int) -> None:
        delete(self.disk, self.logs[number]).remove()
        self.ids += 1
        self.logs[number] = partition(self.disk, "t", number, topic_id=self.ids, index_interval_bytes=200)

    def read(self, _number: int = 0, size: int = 0) -> bool:
        rows, end = step(self.reader, self.at, ReadMaxBytes(1 + 100 * size) if size else ALL)
        moved, self.at = end is not self.at, end
        for row in rows:
            if row["kind"] == "batch":
                self._note(row)
        return moved

    def restart(self, _number: int, _: int) -> None:
        """The query is killed after it has read a micro-batch that it reads again when it is back."""
        end = self.reader.latestOffset(self.at, ALL)
        if end is not self.at:
            assert read(self.reader, self.at, end) == read(stream(self.disk.path), self.at, end)
        self.reader = stream(self.disk.path)

    def settle(self) -> None:
        """Give each directory that was changed a time of its own, long ago: a real one has it when nothing has happened for seconds."""
        for log in self.logs:
            directory = self.disk.path / log.name
            if directory.stat().st_mtime_ns not in self._times:
                self._times.add(time := len(self._times))
                os.utime(directory, ns=(time, time))

    def check(self) -> None:
        while self.read():
            pass
        for number, log in enumerate(self.logs):
            there = {(each.base_offset, each.last_offset) for segment in log.segments for each in segment.entries}
            came = self.came.get((number, uuid_text(log.topic_id)), {})
            assert {each for each in came.items() if log.log_start_offset <= each[0] < log.log_end_offset} == there

    def _note(self, row: dict[str, Any]) -> None:
        came = self.came.setdefault((row["partition"], row["topic_id"]), {})
        cut_off = [each for each in came if each >= row["base_offset"]]
        assert not cut_off or row["leader_epoch"] > 1, "what was cut off comes again of a later leader, nothing else does"
        for each in cut_off:
            del came[each]
        came[row["base_offset"]] = row["last_offset"]


OPERATIONS = [
    History.append,
    History.append,
    History.roll,
    History.truncate,
    History.retain,
    History.make_anew,
    History.read,
    History.restart,
]


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(OPERATIONS), st.integers(0, 1), st.integers(0, 5)), max_size=60))
def test_every_batch_comes_once_as_long_as_it_is_there(operations: list[tuple[Callable[[History, int, int], object], int, int]]) -> None:
    with scratch() as path:
        history = History(Path(path))
        for operation, number, size in operations:
            operation(history, number, size)
            history.settle()
        history.check()
