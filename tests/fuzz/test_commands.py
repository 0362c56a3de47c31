"""Whatever lies in a log dir: every command on it ends in words, with a status that is one of its own, and holds little."""

import os
from pathlib import Path

import pytest

from tests.fuzz.commands import in_own_process
from tests.limits import SECONDS

_SEEDS = 200 if os.environ.get("HYPOTHESIS_PROFILE") == "exhaustive" else 1


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, _SEEDS + 1))
def test_commands_survive_damaged_log_dirs(tmp_path: Path, seed: int) -> None:
    in_own_process(tmp_path, seed, SECONDS)
