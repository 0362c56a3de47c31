"""A Spark standalone cluster on loopback, from the installed PySpark: a master and workers, each a JVM that ends with the test."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from tests import witnesses
from tests.broker.install import FAST_START
from tests.ports import free_ports
from tests.processes import reap, until


@dataclass(frozen=True)
class Standalone:
    """Where the cluster is, and what its parts have printed."""

    master: str
    stated: tuple[Path, ...]


@contextmanager
def standalone(directory: Path, java_home: Path, *, workers: int = 2) -> Iterator[Standalone]:
    """A master and workers with a core each, which know segtail from the job alone: their Python path is empty."""
    directory.mkdir()
    port, *ports = free_ports(workers + 1)
    master = f"spark://127.0.0.1:{port}"
    with ExitStack() as stack:
        stated = [_start(stack, directory / "master", java_home, "master.Master", "--host", "127.0.0.1", "--port", port, "--webui-port", 0)]
        until("the master listens", lambda: "I have been elected leader" in stated[0].read_text())
        for number, of_worker in enumerate(ports):
            work = directory / f"worker-{number}"
            options = (
                "--host",
                "127.0.0.1",
                "--port",
                of_worker,
                "--webui-port",
                0,
                "--cores",
                1,
                "--memory",
                "1g",
                "--work-dir",
                work,
                master,
            )
            stated.append(_start(stack, work, java_home, "worker.Worker", *options))
        for worker in stated[1:]:
            until("the worker is registered", lambda worker=worker: "Successfully registered with master" in worker.read_text())
        yield Standalone(master, tuple(stated))


def _start(stack: ExitStack, directory: Path, java_home: Path, main_class: str, *arguments: object) -> Path:
    directory.mkdir()
    stated = directory / "said"
    environ = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "SPARK_HOME")}
    spec = find_spec("pyspark")
    assert spec is not None
    assert spec.origin is not None
    home = Path(spec.origin).parent
    command = [home / "bin" / "spark-class", f"org.apache.spark.deploy.{main_class}", *arguments]
    with stated.open("wb") as output:
        process = subprocess.Popen(
            [str(word) for word in command],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd=directory,  # nothing of the checkout is on the path of what a worker starts
            env=environ
            | {
                "SPARK_HOME": str(home),
                "JAVA_HOME": str(java_home),
                "SPARK_DAEMON_MEMORY": "256m",
                "SPARK_DAEMON_JAVA_OPTS": " ".join(FAST_START),
                "SPARK_LOCAL_IP": "127.0.0.1",
                "SPARK_LOCAL_DIRS": str(directory),
            },
            start_new_session=True,
        )
    witnesses.call(f"Spark's {main_class}", lambda: witnesses.tail(stated), lambda: process.poll() is None)

    def stop() -> None:
        process.terminate()
        reap(process)

    stack.callback(stop)
    return stated
