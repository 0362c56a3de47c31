"""A request as the servers' parts see it, an answer with the headers of every answer, and its format and encoding."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
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

TEXT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"


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


def sentence(status: HTTPStatus, words: str, **headers: str) -> Response:
    """An answer for people: one line of text. ``headers`` have "_" for "-"."""
    return Response(status=status, body=f"{words}\n".encode(errors="replace"), headers={k.replace("_", "-"): v for k, v in headers.items()})


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """The answer to a request; ``gzip`` if the body is compressed; ``headers`` besides `SECURED`, or instead of one of these."""

    status: HTTPStatus
    content_type: str = "text/plain; charset=utf-8"
    body: bytes
    gzip: bool = False
    headers: Mapping[str, str] = field(default_factory=dict)


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


def wants_openmetrics(accept: str) -> bool:
    """Whether this ``Accept`` header prefers OpenMetrics 1.0 to Prometheus' text. Without a preference, the answer is text.

    Chooses format and encoding of the page by the client's request headers (RFC 9110, section 12.5).
    `prometheus_client.choose_encoder` ignores qualities: a Prometheus that is configured to prefer text would get OpenMetrics.
    """
    openmetrics = text = 0.0
    for offer in _offers(accept):
        version = offer.parameters.get("version")
        if offer.name == "application/openmetrics-text" and version in (None, "1.0.0"):
            openmetrics = max(openmetrics, offer.quality)
        elif offer.name in ("text/plain", "text/*", "*/*"):
            text = max(text, offer.quality)
    return openmetrics > 0 and openmetrics >= text


def _offers(header: str) -> Iterator[_Offer]:
    for element in header.split(","):
        name, *parameters = (part.strip() for part in element.split(";"))
        if name:
            pairs = dict(part.split("=", 1) for part in parameters if "=" in part)
            yield _Offer(name.lower(), pairs, _quality(pairs.get("q", "1")))


@dataclass(frozen=True, slots=True)
class _Offer:
    """One element of an Accept header: the type, its parameters, and its quality."""

    name: str
    parameters: dict[str, str]
    quality: float


def _quality(value: str) -> float:
    """The quality of an element, 0 (not accepted) to 1; 0 if it cannot be parsed."""
    try:
        return float(value)
    except ValueError:
        return 0.0


def accepts_gzip(accept_encoding: str) -> bool:
    """Whether this ``Accept-Encoding`` header allows gzip."""
    qualities = {offer.name: offer.quality for offer in _offers(accept_encoding)}
    return qualities.get("gzip", qualities.get("*", 0.0)) > 0
