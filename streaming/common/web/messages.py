"""A request as the servers' parts see it, and an answer to it, with the headers that every answer has."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from email.utils import formatdate
from http import HTTPStatus

SECURED = {
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
"""Headers of every answer, errors too. There are none for other origins (CORS): a page elsewhere cannot read an answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpRequest:
    """A client's request.

    ``query``: what comes after "?"; ``client``: its host; ``gzip`` if it accepts a compressed answer; ``host``: the header of that name,
    which says whom it takes the server for, "" without one.
    """

    path: str
    query: str = ""
    client: str
    user_agent: str
    accept: str
    gzip: bool
    host: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """The answer to a request; ``gzip`` if the body is compressed; ``headers`` besides `SECURED`, or instead of one of these."""

    status: HTTPStatus
    content_type: str = "text/plain; charset=utf-8"
    body: bytes
    gzip: bool = False
    headers: Mapping[str, str] = field(default_factory=dict)


def sentence(status: HTTPStatus, words: str, **headers: str) -> Response:
    """An answer for people: one line of text. ``headers`` have "_" for "-"."""
    return Response(status=status, body=f"{words}\n".encode(errors="replace"), headers={k.replace("_", "-"): v for k, v in headers.items()})


def whole(answer: Response) -> bytes:
    """All bytes of an answer after which the connection ends, where no request was understood."""
    lines = [
        f"HTTP/1.1 {answer.status.value} {answer.status.phrase}",
        "Server: segtail",
        f"Date: {formatdate(usegmt=True)}",
        f"Content-Type: {answer.content_type}",
        *(f"{name}: {value}" for name, value in SECURED.items()),
        f"Content-Length: {len(answer.body)}",
        "Connection: close",
    ]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + answer.body
