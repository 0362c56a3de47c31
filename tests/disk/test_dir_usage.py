"""What lies below a log dir, against what ``du`` says of it."""

import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

from streaming.broker.disk.dir_usage import MOST_DEEP, DirUsage, DiskFileKind, read_usage
from tests.builders import batch, delete, log_dir, partition
from tests.disk.du import check

HEX = "0" * 31 + "1"


def taken(usage: DirUsage, kind: DiskFileKind) -> int:
    return int(usage.taken[:, kind].sum())


def apparent(usage: DirUsage, kind: DiskFileKind) -> int:
    return int(usage.apparent[:, kind].sum())


def write(path: Path, size: int) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"x" * size)
    return path


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    """A log dir with two replicas of two segments, and a preallocated one."""
    here = log_dir(tmp_path)
    for number in (0, 1):
        log = partition(here, "orders", number)
        log.append(batch(3))
        log.roll()
        log.append(batch(2))
    partition(here, "wide", preallocate=True, segment_bytes=1 << 20).append(batch(1))
    delete(here, partition(here, "gone")).append(batch(1))
    return here.path


def test_every_kind_of_file_is_distinguished_and_the_sum_is_that_of_du(disk: Path) -> None:
    orders = disk / "orders-0"
    sizes = {
        disk / f"orders-2.{HEX}-future" / f"{0:020}.log": 10_000,
        disk / f"orders-3.{HEX}-stray" / f"{0:020}.log": 20_000,
        disk / f"gone-1.{HEX}-delete" / f"{0:020}.log.deleted": 30_000,
        orders / f"{7:020}.log.deleted": 5000,
        orders / f"{7:020}.timeindex.deleted": 12,
        orders / f"{0:020}.log.cleaned": 6000,
        orders / f"{0:020}.index.swap": 8,
        orders / "core.1234": 999,
        disk / "__cluster_metadata-0" / f"{0:020}.log": 4000,
        disk / "__cluster_metadata-0" / f"{5:020}-{1:010}.checkpoint": 3000,
        disk / "lost+found" / "#123": 777,
        disk / "heap.hprof": 50_000,
    }
    before = read_usage(disk)
    for path, size in sizes.items():
        write(path, size)
    found = read_usage(disk)
    check(found)
    added = {kind: apparent(found, kind) - apparent(before, kind) for kind in DiskFileKind if kind is not DiskFileKind.DIRECTORY}
    assert added == {
        DiskFileKind.SEGMENT: 0,
        DiskFileKind.INDEX: 0,
        DiskFileKind.SNAPSHOT: 0,
        DiskFileKind.CHECKPOINT: 0,
        DiskFileKind.METADATA: 7000,
        DiskFileKind.FUTURE: 10_000,
        DiskFileKind.DELETED: 5012,
        DiskFileKind.DELETE: 30_000,
        DiskFileKind.CLEANER: 6008,
        DiskFileKind.STRAY: 20_000,
        DiskFileKind.OTHER: 999 + 777 + 50_000,
    }
    left = {(Path(each.path).name, each.kind) for each in found.leftovers}
    assert left >= {("orders-0", DiskFileKind.DELETED), ("orders-0", DiskFileKind.CLEANER), (f"orders-3.{HEX}-stray", DiskFileKind.STRAY)}


def test_segments_are_listed_in_order_and_what_is_preallocated_takes_less_than_its_length(disk: Path) -> None:
    found = read_usage(disk)
    check(found)
    names = {number: name.topic for number, name in enumerate(found.names) if name is not None}
    listed = [(names[row["directory"]], int(row["base_offset"])) for row in found.segments]
    assert sorted(listed) == [("orders", 0), ("orders", 0), ("orders", 3), ("orders", 3), ("wide", 0)]
    assert (np.diff(found.segments["directory"]) >= 0).all()
    wide = found.segments[[topic == "wide" for topic, _ in listed]]
    assert wide["taken"][0] < wide["size"][0] == 1 << 20


