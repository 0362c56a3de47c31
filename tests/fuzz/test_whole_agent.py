"""Whatever lies in a log dir: an agent goes on, and what is whole is counted whole."""

from pathlib import Path

import pytest

from tests.fuzz.whole_agent import run


@pytest.mark.parametrize("seed", range(3))
def test_an_agent_survives_damaged_files(tmp_path: Path, seed: int) -> None:
    run(tmp_path, seed)
