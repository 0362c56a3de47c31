"""Looks at checkpoints: how far the query has read, and what is said where nobody can know that."""

import shutil
from pathlib import Path

import pytest

from streaming.errors import QueryCheckpointError
from streaming.queries.checkpoint_reader import CheckpointReader
from streaming.queries.local_checkpoint import LocalCheckpoint
from streaming.queries.query_look import QueryPosition
from tests.queries.test_formats import CHECKPOINTS
from tests.queries.written import Written


@pytest.fixture
def written(tmp_path: Path) -> Written:
    return Written(tmp_path / "checkpoint")


def reader(written: Written) -> CheckpointReader:
    return CheckpointReader("c", LocalCheckpoint(written.directory))


def test_a_planned_micro_batch_does_not_count_as_read() -> None:
    look = CheckpointReader("c", LocalCheckpoint(CHECKPOINTS / "plain")).look()
    assert look.query_id == "38d2c59b-2e0f-406a-8f79-0768f6002a2e"
    assert look.positions == (QueryPosition("orders", 0, 30), QueryPosition("orders", 1, 15))
    assert (look.batch, look.planned_batch, look.doubts, look.notes) == (2, 3, (), ())
    assert len(look.commit_times) == 3


def test_times_are_those_of_the_files(written: Written) -> None:
    written.both(7, {"a": {0: 5}}, at=100)
    written.both(8, {"a": {0: 9}}, at=110)
    written.plan(9, {"a": {0: 12}}, at=120)
    look = reader(written).look()
    assert (look.committed_ms, look.planned_ms, look.commit_times) == (110_000, 120_000, (100_000, 110_000))


def test_of_two_sources_that_read_a_partition_the_lower_one_counts(written: Written) -> None:
    written.both(0, {"a": {0: 5, 1: 6}}, {"a": {0: 3}, "b": {0: 1}}, {"a": {0: 4, 1: 9}}, "-")
    assert reader(written).look().positions == (QueryPosition("a", 0, 3), QueryPosition("a", 1, 6), QueryPosition("b", 0, 1))


def test_a_source_that_reads_no_kafka_is_reported_and_left_out(written: Written) -> None:
    written.both(0, '{"logOffset":2}', {"a": {0: 3}})
    look = reader(written).look()
    assert look.positions == (QueryPosition("a", 0, 3),)
    assert look.notes == ("its source 0 reads no Kafka, as its offset '{\"logOffset\":2}' shows, and is left out",)
    assert not look.doubts


@pytest.mark.parametrize("torn", ["offsets/1", "commits/1"])
def test_a_torn_file_is_reported_and_the_one_before_counts(written: Written, torn: str) -> None:
    written.both(0, {"a": {0: 3}})
    written.both(1, {"a": {0: 5}})
    written.tear(torn)
    looks = reader(written)
    for _ in range(2):
        look = looks.look()
        assert (look.batch, look.positions) == (0, (QueryPosition("a", 0, 3),))
        assert look.doubts[0].startswith(f"{torn} cannot be read: ")
        assert "up to where micro-batch 0 has ended" in look.doubts[1]


def test_a_copy_whose_commits_are_ahead_of_its_offsets_is_reported_and_the_one_before_counts(written: Written) -> None:
    written.both(0, {"a": {0: 3}})
    written.commit(1)
    look = reader(written).look()
    assert (look.batch, look.positions) == (0, (QueryPosition("a", 0, 3),))
    assert look.doubts[0] == "commits/1 is there and offsets/1 is not: it was copied in part, or while its query ran"
    assert "at least up to where micro-batch 0 has ended" in look.doubts[1]


def test_a_torn_plan_is_reported(written: Written) -> None:
    written.both(0, {"a": {0: 3}})
    written.plan(1, {"a": {0: 5}})
    written.tear("offsets/1", 20)
    look = reader(written).look()
    assert (look.batch, look.planned_batch) == (0, 1)
    assert [each.partition(":")[0] for each in look.doubts] == ["the micro-batch that is planned next is not known"]


def test_a_file_that_ends_between_two_sources_is_cut_off(written: Written) -> None:
    written.both(0, {"a": {0: 3}}, {"b": {0: 3}})
    looks = reader(written)
    looks.look()
    written.both(1, {"a": {0: 5}})
    look = looks.look()
    assert look.batch == 0
    assert "offsets/1 has 1 sources, and the query has 2: it is cut off" in look.doubts


def test_nothing_is_guessed_of_a_checkpoint_without_a_commit(written: Written) -> None:
    look = reader(written).look()
    assert (look.positions, look.doubts) == ((), ("no micro-batch is planned yet",))
    written.plan(0, {"a": {0: 3}})
    look = reader(written).look()
    assert (look.positions, look.batch, look.planned_batch, look.doubts) == ((), -1, 0, ("no micro-batch is committed yet",))


def test_another_checkpoint_in_its_place_is_reported(written: Written, caplog: pytest.LogCaptureFixture) -> None:
    written.both(4, {"a": {0: 5}})
    looks = reader(written)
    assert looks.look().generation == 0
    again = Written(written.directory, "q2")
    again.both(5, {"a": {0: 9}})
    look = looks.look()
    assert look.generation == 1
    assert look.notes[0].startswith("another checkpoint is in its place, that of query q2; it was that of q1")
    assert [record.message for record in caplog.records] == ["the checkpoint of a streaming query is another one"]
    assert looks.look().generation == 1
    assert len(caplog.records) == 1


def test_numbers_that_begin_again_are_reported(written: Written) -> None:
    written.both(4, {"a": {0: 5}})
    looks = reader(written)
    looks.look()
    shutil.rmtree(written.directory)
    Written(written.directory).both(0, {"a": {0: 1}})
    look = looks.look()
    assert (look.generation, look.batch) == (1, 0)
    assert look.notes[0].startswith("its micro-batches are numbered anew: the last one was 4, and is 0 now")


def test_a_file_is_read_again_if_it_was_written_again(written: Written) -> None:
    written.both(0, {"a": {0: 5}}, at=100)
    looks = reader(written)
    looks.look()
    written.plan(0, {"a": {0: 6}}, at=101)
    assert looks.look().positions == (QueryPosition("a", 0, 6),)


def test_other_files_are_passed_over(written: Written) -> None:
    written.both(0, {"a": {0: 5}})
    for name in (".1.crc", "1.tmp", ".2.abc.tmp", "_x", "\u0663"):
        (written.directory / "offsets" / name).write_text("")
        (written.directory / "commits" / name).write_text("")
    assert reader(written).look().batch == 0


def test_what_is_no_checkpoint_is_an_error_that_names_it(tmp_path: Path, written: Written) -> None:
    with pytest.raises(QueryCheckpointError, match="c is no checkpoint of a streaming query"):
        CheckpointReader("c", LocalCheckpoint(tmp_path / "nowhere")).look()
    written.tear("metadata", 3)
    with pytest.raises(QueryCheckpointError, match="c/metadata cannot be read"):
        reader(written).look()
    written = Written(written.directory)
    shutil.rmtree(written.directory / "offsets")
    (written.directory / "offsets").write_text("")
    with pytest.raises(QueryCheckpointError, match="c/offsets cannot be listed"):
        reader(written).look()
