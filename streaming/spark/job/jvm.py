"""The JVM of a job: a child process that ends when the job does, however the job ends; and what it prints, as this process logs it."""

import logging
import os
import re
import signal
import string
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import pyspark
from py4j.java_gateway import JavaGateway, JavaObject
from pyspark import SparkConf
from pyspark.java_gateway import ensure_callback_server_started, launch_gateway

from streaming.common import whole_files
from streaming.common.units import format_duration
from streaming.errors import SegtailError
from streaming.spark.job import jvm

log = logging.getLogger(__name__)

_START_SECONDS = 120.0
_STOP_SECONDS = 2.0
_POLL_SECONDS = 0.05

_PLAIN = frozenset(string.ascii_letters + string.digits + "._-/,")

_IDLE_SECONDS = 30
"""How long py4j keeps a connection that no thread uses; its own default."""

spark_log = logging.getLogger("spark")

_MARK = "segtail-log"
_LOGGED = re.compile(rf"{_MARK} (?P<level>\w+) (?P<logger>\S+) (?P<message>.*)")
_LEVELS = {"FATAL": logging.CRITICAL, "ERROR": logging.ERROR, "WARN": logging.WARNING, "INFO": logging.INFO}

# Printed at every start or by every new query, and useless: PySpark prints its steps, and the JVM prints that Spark requests a module.
_CHATTER = re.compile(
    r"(Starting )?Streaming TransformWithStateInPandas Python worker"
    r"|WARNING: Using incubator modules: jdk\.incubator\.vector"
    r"|\s*$"
)

# A worker whose JVM has all it wanted, and is gone before the worker has finished: through Unix sockets that is an error of the worker.
_HUNG_UP = (
    re.compile(r"Traceback \(most recent call last\):"),
    re.compile(r'  File ".*/pyspark/daemon\.py", line \d+, in manager'),
    re.compile(r'  File ".*/pyspark/daemon\.py", line \d+, in worker'),
    re.compile(r"BrokenPipeError: .*"),
)

_SOURCE = re.compile(r" {4}.*")
"""What a traceback shows of a frame, between those lines."""

# The job logs once why a query failed; these loggers repeat it, task by task.
_FAILURES = (
    "org.apache.spark.executor.Executor",
    "org.apache.spark.scheduler.TaskSetManager",
    "org.apache.spark.util.Utils",
    "org.apache.spark.sql.execution.datasources.v2.WriteToDataSourceV2Exec",
    "org.apache.spark.sql.execution.streaming",
    "org.apache.spark.sql.execution.python",
    "org.apache.spark.api.python",
)


