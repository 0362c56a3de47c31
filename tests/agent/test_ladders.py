"""What lies between two offsets of a log, as an agent knows it, whatever a broker does to the log and whatever happens to the agent."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from streaming.broker.agent import group_answers, laddered_log
from streaming.broker.agent.dir_work import GONE_SECONDS, DirCalls, R
from streaming.broker.agent.group_answers import find_positions
from streaming.broker.agent.laddered_log import LadderedLog
from streaming.broker.agent.ladders import REST_SECONDS, RETRY_SECONDS, SWEEP_SECONDS
from streaming.broker.disk.locate import without_replaced
from streaming.broker.disk.scanning import window
from streaming.broker.disk.segment_files import list_segments
from streaming.broker.ladder import filling
from streaming.broker.ladder.positions import count_log, positions
from streaming.broker.ladder.segment_ladder import RUNG_BYTES
from streaming.broker.protocol.group_messages import POSITIONS_ASKED, RecordsRequest
from streaming.kafka.scan.headers import Batches
from streaming.simulator.batch_writer import Batch
from streaming.simulator.log import PartitionLog, clean
from streaming.spark.client.agent_client import AgentClient
from tests.agents import Agent, Reader
from tests.builders import NOW, abort, batch, commit, log_dir, partition
from tests.scratch import scratch
from tests.swaps import Swap

TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAAQ"
COUNTED = ("data", "aborted", "control", "bytes")
NEXT = ("next_offset", "next_timestamp_ms", "next_batch_bytes", "next_segment", "next_position")

Answer = dict[str, int | str]


@contextmanager
def beside(tmp_path: Path, *logs: PartitionLog) -> Iterator[Agent]:
    agent = Agent(*dict.fromkeys(log.directory.parent for log in logs), cache=tmp_path / "cache")
    Reader(agent, start_from="active").begin()
    yield agent
    agent.close()


def asked(log: PartitionLog, offsets: Sequence[int]) -> pa.Table:
    rows = [(1, log.topic, TOPIC_ID, log.partition, offset, log.log_end_offset, 0) for offset in offsets]
    return pa.Table.from_pylist([dict(zip(POSITIONS_ASKED.names, row, strict=True)) for row in rows], POSITIONS_ASKED)


def answers(agent: Agent, log: PartitionLog, offsets: Sequence[int]) -> list[Answer]:
    found: list[Answer] = find_positions(agent.ladders, agent.calls, asked(log, offsets)).to_pylist()
    return found


def errors(agent: Agent) -> dict[str, str]:
    """By topic, why its log is not counted."""
    rows = agent.ladders.totals.changes("", 0)[2].to_pylist()
    assert all((row["next_offset"] < 0) == bool(row["error"]) for row in rows)
    return {row["topic"]: row["error"] for row in rows if row["error"]}


def all_offsets(log: PartitionLog) -> range:
    return range(log.segments[0].base_offset, log.log_end_offset + 1)


def check(agent: Agent, log: PartitionLog) -> None:
    """Every position is as a count of the whole log has it."""
    offsets = all_offsets(log)
    segments = without_replaced(list_segments(log.directory), window())
    wanted = count_log(segments, 0, window()).positions(offsets, log.log_end_offset)
    found = answers(agent, log, offsets)
    assert {answer["state"] for answer in found} == {"known"}
    assert len({answer["edition"] for answer in found} - {""}) == 1
    for name in COUNTED:
        values = [int(answer[name]) for answer in found]
        true = [getattr(position, name) for position in wanted]
        assert [value - values[-1] for value in values] == [value - true[-1] for value in true], name
    lies_before = wanted[max(0, log.log_start_offset - offsets[0])]
    counts = [getattr(wanted[-1], name) - getattr(lies_before, name) for name in ("data", "aborted", "control")]
    (reported,) = (row for row in agent.ladders.totals.changes("", 0)[2].to_pylist() if row["topic"] == log.topic)
    assert [reported[name] for name in ("log_start", "next_offset", "data", "aborted", "control")] == [
        log.log_start_offset, log.log_end_offset, *counts]  # fmt: skip
    for name in NEXT:
        assert [answer[name] for answer in found] == [getattr(position, name) for position in wanted], name


@pytest.fixture
def log(tmp_path: Path) -> PartitionLog:
    """Three closed segments, the active one in part."""
    made = partition(log_dir(tmp_path), "orders")
    for _ in range(3):
        made.append(batch(3), batch(2, producer=5, transactional=True))
        made.append(abort(5), batch(1))
        made.roll()
    made.append(batch(4))
    return made


def test_the_segment_that_is_read_is_counted_before_the_others_and_then_they_are_the_newest_first(
    tmp_path: Path, log: PartitionLog
) -> None:
    with beside(tmp_path, log) as agent:
        (path,) = agent.paths
        bases = [segment.base_offset for segment in log.segments]
        assert agent.ladders.unfilled_bytes == 0  # nothing was looked at yet
        assert {answer["state"] for answer in answers(agent, log, bases)} == {"filling"}
        known = []
        agent.ladders._dirs[path].logs.meet()
        assert agent.ladders.unfilled_bytes == sum(segment.size for segment in list_segments(log.directory)[:-1])
        agent.ladders._urgent(path, agent.ladders._dirs[path], window())
        for _ in range(4):
            known.append([base for base, answer in zip(bases, answers(agent, log, bases), strict=True) if answer["state"] == "known"])
            agent.ladders._fill_next(path, agent.ladders._dirs[path])
        assert known == [bases[3:], bases[2:], bases[1:], bases]
        assert agent.ladders.unfilled_bytes == 0
        check(agent, log)


def test_what_is_appended_is_counted_without_reading_it_again(tmp_path: Path, log: PartitionLog, monkeypatch: pytest.MonkeyPatch) -> None:
    with beside(tmp_path, log) as agent:
        agent.count()
        for module, name in ((filling, "scan_on"), (laddered_log, "count_segment")):
            monkeypatch.setattr(module, name, lambda *_, **__: pytest.fail("read again"))
        log.append(batch(2), batch(1, producer=6, transactional=True))
        agent.look()
        log.append(commit(6))
        log.roll()
        log.append(batch(5))
        agent.look()
        agent.count()
        check(agent, log)


def test_a_log_in_which_nothing_happens_is_left_alone_until_something_does(
    tmp_path: Path, log: PartitionLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    def rows() -> list[Answer]:
        found: list[Answer] = agent.ladders.totals.changes("", 0)[2].to_pylist()
        return found

    with beside(tmp_path, log) as agent:
        agent.count()
        agent.count()
        (each,) = agent.ladders.all()
        assert each.goes_on_resting()
        before = rows()
        with monkeypatch.context() as patch:
            for name in ("wake", "next_modified_ms", "totals"):
                patch.setattr(laddered_log.LadderedLog, name, lambda *_: pytest.fail("looked at again"))
            agent.count()
            assert rows() == before
        log.append(batch(2))
        agent.look()
        agent.count()
        before = rows()
        with monkeypatch.context() as patch:  # what it grows by is noted already, and its list is not due again
            for name in ("wake", "next_modified_ms"):
                patch.setattr(laddered_log.LadderedLog, name, lambda *_: pytest.fail("looked at again"))
            each.tail.note_high_watermark(1)  # as a checkpoint shows it meanwhile
            log.append(batch(2))
            agent.watcher.poll(set())
            agent.count()
            assert rows() != before
            before = rows()
            agent.count()
            assert rows() == before
        check(agent, log)

        def appended() -> None:
            log.append(batch(2))

        def rolled() -> None:
            log.roll()
            log.append(batch(1))

        def deleted() -> None:
            log.config = type(log.config)(retention_bytes=log.active.size)
            log.delete_old_segments(NOW)

        def cut_off() -> None:
            log.truncate(log.log_end_offset - 1)
            log.append(batch(3))

        for happens in (appended, rolled, deleted, cut_off, appended):
            happens()
            agent.look()
            agent.count()
            check(agent, log)
            assert rows() != before
            before = rows()


@pytest.mark.parametrize("deleted", [0, 1])
def test_an_abort_of_data_in_a_closed_segment_counts_although_nothing_is_listed_anew(tmp_path: Path, deleted: int) -> None:
    log = partition(log_dir(tmp_path), "orders")
    log.append(batch(2), batch(3, producer=5, transactional=True))
    log.roll()
    log.append(batch(1))
    log.roll()
    log.append(batch(4))
    log.delete_records(deleted)
    with beside(tmp_path, log) as agent:
        agent.count()
        agent.count()
        (each,) = agent.ladders.all()
        assert each.goes_on_resting()
        log.append(abort(5))
        agent.watcher.poll(set())
        if deleted:  # what lies before the log start has to be found again
            agent.count()
        assert each.totals() == (deleted, log.log_end_offset, 10 - deleted, 3, 1)


@pytest.mark.parametrize("rolled", [False, True])
@pytest.mark.parametrize("last", [abort, commit])
def test_the_end_of_a_transaction_that_was_open_before_the_log_start_changes_what_lies_before_it(
    tmp_path: Path, rolled: bool, last: Callable[[int], Batch]
) -> None:
    log = partition(log_dir(tmp_path), "orders")
    log.append(batch(2), batch(3, producer=5, transactional=True), batch(1), batch(2, producer=5, transactional=True))
    if rolled:
        log.roll()
        log.append(batch(4))
    with beside(tmp_path, log) as agent:
        log.delete_records(7)
        agent.look()
        agent.count()
        log.append(last(5))
        agent.watcher.poll(set())
        agent.count()
        check(agent, log)
        log.append(batch(1))
        agent.look()
        check(agent, log)


def test_columns_of_a_range_that_cannot_be_made_cost_the_ladder_and_not_the_watcher(tmp_path: Path, log: PartitionLog) -> None:
    with beside(tmp_path, log) as agent:
        agent.count()
        (each,) = agent.ladders.all()
        each.note_plain(log.log_end_offset + 1, 1, RUNG_BYTES + 1, NOW, lambda: list[Batches]()[0], NOW)
        assert not each.valid
        agent.count()
        check(agent, log)


def test_ladders_of_closed_segments_outlast_the_process(tmp_path: Path, log: PartitionLog, monkeypatch: pytest.MonkeyPatch) -> None:
    with beside(tmp_path, log) as agent:
        agent.count()
        log.append(batch(1))
        agent.look()
        log.roll()
        log.append(batch(1))
        agent.look()
        agent.count()
        agent.ladders.join(0)
        agent.restart()
        agent.look()
        monkeypatch.setattr(laddered_log, "count_segment", lambda *_: pytest.fail("counted again"))
        agent.count()
        check(agent, log)


def test_ladders_are_forgotten_when_their_segments_go(tmp_path: Path, log: PartitionLog) -> None:
    with beside(tmp_path, log) as agent:
        agent.count()
        agent.ladders.join(0)
        assert {key.base_offset for key in agent.cache.laddered()} == {segment.base_offset for segment in log.segments[:-1]}
        before = answers(agent, log, [log.log_end_offset])
        log.config = type(log.config)(retention_bytes=0)
        log.delete_old_segments(NOW)
        agent.look()
        agent.count()
        agent.ladders.join(0)
        assert {key.base_offset for key in agent.cache.laddered()} == {segment.base_offset for segment in log.segments[:-1]}
        assert answers(agent, log, [log.log_end_offset]) == before
        check(agent, log)


def test_a_watcher_that_has_not_listed_the_logs_yet_makes_none_gone(
    tmp_path: Path, log: PartitionLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    with beside(tmp_path, log) as agent:
        agent.count()
        agent.ladders.join(0)
        before, stored = answers(agent, log, [0]), agent.cache.laddered()
        with monkeypatch.context() as patch:
            patch.setattr(agent.watcher, "tails", list)
            agent.count()
            agent.ladders.join(0)
        agent.count()
        assert (answers(agent, log, [0]), agent.cache.laddered()) == (before, stored)
        monkeypatch.setattr(agent.watcher, "tails", list)
        agent.count()
        agent.now += int(GONE_SECONDS * 1000)
        agent.count()
        agent.ladders.join(0)
        assert (agent.ladders.all(), agent.cache.laddered()) == ([], set())


def test_segments_that_go_while_no_agent_runs_are_forgotten_later(tmp_path: Path, log: PartitionLog) -> None:
    with beside(tmp_path, log) as agent:
        agent.count()
        agent.ladders.join(0)
        agent.close()
        log.config = type(log.config)(retention_bytes=0)
        log.delete_old_segments(NOW)
        agent.open()
        agent.look()
        agent.now += int(SWEEP_SECONDS * 1000)
        agent.look()
        agent.count()
        assert {key.base_offset for key in agent.cache.laddered()} == {segment.base_offset for segment in log.segments[:-1]}


def test_after_a_truncation_nothing_is_compared_with_what_was_reported_before(tmp_path: Path, log: PartitionLog) -> None:
    with beside(tmp_path, log) as agent:
        agent.count()
        (before,) = answers(agent, log, [0])
        log.truncate(log.log_end_offset - 5)
        log.append(batch(2), leader_epoch=1)
        agent.look()
        assert {answer["state"] for answer in answers(agent, log, [0])} == {"filling"}
        agent.count()
        check(agent, log)
        assert answers(agent, log, [0])[0]["edition"] != before["edition"]


def test_a_compacted_segment_is_counted_again(tmp_path: Path, log: PartitionLog) -> None:
    with beside(tmp_path, log) as agent:
        agent.count()
        (before,) = answers(agent, log, [0])
        clean(log, {entry.base_offset for segment in log.segments for entry in segment.entries[1:]}, 0)
        agent.look()
        agent.count()
        check(agent, log)
        assert answers(agent, log, [0])[0]["edition"] != before["edition"]


@pytest.mark.parametrize("counted_before", [True, False])
@pytest.mark.parametrize("steps", range(7))
def test_a_broker_that_was_killed_in_mid_compaction_has_damaged_nothing(
    tmp_path: Path, log: PartitionLog, steps: int, counted_before: bool
) -> None:
    """What the new segment replaces is there until the broker starts."""
    with beside(tmp_path, log) as agent:
        if counted_before:
            agent.count()
        swap = Swap(log, 2, {0, 6, 7, 13})
        swap.upto(steps)
        agent.look()
        agent.count()
        check(agent, log)
        for step in swap.steps[steps:]:
            step()
        log.append(batch(1))
        agent.look()
        agent.count()
        check(agent, log)


def test_an_offset_that_the_watcher_has_read_and_the_ladder_lacks_is_not_beyond_the_end(tmp_path: Path, log: PartitionLog) -> None:
    with beside(tmp_path, log) as agent:
        agent.count()
        (ladder,) = agent.ladders.all()
        ladder._gap = True
        log.append(batch(2))
        agent.look()
        end = log.log_end_offset
        assert [answer["state"] for answer in answers(agent, log, [end - 2, end - 1, end, end + 1])] == [
            "known",
            "filling",
            "filling",
            "beyond",
        ]
        agent.count()
        assert [answer["state"] for answer in answers(agent, log, [end, end + 1])] == ["known", "beyond"]


def test_a_gap_that_opens_again_while_it_is_closed_is_seen_at_a_roll(tmp_path: Path, log: PartitionLog) -> None:
    """A range is read after the thread that closes a gap has looked at the cursor, and before it says that the gap is closed."""
    with beside(tmp_path, log) as agent:
        agent.count()
        (ladder,) = agent.ladders.all()
        ladder._gap = True
        log.append(batch(2))
        agent.look()
        ladder._gap = False
        log.roll()
        log.append(batch(1))
        agent.look()
        assert ladder.has_gap
        agent.count()
        check(agent, log)


def test_a_ladder_goes_on_under_another_watcher(tmp_path: Path, log: PartitionLog, monkeypatch: pytest.MonkeyPatch) -> None:
    with beside(tmp_path, log) as agent:
        agent.count()
        (before,) = answers(agent, log, [0])
        agent.replace_watcher()
        log.append(batch(2))
        agent.look()
        with monkeypatch.context() as patch:
            for name in ("opened_at", "count_segment"):
                patch.setattr(laddered_log, name, lambda *_: pytest.fail("read again"))
            agent.count()
        log.append(batch(1))
        agent.look()
        agent.count()
        check(agent, log)
        assert answers(agent, log, [0])[0]["edition"] == before["edition"]


@pytest.mark.parametrize("seen_by", ["the first watcher", "the second watcher"])
def test_a_ladder_of_a_log_that_was_cut_off_does_not_go_on_under_another_watcher(tmp_path: Path, log: PartitionLog, seen_by: str) -> None:
    with beside(tmp_path, log) as agent:
        agent.count()
        (ladder,) = agent.ladders.all()
        (before,) = answers(agent, log, [0])
        if seen_by == "the second watcher":
            agent.replace_watcher()
            agent.look()
        log.truncate(log.log_end_offset - 2)
        log.append(batch(3), leader_epoch=1)
        agent.look()
        if seen_by == "the first watcher":
            agent.replace_watcher()
            agent.look()
        (tail,) = agent.watcher.tails()
        assert not ladder.adopt(tail)
        agent.count()
        check(agent, log)
        assert answers(agent, log, [0])[0]["edition"] != before["edition"]


def test_a_log_that_cannot_be_read_is_left_alone_for_a_while_and_the_others_go_on(tmp_path: Path, log: PartitionLog) -> None:
    other = partition(log_dir(tmp_path, "d1"), "others", topic_id=1)
    other.append(batch(2))
    with beside(tmp_path, log, other) as agent:
        path = log.segments[1].path("log")
        hidden = path.rename(tmp_path / "hidden")
        agent.count()
        assert agent.ladders.errors == 1
        assert [answer["state"] for answer in answers(agent, log, [0])] == ["filling"]
        assert path.name in errors(agent)["orders"]
        check(agent, other)
        hidden.rename(path)
        agent.count()
        assert agent.ladders.errors == 1
        agent.now += int(RETRY_SECONDS * 1000)
        agent.count()
        check(agent, log)
        assert errors(agent) == {}


def test_why_the_records_of_a_damaged_log_are_not_counted_is_reported_as_long_as_it_is_there(tmp_path: Path, log: PartitionLog) -> None:
    path = log.segments[1].path("log")
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    with beside(tmp_path, log) as agent:
        assert errors(agent) == {}, "it is only not counted yet"
        agent.count()
        assert errors(agent)["orders"].startswith(f"{path}: bad CRC: offsets ")
        log.delete_records(log.segments[2].base_offset)
        log.delete_old_segments(NOW)
        agent.look()
        agent.count()
        assert errors(agent) == {}
        check(agent, log)


def test_a_log_of_which_a_file_went_since_it_was_listed_is_counted_after_the_next_look(tmp_path: Path, log: PartitionLog) -> None:
    path = log.segments[0].path("log")
    with beside(tmp_path, log) as agent:
        copy = tmp_path / "cleaned"
        copy.write_bytes(path.read_bytes())
        copy.replace(path)  # as a compaction does
        agent.count()
        assert agent.ladders.errors == 1
        agent.now += int(REST_SECONDS * 1000)
        agent.watcher.poll({log.directory})
        agent.count()
        check(agent, log)


def test_a_log_dir_that_is_not_available_is_left_alone(tmp_path: Path, log: PartitionLog) -> None:
    with beside(tmp_path, log) as agent:
        agent.count()
        agent.log_dirs.bar(log.directory.parent, "it does not answer")
        assert [answer["edition"] for answer in answers(agent, log, [0])] == [""]
        agent.log_dirs.unbar(log.directory.parent)
        agent.log_dirs.check()
        check(agent, log)


class Impatient(DirCalls):
    """Does not wait for one log dir, and for the others as long as they need."""

    def __init__(self, paths: Sequence[Path], silent: Path) -> None:
        super().__init__(paths)
        self._silent = silent

    def call(self, path: Path, what: Callable[[], R], seconds: float) -> R:
        return super().call(path, what, 0.01 if path == self._silent else 600.0)


def test_a_log_dir_that_does_not_answer_delays_its_own_logs_alone(
    tmp_path: Path, log: PartitionLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = partition(log_dir(tmp_path, "d1"), "others", topic_id=1)
    other.append(batch(2))
    released, real = threading.Event(), positions

    def waiting(segments: Sequence[object], *rest: object, **options: object) -> object:
        if segments[0].directory == log.directory:  # type: ignore[attr-defined]
            released.wait(600)
        return real(segments, *rest, **options)  # type: ignore[arg-type]

    with beside(tmp_path, log, other) as agent:
        agent.count()
        monkeypatch.setattr(group_answers, "positions", waiting)
        both = pa.concat_tables([asked(log, [0]), asked(other, [0])])
        found = find_positions(agent.ladders, Impatient(agent.paths, log.directory.parent), both, clock=lambda: 0.0).to_pylist()
        assert [(answer["topic"], answer["state"], bool(answer["edition"])) for answer in found] == [
            ("orders", "filling", False),
            ("others", "known", True),
        ]
        released.set()


# --- how many records logs have


def rows(table: pa.Table | pa.RecordBatch) -> dict[str, tuple[int, ...]]:
    names = ("log_start", "next_offset", "data", "aborted", "control")
    return {row["topic"]: tuple(row[name] for name in names) for row in table.to_pylist()}


def test_the_records_of_logs_are_reported_once_all_is_counted_and_then_as_they_change(tmp_path: Path, log: PartitionLog) -> None:
    with beside(tmp_path, log) as agent, agent.served() as address:
        client = AgentClient(address)
        assert client.records().rows.num_rows == 0
        agent.count()
        first = client.records()
        assert (first.whole, rows(first.rows)) == (True, {"orders": (0, 25, 22, 6, 3)})
        same = client.records(RecordsRequest(first.process, first.number))
        assert (same.whole, same.rows.num_rows, same.number) == (False, 0, first.number)
        client.close()
    assert log.log_end_offset == 25


def test_records_are_counted_from_the_log_start_even_inside_a_segment(tmp_path: Path, log: PartitionLog) -> None:
    with beside(tmp_path, log) as agent:
        agent.count()
        totals = agent.ladders.totals
        number, _, found = totals.changes("", 0)
        log.delete_records(4)  # between the two records of an aborted batch
        agent.look()
        agent.count()
        number, whole, found = totals.changes(totals.process, number)
        assert (whole, rows(found)) == (False, {"orders": (4, 25, 18, 5, 3)})
        log.rename(f"{log.name}.{0:032x}-delete")
        log.remove()
        for _ in range(3):  # a minute each
            agent.look()
            agent.count()
        assert rows(totals.changes(totals.process, number)[2])["orders"][1] == -1
        assert totals.changes("", 0)[2].num_rows == 0


def test_a_stored_ladder_that_is_damaged_is_not_used_and_somebody_is_warned(caplog: pytest.LogCaptureFixture) -> None:
    assert laddered_log._unpacked(b"\xff") is None
    assert [(record.levelname, record.message) for record in caplog.records] == [("WARNING", "a stored ladder is not used")]


# --- all of it together


class Ladders(RuleBasedStateMachine):
    """One log under everything that happens to one."""

    def __init__(self) -> None:
        super().__init__()
        self._directory = scratch()
        root = Path(self._directory.name)
        self.log = partition(log_dir(root), "orders", segment_bytes=1200, retention_bytes=2500, index_interval_bytes=200)
        self.log.append(batch(2))
        self.epoch = 0
        self._beside = beside(root, self.log)
        self.agent = self._beside.__enter__()
        self.reported: dict[str, dict[int, tuple[int, ...]]] = {}  # by edition, of each offset: what was reported

    def teardown(self) -> None:
        self._beside.__exit__(None, None, None)
        self.log.close()
        self._directory.cleanup()

    @rule(records=st.integers(1, 4), producer=st.sampled_from([-1, 3, 4]), count=st.integers(1, 3))
    def append(self, records: int, producer: int, count: int) -> None:
        made = batch(records, value_bytes=20, producer=producer, transactional=producer >= 0)
        self.log.append(*[made] * count, leader_epoch=self.epoch)

    @rule(producer=st.sampled_from([3, 4]), committed=st.booleans())
    def end(self, producer: int, committed: bool) -> None:
        self.log.append((commit if committed else abort)(producer), leader_epoch=self.epoch)

    @rule()
    def roll(self) -> None:
        self.log.roll()

    @rule(back=st.integers(1, 8))
    def truncate(self, back: int) -> None:
        first, to = self.log.segments[0].base_offset, self.log.log_end_offset - back
        # a truncation to the log start takes the epoch away that shows it: only a later checkpoint has it then
        if self.log.log_start_offset in range(first + 1) or to > self.log.log_start_offset:
            self.log.truncate(max(first, to))
            self.epoch += 1

    @precondition(lambda self: len(self.log.segments) > 1)
    @rule(keep=st.integers(0, 3))
    def compact(self, keep: int) -> None:
        """Batches outside of transactions may go."""
        entries = [entry for segment in self.log.segments for entry in segment.entries]
        clean(self.log, {entry.base_offset for entry in entries if entry.producer_id >= 0 or entry.base_offset % 4 >= keep}, 0)

    @rule(part=st.floats(0, 1))
    def delete_records(self, part: float) -> None:
        start = self.log.log_start_offset
        self.log.delete_records(start + int(part * (self.log.log_end_offset - start)))

    @rule()
    def delete_old(self) -> None:
        self.log.delete_old_segments(NOW)

    @rule()
    def look(self) -> None:
        self.agent.look()

    @rule()
    def count(self) -> None:
        self.agent.count()

    @rule()
    def restart(self) -> None:
        self.agent.ladders.join(0)
        self.agent.restart()

    @rule()
    def settled(self) -> None:
        for _ in range(2):
            self.agent.look()
            self.agent.now += int(RETRY_SECONDS * 1000)
            self.agent.count()
        check(self.agent, self.log)
        self.remember()

    def remember(self) -> None:
        """What was reported one edition stays true: the same offset has the same counts, where no transaction was open."""
        stable = self.log.last_stable_offset()
        for answer in answers(self.agent, self.log, all_offsets(self.log)):
            reported = self.reported.setdefault(str(answer["edition"]), {})
            counts = tuple(int(answer[name]) for name in ("data", "control", "bytes", "aborted"))
            if int(answer["offset"]) <= stable:
                assert reported.setdefault(int(answer["offset"]), counts) == counts


TestLadders = Ladders.TestCase
TestLadders.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)


@pytest.mark.parametrize("call", ["begin", "compare", "next_modified_ms", "fill", "place_start", "catch_up"])
def test_an_error_of_this_program_leaves_one_log_alone_and_not_its_log_dir(
    tmp_path: Path, log: PartitionLog, call: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    disk = log.directory.parent
    with beside(tmp_path, log) as agent:
        other = PartitionLog(disk / "others-0", "others", 0, UUID(int=1))
        other.append(batch(2))
        agent.look()
        if call == "catch_up":
            agent.count()
            next(each for each in agent.ladders.all() if each.tail.cursor.log.topic == "orders")._gap = True
        right = getattr(LadderedLog, call)

        def wrong(ladder: LadderedLog, *rest: Any) -> Any:
            if ladder.tail.cursor.log.topic == "orders":
                raise IndexError("as nobody expects")
            return right(ladder, *rest)

        monkeypatch.setattr(LadderedLog, call, wrong)
        agent.count()
        assert agent.ladders.errors == 1
        (record,) = [each for each in caplog.records if each.exc_info]
        assert record.log == "orders-0"  # type: ignore[attr-defined]
        check(agent, other)
        monkeypatch.undo()
        agent.now += int(RETRY_SECONDS * 1000)
        agent.count()
        check(agent, log)


def test_a_log_that_is_cut_off_while_a_gap_is_closed_is_begun_again(tmp_path: Path, log: PartitionLog) -> None:
    """The listing no longer has the segment of the cursor that was read before it."""
    with beside(tmp_path, log) as agent:
        agent.count()
        (ladder,) = agent.ladders.all()
        log.roll()
        log.append(batch(2))
        ladder._gap = True
        agent.look()
        tail = ladder.tail
        listed = tail.listing
        tail.listing = replace(listed, segments=listed.segments[:-1])
        agent.count()
        assert agent.ladders.errors == 1
        tail.listing = listed
        agent.now += int(RETRY_SECONDS * 1000)
        agent.count()
        check(agent, log)
