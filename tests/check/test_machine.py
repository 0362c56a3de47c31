"""What a machine lacks is reported in one line, and decides how many tests run side by side."""

import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.check.machine import ROOM_MIB, limit_files, main, processes, skipped, too_little_room


def test_who_was_skipped_is_one_line() -> None:
    helm, root = "helm is not on the PATH (make tools)", "only root can mount anything"
    line = skipped([f"Skipped: {helm}", f"Skipped: {root}", f"Skipped: {helm}"])
    assert line == f"Skipped 3 tests: 2 because {helm}; 1 because {root}"


@pytest.mark.parametrize(
    ("cores", "memory_mib", "expected"), [(2, 24_000, 3), (1, 24_000, 2), (1, 2_000, 1), (2, 500, 1), (16, 64_000, 4), (16, 3_500, 3)]
)
def test_small_machines_run_fewer_tests_side_by_side(cores: int, memory_mib: int, expected: int) -> None:
    assert processes(cores, memory_mib) == expected


def test_a_limit_of_memory_is_also_that_of_the_groups_around() -> None:
    """As `systemd-run --property MemoryMax=2G` sets it, and as older machines have it beside others."""
    assert [*map(str, limit_files("0::/user.slice/run.scope\n"))] == [
        "/sys/fs/cgroup/user.slice/run.scope/memory.max",
        "/sys/fs/cgroup/user.slice/memory.max",
        "/sys/fs/cgroup/memory.max",
    ]
    assert [*map(str, limit_files("5:cpu,cpuacct:/a\n4:memory:/a\n0::/\n"))] == [
        "/sys/fs/cgroup/memory/a/memory.limit_in_bytes",
        "/sys/fs/cgroup/memory/memory.limit_in_bytes",
        "/sys/fs/cgroup/memory.max",
    ]


def test_a_full_folder_for_temporary_files_is_named_with_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It is the one that was asked for: Python itself passes over one that is full, and takes another one without a word."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=100 << 20 if path == str(tmp_path) else 1 << 60))
    stated = too_little_room(ROOM_MIB)
    assert stated.startswith(f"{tmp_path} has 100 MiB free")
    assert "TMPDIR" in stated
    assert too_little_room(100) == ""


def test_a_folder_for_temporary_files_that_is_not_there_is_named_too(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path / "gone"))
    assert too_little_room(1).startswith(f"{tmp_path / 'gone'} is no folder in which this user can write")


def test_no_run_begins_without_room(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path / "gone"))
    with pytest.raises(SystemExit) as ended:
        main(["--room"])
    assert ended.value.code == too_little_room(ROOM_MIB)
    assert capsys.readouterr().out == ""
    main([])
    assert int(capsys.readouterr().out) >= 1
