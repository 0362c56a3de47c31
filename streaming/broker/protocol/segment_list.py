"""The segments that an agent can scan batch by batch on request."""

from dataclasses import dataclass
from typing import ClassVar

from streaming.broker.protocol.json_message import Message
from streaming.broker.protocol.json_values import Small


@dataclass(frozen=True, slots=True)
class Log(Message):
    """One segment of a log on disk; ``size`` in bytes."""

    broker: Small
    log_dir: str
    topic: str
    partition: Small
    segment: int
    size: int


@dataclass(frozen=True, slots=True)
class Logs(Message):
    """All segments that an agent can scan."""

    MOST_VALUES: ClassVar[int] = 64 << 20  # a list of nine million segments, for those who scan them

    logs: list[Log]
