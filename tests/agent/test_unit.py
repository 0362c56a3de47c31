"""What the units deny, an agent does not need."""

import ctypes
import errno
import sys
from pathlib import Path

import pytest

from tests.builders import batch, log_dir, partition
from tests.processes import segtail, until

ROOT = Path(__file__).parents[2]
UNITS = (ROOT / "conf" / "segtail-agent.service", ROOT / "install" / "deb" / "segtail-agent.service")
DENY = "import ctypes, os, sys\nassert ctypes.CDLL(None).prctl(65, 1, 0, 0, 0) == 0\nos.execvp(sys.argv[1], sys.argv[1:])"
"""What MemoryDenyWriteExecute of a unit does, by Linux itself: PR_SET_MDWE, for this process and all that it starts."""


def known_to_linux() -> bool:
    libc = ctypes.CDLL(None, use_errno=True)
    return bool(libc.prctl(66, 0, 0, 0, 0) >= 0 or ctypes.get_errno() != errno.EINVAL)


def test_both_units_deny_the_same() -> None:
    own, copied = (
        unit.read_text().partition("CacheDirectory=segtail-agent\n")[2].replace("ReadOnlyPaths=-/var/lib/kafka\n", "") for unit in UNITS
    )
    assert own == copied
    denied = {"MemoryDenyWriteExecute=yes", "SystemCallFilter=~@privileged @resources", "ProtectSystem=strict", "NoNewPrivileges=yes"}
    assert denied <= set(own.splitlines())


def test_the_unit_starts_where_a_path_that_it_names_is_not_there() -> None:
    """systemd ends it with 226/NAMESPACE, unless the path has a minus."""
    named = [line for unit in UNITS for line in unit.read_text().splitlines() if line.startswith(("ReadOnlyPaths=", "ReadWritePaths="))]
    assert named == ["ReadOnlyPaths=-/var/lib/kafka"]


def test_its_own_page_has_one_port_wherever_it_is_named() -> None:
    named = ("conf/segtail-agent.service", "install/deb/agent.yaml", "helm/segtail/values.yaml", "Dockerfile")
    assert [name for name in named if "9713" not in (ROOT / name).read_text()] == []
    assert [name for name in named if "8816" in (ROOT / name).read_text()] == []


@pytest.mark.skipif(not known_to_linux(), reason="Linux 6.3 or newer denies it to a process: run the tests there")
def test_an_agent_needs_no_memory_that_is_written_and_executed(tmp_path: Path) -> None:
    disk = log_dir(tmp_path)
    partition(disk, "orders").append(batch(3))
    options = ("--log-dirs", disk.path, "--listen", "127.0.0.1:0")
    with segtail("agent", *options, stated=tmp_path / "said", before=(sys.executable, "-c", DENY)) as agent:
        until("it listens", lambda: "agent listens" in agent.stated or not agent.running())
        assert agent.running(), agent.stated
        agent.terminate()
        assert agent.wait() == 0
