"""What may lie under the name of a file of Kafka's: pipes, sockets, directories, holes. None of it is waited for, nor read whole."""

import os
import re
import socket
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import streaming
from streaming.broker.disk import opening
from streaming.broker.disk.availability import read_identity
from streaming.broker.disk.index_file import last_entry_below
from streaming.broker.disk.logdirs import TopicIds, load_offset_checkpoint
from streaming.broker.disk.metadata_log import load_metadata_snapshot, read_quorum_state
from streaming.broker.disk.opening import NAMES_BYTES, open_file, read_small
from streaming.broker.disk.producer_files import SnapshotFile, aborted_transactions, load_producer_snapshot
from streaming.broker.disk.segment_files import OpenSegment, list_segments, read_leader_epochs
from streaming.errors import FormatError, LogDirError, SegtailError, TooLargeError
from streaming.kafka.formats.names import LEADER_EPOCH_CHECKPOINT, META_PROPERTIES, PARTITION_METADATA, MetadataSnapshot
from tests.builders import batch, log_dir, partition
from tests.disk.descriptors import descriptors
from tests.tables import each_row

HOLE_BYTES = 512 << 20
NAME = f"{0:020}"

Maker = Callable[[Path], object]


def _socket(path: Path) -> None:
    here = os.open(".", os.O_RDONLY)
    try:
        os.chdir(path.parent)  # the name of a socket is short
        with socket.socket(socket.AF_UNIX) as one:
            one.bind(path.name)
    finally:
        os.fchdir(here)
        os.close(here)


IRREGULAR: dict[str, Maker] = {
    "pipe": os.mkfifo,
    "socket": _socket,
    "directory": Path.mkdir,
    "device": lambda path: path.symlink_to("/dev/zero"),
}


@each_row("kind", IRREGULAR)
def test_what_is_no_regular_file_is_refused_at_once(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "file"
    IRREGULAR[kind](path)
    with pytest.raises(OSError, match=r"no regular file|No such device"):
        open_file(path)
    with pytest.raises(OSError, match=r"no regular file|No such device|a symbolic link"):
        read_small(path, 10)
    assert descriptors(os.fspath(path.resolve())) == []
    path.rmdir() if path.is_dir() else path.unlink()


@each_row(("size", "limit"), [(0, 0), (10, 10), (100_000, 1 << 20)])
def test_a_small_file_is_read_whole(size: int, limit: int, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x" * size)
    assert read_small(path, limit) == b"x" * size


def test_a_larger_one_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x" * 11)
    with pytest.raises(TooLargeError, match="larger than 10 bytes"):
        read_small(path, 10)


@each_row(
    "name", [PARTITION_METADATA, LEADER_EPOCH_CHECKPOINT, "replication-offset-checkpoint", META_PROPERTIES, "snapshot", "quorum-state"]
)
def test_a_hole_costs_nothing(name: str, tmp_path: Path) -> None:
    disk = log_dir(tmp_path / name)
    directory = disk.path / "__cluster_metadata-0"
    directory.mkdir()
    path = {"replication-offset-checkpoint": disk.path / name, META_PROPERTIES: disk.path / name}.get(name, directory / name)
    log_dirs = [read_identity(disk.path)]
    with path.open("wb") as file:
        file.truncate(HOLE_BYTES)
    tracemalloc.start()
    try:
        if name == PARTITION_METADATA:
            ids = TopicIds()
            assert ids.read(directory) is None
            assert f"larger than {NAMES_BYTES} bytes" in ids.unreadable[directory]
        elif name == LEADER_EPOCH_CHECKPOINT:
            assert read_leader_epochs(directory) == ()
        elif name == META_PROPERTIES:
            with pytest.raises(LogDirError, match="larger than"):
                read_identity(disk.path)
        elif name == "snapshot":
            with pytest.raises(TooLargeError):
                load_producer_snapshot(SnapshotFile(0, path))
            with pytest.raises(FormatError, match="not whole"):
                load_metadata_snapshot(directory, _named(path))
        elif name == "quorum-state":
            with pytest.raises(TooLargeError):
                read_quorum_state(log_dirs)
        else:
            assert load_offset_checkpoint(log_dirs[0], name).offsets is None
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


def test_a_small_file_that_is_a_link_is_not_followed_out_of_a_log_dir(tmp_path: Path) -> None:
    here = log_dir(tmp_path)
    (tmp_path / "shadow").write_text("root:x:0")
    (tmp_path / "disk").symlink_to(here.path)
    (here.path / "one").write_text("1")
    (here.path / "two").symlink_to(tmp_path / "shadow")
    assert read_small(tmp_path / "disk" / "one", 100) == b"1"  # the log dir itself may be a link
    with pytest.raises(OSError, match="a symbolic link, which is not followed"):
        read_small(tmp_path / "disk" / "two", 100)
    assert read_small(here.path / "two", 100, follows=True) == b"root:x:0"


def _named(path: Path) -> MetadataSnapshot:
    snapshot = MetadataSnapshot(0, 0)
    path.rename(path.with_name(snapshot.name))
    (path.parent / snapshot.name).rename(path)
    path.with_name(snapshot.name).symlink_to(path.name)
    return snapshot


def test_a_pipe_in_place_of_each_file_of_a_segment_is_an_error_or_none(tmp_path: Path) -> None:
    log = partition(log_dir(tmp_path), "t")
    log.append(batch(1))
    (segment,) = list_segments(log.directory)
    for kind in ("log", "index", "txnindex"):
        path = log.directory / f"{NAME}.{kind}"
        path.unlink(missing_ok=True)
        os.mkfifo(path)
    with pytest.raises(OSError, match="no regular file"):
        OpenSegment(segment.path, 0)
    assert last_entry_below(log.directory / f"{NAME}.index", None) is None
    with pytest.raises(OSError, match="no regular file"):
        aborted_transactions([segment], 10)
    assert np.size(list_segments(log.directory)) == 1


def test_nothing_else_opens_kafkas_files() -> None:
    root = Path(streaming.__file__).parent
    found = {
        f"{path.relative_to(root)}: {line.strip()}"
        for path in root.rglob("*.py")
        if path.parent.name in ("disk", "dump", "ladder", "offline", "watcher", "restarts", "scrub", "scan", "formats", "groups")
        for line in path.read_text().splitlines()
        if re.search(r"\bos\.open\(|\bopen\(\"|\.read_bytes\(|\.read_text\(|(?<!def)[^.\w]open\(", line)
    }
    assert {each for each in found if "O_DIRECTORY" not in each and "/proc" not in each} == {
        'broker/disk/broker_processes.py: with (directory / "cmdline").open("rb") as file:',  # below /proc
        'broker/disk/deleted_files.py: return (process / "comm").read_text(errors="replace").strip()',  # below /proc
        "broker/scrub/scrub_progress.py: fields = json.loads(path.read_bytes())",  # its own file
    }
    assert opening._open is os.open
    assert issubclass(TooLargeError, SegtailError)
