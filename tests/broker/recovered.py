"""What a broker recovers when it starts, by its own log: segment by segment, of which it reads each byte."""

import re
from collections.abc import Iterable

LOGGERS = ("org.apache.kafka.storage.internals.log.LogLoader", "kafka.log.LogLoader$", "kafka.log.LogLoader")
"""Those that name segments, of Kafka 3.9 and later."""

_SEGMENT = re.compile(r"Recovering unflushed segment (\d+)\. \S+ recovered for (\S+)\.")

Recovered = tuple[str, int]
"""The name of a partition's directory, and the base offset of a segment."""


def recovered(lines: Iterable[str]) -> list[Recovered]:
    """The segments of which these lines of a broker's log tell, in their order."""
    found = (_SEGMENT.search(line) for line in lines)
    return [(each[2], int(each[1])) for each in found if each]


def about_segments(text: str) -> list[str]:
    """The lines that tell of them, without time and logger."""
    return [each[0] for line in text.splitlines() if (each := _SEGMENT.search(line))]
