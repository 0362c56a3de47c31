"""A log dir that two processes read in halves is the one that a single process reads, and `du`."""

import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from streaming.broker.disk import dir_usage
from streaming.broker.disk.dir_usage import DirUsage, joined, read_log_dir, read_usage
from tests.builders import batch, delete, log_dir, partition
from tests.disk.du import check


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    """Twenty replicas, leftovers of all sorts, and files that have a name in both halves."""
    here = log_dir(tmp_path)
    for number in range(20):
        log = partition(here, "orders", number)
        log.append(batch(3))
        log.roll()
        log.append(batch(number + 1))
    delete(here, partition(here, "gone")).append(batch(1))
    for number in range(0, 20, 2):
        (here.path / f"orders-{number}" / "stray.file").write_bytes(b"x" * 5000)
        for other in {number + 1, 19 - number}:
            os.link(here.path / f"orders-{number}" / "stray.file", here.path / f"orders-{other}" / f"the.same.{number}")
    (here.path / "a link").symlink_to("nowhere")
    (here.path / "another").write_bytes(b"y" * 9000)
    return here.path


def content(usage: DirUsage) -> dict[str, Any]:
    """Everything in it, by names and not by their order."""
    segments: dict[str, list[tuple[int, ...]]] = {}
    for directory, *rest in usage.segments.tolist():
        segments.setdefault(str(usage.names[directory]), []).append(tuple(rest))
    rows = list(zip(map(str, usage.names), usage.apparent.tolist(), strict=True))
    return {
        "sums": (usage.apparent.sum(axis=0).tolist(), usage.taken.sum(axis=0).tolist()),
        "names": sorted(map(str, usage.names)),
        "rows": sorted(row for row in rows if "orders" not in row[0]),  # which of two names a file counts for is open
        "segments": segments,
        "leftovers": sorted(map(str, usage.leftovers)),
        "links": sorted(usage.links),
        "unread": usage.unread,
        "files": set(usage.counted),
        "system": (usage.path, usage.device, usage.capacity),
    }


def test_both_halves_are_the_whole_and_files_with_a_name_in_each_count_once(disk: Path) -> None:
    halves = [read_usage(disk, half=half) for half in (0, 1)]
    assert all(len(half.segments) > 4 for half in halves)
    assert halves[0].counted.keys() & halves[1].counted.keys()
    found = joined(*halves)
    assert content(found) == content(read_usage(disk))
    assert np.all(np.diff(found.segments["directory"]) >= 0)
    check(found)


def test_a_large_log_dir_is_read_by_two_processes(disk: Path, caplog: pytest.LogCaptureFixture) -> None:
    found = read_log_dir(disk, large=1)
    assert content(found) == content(read_usage(disk))
    check(found)
    assert caplog.records == []


def test_a_second_process_that_fails_is_stated_and_its_half_is_read_all_the_same(
    disk: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(dir_usage, "__name__", "no.such.module")
    assert content(read_log_dir(disk, large=1)) == content(read_usage(disk))
    assert [record.message for record in caplog.records] == ["a second process could not read its half of a log dir"]


def test_a_small_one_is_read_by_this_process_alone(disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    assert content(read_log_dir(disk)) == content(read_usage(disk))


def test_one_that_is_not_there_raises(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_log_dir(tmp_path / "none")
