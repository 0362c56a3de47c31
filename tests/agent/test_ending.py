"""An agent that is told to end twice at the same time."""

import os
import signal
import sys
from pathlib import Path

from tests.builders import batch, log_dir, partition
from tests.processes import segtail, until

_PASSES_ON = (
    "import signal, subprocess, sys, threading; agent = subprocess.Popen(sys.argv[1:]); told = threading.Event()\n"
    "signal.signal(signal.SIGTERM, lambda *_: told.set() or agent.terminate())\n"
    "while not told.is_set():\n"
    "  try: agent.wait(1)\n"
    "  except subprocess.TimeoutExpired: pass\n"
    "sys.exit(agent.wait())"
)
"""What a supervisor or the init of a container does."""


def test_a_signal_to_a_group_that_a_member_passes_on_ends_the_agent_in_good_order(tmp_path: Path) -> None:
    disk = log_dir(tmp_path)
    partition(disk, "orders").append(batch(3))
    options = ("--log-dirs", disk.path, "--journal", tmp_path / "journal", "--listen", "127.0.0.1:0")
    with segtail("agent", *options, stated=tmp_path / "stated", before=(sys.executable, "-c", _PASSES_ON)) as agent:
        until("it listens", lambda: "agent listens" in agent.stated, saw=lambda: agent.stated)
        os.killpg(os.getpgid(agent.family[0].pid), signal.SIGTERM)
        assert agent.wait() == 0
        assert "agent stops" in agent.stated
