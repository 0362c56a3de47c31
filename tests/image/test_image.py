"""The container image: what it runs, and as whom."""

import contextlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import unquote

import pytest
import trustme
import yaml
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

import streaming
from tests.builders import batch, log_dir, partition
from tests.helm.charts import pods, render, settings
from tests.image.containers import IMAGE, ROOT, command, podman, require_image, run
from tests.install.built import build_versions
from tests.limits import SECONDS
from tests.processes import until

BIN = str(Path(sys.executable).parent)
_DISTRIBUTIONS = (
    "import importlib.metadata as m\n"
    "for each in m.distributions(): print(f\"pkg:pypi/{each.metadata['Name'].lower().replace('_', '-')}@{each.version}\")"
)

pytestmark = [pytest.mark.image, pytest.mark.xdist_group("image")]


@pytest.fixture(autouse=True, scope="module")
def image() -> None:
    require_image()


@pytest.fixture
def disk(tmp_path: Path) -> list[str]:
    """What mounts a log dir with one partition, read-only."""
    made = log_dir(tmp_path)
    partition(made, "orders").append(batch(3))
    return [f"--volume={made.path}:/kafka:ro"]


def test_it_is_the_program_of_this_checkout() -> None:
    done = run("--version")

    assert done.returncode == 0, done.stderr
    assert streaming.__version__ in done.stdout


def test_it_runs_as_nobody_in_particular_and_writes_nowhere_but_where_it_may() -> None:
    script = "id -u; id -g; for place in / /etc /opt/segtail /usr/bin /var; do touch $place/x 2>&1 && echo wrote $place; done; touch /tmp/x"
    done = run("-c", script, options=["--entrypoint=/bin/sh"])

    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[:2] == ["10001", "10001"]
    assert "wrote" not in done.stdout


def test_it_names_its_user_by_number() -> None:
    (reported,) = json.loads(subprocess.run(podman("image", "inspect", IMAGE), check=True, capture_output=True).stdout)

    assert reported["Config"]["User"] == "10001:10001"


def test_its_labels_say_what_it_is_and_of_which_commit() -> None:
    (reported,) = json.loads(subprocess.run(podman("image", "inspect", IMAGE), check=True, capture_output=True).stdout)
    labels = {name.removeprefix("org.opencontainers.image."): value for name, value in reported["Config"]["Labels"].items()}

    assert labels["title"] == "segtail"
    assert labels["version"] == build_versions().image
    assert labels["licenses"] == "Apache-2.0"
    assert re.fullmatch("[0-9a-f]{40}", labels["revision"])
    assert re.fullmatch("sha256:[0-9a-f]{64}", labels["base.digest"])
    assert labels["base.name"]


def test_its_sbom_has_all_packages_of_debian_and_python_and_all_jars_that_are_in_it() -> None:
    made = subprocess.run([ROOT / ".ci" / "sbom", IMAGE], check=True, capture_output=True, text=True, env=os.environ | {"BIN": BIN})
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(made.stdout) is None
    every = [each["purl"] for each in json.loads(made.stdout)["components"]]
    jars = run("-c", "find /opt/segtail -name '*.jar'", options=["--entrypoint=/bin/sh"]).stdout.split()
    assert len([purl for purl in every if purl.startswith("pkg:maven/")]) == len(jars) > 250
    found = {purl.partition("?")[0] for purl in every if not purl.startswith("pkg:maven/")}
    debian = run("-W", "-f", "pkg:deb/debian/${Package}@${Version}\n", options=["--entrypoint=/usr/bin/dpkg-query"]).stdout
    python = run("-c", _DISTRIBUTIONS, options=["--entrypoint=/opt/segtail/bin/python"]).stdout

    assert {unquote(each) for each in found} == {*debian.split(), *python.split()}
    assert {"pkg:pypi/pyspark", "pkg:pypi/kafka-segment-tail", "pkg:deb/debian/openjdk-17-jre-headless"} <= {
        each.rpartition("@")[0] for each in found
    }


def test_it_holds_no_tools_to_install_more() -> None:
    done = run("-c", "ls /opt/segtail/bin/pip /src /wheel /opt/build", options=["--entrypoint=/bin/sh"])

    assert done.stdout == ""


