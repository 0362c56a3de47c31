"""Chooses format and encoding of the page by the client's request headers (RFC 9110, section 12.5).

`prometheus_client.choose_encoder` ignores qualities: a Prometheus that is configured to prefer text would get OpenMetrics.
"""

from collections.abc import Iterator
from dataclasses import dataclass

TEXT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"


@dataclass(frozen=True, slots=True)
class _Offer:
    """One element of an Accept header: the type, its parameters, and its quality."""

    name: str
    parameters: dict[str, str]
    quality: float


def wants_openmetrics(accept: str) -> bool:
    """Whether this ``Accept`` header prefers OpenMetrics 1.0 to Prometheus' text. Without a preference, the answer is text."""
    openmetrics = text = 0.0
    for offer in _offers(accept):
        version = offer.parameters.get("version")
        if offer.name == "application/openmetrics-text" and version in (None, "1.0.0"):
            openmetrics = max(openmetrics, offer.quality)
        elif offer.name in ("text/plain", "text/*", "*/*"):
            text = max(text, offer.quality)
    return openmetrics > 0 and openmetrics >= text


def accepts_gzip(accept_encoding: str) -> bool:
    """Whether this ``Accept-Encoding`` header allows gzip."""
    qualities = {offer.name: offer.quality for offer in _offers(accept_encoding)}
    return qualities.get("gzip", qualities.get("*", 0.0)) > 0


def _offers(header: str) -> Iterator[_Offer]:
    for element in header.split(","):
        name, *parameters = (part.strip() for part in element.split(";"))
        if name:
            pairs = dict(part.split("=", 1) for part in parameters if "=" in part)
            yield _Offer(name.lower(), pairs, _quality(pairs.get("q", "1")))


def _quality(value: str) -> float:
    """The quality of an element, 0 (not accepted) to 1; 0 if it cannot be parsed."""
    try:
        return float(value)
    except ValueError:
        return 0.0