class Jvm:
    """A JVM that waits for a driver; it ends when its standard input does.

    Args:
        conf: what Spark has to know before it starts, such as the size of its heap.
        scratch: a directory in which the JVM may store how to reach it.
        lock_fd: is held open until the JVM is gone, which may be after the end of this process.
        private: its files and directories are for this user alone.
    """

    def __init__(self, conf: SparkConf, *, java_home: Path, scratch: Path, lock_fd: int, private: bool) -> None:
        self._java_home = java_home
        self._connection = Path(tempfile.mkdtemp(dir=scratch)) / "connection"  # readable by this user alone: a secret will be in it
        # a file, because any user may see the command line; it exists until the JVM has read it
        self._options = self._connection.with_name("spark.conf")
        self._options.write_text(properties(dict(conf.getAll())), encoding="latin-1")
        home = spark_home(os.environ)
        read_end, write_end = os.pipe()
        try:
            self._process = subprocess.Popen(
                [
                    str(home / "bin" / "spark-submit"),
                    *("--properties-file", str(self._options), "--load-spark-defaults", "pyspark-shell"),
                ],
                stdin=subprocess.PIPE,
                stdout=write_end,
                stderr=write_end,
                env={
                    **os.environ,
                    "JAVA_HOME": str(java_home),
                    "SPARK_HOME": str(home),
                    # it starts Python by `-m`, which would take modules from the current directory
                    "PYTHONSAFEPATH": "1",
                    "SPARK_CONNECT_MODE": "0",
                    "_PYSPARK_DRIVER_CONN_INFO_PATH": str(self._connection),
                },
                pass_fds=(lock_fd,),
                umask=whole_files.UMASK if private else -1,
                # a session of its own: a signal to the job's process group must not end the JVM before the job has finished with it
                start_new_session=True,
            )
        finally:
            os.close(write_end)
        self.ending = threading.Event()
        self._output = jvm.forward(os.fdopen(read_end, errors="replace"), self.ending)

    @property
    def status(self) -> int | None:
        """The status with which it has ended, None while it runs."""
        return self._process.poll()

    def connect(self, conf: SparkConf) -> JavaGateway:
        """Wait until it is ready, and connect to it.

        Raises:
            SparkError: it did not start.
        """
        deadline = time.monotonic() + _START_SECONDS
        while not self._connection.exists():
            if self.status is not None:
                self._output.join(_STOP_SECONDS)
                raise SparkError(f"Spark's JVM ({self._java_home}) ended with status {self.status} at its start: see its messages above")
            if time.monotonic() > deadline:
                raise SparkError(f"Spark's JVM ({self._java_home}) does not answer after {format_duration(_START_SECONDS)}")
            time.sleep(_POLL_SECONDS)
        self._options.unlink()
        found_at = self._connection.read_bytes()  # written at once: the port and the length of the secret, 4 bytes each, and the secret
        found = {
            "PYSPARK_GATEWAY_PORT": str(int.from_bytes(found_at[:4], "big")),
            "PYSPARK_GATEWAY_SECRET": found_at[8:].decode(),
        }
        os.environ.update(found)  # by these PySpark finds a JVM that runs already
        try:
            return launch_gateway(conf)  # type: ignore[no-untyped-call]
        finally:
            for name in found:
                del os.environ[name]

    def stop(self) -> None:
        """End it, by force if it does not end soon: the files that it writes survive this."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            log.info("Spark's JVM does not end, it is killed")
            self.kill()
        self._output.join(_STOP_SECONDS)

    def kill(self) -> None:
        """End it at once, with the scripts that may still be starting it."""
        self._options.unlink(missing_ok=True)
        with suppress(ProcessLookupError):  # all of them have ended, as where Spark refuses an option
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


def properties(options: dict[str, str]) -> str:
    """A Java properties file (`java.util.Properties.load`): every character that could be misread is escaped."""
    return "".join(f"{_escaped(name)}={_escaped(value)}\n" for name, value in options.items())


def _escaped(text: str) -> str:
    if _PLAIN.issuperset(text):
        return text
    units = text.encode("utf-16-be")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))


def spark_home(environ: Mapping[str, str]) -> Path:
    """Where Spark lies: at ``SPARK_HOME``, else where PySpark does. PySpark's own search begins beside the current directory.

    Raises:
        SparkError: there is no ``bin/spark-submit``.
    """
    package = Path(pyspark.__file__).absolute().parent
    named = environ.get("SPARK_HOME")
    # by pip Spark comes within PySpark, or is fetched into a directory of it; else PySpark is a part of Spark
    places = [Path(named).absolute()] if named else [package / "spark-distribution", package, package.parents[1]]
    found = next((place for place in places if (place / "bin" / "spark-submit").is_file()), None)
    if found is None:
        raise SparkError(f"there is no bin/spark-submit in {' or '.join(map(str, places))}: set SPARK_HOME to where Spark is installed")
    return found


class SparkError(SegtailError):
    """Spark's JVM did not start, or is gone."""


