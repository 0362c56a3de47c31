"""A driver of Spark that takes the part of the job's pod, and a kubelet's part: running the container of an executor's pod."""

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml

from tests.cluster.control_plane import Cluster
from tests.helm.charts import Manifest
from tests.image import containers
from tests.limits import SECONDS

_DRIVER = """
import sys, yaml
from pyspark import SparkConf, SparkContext
conf = SparkConf().setMaster(sys.argv[1]).setAppName("check")
for name, value in yaml.safe_load(sys.argv[2]).items():
    conf.set(name, value)
context = SparkContext(conf=conf)
for line in sys.stdin:
    print(context.parallelize(range(int(line)), 2).map(lambda number: number * number).sum(), flush=True)
context.stop()
"""
"""Sums the squares below each number that it is given, in Python workers of executors; ends when its standard input does."""


@dataclass(frozen=True, slots=True)
class Driver:
    """One that runs."""

    process: subprocess.Popen[str]
    log: Path

    def sum_of_squares(self, below: int) -> int:
        """Asks it for a sum; waits until executors have worked it out."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{below}\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())


@contextlib.contextmanager
def driver(kubernetes: Cluster, namespace: str, folder: Path) -> Iterator[Driver]:
    """Starts Spark with the options that the chart gives the job, as the job's account; on leaving it has ended in good order."""
    (config,) = [each for each in kubernetes.get("configmap", namespace) if each["metadata"]["name"] == "rel-segtail-job"]
    (folder / "executor.yaml").write_text(config["data"]["executor.yaml"])
    (folder / "token").write_text(kubernetes.kubectl("create", "token", "rel-segtail-job", "-n", namespace).strip())
    options = yaml.safe_load(config["data"]["segtail.yaml"])["spark"] | {
        # this process is no pod: it is called on loopback, and finds its credentials elsewhere
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.port": "0",
        "spark.driver.blockManager.port": "0",
        "spark.driver.memory": "512m",
        "spark.kubernetes.executor.podTemplateFile": str(folder / "executor.yaml"),
        "spark.kubernetes.authenticate.oauthTokenFile": str(folder / "token"),
        "spark.kubernetes.authenticate.caCertFile": str(kubernetes.ca),
        "spark.ui.enabled": "false",
        "spark.local.dir": str(folder),
    }
    log = folder / "spark.log"
    with log.open("w") as errors:
        process = subprocess.Popen(
            [sys.executable, "-c", _DRIVER, f"k8s://{kubernetes.server}", yaml.safe_dump(options)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            cwd=folder,
            env={**os.environ, "PYSPARK_PYTHON": "/opt/segtail/bin/python"},  # the executors', in their image
        )
    with process:
        try:
            yield Driver(process, log)
            assert process.stdin is not None
            process.stdin.close()
            assert process.wait(SECONDS) == 0, log.read_text()
        finally:
            process.kill()


@contextlib.contextmanager
def container(kubernetes: Cluster, pod: Manifest, folder: Path) -> Iterator[Path]:
    """Runs the container of a pod on this machine as kubelet would, but for its network; yields its log."""
    (spec,) = pod["spec"]["containers"]
    fields = {"status.podIP": "127.0.0.1", "metadata.name": pod["metadata"]["name"]}
    options: list[str | Path] = [f"--cidfile={folder / 'container'}"]
    for variable in spec["env"]:
        value = variable["value"] if "value" in variable else fields[variable["valueFrom"]["fieldRef"]["fieldPath"]]
        options.append(f"--env={variable['name']}={value}")
    volumes = {volume["name"]: volume for volume in pod["spec"]["volumes"]}
    for mount in spec["volumeMounts"]:
        volume, path = volumes[mount["name"]], mount["mountPath"]
        if "emptyDir" in volume and path != "/tmp":
            options.append(f"--tmpfs={path}:mode=1777")
        if "configMap" in volume:
            options.append(f"--volume={_written(kubernetes, pod, volume['configMap']['name'], folder)}:{path}:ro")
    log = folder / "container.log"
    with log.open("w") as output:
        process = subprocess.Popen(containers.command(*spec["args"], options=options, network="host"), stdout=output, stderr=output)
    try:
        yield log
    finally:
        with contextlib.suppress(FileNotFoundError):
            subprocess.run(containers.podman("kill", (folder / "container").read_text()), capture_output=True)
        process.kill()
        process.wait()


def _written(kubernetes: Cluster, pod: Manifest, name: str, folder: Path) -> Path:
    """The files of a ConfigMap."""
    (config,) = [each for each in kubernetes.get("configmap", pod["metadata"]["namespace"]) if each["metadata"]["name"] == name]
    written = folder / name
    written.mkdir()
    for file, text in config.get("data", {}).items():
        (written / file).write_text(text)
    return written
