"""What a failure of the query says, in one line of the hundreds that Spark makes of it."""

import re

_RAISED = re.compile(r"[\w.]*(Error|Exception)\b.*: ")

_CALL_FAILED = "An error occurred while calling "
_CAUSE = "Caused by: "


def reason(text: str) -> str:
    """The line that tells: of what was raised in a Python process that is its last one, else Spark's own condition, the first.

    Where the first line tells no more than that a call into the JVM failed, it is the innermost cause that the JVM names.
    """
    lines = [line.strip() for line in text.splitlines()]
    raised = [line for line in lines if _RAISED.match(line)]
    if raised:
        return raised[-1]
    causes = [line.removeprefix(_CAUSE) for line in lines if line.startswith(_CAUSE)]
    return causes[-1] if causes and text.startswith(_CALL_FAILED) else text.partition("\n")[0]
