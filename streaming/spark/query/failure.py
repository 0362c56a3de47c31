"""Why the query failed, in one line out of the hundreds that Spark reports."""

import re

from py4j.protocol import Py4JError, Py4JJavaError

_RAISED = re.compile(r"[\w.]*(Error|Exception)\b.*: ")

_TOO_SLOW = re.compile(r"Python worker failed to connect back|CANNOT_OPEN_SOCKET|SocketTimeoutException")

_CALL_FAILED = "An error occurred while calling "
_CAUSE = "Caused by: "
_CONDITION = re.compile(r"\[[A-Z][A-Z_.]+\]")


def error_text(error: Exception) -> str:
    """The text of an error. Only the JVM has that of its own exceptions: where it is gone, what was called has to do."""
    try:
        return str(error)
    except (Py4JError, OSError):  # py4j asks the JVM for the text each time
        return error.errmsg.strip() if isinstance(error, Py4JJavaError) else type(error).__name__


def reason(error: Exception) -> str:
    """Why it was raised, in one line. Whether the JVM is still there does not matter."""
    return reason_in(error_text(error))


def reason_in(text: str) -> str:
    """The line with the reason.

    If an exception was raised in a Python process, that is its last line. Else it is the first line, Spark's own condition. If the first
    line only reports that a call into the JVM failed, it is Spark's last condition together with the innermost cause.
    """
    lines = [line.strip() for line in text.splitlines()]
    raised = [line for line in lines if _RAISED.match(line)]
    if raised:
        return raised[-1]
    causes = [line.removeprefix(_CAUSE) for line in lines if line.startswith(_CAUSE)]
    if not causes or not text.startswith(_CALL_FAILED):
        return text.partition("\n")[0]
    conditions = [line.removeprefix(_CAUSE).lstrip(": ") for line in lines if _CONDITION.search(line)]
    return causes[-1] if not conditions or conditions[-1] == causes[-1] else f"{conditions[-1]} ({causes[-1]})"


def was_too_slow(error: Exception) -> bool:
    """Whether Spark did not wait until a Python process had started: for 10 or 15 s, which are not enough on a busy host."""
    return _TOO_SLOW.search(error_text(error)) is not None
