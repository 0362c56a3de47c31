"""The segments that an agent can scan batch by batch on request."""

from dataclasses import dataclass
from typing import ClassVar

from streaming.protocol.json_message import Message


@dataclass(frozen=True, slots=True)
class Log(Message):
    """One segment of a log on disk; ``size`` in bytes."""

    broker: int
    log_dir: str
    topic: str
    partition: int
    segment: int
    size: int


@dataclass(frozen=True, slots=True)
class Logs(Message):
    """All segments that an agent can scan."""

    HOLDS: ClassVar[dict[str, type[Message]]] = {"logs": Log}

    logs: list[Log]
