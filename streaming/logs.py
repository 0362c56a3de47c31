"""Structured logs on stderr: a line of key=value text, or a JSON object, for every message.

Code logs with the standard library; what a message is about goes into ``extra`` and becomes fields of its own:
``log.warning("log stopped", extra={"topic": ..., "position": ...})``.
"""

import json
import logging
import sys
from datetime import UTC, datetime

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
# Chatty below a warning: a message for every call from Python into the JVM.
_QUIET = ("py4j",)


def configure(level: str, form: str) -> None:
    """Sends every log message of this process to stderr, Python's own warnings included.

    Args:
        level: ``debug``, ``info``, ``warning`` or ``error``.
        form: ``text`` or ``json``.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if form == "json" else TextFormatter())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    for name in _QUIET:
        logging.getLogger(name).setLevel(logging.WARNING)
    logging.captureWarnings(True)


def configure_worker() -> None:
    """Lets what is logged in a process where nobody configures logging, a Python worker of Spark's, say what it is about, too."""
    if logging.lastResort is not None:
        logging.lastResort.setFormatter(WorkerFormatter())


class WorkerFormatter(logging.Formatter):
    """The message and ``key=value`` pairs of what came by ``extra``, on one line: whoever reads it from the worker adds time and level."""

    def format(self, record: logging.LogRecord) -> str:
        """Writes one record."""
        message, *rest = list(_fields(record).items())[3:]
        line = " ".join([str(message[1]), *(f"{name}={_quoted(value)}" for name, value in rest)])
        return "\n".join([line, *_traces(self, record)])


class TextFormatter(logging.Formatter):
    """``key=value`` pairs, quoted where a value is not one plain word; a traceback follows on lines of its own."""

    def format(self, record: logging.LogRecord) -> str:
        """Writes one record."""
        line = " ".join(f"{name}={_quoted(value)}" for name, value in _fields(record).items())
        return "\n".join([line, *_traces(self, record)])


class JsonFormatter(logging.Formatter):
    """One JSON object a line, a traceback inside it as ``exception``."""

    def format(self, record: logging.LogRecord) -> str:
        """Writes one record."""
        traces = _traces(self, record)
        fields = _fields(record) | ({"exception": "\n".join(traces)} if traces else {})
        return json.dumps(fields, ensure_ascii=False, default=str)


def _fields(record: logging.LogRecord) -> dict[str, object]:
    """Time, level, logger and message, then what came by ``extra``, which cannot take their places."""
    time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    fields: dict[str, object] = {"time": time, "level": record.levelname.lower(), "logger": record.name, "message": record.getMessage()}
    return fields | {name: value for name, value in vars(record).items() if name not in _STANDARD and name not in fields}


def _traces(formatter: logging.Formatter, record: logging.LogRecord) -> list[str]:
    traces = [formatter.formatException(record.exc_info)] if record.exc_info else []
    return traces + ([formatter.formatStack(record.stack_info)] if record.stack_info else [])


def _quoted(value: object) -> str:
    text = str(value)
    plain = text.isprintable() and not any(character in ' "=\\' for character in text)
    return text if text and plain else json.dumps(text, ensure_ascii=False)
