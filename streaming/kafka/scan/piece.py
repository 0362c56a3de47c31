"""A piece of a log that is scanned, and what is found in it."""

from dataclasses import dataclass

from streaming.kafka.scan.headers import Batches
from streaming.kafka.scan.sums import Sums
from streaming.kafka.scan.walk import Positions, Stop

MAX_SEGMENT_BYTES = 2**31 - 1
"""A ``.log`` is never larger (`FileRecords`), so a batch that would reach beyond this has a wrong length."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Bytes ``[start, end)`` of the buffer: a part of one log that begins at a batch.

    ``expected_offset`` is the smallest offset that its first batch may have; ``seeds`` are positions in the buffer where batches begin
    according to an index (see `walk`), or None. ``limit`` is how far from ``start`` a batch may reach in the file at most.
    """

    start: int
    end: int
    expected_offset: int
    seeds: Positions | None = None
    limit: int = MAX_SEGMENT_BYTES


@dataclass(frozen=True, slots=True)
class Scanned:
    """The result of a piece.

    ``end`` is the end of its last complete and sound batch in the buffer; ``flaw`` is the reason in words why the next batch is not sound,
    ``stop`` why the walk ended otherwise. ``batches`` are those before ``end``; ``sums`` is None if there are none.
    """

    end: int
    stop: Stop
    flaw: str | None
    batches: Batches
    sums: Sums | None

    @property
    def anchor(self) -> bytes:
        """The header of the last batch. A later poll uses it to detect whether the log was truncated and written again."""
        return self.batches.anchor(-1)

    @property
    def anchor_position(self) -> int:
        """The position of that header in the buffer."""
        return int(self.batches.positions[-1])
