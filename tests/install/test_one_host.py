"""The first section of docs/quickstart.md, typed line by line as root on a bare Debian with systemd, beside the log dirs of a broker.

Packages come by apt and pip, whose cache is this machine's; after that the host has no network but loopback: other tests use this machine's
ports.
"""

import configparser
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.documented import Command, commands
from tests.docs.elsewhere import ONE_HOST
from tests.docs.running import DONE
from tests.docs.world import SERVER_PROPERTIES, ShownBroker
from tests.image.containers import podman
from tests.install.built import ROOT
from tests.install.debian import BARE
from tests.processes import until
from tests.tools import missing

pytestmark = [pytest.mark.image, pytest.mark.slow, pytest.mark.long, pytest.mark.xdist_group("image")]

TYPED = [command for command in commands() if command.section == ONE_HOST]
INSTALLED = 1 + max(n for n, command in enumerate(TYPED) if "install" in command.words and command.words[0] != "systemctl")
"""How many of the lines install packages, and what comes before them."""

CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
LIMITS = ("--ulimit=nofile=1024:1024", "--ulimit=nproc=4096:4096")
NAME = "segtail-one-host"
CHECKOUT, PIP_CACHE = Path("/srv/segtail"), Path("/var/cache/pip")
"""On the bare host."""
FEWER_FILES = "[Service]\nLimitNOFILE=1024\n"
"""No container may raise this limit on every machine, as a host may: the services take what the container has."""


class BareHost:
    """A Debian in a folder. It runs each line in its checkout of segtail; once it is booted, systemd is its first process."""

    def __init__(self, root: Path, pip: Path) -> None:
        self._pip = pip
        self._root = root
        self.booted = False

    def type(self, command: str) -> subprocess.CompletedProcess[str]:
        """Run a line as root, with the network of this machine until it is booted."""
        shell = ("bash", "-c", command)
        if self.booted:
            line = podman("exec", f"--workdir={CHECKOUT}", NAME, *shell)
        else:
            cache = subprocess.run([sys.executable, "-m", "pip", "cache", "dir"], capture_output=True, text=True, check=True).stdout.strip()
            volumes = [f"--volume={self._pip}:/etc/pip.conf:ro", f"--volume={CERTIFICATES}:{CERTIFICATES}:ro"]
            volumes += [f"--volume={cache}:{PIP_CACHE}", f"--env=PIP_CACHE_DIR={PIP_CACHE}"] if Path(cache).is_dir() else []
            with_network = ("--rm", "--network=host", *LIMITS, *volumes, "--env=DEBIAN_FRONTEND=noninteractive", f"--workdir={CHECKOUT}")
            line = podman("run", *with_network, "--rootfs", self._root, *shell)
        return subprocess.run(line, capture_output=True, text=True, check=False)

    def boot(self) -> None:
        """Start systemd, without a network."""
        options = ("--detach", f"--name={NAME}", "--systemd=always", "--network=none", "--cap-add=sys_admin", *LIMITS)
        subprocess.run(podman("run", *options, "--rootfs", self._root, "/lib/systemd/systemd"), check=True, capture_output=True)
        self.booted = True
        until("systemd is up", lambda: self.type("systemctl is-system-running").stdout.strip() in ("running", "degraded"))


@pytest.fixture
def host(tmp_path: Path) -> Iterator[BareHost]:
    """It has a checkout, systemd, and a broker that runs as the user kafka."""
    if subprocess.run(podman("image", "exists", BARE)).returncode:
        missing(f"podman has no image {BARE} (make image)")
    root = tmp_path / "root"
    root.mkdir()
    created = subprocess.run(podman("create", "--pull=never", BARE, "true"), check=True, capture_output=True, text=True).stdout.strip()
    with subprocess.Popen(podman("export", created), stdout=subprocess.PIPE) as exported:
        subprocess.run(["tar", "--extract", "--directory", root], stdin=exported.stdout, check=True)
    subprocess.run(podman("rm", created), check=True, capture_output=True)
    _check_out(root / CHECKOUT.relative_to("/"))
    broker = ShownBroker(tmp_path / "broker")
    for place in ("var/lib/kafka", "etc/kafka"):
        (tmp_path / "broker" / place).rename(root / place)  # its locks go with its files
    with (root / SERVER_PROPERTIES).open("a") as properties:
        properties.write("log.dirs=/var/lib/kafka/data-1,/var/lib/kafka/data-2\n")
    limits = root / "etc/systemd/system/service.d/limits.conf"
    limits.parent.mkdir(parents=True)
    limits.write_text(FEWER_FILES)
    made = BareHost(root, _pip_conf(tmp_path / "pip.conf"))
    script = "apt-get update -qq && apt-get install -qq --yes --no-install-recommends systemd && useradd --system --user-group kafka"
    done = made.type(f"{script} && chown --recursive kafka: /var/lib/kafka")
    assert done.returncode == 0, done.stderr
    try:
        yield made
    finally:
        subprocess.run(podman("rm", "--force", "--ignore", "--time=2", NAME), check=False, capture_output=True)
        broker.stop()
        shutil.rmtree(root)


def _check_out(folder: Path) -> None:
    listed = subprocess.run(["git", "ls-files", "-z", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True)
    for name in filter(None, listed.stdout.split("\0")):
        if not name.startswith("tests/") and (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)


def _pip_conf(path: Path) -> Path:
    """pip is configured as on this machine, with certificates that lie where no package has installed any (as .ci/image does)."""
    pip = configparser.RawConfigParser()
    pip.read("/etc/pip.conf")
    pip.read_dict({"global": {"cert": str(CERTIFICATES)}})
    with path.open("w") as file:
        pip.write(file)
    return path


def _type(host: BareHost, command: Command) -> str:
    done = host.type(command.text)
    assert done.returncode in DONE, f"{command.place}: {command.text}\n{done.stdout}\n{done.stderr}"
    assert "Traceback" not in done.stderr
    return done.stdout


def test_one_host_has_everything_when_the_lines_of_the_quick_start_are_typed(host: BareHost) -> None:
    for command in TYPED[:INSTALLED]:
        _type(host, command)
    host.boot()
    printed = {" ".join(command.words): _type(host, command) for command in TYPED[INSTALLED:]}

    (metrics,) = (out for line, out in printed.items() if line.endswith("/metrics"))
    assert 'segtail_agent_up{agent="' in metrics
    assert re.search(r'^segtail_partition_open_transactions{.*topic="payments".*} 1', metrics, re.MULTILINE)
    (top,) = (out for line, out in printed.items() if line.startswith("segtail top"))
    assert top.startswith("verdict: ")
    assert "limits_assumed" not in top
    assert "<title>" in host.type("curl --silent --fail http://127.0.0.1:9712/").stdout
    assert host.type("systemctl is-active segtail-agent segtail-job prometheus").stdout.split() == ["active"] * 3
    assert until("Prometheus has scraped it", lambda: _query(host, "segtail_agent_up")) == "1"
    assert "TransactionHanging" in host.type("curl --silent http://127.0.0.1:9090/api/v1/rules").stdout


def _query(host: BareHost, query: str) -> str:
    done = host.type(f"curl --silent 'http://127.0.0.1:9090/api/v1/query?query={query}'")
    found = json.loads(done.stdout)["data"]["result"] if done.returncode == 0 else []
    return str(found[0]["value"][1]) if found else ""