def test_between_the_renames_of_a_compaction_a_segment_is_one_under_its_other_name(disk: Path) -> None:
    (disk / "orders-0" / f"{0:020}.log").rename(disk / "orders-0" / f"{0:020}.log.swap")
    write(disk / "orders-0" / f"{3:020}.log.swap", 100)
    found = read_usage(disk)
    check(found)
    assert len(found.segments) == 5
    assert apparent(found, DiskFileKind.CLEANER) == 100


def test_links_are_not_followed_and_a_file_with_two_names_counts_once(disk: Path, tmp_path: Path) -> None:
    elsewhere = write(tmp_path / "elsewhere" / f"{0:020}.log", 1 << 20)
    (disk / "far-0").symlink_to(elsewhere.parent)
    (disk / "orders-0" / f"{90:020}.log").symlink_to(elsewhere)
    os.link(disk / "orders-0" / f"{0:020}.log", disk / "orders-1" / f"{80:020}.log")
    os.link(disk / "orders-0" / f"{0:020}.index", disk / "orders-1" / f"{80:020}.index")
    found = read_usage(disk)
    check(found)
    assert sorted(Path(each).name for each in found.links) == [f"{90:020}.log", "far-0"]


@pytest.mark.parametrize(
    "name",
    [
        "\x1b[31mred-0",
        "a\nb",
        "-rf",
        "--x-0",
        "orders-x",
        "ümlaut-0",
        os.fsdecode(b"\xff\xfe-0"),
        "<script>-1",
        f"{'9' * 20}.log",
        "\u202e-0",
    ],
)
def test_odd_names_are_counted_wherever_they_are(disk: Path, name: str) -> None:
    for parent in (disk, disk / "orders-0"):
        write(parent / f"{name}.file", 100)
        write(parent / name / "inner", 200)
        (parent / name / "deeper").mkdir()
        write(parent / name / "deeper" / name, 300)
    check(read_usage(disk))


def test_a_directory_that_cannot_be_read_is_named_and_the_rest_is_there(disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As root everything can be read, so the system says so."""
    real = os.open

    def refuse(path: object, *arguments: int, **keywords: int) -> int:
        if str(path).endswith("orders-1"):
            raise PermissionError(13, "Permission denied")
        return real(path, *arguments, **keywords)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "open", refuse)
    found = read_usage(disk)
    assert found.unread == {f"{disk}/orders-1": "Permission denied"}
    assert len(found.segments) == 3


@pytest.mark.parametrize("at", ["lost+found", "orders-0", "orders-0.0123456789abcdef0123456789abcdef-delete"])
def test_directories_in_each_other_without_end_are_named_and_the_rest_is_there(disk: Path, at: str) -> None:
    before = read_usage(disk).taken.sum()
    (disk / at).mkdir(exist_ok=True)
    fd = os.open(disk / at, os.O_RDONLY)
    for _ in range(3 * MOST_DEEP):
        os.mkdir("d", dir_fd=fd)
        inner = os.open("d", os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = inner
    os.close(fd)
    found = read_usage(disk)
    (path, why), *others = found.unread.items()
    assert not others
    assert why == f"it lies in {MOST_DEEP} directories, and what is in it is not counted"
    assert path.count("/d") >= MOST_DEEP
    assert found.taken.sum() > before


def test_what_vanishes_while_it_is_read_is_not_there(disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, seen = os.open, []

    def vanish(path: object, *arguments: int, **keywords: int) -> int:
        seen.append(str(path))
        if str(path).endswith("orders-1"):
            subprocess.run(["rm", "-r", str(disk / "orders-1")], check=True)
        return real(path, *arguments, **keywords)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "open", vanish)
    found = read_usage(disk)
    assert "orders-1" in seen
    assert found.unread == {}
    assert len(found.segments) == 3


def test_a_log_dir_that_is_not_there_raises(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_usage(tmp_path / "none")
