#!/opt/segtail/bin/python
"""What the image runs: segtail with the arguments it is given, or what Spark on Kubernetes asks for by ``executor`` or ``driver``.

``sidecar`` and the arguments of an agent run one in a broker's pod, where a container has to go on whatever becomes of the agent.

Spark's images answer the same two words. An executor is told who it is by variables of the environment
(org.apache.spark.deploy.k8s.features.BasicExecutorFeatureStep). A driver, as spark-submit makes one in cluster mode, is told
Spark's options by a file and segtail's by arguments (DriverCommandFeatureStep): segtail starts its JVM itself, so it is run
without another spark-submit. It reads the same file: arguments are seen by whoever sees processes, and some options are secrets.
"""

import importlib.util
import os
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

SEGTAIL = "/opt/segtail/bin/segtail"
PYTHON = "/opt/segtail/bin/python"
SIDECAR = "/opt/segtail/bin/sidecar"
_EXECUTOR = "org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend"
_EXECUTOR_OPTIONS = {
    "--driver-url": "SPARK_DRIVER_URL",
    "--executor-id": "SPARK_EXECUTOR_ID",
    "--cores": "SPARK_EXECUTOR_CORES",
    "--app-id": "SPARK_APPLICATION_ID",
    "--hostname": "SPARK_EXECUTOR_POD_IP",
    "--resourceProfileId": "SPARK_RESOURCE_PROFILE_ID",
    "--podName": "SPARK_EXECUTOR_POD_NAME",
}


def command(arguments: Sequence[str], environ: Mapping[str, str]) -> list[str]:
    """What to run in place of this process."""
    if arguments[:1] == ["executor"]:
        return _executor(environ)
    if arguments[:1] == ["driver"]:
        return _driver(arguments[1:], environ)
    if arguments[:1] == ["sidecar"]:
        return [SIDECAR, SEGTAIL, "agent", *arguments[1:]]
    return [SEGTAIL, *arguments]


def _executor(environ: Mapping[str, str]) -> list[str]:
    numbers = sorted(int(name.rpartition("_")[2]) for name in environ if re.fullmatch(r"SPARK_JAVA_OPT_[0-9]+", name))
    places = [environ.get("SPARK_CONF_DIR"), environ.get("SPARK_CLASSPATH"), f"{_spark_home()}/jars/*"]
    memory = environ["SPARK_EXECUTOR_MEMORY"]
    told = [word for option, name in _EXECUTOR_OPTIONS.items() for word in (option, environ[name])]
    java_options = [environ[f"SPARK_JAVA_OPT_{number}"] for number in numbers]
    return ["java", *java_options, f"-Xms{memory}", f"-Xmx{memory}", "-cp", ":".join(filter(None, places)), _EXECUTOR, *told]


def _driver(arguments: Sequence[str], environ: Mapping[str, str]) -> list[str]:
    """``--properties-file FILE --class CLASS MAIN ARGUMENT...``, where MAIN is segtail by whatever name."""
    options = dict(zip(arguments[:4:2], arguments[1:4:2], strict=True))
    if set(options) != {"--properties-file", "--class"} or len(arguments) < 5:
        sys.exit(f"driver: expected --properties-file FILE --class CLASS MAIN ARGUMENT..., got {' '.join(arguments)}")
    file = options["--properties-file"]
    master = read_properties(Path(file).read_text())["spark.master"]
    own = {"spark.driver.bindAddress": environ["SPARK_DRIVER_BIND_ADDRESS"], "spark.app.id": environ["SPARK_APPLICATION_ID"]}
    told = [word for name, value in own.items() for word in ("--spark", f"{name}={value}")]
    return [SEGTAIL, *arguments[5:], "--master", master, "--spark-properties", file, *told]


def read_properties(text: str) -> dict[str, str]:
    """The properties of a file as java.util.Properties.store writes it: one a line, what is special behind a backslash."""
    found = {}
    for line in text.splitlines():
        match = re.fullmatch(r"((?:[^\\=#]|\\.)+)=(.*)", line)
        if match:
            found[_plain(match[1])] = _plain(match[2])
    return found


def _plain(escaped: str) -> str:
    special = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
    return re.sub(r"\\(u[0-9A-Fa-f]{4}|.)", lambda m: chr(int(m[1][1:], 16)) if len(m[1]) == 5 else special.get(m[1], m[1]), escaped)


def _spark_home() -> str:
    package = importlib.util.find_spec("pyspark")
    assert package is not None
    assert package.origin is not None
    return str(Path(package.origin).parent)


if __name__ == "__main__":
    wanted = command(sys.argv[1:], os.environ)
    if wanted[0] == "java":
        os.environ |= {"SPARK_HOME": _spark_home(), "PYSPARK_PYTHON": PYTHON, "PYSPARK_DRIVER_PYTHON": PYTHON}
    os.execvp(wanted[0], wanted)
