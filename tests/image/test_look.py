"""The small image with commands alone: the look of docs/distributions.md, as a broker's pod gives it."""

import os
import shlex
from pathlib import Path

import pytest
import yaml

from tests.broker.install import KAFKA_VERSION
from tests.image.containers import LOOK, ROOT, require_image, run
from tests.recorded.recordings import replay

pytestmark = [pytest.mark.image, pytest.mark.xdist_group("image")]

MOUNT = yaml.safe_load((ROOT / "helm" / "examples" / "debug-mount.yaml").read_text())
PLACE = MOUNT["volumeMounts"][0]["mountPath"]


@pytest.fixture(autouse=True, scope="module")
def image() -> None:
    require_image(LOOK)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away: run the tests as root")
def test_the_command_of_the_document_answers_whoever_may_read_the_broker_s_files(tmp_path: Path) -> None:
    log_dir = replay("why", KAFKA_VERSION, tmp_path).disk("standing").log_dirs[0]
    user = MOUNT["securityContext"]["runAsUser"]
    for each in (log_dir, *log_dir.rglob("*")):
        os.chown(each, user, 0)
        each.chmod(0o500 if each.is_dir() else 0o400)
    lines = (ROOT / "docs" / "distributions.md").read_text().splitlines()
    (shown,) = [line.strip() for line in lines if line.startswith("  sh -c ")]
    options = ["--entrypoint=", f"--volume={log_dir}:{PLACE}/kafka-log0:ro"]

    done = run(*shlex.split(shown), options=[*options, f"--user={user}:0"], image=LOOK)
    assert (done.returncode, "left-classic" in done.stdout) == (3, True), done.stderr
    done = run(*shlex.split(shown), options=[*options, "--user=1000690000:1"], image=LOOK)
    assert (done.returncode, "run as the broker's user" in done.stderr) == (2, True), done.stderr


def test_it_holds_neither_a_java_nor_spark_nor_tools_to_install_more() -> None:
    script = "command -v java pip; python -c 'import pyspark' 2>&1 | tail -n 1; id -u"
    done = run("-c", script, options=["--entrypoint=/bin/sh"], image=LOOK)
    assert done.stdout.splitlines() == ["ModuleNotFoundError: No module named 'pyspark'", "10001"]