def guard_callbacks(gateway: Any) -> None:
    """Open the port on which the JVM calls the functions of the driver, and give both sides the gateway's secret.

    PySpark opens it without one: any user of the host could call the function that receives a micro-batch. py4j can send a secret on such
    calls, but forgets it when it learns the port.

    Args:
        gateway: py4j's, with the JVM that was just connected.

    Raises:
        Py4JError: the JVM has another py4j than this one, or is gone.
    """
    secret = gateway.gateway_parameters.auth_token
    gateway.callback_server_parameters.auth_token = secret
    ensure_callback_server_started(gateway)  # type: ignore[no-untyped-call]
    jvm, server = gateway.jvm, JavaObject("GATEWAY_SERVER", gateway._gateway_client)
    java = server.getGateway()
    seconds, factory = jvm.java.util.concurrent.TimeUnit.SECONDS, jvm.javax.net.SocketFactory.getDefault()
    callbacks = java.getCallbackClient()  # knows the port alone
    client = jvm.py4j.PythonClient(
        *(java, None, callbacks.getPort(), callbacks.getAddress(), _IDLE_SECONDS, seconds, factory),
        *(callbacks.getJavaServer(), True, callbacks.getReadTimeout(), secret),
    )
    field = jvm.java.lang.Class.forName("py4j.Gateway").getDeclaredField("cbClient")
    field.setAccessible(True)
    field.set(java, client)


def log4j_properties(*, debug: bool) -> str:
    """Spark's logging: errors, one per line, with a level and logger that `forward` can parse; with ``debug`` warnings and traces too."""
    level, trace = ("warn", "full") if debug else ("error", "none")
    lines = [
        "rootLogger.appenderRef.stderr.ref = stderr",
        "appender.stderr.type = Console",
        "appender.stderr.name = stderr",
        "appender.stderr.target = SYSTEM_ERR",
        "appender.stderr.layout.type = PatternLayout",
        f"appender.stderr.layout.pattern = {_MARK} %p %c{{1}} %replace{{%m%ex{{{trace}}}}}{{[\\r\\n]+}}{{ | }}%n%ex{{none}}",
        f"rootLogger.level = {level}",
        # Spark's shells, and PySpark counts as one, have a level of their own, and log a message if it is not the root's
        "logger.shell.name = org.apache.spark.api.python.PythonGatewayServer",
        f"logger.shell.level = {level}",
    ]
    if not debug:
        for number, name in enumerate(_FAILURES):
            lines += [f"logger.failure{number}.name = {name}", f"logger.failure{number}.level = off"]
    return "\n".join([*lines, ""])


def forward(output: IO[str], ending: threading.Event) -> threading.Thread:
    """Log every line of ``output`` until it ends, in a thread of its own. ``ending`` is set once the query is being stopped.

    Logs in this process what the JVM and its Python workers print.
    """
    thread = threading.Thread(target=_forward, args=(output, ending), daemon=True, name="jvm-output")
    thread.start()
    return thread


def _forward(output: IO[str], ending: threading.Event) -> None:
    held: list[str] = []
    matched = 0
    with output:
        for line in output:
            held.append(line.rstrip("\n"))
            if matched and _SOURCE.fullmatch(held[-1]):
                continue
            matched = matched + 1 if _HUNG_UP[matched].fullmatch(held[-1]) else 0
            if not matched:
                _forward_lines(held, ending)
            elif matched == len(_HUNG_UP):
                spark_log.debug("the JVM had hung up on a worker: %s", held[-1])
                held.clear()
                matched = 0
        _forward_lines(held, ending)


def _forward_lines(held: list[str], ending: threading.Event) -> None:
    for line in held:
        forward_line(line, ending=ending.is_set())
    held.clear()


def forward_line(line: str, *, ending: bool = False) -> None:
    """Log one line at the right level: a line that comes from no logger may be a crash.

    Args:
        ending: the query is being stopped, perhaps inside a micro-batch: its threads and workers print errors, but nothing is lost.
    """
    logged = _LOGGED.fullmatch(line)
    if logged is not None:
        level = _LEVELS.get(logged["level"], logging.DEBUG)
        spark_log.log(level, logged["message"], extra={"source": logged["logger"]})
    else:
        spark_log.log(logging.DEBUG if ending or _CHATTER.match(line) else logging.WARNING, line)
