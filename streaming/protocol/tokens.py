"""Bearer tokens (RFC 6750). The agent's file holds those that it accepts, the job's file the one that it sends."""

import hmac
import re
from pathlib import Path

from streaming.errors import UsageError
from streaming.reloading import read_secret

HEADER = "authorization"
LEAST_CHARACTERS = 16
"""Shorter ones can be guessed."""

_TOKEN = re.compile(rb"[A-Za-z0-9._~+/=-]+")  # the characters that a header may hold: b64token of RFC 6750, section 2.1


def read_tokens(path: Path, option: str) -> tuple[bytes, ...]:
    """All tokens of a file, one in each line. Empty lines and lines that begin with ``#`` are skipped.

    Raises:
        UsageError: the file cannot be read, or has no token, or has one that is too short or has characters that a header may not hold.
    """
    lines = [line.strip() for line in read_secret(path, option).splitlines()]
    tokens = tuple(line for line in lines if line and not line.startswith(b"#"))
    if not tokens:
        raise UsageError(f"{option} {path} holds no token: write one into it, such as the output of `openssl rand -hex 32`")
    for number, token in enumerate(tokens, 1):
        if len(token) < LEAST_CHARACTERS or not _TOKEN.fullmatch(token):
            raise UsageError(
                f"{option} {path}: token {number} is too short or has characters that no header may hold; "
                f"take {LEAST_CHARACTERS} or more letters and digits"
            )
    return tokens


def header_of(token: bytes) -> tuple[str, str]:
    """The header that contains a token."""
    return HEADER, f"Bearer {token.decode()}"


def accepts(tokens: tuple[bytes, ...], shown: str) -> bool:
    """Whether the header's value contains one of the tokens. A wrong token takes as long as a right one."""
    kind, _, token = shown.partition(" ")
    matches = [hmac.compare_digest(token.strip().encode(), known) for known in tokens]
    return kind.lower() == "bearer" and any(matches)
