"""Points in time as people write them on a command line, and as they read them."""

from datetime import UTC, datetime

from streaming.errors import UsageError


def parse_time(option: str, text: str) -> int:
    """Unix milliseconds of a time given by ``option``: as such, or as ISO 8601, which is UTC unless it says otherwise.

    Raises:
        UsageError: it is neither.
    """
    if text.isascii() and text.isdigit():
        return int(text)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise UsageError(f"{option} {text}: neither Unix milliseconds nor a time such as 2026-11-20T06:00:00") from error
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)


def show_time(time_ms: int) -> str:
    """A point in time to the second, in UTC."""
    return datetime.fromtimestamp(time_ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def show_span(span_ms: int) -> str:
    """A span of time in its two largest units, such as ``2h 25m``; never below nothing."""
    seconds = max(0, span_ms) // 1000
    for unit, size, smaller, part in (("d", 86400, "h", 3600), ("h", 3600, "m", 60), ("m", 60, "s", 1)):
        if seconds >= size:
            return f"{seconds // size}{unit} {seconds % size // part}{smaller}"
    return f"{seconds}s"