@contextlib.contextmanager
def running(folder: Path, *arguments: str, options: list[str]) -> Iterator[tuple[str, Callable[[], str]]]:
    """A container that runs until it is left: its id and what it has said. It has to end well when it is told to."""
    stated = folder / "said"
    with stated.open("w") as file:
        process = subprocess.Popen(command(*arguments, options=[*options, f"--cidfile={folder / 'id'}"]), stderr=file)
    try:
        until("it listens, or gives up", lambda: "agent listens" in stated.read_text() or process.poll() is not None)
        assert process.poll() is None, stated.read_text()
        yield (folder / "id").read_text(), stated.read_text
        subprocess.run(podman("kill", "--signal=TERM", (folder / "id").read_text()), check=True, capture_output=True)
        assert process.wait(SECONDS) == 0, stated.read_text()
    finally:
        if process.poll() is None:
            subprocess.run(podman("kill", (folder / "id").read_text()), capture_output=True)
            process.kill()
            process.wait()


def test_the_agent_reads_a_disk_and_ends_when_it_is_asked_to(disk: list[str], tmp_path: Path) -> None:
    arguments = ("agent", "--log-dirs", "/kafka", "--name", "n1")
    with running(tmp_path, *arguments, options=disk) as (_, stated):
        assert "Traceback" not in stated()


def test_the_agent_is_ready_as_the_chart_runs_it(tmp_path: Path) -> None:
    """The chart's own arguments and configuration, with certificates and a token where its Secrets are mounted."""
    manifests = render({"token": {"secretName": "token"}})
    (pod,) = [pod for component, pod in pods(manifests) if component == "agent"]
    arguments = [word.replace("$(NODE_NAME)", "node-1") for word in pod["containers"][0]["args"]]
    made = log_dir(tmp_path)
    partition(made, "orders").append(batch(3))
    for folder in ("tls", "token", "config"):
        (tmp_path / folder).mkdir()
    ca = trustme.CA()
    own = ca.issue_cert("rel-segtail-agents.kafka.svc")
    ca.cert_pem.write_to_path(tmp_path / "tls" / "ca.crt")
    own.private_key_pem.write_to_path(tmp_path / "tls" / "tls.key")
    own.cert_chain_pems[0].write_to_path(tmp_path / "tls" / "tls.crt")
    (tmp_path / "token" / "token").write_text("0123456789abcdef0123456789abcdef\n")
    (tmp_path / "config" / "segtail.yaml").write_text(yaml.safe_dump(settings(manifests, "agent")))
    mounts = [f"--volume={tmp_path / folder}:/etc/segtail/{folder}:ro" for folder in ("tls", "token", "config")]

    with running(tmp_path, *arguments, options=[f"--volume={made.path}:/var/lib/kafka/data:ro", *mounts]) as (container, _):
        paths = [pod["containers"][0][kind]["httpGet"]["path"] for kind in ("livenessProbe", "readinessProbe")]
        ask = "; ".join(f"urllib.request.urlopen('http://127.0.0.1:9713{path}')" for path in paths)
        asking = podman("exec", container, "/opt/segtail/bin/python", "-c", f"import urllib.request; {ask}")
        until("both probes are answered", lambda: subprocess.run(asking, capture_output=True).returncode == 0)


def test_the_job_counts_what_is_on_the_disk(disk: list[str]) -> None:
    done = run("run", "--log-dirs", "/kafka", "--checkpoint", "/var/lib/segtail/checkpoint", "--from", "earliest", "--once", options=disk)

    assert done.returncode == 0, done.stderr
    counted = re.findall(r'^segtail_partition_appended_records_total\{[^}]*topic="orders"[^}]*\} (\d+)', done.stdout, re.MULTILINE)
    assert [int(number) for number in counted] == [3], done.stdout


def test_an_executor_starts_and_looks_for_its_driver() -> None:
    environment = {
        "SPARK_DRIVER_URL": "spark://CoarseGrainedScheduler@127.0.0.1:9",
        "SPARK_EXECUTOR_ID": "1",
        "SPARK_EXECUTOR_CORES": "1",
        "SPARK_EXECUTOR_MEMORY": "256m",
        "SPARK_APPLICATION_ID": "spark-test",
        "SPARK_EXECUTOR_POD_IP": "127.0.0.1",
        "SPARK_EXECUTOR_POD_NAME": "pod",
        "SPARK_RESOURCE_PROFILE_ID": "0",
        "SPARK_JAVA_OPT_0": "-Dspark.network.timeout=5s",
        "SPARK_JAVA_OPT_1": "-Dtold=two words",
    }
    done = run("executor", options=[f"--env={name}={value}" for name, value in environment.items()])

    assert done.returncode != 0
    assert "KubernetesExecutorBackend" in done.stderr + done.stdout
    assert re.search(r"127\.0\.0\.1:9\b", done.stderr + done.stdout), done.stderr
