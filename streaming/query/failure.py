"""What a failure of the query says, in one line of the hundreds that Spark makes of it."""

import re

_RAISED = re.compile(r"[\w.]*(Error|Exception)\b.*: ")


def reason(text: str) -> str:
    """The line that tells: of what was raised in a Python process that is its last one, else Spark's own condition, the first."""
    raised = [line.strip() for line in text.splitlines() if _RAISED.match(line.strip())]
    return raised[-1] if raised else text.partition("\n")[0]
