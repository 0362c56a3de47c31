"""A window that moves over pieces of bytes: what is behind it is let go, so whoever reads on holds little at once."""

from collections.abc import Iterator

from streaming.kafka.formats.varint import Bytes


class MovingWindow:
    """The bytes ``data[at:]`` are at hand. ``before``: how many bytes lay before ``data``. Whoever reads moves ``at``, beyond ``data`` too.

    The errors of `pieces` are raised where the next piece is taken.
    """

    __slots__ = ("_pieces", "at", "before", "data")

    def __init__(self, pieces: Iterator[Bytes]) -> None:
        self._pieces = pieces
        self.data: Bytes = next(pieces, b"")
        self.at = 0
        self.before = 0

    @property
    def position(self) -> int:
        """The position of ``at`` from the beginning of all pieces."""
        return self.before + self.at

    def has(self, size: int) -> bool:
        """Whether so many bytes are left; afterwards they are at hand. If not, all that are left are at hand."""
        if len(self.data) - self.at >= size:
            return True
        while self.at >= len(self.data):  # nothing of it is needed any more
            piece = next(self._pieces, None)
            if piece is None:
                return size <= 0 and self.at == len(self.data)
            self.before += len(self.data)
            self.at -= len(self.data)
            self.data = piece
        missing = size - (len(self.data) - self.at)
        if missing <= 0:
            return True
        joined = bytearray(self.data[self.at :])
        while missing > 0 and (piece := next(self._pieces, None)) is not None:
            joined += piece
            missing -= len(piece)
        self.before += self.at
        self.data, self.at = joined, 0
        return missing <= 0
