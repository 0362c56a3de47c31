"""Looks at the frames of HTTP/2 that pass between a client and gRPC: the head of each contains its length and what it belongs to.

gRPC refuses a call whose headers are too long, and reads on: headers that never end, in CONTINUATION frames, took 15 MiB and more of a
process for each connection (RFC 9113, 4.1, 6.2, 6.10 and 10.5.1; CERT/CC VU#421644).
"""

from collections.abc import Iterator
from dataclasses import dataclass

from streaming.errors import FormatError

HEADER_BYTES = 16 << 10
"""The most bytes of a call's headers, as they are sent: those of a job have some 200."""

HEADER_FRAMES = 16
"""The most frames of a call's headers: empty ones have no bytes, and no end."""

HEADER_FIELDS = 64
"""The most fields of a call's headers: those of a job have some ten."""

FRAMES_PER_SECOND = 5_000
"""A connection that sends more is read that slowly: looking at frames that hold nothing would take all of a processor."""

_AT_ONCE_SECONDS = 0.1

_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_TLS = b"\x16"  # how a handshake begins
_HEAD_BYTES = 9
_DATA, _HEADERS, _CONTINUATION = 0, 1, 9
_PADDED, _PRIORITY = 0x08, 0x20


GOING_AWAY = bytes(3) + b"\x04" + bytes(5) + b"\0\0\x08\x07" + bytes(9) + bytes([0, 0, 0, 11])
"""The last bytes for a connection that is cut: settings, and that it has been too much (GOAWAY with ENHANCE_YOUR_CALM)."""


@dataclass(frozen=True, slots=True)
class _Head:
    length: int
    kind: int
    flags: int


class _Pieces:
    """Frames in pieces of any size."""

    def __init__(self) -> None:
        self._head = bytearray()
        self._payload = 0  # bytes of it that are still to come

    def split(self, data: bytes) -> Iterator[_Head | bytes]:
        """The heads in it, and behind each the parts of its payload."""
        at = 0
        while at < len(data):
            if self._payload:
                part = data[at : at + self._payload]
                self._payload -= len(part)
                at += len(part)
                yield part
                continue
            part = data[at : at + _HEAD_BYTES - len(self._head)]
            self._head += part
            at += len(part)
            if len(self._head) == _HEAD_BYTES:
                high, middle, low, kind, flags = self._head[:5]
                self._payload = high << 16 | middle << 8 | low
                self._head.clear()
                yield _Head(self._payload, kind, flags)


class FrameCount:
    """The bytes of one client, in pieces of any size."""

    def __init__(self) -> None:
        self._preface = _PREFACE  # what is still to come of it
        self._pieces = _Pieces()
        self._header_bytes = 0
        self._header_frames = 0
        self._block = bytearray()  # what has come of the headers
        self._is_header = False  # whether the payload is theirs
        self._skipped = 0  # bytes before its first field
        self.calls = 0
        """How many calls have begun."""
        self.frames = 0
        """How many frames have begun."""

    def take(self, data: bytes) -> None:
        """Count the next bytes.

        Raises:
            FormatError: this is no HTTP/2, or the headers of a call are too long. The connection cannot go on.
        """
        begin = data[: len(self._preface)]
        if not self._preface.startswith(begin):
            raise FormatError(
                "it begins with TLS, for which no certificate is given here" if data[:1] == _TLS else "what it sends is no HTTP/2"
            )
        self._preface = self._preface[len(begin) :]
        for piece in self._pieces.split(data[len(begin) :]):
            if isinstance(piece, _Head):
                self._begin(piece)
            elif self._is_header:
                self._note(piece)

    def _begin(self, head: _Head) -> None:
        self.frames += 1
        self._is_header = head.kind in (_HEADERS, _CONTINUATION)
        if head.kind == _HEADERS:
            self.calls += 1
            self._block.clear()
            self._skipped = bool(head.flags & _PADDED) + 5 * bool(head.flags & _PRIORITY)
            self._header_bytes = self._header_frames = 0
        elif head.kind != _CONTINUATION:
            return
        self._header_bytes += head.length
        self._header_frames += 1
        if self._header_bytes > HEADER_BYTES or self._header_frames > HEADER_FRAMES:
            raise FormatError(f"the headers of a call have more than {HEADER_BYTES} bytes, or {HEADER_FRAMES} frames")

    def _note(self, part: bytes) -> None:
        """Count the fields of what has come of the headers. Padding counts as some."""
        self._block += part
        if field_count(self._block, self._skipped, HEADER_FIELDS) > HEADER_FIELDS:
            raise FormatError(f"the headers of a call have more than {HEADER_FIELDS} fields")


class AnswerSeen:
    """Whether gRPC has answered a call of a connection, in pieces of any size: a refusal has headers alone, and no message."""

    def __init__(self) -> None:
        self._pieces = _Pieces()

    def take(self, data: bytes) -> bool:
        """Look at the next bytes; returns whether an answer has begun in them."""
        return any(isinstance(piece, _Head) and piece.kind == _DATA for piece in self._pieces.split(data))


class FramePace:
    """When a connection is read again. Times are seconds of a monotonic clock."""

    def __init__(self) -> None:
        self._frames = 0
        self._paid_at = 0.0  # when the frames so far have had their time

    def wait(self, frames: int, now: float) -> float:
        """How long to wait, with so many frames of the connection so far."""
        self._paid_at = max(now, self._paid_at) + (frames - self._frames) / FRAMES_PER_SECOND
        self._frames = frames
        ahead = self._paid_at - now
        return ahead if ahead > _AT_ONCE_SECONDS else 0.0


_MOST_SHIFT = 28


def field_count(block: bytes | bytearray, begin: int, most: int) -> int:
    """The fields of headers from ``begin`` on, as HPACK writes them (RFC 7541, 5 and 6): without its table, their names or values.

    A field that was sent before is one byte: 15,000 of them fit into headers, take gRPC some 100 KiB a call, and not all of it is given
    back. Fields of which not all has come count, too. It stops at one beyond ``most``.

    Raises:
        FormatError: a number has no end.
    """
    count, at = 0, begin
    while at < len(block) and count <= most:
        count += 1
        kind = block[at]
        if kind & 0x80:  # a field of the table
            _, at = _number(block, at, 7)
        elif kind & 0xE0 == 0x20:  # the table's size
            _, at = _number(block, at, 5)
        else:
            name, at = _number(block, at, 6 if kind & 0x40 else 4)
            for _ in range(1 if name else 2):
                length, at = _number(block, at, 7)
                at += length
    return count


def _number(block: bytes | bytearray, at: int, bits: int) -> tuple[int, int]:
    """A number, and where it ends: behind the block if not all of it has come."""
    if at >= len(block):
        return 0, at
    most = (1 << bits) - 1
    value, at, shift = block[at] & most, at + 1, 0
    if value < most:
        return value, at
    while at < len(block):
        if shift > _MOST_SHIFT:
            raise FormatError("a number in the headers of a call has no end")
        part = block[at]
        value, at, shift = value + ((part & 0x7F) << shift), at + 1, shift + 7
        if part < 0x80:
            return value, at
    return value, at
