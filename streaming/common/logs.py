"""Structured logs on stderr: a line of key=value text or a JSON object each; what strangers cause is a line a second at most.

Code logs with the standard library. The context of a message goes into ``extra`` and becomes separate fields:
``log.warning("log stopped", extra={"topic": ..., "position": ...})``.
"""

import json
import logging
import queue
import signal
import sys
import threading
import time
from collections.abc import Callable, Collection, Mapping
from threading import Lock

from streaming.common.units import format_time, plain
from streaming.errors import SegtailError

log = logging.getLogger(__name__)

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
# These loggers are too verbose below warning: they log every call from Python into the JVM.
_QUIET = ("py4j",)
_OWN = "streaming"

EVERY_SECONDS = 1.0
"""The least time between two lines."""


class JsonFormatter(logging.Formatter):
    """Writes one JSON object on each line, with a traceback in it as ``exception``."""

    def format(self, record: logging.LogRecord) -> str:
        """Format one record."""
        traces = _traces(self, record)
        fields = _fields(record) | ({"exception": "\n".join(traces)} if traces else {})
        return json.dumps(fields, ensure_ascii=False, default=str)


def _traces(formatter: logging.Formatter, record: logging.LogRecord) -> list[str]:
    traces = [formatter.formatException(record.exc_info)] if record.exc_info else []
    return traces + ([formatter.formatStack(record.stack_info)] if record.stack_info else [])


def _fields(record: logging.LogRecord) -> dict[str, object]:
    """Time, level, logger and message, then the fields from ``extra``, which cannot replace them."""
    time = format_time(record.created * 1000, "milliseconds")
    fields: dict[str, object] = {"time": time, "level": record.levelname.lower(), "logger": record.name, "message": record.getMessage()}
    return fields | {name: value for name, value in vars(record).items() if name not in _STANDARD and name not in fields}


def configure(level: str, form: str) -> None:
    """Send every log message of this process to stderr, including Python's own warnings.

    Args:
        level: ``debug``, ``info``, ``warning`` or ``error``.
        form: ``text`` or ``json``.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if form == "json" else TextFormatter())
    logging.basicConfig(handlers=[handler], force=True)
    set_level(level)
    for name in _QUIET:
        logging.getLogger(name).setLevel(logging.WARNING)
    logging.captureWarnings(True)


class TextFormatter(logging.Formatter):
    """Writes ``key=value`` pairs, quoted if a value is not one plain word; a traceback follows on separate lines."""

    def format(self, record: logging.LogRecord) -> str:
        """Format one record."""
        line = " ".join(f"{name}={_quoted(value)}" for name, value in _fields(record).items())
        return "\n".join([line, *_traces(self, record)])


def _quoted(value: object) -> str:
    text = str(value)
    plain = text.isprintable() and not any(character in ' "=\\' for character in text)
    return text if text and plain else json.dumps(text, ensure_ascii=False)


def set_level(level: str) -> None:
    """Log what is at least that severe. Libraries say no less than ``info``: what they debug is every file that Kafka makes."""
    logging.getLogger(_OWN).setLevel(level.upper())
    logging.getLogger().setLevel(max(logging.INFO, logging.getLogger(_OWN).level))


def follow_level(read: Callable[[], str]) -> None:
    """At each SIGHUP take the level that ``read`` returns. Only the main thread may call it.

    A handler runs in the middle of whatever the main thread does, which may hold a lock of the log. So a thread does it.
    """
    asked: queue.SimpleQueue[None] = queue.SimpleQueue()

    def follow() -> None:
        while True:
            asked.get()
            try:
                set_level(read())
                log.log(max(logging.INFO, log.getEffectiveLevel()), "the log level is taken anew", extra={"log_level": _level_name()})
            except SegtailError as error:
                log.error("the log level cannot be taken anew, it stays", extra={"error": str(error)})

    threading.Thread(target=follow, daemon=True, name="log-level").start()
    signal.signal(signal.SIGHUP, lambda *_: asked.put(None))


def _level_name() -> str:
    return logging.getLevelName(log.getEffectiveLevel()).lower()


def log_once(answered: Collection[str] = ()) -> None:
    """Leave out messages that were logged before with the same fields: of a command that reads the same files several times.

    Args:
        answered: names of loggers that are left out, because the answer of the command contains what they log.
    """
    logged = set[str]()

    def is_new(record: logging.LogRecord) -> bool:
        key = str([(name, value) for name, value in _fields(record).items() if name != "time"]) + "".join(_traces(TextFormatter(), record))
        new = record.name not in answered and key not in logged
        logged.add(key)
        return new

    for handler in logging.getLogger().handlers:
        handler.addFilter(is_new)


def as_sentences() -> None:
    """Write messages for a user who has asked one question: without time, level and logger. A log that is JSON stays so."""
    for handler in logging.getLogger().handlers:
        if isinstance(handler.formatter, TextFormatter):
            handler.setFormatter(SentenceFormatter())


class SentenceFormatter(logging.Formatter):
    """Writes the message as commands write theirs, and what it is about behind it: ``segtail: log cannot be listed (path /data/a-7)``."""

    def format(self, record: logging.LogRecord) -> str:
        """Format one record."""
        message, *rest = list(_fields(record).items())[3:]
        about = "; ".join(f"{name.replace('_', ' ')} {_quoted(value) if value == '' else plain(str(value))}" for name, value in rest)
        line = f"segtail: {plain(str(message[1]))}{f' ({about})' if about else ''}"
        return "\n".join([line, *_traces(self, record)])


def configure_worker() -> None:
    """Let log messages include their context in a process without configured logging, such as a Python worker of Spark."""
    if logging.lastResort is not None:
        logging.lastResort.setFormatter(WorkerFormatter())


class WorkerFormatter(logging.Formatter):
    """Writes the message and ``key=value`` pairs from ``extra`` on one line. The receiver of the worker's output adds time and level."""

    def format(self, record: logging.LogRecord) -> str:
        """Format one record."""
        message, *rest = list(_fields(record).items())[3:]
        line = " ".join([str(message[1]), *(f"{name}={_quoted(value)}" for name, value in rest)])
        return "\n".join([line, *_traces(self, record)])


class RareLog:
    """The log of one port, at most a line a second whatever it says: strangers choose their mistakes. Thread-safe."""

    def __init__(self, log: logging.Logger, monotonic: Callable[[], float] = time.monotonic, every: float = EVERY_SECONDS) -> None:
        self._log = log
        self._monotonic = monotonic
        self._every = every
        self._lock = Lock()  # protects what follows
        self._next = float("-inf")
        self._left_out = 0
        self.left_out = 0
        """The number of lines that were left out, all in all."""

    def write(self, level: int, message: str, fields: Mapping[str, object], error: BaseException | None = None) -> None:
        """Log a message with its fields, and with the traceback of an error; or leave it out."""
        if not self._log.isEnabledFor(level):
            return
        now = self._monotonic()
        with self._lock:
            if now < self._next:
                self._left_out += 1
                self.left_out += 1
                return
            self._next = now + self._every
            left_out, self._left_out = self._left_out, 0
        more = {"lines_left_out": left_out} if left_out else {}
        self._log.log(level, message, extra={**fields, **more}, exc_info=error)
