"""How many files an agent may hold open."""

import subprocess
import sys
from pathlib import Path

from streaming.broker.agent.process import FEW

ROOT = Path(__file__).parent.parent.parent

_SCRIPT = """
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, (64, {hard}))
from streaming.broker.agent.process import raise_limit
print(raise_limit())
"""


def _limit(hard: int) -> tuple[int, str]:
    done = subprocess.run([sys.executable, "-c", _SCRIPT.format(hard=hard)], check=True, capture_output=True, text=True)
    return int(done.stdout), done.stderr


def test_soft_limit_is_raised_to_the_hard_one() -> None:
    assert _limit(20_000) == (20_000, "")


def test_low_hard_limit_is_reported() -> None:
    limit, stated = _limit(500)
    assert limit == 500
    assert "LimitNOFILE" in stated


def test_a_limit_that_is_just_enough_is_no_low_one() -> None:
    assert _limit(FEW) == (FEW, "")
    assert "LimitNOFILE" in _limit(FEW - 1)[1]


def test_a_limit_below_what_the_logs_need_is_reported_with_the_figures() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT.format(hard=500).replace("raise_limit())", "raise_limit(300))")],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "fewer files may be open than this host's logs need" in done.stderr


_SHORT = """
import os, resource, sys
from pathlib import Path
from streaming.broker.disk.opening import shortage
from tests.agents import Agent, Reader
from tests.builders import batch, log_dir, partition

root = Path(sys.argv[1])
disk = log_dir(root)
log = partition(disk, "t")
log.append(batch(2))
agent = Agent(disk.path)
reader = Reader(agent, start_from="earliest")
reader.begin()
agent.look()
used = len(os.listdir("/proc/self/fd"))
resource.setrlimit(resource.RLIMIT_NOFILE, (used + 20, used + 20))
held = []
try:
    while True:
        held.append(os.open("/dev/null", os.O_RDONLY))
except OSError:
    pass


def state():
    agent.look()
    up = [status.up for status in agent.host_status.log_dirs]
    return up, dict(agent.log_dirs.unavailable), len(agent.watcher.tails()), shortage.lasts


print(state())
for fd in held:
    os.close(fd)
log.append(batch(3))
print(state())
print(agent.watcher.tails()[0].cursor.next_offset)
"""


def test_without_a_descriptor_log_dirs_are_as_they_were_and_later_everything_is_read(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", _SHORT, str(tmp_path)], capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.stdout.splitlines() == ["([True], {}, 1, True)", "([True], {}, 1, False)", "5"], done.stderr
    assert done.stderr.count("too many open files") == 1
    assert "log dir cannot be" not in done.stderr
