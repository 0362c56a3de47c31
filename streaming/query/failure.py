"""What a failure of the query says, in one line of the hundreds that Spark makes of it."""

import re

_RAISED = re.compile(r"[\w.]*(Error|Exception)\b.*: ")

_CALL_FAILED = "An error occurred while calling "
_CAUSE = "Caused by: "
_CONDITION = re.compile(r"\[[A-Z][A-Z_.]+\]")


def reason(text: str) -> str:
    """The line that tells: of what was raised in a Python process that is its last one, else Spark's own condition, the first.

    Where the first line tells no more than that a call into the JVM failed, it is the last condition of Spark's with the innermost cause.
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
