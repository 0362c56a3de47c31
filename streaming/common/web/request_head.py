"""Parses the head of an HTTP request, its line and headers, from bytes. The standard library does it; here it gets no socket."""

import re
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from io import BytesIO
from urllib.parse import urlsplit

from streaming.common.web.client_limits import HEAD_BYTES
from streaming.common.web.messages import HttpRequest
from streaming.common.web.negotiation import accepts_gzip

_END = re.compile(rb"\r?\n\r?\n")
_LOOKED_BACK = 3
_NAMED_BYTES = 200
"""So much of a client's name for itself is kept."""

_SENTENCES = {
    HTTPStatus.REQUEST_URI_TOO_LONG: "the address is too long",
    HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE: f"too many headers: {HEAD_BYTES} bytes at most, and 100 of them",
    HTTPStatus.HTTP_VERSION_NOT_SUPPORTED: "HTTP/1.0 or HTTP/1.1, please",
}


class RequestError(Exception):
    """Bytes that are no request, with the status that says so; the message is a sentence without any of them."""

    def __init__(self, status: HTTPStatus) -> None:
        super().__init__(_SENTENCES.get(status, "the request is not understood"))
        self.status = status


@dataclass(frozen=True, slots=True)
class RequestHead:
    """A request with what the server itself needs of it."""

    method: str
    request: HttpRequest
    authorization: str


def head_length(received: bytes | bytearray, before: int = 0) -> int | None:
    """The number of bytes of the head, or None if more is needed. Of them, ``before`` bytes were looked at already.

    Raises:
        RequestError: it is longer than `HEAD_BYTES`.
    """
    end = _END.search(received, max(0, before - _LOOKED_BACK))
    length = len(received) if end is None else end.end()
    if length > HEAD_BYTES:
        one_line = received.find(b"\n", 0, HEAD_BYTES) < 0
        raise RequestError(HTTPStatus.REQUEST_URI_TOO_LONG if one_line else HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
    return None if end is None else length


def parse_head(head: bytes, client: str) -> RequestHead:
    """Parse a whole head.

    Raises:
        RequestError: it is none.
    """
    parsed = _Parsed(head)
    if parsed.refused is not None:
        raise RequestError(parsed.refused)
    headers = parsed.headers
    try:
        address = urlsplit(parsed.path)
    except ValueError as error:  # such as "http://["
        raise RequestError(HTTPStatus.BAD_REQUEST) from error
    request = HttpRequest(
        path=address.path,
        query=address.query,
        client=client,
        user_agent=headers.get("User-Agent", "")[:_NAMED_BYTES],
        accept=headers.get("Accept", ""),
        gzip=accepts_gzip(headers.get("Accept-Encoding", "")),
        host=headers.get("Host", ""),
    )
    return RequestHead(parsed.command, request, headers.get("Authorization", ""))


class _Parsed(BaseHTTPRequestHandler):
    refused: HTTPStatus | None = None
    """The status for a head that is none."""

    def __init__(self, head: bytes) -> None:  # not the base class's, which would serve a connection
        self.client_address = ("", 0)
        self.rfile = BytesIO(head)
        self.raw_requestline = self.rfile.readline()
        if not self.parse_request() or self.request_version == "HTTP/0.9":
            self.refused = self.refused or HTTPStatus.BAD_REQUEST

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Called for what cannot be parsed."""
        del message, explain  # they repeat what the client sent
        self.refused = HTTPStatus(code)

    def handle_expect_100(self) -> bool:
        """A client that waits before it sends its body gets its answer at once."""
        return True
