"""Logs in this process what the JVM and its Python workers print."""

import logging
import re
import threading
from typing import IO

log = logging.getLogger("spark")

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
    """Log every line of ``output`` until it ends, in a thread of its own. ``ending`` is set once the query is being stopped."""
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
                log.debug("the JVM had hung up on a worker: %s", held[-1])
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
        log.log(level, logged["message"], extra={"source": logged["logger"]})
    else:
        log.log(logging.DEBUG if ending or _CHATTER.match(line) else logging.WARNING, line)
