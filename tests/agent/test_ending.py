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


def test_at_a_hangup_it_takes_the_level_of_its_log_anew_and_goes_on(tmp_path: Path) -> None:
    disk, config = log_dir(tmp_path), tmp_path / "segtail.yaml"
    partition(disk, "orders").append(batch(3))
    config.write_text("log_level: info\n")
    options = ("--config", config, "--log-dirs", disk.path, "--listen", "127.0.0.1:0")
    with segtail("agent", *options, stated=tmp_path / "stated") as agent:
        until("it listens", lambda: "agent listens" in agent.stated, saw=lambda: agent.stated)
        assert "level=debug" not in agent.stated
        for written, stated in (
            ("log_level: debug", "log_level=debug"),
            ("log_level: loud", "cannot be taken anew"),
            ("", "log_level=info"),
        ):
            config.write_text(f"{written}\n")
            os.kill(agent.family[0].pid, signal.SIGHUP)
            until(stated, lambda stated=stated: stated in agent.stated, saw=lambda: agent.stated)  # type: ignore[misc]
            if written.endswith("debug"):
                partition(disk, "returns").append(batch(1))
                until("what it does", lambda: "level=debug" in agent.stated, saw=lambda: agent.stated)
        agent.terminate()
        assert agent.wait() == 0
    assert "watchdog" not in agent.stated


def test_a_signal_to_a_group_that_a_member_passes_on_ends_the_agent_in_good_order(tmp_path: Path) -> None:
    disk = log_dir(tmp_path)
    partition(disk, "orders").append(batch(3))
    options = ("--log-dirs", disk.path, "--listen", "127.0.0.1:0")
    with segtail("agent", *options, stated=tmp_path / "stated", before=(sys.executable, "-c", _PASSES_ON)) as agent:
        until("it listens", lambda: "agent listens" in agent.stated, saw=lambda: agent.stated)
        os.killpg(os.getpgid(agent.family[0].pid), signal.SIGTERM)
        assert agent.wait() == 0
        assert "agent stops" in agent.stated
