"""The status of a scrub: how far it is, and what it found."""

from dataclasses import dataclass, field

from streaming.broker.protocol.json_message import Message
from streaming.broker.protocol.json_values import Small


@dataclass(frozen=True, slots=True)
class CorruptBatch(Message):
    """A damaged position in a closed segment: its file, the byte, the offset in its header, and what is wrong with it."""

    topic: str
    partition: Small
    path: str
    position: int
    offset: int
    fault: str


@dataclass(frozen=True, slots=True)
class CorruptLog(Message):
    """How many damaged positions the scrub has found in the closed segments of a log."""

    topic: str
    partition: Small
    batches: int


@dataclass(frozen=True, slots=True)
class UnreadableFile(Message):
    """A file or directory that the scrub could not read, and why."""

    path: str
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ScrubStatus(Message):
    """The scrub of one log dir. Times are Unix milliseconds, -1 never.

    ``began_ms``, ``ended_ms``: when the last pass began, and when a pass last ended. ``logs``, ``logs_checked``: how many logs the pass has
    to check and has checked, 0 and 0 between the passes of two processes. ``checked``: bytes, in all passes. ``corrupt``, ``unreadable``:
    the damaged positions and the unreadable files that are known now; the first of them are named. ``waits_at``: the file in which a call
    has not returned for ``waits_seconds``, "" if there is none.
    """

    broker: Small
    log_dir: str
    began_ms: int
    ended_ms: int
    logs: int
    logs_checked: int
    checked: int
    corrupt: int
    unreadable: int
    waits_at: str = ""
    waits_seconds: float = 0.0
    corrupt_batches: list[CorruptBatch] = field(default_factory=list)
    corrupt_logs: list[CorruptLog] = field(default_factory=list)
    unreadable_files: list[UnreadableFile] = field(default_factory=list)
