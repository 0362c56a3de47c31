"""Scratch directories do not outlive the run that made them for longer than until the next one."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import scratch as module
from tests.scratch import scratch


def test_what_a_killed_run_left_is_removed_and_what_a_running_one_has_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    left, used = (tmp_path / f"segtail-test-{pid}-x" for pid in (ended.pid, os.getpid()))
    left.mkdir()
    used.mkdir()
    monkeypatch.setattr(module, "_MEMORY", tmp_path)
    module._memory.cache_clear()
    try:
        with scratch() as made:
            assert {*tmp_path.iterdir()} == {used, Path(made)}
        assert [*tmp_path.iterdir()] == [used]
    finally:
        module._memory.cache_clear()
