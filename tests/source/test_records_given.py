"""What ``relation=records`` says of log dirs and topics that it cannot read, before any task begins; and of damaged batches."""

import os
from pathlib import Path

import pytest

from streaming.errors import FormatError, LogDirError, UsageError
from streaming.kafka.formats.names import FileKind
from streaming.simulator.batch_writer import Codec
from tests.builders import batch, log_dir, partition
from tests.source.record_reading import record_rows, records_reader


def offsets(*log_dirs: Path, **options: str) -> list[int]:
    return [row["offset"] for row in record_rows(*log_dirs, **options)]


def refused(*log_dirs: Path, **options: str) -> str:
    with pytest.raises(UsageError) as caught:
        records_reader(*log_dirs, **options).partitions()
    return str(caught.value)


def test_a_path_that_is_no_log_dir_is_named_with_the_option(tmp_path: Path) -> None:
    nothing, file, empty = tmp_path / "nothing", tmp_path / "file", tmp_path / "empty"
    file.touch()
    empty.mkdir()
    for path, why in ((nothing, "does not exist"), (file, "is not a directory"), (empty, "it has no meta.properties")):
        refusal = refused(path)
        assert "option log_dirs" in refusal
        assert str(path) in refusal
        assert why in refusal


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_one_that_may_not_be_read(tmp_path: Path) -> None:
    disk = log_dir(tmp_path)
    disk.path.chmod(0)
    assert "run as the broker's user" in refused(disk.path)
    disk.path.chmod(0o700)


def test_disks_of_two_clusters(tmp_path: Path) -> None:
    one, two = log_dir(tmp_path, "d1"), log_dir(tmp_path, "d2", cluster_id="BAECAwQFBgcICQoLDA0ODw")
    assert "give log dirs of one cluster" in refused(one.path, two.path)


def test_topics_that_are_not_there_are_named_with_some_that_are(tmp_path: Path) -> None:
    disk = log_dir(tmp_path)
    for name in ("orders", "payments", "__consumer_offsets"):
        partition(disk, name).append(batch(1))
    disk.write_high_watermarks()
    assert refused(disk.path, topics="orders,order") == (
        "option topics: no partition of order is in the log dirs; they have orders, payments"
    )
    assert "topicsPattern: 'o' fits no topic" in refused(disk.path, topicsPattern="o")
    assert "option partitions" in refused(disk.path, partitions="7")
    assert "may hold passwords" in refused(disk.path, topics="__cluster_metadata")
    assert {row["topic"] for row in record_rows(disk.path)} == {"orders", "payments"}
    assert {row["topic"] for row in record_rows(disk.path, topics="__consumer_offsets")} == {"__consumer_offsets"}


def test_a_wanted_partition_that_may_not_be_read_is_an_error(tmp_path: Path) -> None:
    disk = log_dir(tmp_path)
    log = partition(disk, "orders")
    for each in (log, partition(disk, "pay")):
        each.append(batch(1))
    disk.write_high_watermarks()
    (log.directory / "partition.metadata").write_bytes(b"\xff")
    assert "orders-0 cannot be read: its partition.metadata is damaged, or may not be read" in refused(disk.path)
    assert "orders-0 cannot be read" in refused(disk.path, topics="orders")
    assert offsets(disk.path, topics="pay") == [0]


def test_directories_that_brokers_leave_out_are_left_out(tmp_path: Path) -> None:
    disk = log_dir(tmp_path)
    for ending in ("delete", "stray", "future"):
        partition(disk, "t", name=f"t-0.{0:032x}-{ending}").append(batch(5))
    partition(disk, "t").append(batch(1))
    disk.write_checkpoint("replication-offset-checkpoint", [("t", 0, 1)])
    assert offsets(disk.path) == [0]


