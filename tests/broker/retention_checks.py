"""When a broker looked for segments to delete, by its own log: what was predicted is held against that, not against a clock of the test's.

A broker that has no processor looks late, and a test that has none sees late what is gone. Neither is a wrong prediction.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from tests.broker.kafka import Node

LOGGER = "org.apache.kafka.storage.internals.log.LogManager"
"""Has to be among the ``loggers`` of the broker. Before Kafka 4.4 the class was in `kafka.log`."""

_LINE = re.compile(r"^\[(.+?)\] DEBUG (Beginning log cleanup|Log cleanup completed)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Check:
    """One look at all logs, Unix milliseconds."""

    began: int
    ended: int


def checks(node: Node) -> Iterator[Check]:
    """Those that have ended, the oldest first."""
    began = 0
    for moment, what in _LINE.findall(node.log.read_text()):
        at = round(datetime.strptime(moment, "%Y-%m-%d %H:%M:%S,%f").astimezone().timestamp() * 1000)
        if what.startswith("Beginning"):
            began = at
        elif began:
            yield Check(began, at)


def disproved(node: Node, earliest_ms: int, latest_ms: int, *, there_ms: int, gone_ms: int) -> str:
    """Why the first check after a predicted moment, which is between two times, was not the one that deleted; nothing if it may have been.

    Args:
        there_ms: when the segment was last seen.
        gone_ms: when it was first seen to be gone, after which a check has ended.
    """
    done = list(checks(node))
    stated = f"predicted {earliest_ms} to {latest_ms}, last seen {there_ms}, gone {gone_ms}, checks {done}"
    due = next((each for each in done if each.ended >= earliest_ms), None)
    if due is None or due.began > gone_ms:
        return f"deleted before it was due: {stated}"
    last = next((each for each in done if each.began >= latest_ms), None)
    if last is not None and last.ended < there_ms:
        return f"not deleted by the check after it was due: {stated}"
    return ""
