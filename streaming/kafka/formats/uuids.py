"""Kafka's spelling of a UUID: URL-safe base64 without padding, 22 characters (`org.apache.kafka.common.Uuid`)."""

import base64
import re

from streaming.errors import FormatError, quoted

UUID_BYTES = 16
_TEXT = re.compile(r"[A-Za-z0-9_-]{22}", re.ASCII)


def uuid_text(raw: bytes | bytearray | memoryview) -> str:
    """The text of 16 raw bytes."""
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode("ascii")


def check_uuid(text: str) -> str:
    """Return the UUID in its only spelling, so that texts can be compared; FormatError if it is none."""
    if not _TEXT.fullmatch(text):
        raise FormatError(f"{quoted(text)} is not a UUID")
    return uuid_text(base64.urlsafe_b64decode(text + "=="))
