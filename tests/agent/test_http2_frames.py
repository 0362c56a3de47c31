"""Headers of a call have bounds, in whatever pieces they come."""

import struct

import pytest

from streaming.agent.http2_frames import HEADER_BYTES, HEADER_FRAMES, FrameCount
from streaming.errors import FormatError

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, SETTINGS, CONTINUATION = 0, 1, 4, 9


def frame(kind: int, length: int = 0, stream: int = 1) -> bytes:
    return struct.pack(">I", length)[1:] + bytes([kind, 0]) + struct.pack(">I", stream) + b"x" * length


def counted(data: bytes, piece: int) -> FrameCount:
    made = FrameCount()
    for at in range(0, len(data), piece):
        made.take(data[at : at + piece])
    return made


@pytest.mark.parametrize("piece", [1, 7, 9, 24, 1 << 20])
def test_calls_are_counted_in_pieces_of_any_size(piece: int) -> None:
    data = PREFACE + frame(SETTINGS, 18, 0) + (frame(HEADERS, 200) + frame(CONTINUATION, 10) + frame(DATA, 3_000)) * 3
    assert counted(data, piece).calls == 3


@pytest.mark.parametrize("piece", [1, 9, 1 << 20])
@pytest.mark.parametrize(
    "block",
    [
        frame(HEADERS, HEADER_BYTES + 1),
        frame(HEADERS, HEADER_BYTES) + frame(CONTINUATION, 1),
        frame(HEADERS) + frame(CONTINUATION) * HEADER_FRAMES,
        frame(CONTINUATION, HEADER_BYTES + 1),
    ],
)
def test_headers_without_end_are_refused(block: bytes, piece: int) -> None:
    with pytest.raises(FormatError, match="headers of a call"):
        counted(PREFACE + block, piece)


@pytest.mark.parametrize("piece", [1, 1 << 20])
def test_headers_of_many_calls_are_no_long_headers(piece: int) -> None:
    assert counted(PREFACE + (frame(HEADERS, HEADER_BYTES - 1) + frame(CONTINUATION, 1)) * 5, piece).calls == 5


@pytest.mark.parametrize("begin", [b"GET / HTTP/1.1\r\n", b"\x16\x03\x01\x02\x00", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\rx"])
@pytest.mark.parametrize("piece", [1, 1 << 20])
def test_what_is_no_http2_is_refused(begin: bytes, piece: int) -> None:
    with pytest.raises(FormatError, match="no HTTP/2"):
        counted(begin, piece)
