"""The calls of an agent, over gRPC: their names, and messages of any size in pieces.

Each call takes one message and answers with a stream of messages. gRPC refuses a message above the limit of its receiver before it is
read, so that a limit can be small: requests are, and the messages of an answer travel in pieces. A piece is a byte that says whether it is
the last one of its message (1) or not (0), and its part of the message.
"""

from collections.abc import Iterable, Iterator
from enum import StrEnum

import pyarrow as pa

from streaming.errors import AgentError

SERVICE = "segtail.Agent"

REQUEST_BYTES = 2 << 20
"""The largest request: 4,096 offsets of topics with the longest names are 1.5 MB."""

PIECE_BYTES = 1 << 20

MESSAGE_BYTES = 256 << 20
"""The largest message of an answer that a job takes. Agents cut the rows of an answer into messages of some MiB."""

REASON = "segtail-reason"
"""The trailing metadata with the reason of an agent's error: one of `streaming.broker.protocol.problems.Reason`."""

_MORE, _LAST = b"\0", b"\1"


class Call(StrEnum):
    """What an agent can be asked."""

    STATUS = "status"
    REGISTER = "register"
    PLAN = "plan"
    EVENTS = "events"
    RECEIVED = "received"
    COMMITTED = "committed"
    EXCERPTS = "excerpts"
    SCAN = "scan"
    GROUPS = "groups"
    POSITIONS = "positions"
    RECORDS = "records"
    BATCH = "batch"
    READER_PLAN = "reader_plan"
    READER_ROWS = "reader_rows"
    READER_COMMIT = "reader_commit"

    @property
    def method(self) -> str:
        """The name as gRPC writes it."""
        return method(self)


def method(call: str) -> str:
    """A call as gRPC writes it, also of one that an agent does not know."""
    return f"/{SERVICE}/{call}"


def pieces(message: bytes | pa.Buffer) -> Iterator[bytes]:
    """The pieces of a message; one at least."""
    view = memoryview(message)
    for begin in range(0, max(1, len(view)), PIECE_BYTES):
        is_last = begin + PIECE_BYTES >= len(view)
        yield b"".join((_LAST if is_last else _MORE, view[begin : begin + PIECE_BYTES]))


def joined(received: Iterable[bytes]) -> Iterator[bytes]:
    """The messages that these pieces are.

    Raises:
        AgentError: they are none, or one is above `MESSAGE_BYTES`.
    """
    parts: list[memoryview] = []
    size = 0
    for piece in received:
        parts.append(memoryview(piece)[1:])
        size += len(piece)
        if size > MESSAGE_BYTES:
            raise AgentError(f"a message of its answer is larger than {MESSAGE_BYTES >> 20} MiB", "protocol")
        if piece[:1] == _LAST:
            yield b"".join(parts)
            parts, size = [], 0
        elif piece[:1] != _MORE:
            raise AgentError("its answer is in no form that this version knows", "protocol")
    if parts:
        raise AgentError("its answer is cut off", "protocol")
