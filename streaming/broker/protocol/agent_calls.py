"""The calls of an agent, over HTTP: a POST with one message, answered by a stream of messages, each behind its length.

The stream ends with a length that no message has, and an object of JSON: empty, or the reason why there are no more. A call that is refused
before its first message has that object as its body, with a status that says so, too.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from http import HTTPStatus

import pyarrow as pa

from streaming.errors import AgentError

PATH = "/calls/"

REQUEST_BYTES = 2 << 20
"""The largest request: 4,096 offsets of topics with the longest names are 1.5 MB."""

REGISTER_BYTES = 8 << 20
"""The largest request to register: it says how far 200,000 logs are counted in 3 MB, if their topics' names are 30 characters long."""

POSITIONS_BYTES = 6 << 20
"""The largest request with positions: those of 200,000 logs are 2 MB, and it may have them twice."""

MESSAGE_BYTES = 256 << 20
"""The largest message of an answer that a job takes. Agents cut the rows of an answer into messages of some MiB."""

_LENGTH = struct.Struct("!I")
_END = (1 << 32) - 1

MOST_REFUSAL = 64 << 10
"""The most bytes that a client reads of a refusal."""

MOST_WORDS = 300
"""The most characters of its words that are shown and logged: they are whatever listens there."""

TWIN = "another run of this job's query is served"
"""The beginning of the error that refuses a second job with the same id."""


def messages_of(read: Callable[[int], bytes], most: int = MESSAGE_BYTES, *, single: bool = False) -> Iterator[bytes]:
    """The messages of a stream. ``read`` returns so many bytes, or fewer at its end. One too large is refused by its length, unread.

    Args:
        most: bytes of a message, if fewer than `MESSAGE_BYTES`.
        single: there is one message.

    Raises:
        AgentError: they are none, one is larger or empty, or there are others than one.
        Refusal: there are no more.
    """
    most, count = min(most, MESSAGE_BYTES), 0
    while True:
        head = read(_LENGTH.size)
        if len(head) < _LENGTH.size:
            raise AgentError("its answer is cut off", "protocol")
        (length,) = _LENGTH.unpack(head)
        if length == _END:
            end = read(MOST_REFUSAL)
            if end != b"{}":
                raise refusal_of(end, HTTPStatus.CONFLICT)
            if single and not count:
                raise AgentError("it answers with no message", "protocol")
            return
        if length > most:
            raise AgentError(f"a message of its answer is larger than {most >> 20} MiB", "protocol")
        if not length or (single and count):
            raise AgentError("it answers with several messages" if length else "it answers with an empty message", "protocol")
        count += 1
        message = read(length)
        if len(message) < length:
            raise AgentError("its answer is cut off", "protocol")
        yield message


def refusal_of(body: bytes, status: int) -> Refusal:
    """What an agent, or whatever listens there, has answered. Raises AgentError: that is no agent."""
    try:
        found = json.loads(body)
        return Refusal(HTTPStatus(status), str(found["words"])[:MOST_WORDS], str(found["reason"]))
    except (ValueError, KeyError, TypeError) as error:
        raise AgentError("what listens there is no agent: is it another port?", "protocol") from error


@dataclass(eq=False)
class Refusal(Exception):  # noqa: N818 - an answer
    """An answer that is none. ``reason``: one of `streaming.broker.protocol.agent_calls.Reason`, "" for none of them."""

    status: HTTPStatus
    words: str
    reason: str

    def encode(self) -> bytes:
        """As JSON."""
        return json.dumps({"words": self.words, "reason": self.reason}).encode()


class Call(StrEnum):
    """What an agent can be asked."""

    STATUS = "status"
    REGISTER = "register"
    PLAN = "plan"
    EVENTS = "events"
    EXCERPTS = "excerpts"
    SCAN = "scan"
    OWNERS = "owners"
    GROUPS = "groups"
    POSITIONS = "positions"
    RECORDS = "records"
    BATCH = "batch"
    REACH = "reach"
    BETWEEN = "between"


def head_of(message: bytes | pa.Buffer) -> bytes:
    """What is before a message."""
    return _LENGTH.pack(len(memoryview(message)))


def end_of(refusal: Refusal | None) -> bytes:
    """What ends a stream."""
    return _LENGTH.pack(_END) + (b"{}" if refusal is None else refusal.encode())


class Reason(StrEnum):
    """The reason why an agent does not take part.

    The problems between a job and an agent: one word for metrics, and a sentence that names what to check.
    """

    REFUSED = "refused"  # no process listens at the address
    SILENT = "silent"  # no answer in time
    UNRESOLVED = "unresolved"  # the name has no address
    UNTRUSTED = "untrusted"  # its certificate is not trusted
    UNAUTHORIZED = "unauthorized"  # it does not accept the job's token
    PROTOCOL = "protocol"  # the process there is no agent, only one side has TLS, or the two versions do not fit
    FAILED = "failed"  # it answered that it cannot
    OTHER_CLUSTER = "other_cluster"  # it watches another cluster than the job
    SAME_NAME = "same_name"  # two agents have one name
    SHARED_LOG_DIR = "shared_log_dir"  # two agents watch one log dir
    CLOCK = "clock"  # its clock differs from the job's
    BLOCKED = "blocked"  # a call into one of its log dirs does not come back; the other log dirs go on
    TWIN_CONSUMER = "twin_consumer"  # two jobs have one id, for example because a checkpoint was copied: one of them is refused
    STUCK = "stuck"  # its watcher gives no sign of life
    BUSY = "busy"  # it answers, and refuses what is more than one of its limits
    GONE = "gone"  # what it is asked for was deleted or replaced since it was listed
