"""The one file to take along, on the layouts of distributions of Kafka: whose files, where, in which environment."""

import shlex
import subprocess
from dataclasses import dataclass

import pytest

from tests.broker.install import KAFKA_VERSION
from tests.install.built import ROOT
from tests.install.debian import in_bare_debian, require_package
from tests.recorded.recordings import replay
from tests.tools import missing

pytestmark = [pytest.mark.image, pytest.mark.slow, pytest.mark.xdist_group("image")]

UNREADABLE = "/opt/kafka/private"
"""Where everything is begun: a folder of root's alone."""


@dataclass(frozen=True, slots=True)
class Layout:
    """A row of docs/distributions.md. Directories of the log dir have mode 0500 and its files 0400, as snapshots of the metadata log."""

    user: str
    log_dir: str
    environ: str = ""


LAYOUTS = {
    "Apache Kafka, on a host": Layout("kafka:kafka", "/tmp/kafka-logs", "HOME=/nonexistent LC_ALL=C"),
    "Confluent Platform, packages": Layout("cp-kafka:confluent", "/var/lib/kafka", "HOME=/var/empty KAFKA_OPTS=-Dx LOG_DIR=/var/log/kafka"),
    "Strimzi": Layout("1001:0", "/var/lib/kafka/data-0/kafka-log0", "HOME=/home/kafka KAFKA_HOME=/opt/kafka"),
    "Strimzi on OpenShift": Layout("1000690000:0", "/var/lib/kafka/data-1/kafka-log0", "HOME=/"),
    "Confluent for Kubernetes": Layout("1001:1001", "/mnt/data/data0/logs", "HOME=/home/appuser"),
    "Bitnami's chart": Layout("1001:1001", "/bitnami/kafka/data", "BITNAMI_APP_NAME=kafka KAFKA_CFG_NODE_ID=0 HOME=/"),
    "Koperator": Layout("1000:0", "/kafka-logs/kafka"),
}


@pytest.fixture(scope="module")
def mounts(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """The file, and a log dir."""
    require_package()
    found = sorted((ROOT / "build" / "pyz").glob("segtail-*-py311-x86_64.pyz"))
    if len(found) != 1:
        missing("there is no file to take along in build/pyz (make pyz)")
    log_dir = replay("why", KAFKA_VERSION, tmp_path_factory.mktemp("why")).disk("standing").log_dirs[0]
    return f"{found[0]}:/segtail.pyz", f"{log_dir}:/data"


def tried(layout: Layout, *environ: str) -> str:
    """What a shell of root does to make a layout, and to ask there."""
    user, _, group = layout.user.partition(":")
    known = f"getent group {group} >/dev/null || groupadd --system {group}; useradd --system --no-create-home --gid {group} {user}\n"
    ask = f"python3.11 /segtail.pyz why {layout.log_dir}"
    return (
        f"{'' if user.isdecimal() else known}mkdir -p $(dirname {layout.log_dir})\n"
        f"cp -r /data {layout.log_dir}; chown -R {layout.user} {layout.log_dir}\n"
        f"find {layout.log_dir} -type f -exec chmod 400 {{}} +; find {layout.log_dir} -type d -exec chmod 500 {{}} +\n"
        f"s=0; (cd {UNREADABLE}; exec setpriv --reuid={user} --regid={group} --clear-groups "
        f"env -i PATH=/usr/bin:/bin {layout.environ} {shlex.join(environ)} {ask}) || s=$?; echo status $s; rm -rf {layout.log_dir}\n"
    )


def asked(script: str, mounts: tuple[str, str], *options: str) -> subprocess.CompletedProcess[str]:
    return in_bare_debian(f"mkdir -p -m 700 {UNREADABLE}\n{script}", *mounts, options=options)


def test_the_document_has_each_row() -> None:
    rows = [line.partition(" |")[0] for line in (ROOT / "docs" / "distributions.md").read_text().splitlines()]
    assert [name for name in LAYOUTS if f"| {name}" not in rows and name != "Strimzi on OpenShift"] == []


def test_each_layout_gets_a_true_sentence(mounts: tuple[str, str]) -> None:
    done = asked("".join(f"echo {shlex.quote(f'== {name}')}\n{tried(each)}" for name, each in LAYOUTS.items()), mounts)
    assert done.returncode == 0, done.stderr
    _, *answers = done.stdout.split("== ")
    assert [answer.partition("\n")[0] for answer in answers] == [*LAYOUTS]
    wrong = [answer for answer in answers if not ("left-classic" in answer and answer.endswith("status 3\n"))]
    assert wrong == [], done.stderr


def test_where_nothing_may_be_unpacked_the_places_are_named_and_another_one_serves(mounts: tuple[str, str]) -> None:
    layout, full = LAYOUTS["Bitnami's chart"], "No space left on device"
    places = {"/tmp/segtail-1001": "mounted with noexec", "/small/segtail": full, "/.cache/segtail": "Permission denied"}
    script = "".join(tried(layout, *environ) for environ in ((), ("XDG_CACHE_HOME=/small",), ("SEGTAIL_UNPACKED=/there/segtail",)))
    done = asked(script, mounts, "--tmpfs=/tmp:noexec,mode=1777", "--tmpfs=/small:exec,mode=1777,size=50m", "--tmpfs=/there:exec,mode=1777")
    assert [line for line in done.stdout.splitlines() if line.startswith("status")] == ["status 2", "status 2", "status 3"], done.stderr
    assert [place for place, reason in places.items() if f"{place}: {reason}" not in done.stderr] == []
    assert "name one by SEGTAIL_UNPACKED=DIR" in done.stderr
