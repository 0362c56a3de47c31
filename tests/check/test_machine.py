"""What a machine lacks is reported in one line, and decides how many tests run side by side."""

import shutil
import tempfile
from types import SimpleNamespace

import pytest

from tests.check.machine import ROOM_MIB, processes, skipped, too_little_room


def test_who_was_skipped_is_one_line() -> None:
    helm, root = "helm is not on the PATH (make tools)", "only root can mount anything"
    line = skipped([f"Skipped: {helm}", f"Skipped: {root}", f"Skipped: {helm}"])
    assert line == f"Skipped 3 tests: 2 because {helm}; 1 because {root}"


@pytest.mark.parametrize(
    ("cores", "memory_mib", "expected"), [(2, 24_000, 3), (1, 24_000, 2), (1, 2_000, 1), (2, 500, 1), (16, 64_000, 4), (16, 3_500, 3)]
)
def test_small_machines_run_fewer_tests_side_by_side(cores: int, memory_mib: int, expected: int) -> None:
    assert processes(cores, memory_mib) == expected


def test_a_full_folder_for_temporary_files_is_named_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=100 << 20))
    stated = too_little_room(ROOM_MIB)
    assert stated.startswith(f"{tempfile.gettempdir()} has 100 MiB free")
    assert "TMPDIR" in stated
    assert too_little_room(100) == ""
