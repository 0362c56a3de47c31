"""The parts of segments that an agent reads on request, and the messages about them."""

from dataclasses import dataclass

from streaming.broker.protocol.json_message import Message
from streaming.broker.protocol.json_values import Small

EVERYTHING = (1 << 63) - 1
"""No bound of a position, an offset or a leader epoch."""


@dataclass(frozen=True, slots=True)
class Excerpt(Message):
    """The batches of a segment that fit all of these bounds.

    ``segment``: its base offset. Batches that begin at ``begin`` <= position < ``end``, bytes in the file, with ``from_offset`` <= base
    offset < ``until_offset``, and before the first batch of a later leader epoch than ``until_epoch``: that has overwritten what was there
    when the excerpt was chosen. No batch has to begin at ``begin``. ``bytes``: how many are expected, for those who share out the work.
    """

    broker: Small
    log_dir: str
    topic: str
    partition: Small
    topic_id: str
    segment: int
    begin: int
    end: int
    bytes: int
    from_offset: int = 0
    until_offset: int = EVERYTHING
    until_epoch: int = EVERYTHING
