"""Headers of a call have bounds, in whatever pieces they come."""

import struct

import pytest

from streaming.broker.agent.http2_frames import (
    FRAMES_PER_SECOND,
    HEADER_BYTES,
    HEADER_FIELDS,
    HEADER_FRAMES,
    AnswerSeen,
    FrameCount,
    FramePace,
)
from streaming.errors import FormatError

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
FIELD = b"\x40\x01x\x7f\xff\xff\x7f"  # the beginning of one whose value is longer than all headers
DATA, HEADERS, SETTINGS, CONTINUATION = 0, 1, 4, 9


def frame(kind: int, length: int = 0, stream: int = 1) -> bytes:
    return struct.pack(">I", length)[1:] + bytes([kind, 0]) + struct.pack(">I", stream) + (FIELD + b"x" * length)[:length]


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


@pytest.mark.parametrize(
    ("begin", "why"),
    [
        (b"GET / HTTP/1.1\r\n", "no HTTP/2"),
        (b"\x16\x03\x01\x02\x00", "TLS, for which no certificate"),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\rx", "no HTTP/2"),
    ],
)
@pytest.mark.parametrize("piece", [1, 1 << 20])
def test_what_is_no_http2_is_refused(begin: bytes, why: str, piece: int) -> None:
    with pytest.raises(FormatError, match=why):
        counted(begin, piece)


def headers(block: bytes, flags: int = 4, kind: int = HEADERS) -> bytes:
    return struct.pack(">I", len(block))[1:] + bytes([kind, flags, 0, 0, 0, 1]) + block


LITERAL = b"\x40\x01x\x7f\x81\x1d" + b"v" * 3_840  # a name of 1 byte and a value whose length takes three


@pytest.mark.parametrize("piece", [1, 7, 1 << 20])
def test_a_call_has_so_many_fields(piece: int) -> None:
    most = LITERAL + b"\x3f\xe1\x1f" + b"\x04\x01p" + b"\xbe" * (HEADER_FIELDS - 3)
    for flags, before in ((4, b""), (0x24, bytes(5)), (0x2C, bytes(6))):
        assert counted(PREFACE + headers(before + most, flags) * 3, piece).calls == 3
        with pytest.raises(FormatError, match="fields"):
            counted(PREFACE + headers(before + most + b"\xbe", flags), piece)


@pytest.mark.parametrize("rest", [b"", headers(b"\xbe" * 10, 4, CONTINUATION)])
def test_fields_are_counted_before_a_frame_or_block_is_whole(rest: bytes) -> None:
    """gRPC reads what has come."""
    begun = headers(b"\xbe" * 60, 0) if rest else headers(b"\xbe" * 100)[:80]
    with pytest.raises(FormatError, match="fields"):
        counted(PREFACE + begun + rest, 9)


def test_a_number_in_headers_ends() -> None:
    with pytest.raises(FormatError, match="no end"):
        counted(PREFACE + headers(b"\xff" * 10), 3)


@pytest.mark.parametrize("piece", [1, 7, 9, 1 << 20])
def test_a_refusal_is_no_answer(piece: int) -> None:
    refused = frame(SETTINGS, 18, 0) + (frame(HEADERS, 200) + frame(SETTINGS, 0, 0)) * 3
    for data, answers in ((refused, False), (refused + frame(HEADERS, 20) + frame(DATA, 3) + frame(HEADERS, 20), True)):
        seen = AnswerSeen()
        assert (True in [seen.take(data[at : at + piece]) for at in range(0, len(data), piece)]) == answers


def test_a_connection_of_many_frames_is_read_slowly_and_a_job_s_is_not() -> None:
    pace = FramePace()
    assert pace.wait(FRAMES_PER_SECOND // 20, 0.0) == 0
    assert pace.wait(2 * FRAMES_PER_SECOND, 0.0) == 2
    assert pace.wait(2 * FRAMES_PER_SECOND, 2.0) == 0
    assert pace.wait(2 * FRAMES_PER_SECOND + 10, 9.0) == 0