def damaged(tmp_path: Path, at: int, byte: int, codec: Codec = Codec.NONE) -> tuple[Path, Path, int]:
    """Three batches of three records; in the second one a byte is another. The log dir, the segment and where that batch begins."""
    disk = log_dir(tmp_path, codec.name)
    log = partition(disk, "t", index_interval_bytes=1)
    log.append(batch(3, codec=codec))
    begin = log.active.path(FileKind.LOG).stat().st_size
    log.append(batch(3, codec=codec))
    log.append(batch(3, codec=codec))
    disk.write_high_watermarks()
    disk.release()
    content = bytearray(log.active.path(FileKind.LOG).read_bytes())
    content[begin + at] = byte
    log.active.path(FileKind.LOG).write_bytes(content)
    return disk.path, log.active.path(FileKind.LOG), begin


MODES = ("PERMISSIVE", "DROPMALFORMED", "FAILFAST")
FIRST, SECOND, THIRD = [0, 1, 2], [3, 4, 5], [6, 7, 8]


@pytest.mark.parametrize(
    ("at", "byte", "codec", "permissive"),
    [
        (100, 7, Codec.NONE, [*FIRST, *SECOND, *THIRD]),  # a byte of the first value: only the CRC shows it
        (61 + 110, 0xFF, Codec.NONE, [*FIRST, 3, *THIRD]),  # the length of the second record
        (61, 0xFF, Codec.GZIP, [*FIRST, *THIRD]),  # it cannot be decompressed
        (8, 0x7F, Codec.NONE, [*FIRST, *THIRD]),  # the length of the batch: the index names the next one
        (16, 9, Codec.NONE, [*FIRST, *THIRD]),  # its magic
        (0, 0xFF, Codec.NONE, [*FIRST, *THIRD]),  # its offset, which no CRC covers: a negative one
        (2, 1, Codec.NONE, [*FIRST, *THIRD]),  # and one that is beyond what follows
        (7, 1, Codec.NONE, [*FIRST, *THIRD]),  # one that was there before
    ],
)
def test_damaged_batches_by_the_mode(
    tmp_path: Path, at: int, byte: int, codec: Codec, permissive: list[int], caplog: pytest.LogCaptureFixture
) -> None:
    path, segment, begin = damaged(tmp_path, at, byte, codec)
    found = {}
    for mode in MODES[:2]:
        caplog.clear()
        found[mode] = offsets(path, mode=mode)
        places = [message for message in caplog.messages if message.startswith("damaged: ")]
        assert [f"{segment}: position {begin}: " in message for message in places] == [True], mode
        assert any("1 damaged places" in message for message in caplog.messages)
    assert found == {"PERMISSIVE": permissive, "DROPMALFORMED": [*FIRST, *THIRD]}
    with pytest.raises(FormatError, match=f"{segment}: position {begin}: .*mode=PERMISSIVE"):
        offsets(path, mode="FAILFAST")


def test_an_offset_that_belongs_into_another_segment_is_damage(tmp_path: Path) -> None:
    """A CRC does not cover it."""
    disk = log_dir(tmp_path)
    log = partition(disk, "t")
    log.append(batch(2))
    begin = log.active.path(FileKind.LOG).stat().st_size
    segment = log.active.path(FileKind.LOG)
    log.append(batch(2))
    log.append(batch(2))
    log.roll()
    log.append(batch(1))
    disk.write_high_watermarks()
    content = bytearray(segment.read_bytes())
    content[begin + 2] = 1
    segment.write_bytes(content)
    assert offsets(disk.path) == [0, 1, 4, 5, 6]
    with pytest.raises(FormatError, match="where 4 follows"):
        offsets(disk.path, mode="FAILFAST")


def test_a_log_dir_that_goes_meanwhile(tmp_path: Path) -> None:
    disk = log_dir(tmp_path)
    log = partition(disk, "t")
    log.append(batch(2))
    disk.write_high_watermarks()
    reader = records_reader(disk.path)
    (task,) = reader.partitions()
    log.directory.rename(tmp_path / "away")
    with pytest.raises(LogDirError, match=r"t-0: .* while offsets from 0 on were read"):
        list(reader.read(task))
