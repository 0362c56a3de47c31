"""How many files an agent may hold open."""

import subprocess
import sys

from streaming.agent.descriptors import FEW

_SCRIPT = """
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, (64, {hard}))
from streaming.agent.descriptors import raise_limit
print(raise_limit())
"""


def _limit(hard: int) -> tuple[int, str]:
    done = subprocess.run([sys.executable, "-c", _SCRIPT.format(hard=hard)], check=True, capture_output=True, text=True)
    return int(done.stdout), done.stderr


def test_soft_limit_is_raised_to_the_hard_one() -> None:
    assert _limit(20_000) == (20_000, "")


def test_low_hard_limit_is_told() -> None:
    limit, said = _limit(500)
    assert limit == 500
    assert "LimitNOFILE" in said


def test_a_limit_that_is_just_enough_is_no_low_one() -> None:
    assert _limit(FEW) == (FEW, "")
    assert "LimitNOFILE" in _limit(FEW - 1)[1]
