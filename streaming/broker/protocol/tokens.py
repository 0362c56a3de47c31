"""Bearer tokens (RFC 6750). The agent's file holds those that it accepts, the job's file the one that it sends.

A token may have a name: what its owner does counts for that name alone, and disturbs no other.
"""

from __future__ import annotations

import hmac
import re
from dataclasses import dataclass, field
from pathlib import Path

from streaming.common.reloading import read_secret
from streaming.errors import UsageError

HEADER = "authorization"

LEAST_CHARACTERS = 16
"""Shorter ones can be guessed."""

_TOKEN = re.compile(rb"[A-Za-z0-9._~+/=-]+")  # the characters that a header may hold: b64token of RFC 6750, section 2.1
_NAME = re.compile(rb"[A-Za-z0-9._-]{1,64}")


def read_tokens(path: Path, option: str) -> tuple[Token, ...]:
    """All tokens of a file, one in each line, behind its name if it has one. Empty lines and lines that begin with ``#`` are skipped.

    Raises:
        UsageError: the file cannot be read, or has no token, or has one that is too short or has characters that a header may not hold, or
            one token has two names.
    """
    text = enumerate((line.split() for line in read_secret(path, option).splitlines()), 1)
    lines = {number: words for number, words in text if words and not words[0].startswith(b"#")}
    if not lines:
        raise UsageError(f"{option} {path} holds no token: write one into it, such as the output of `openssl rand -hex 32`")
    tokens = {number: _token(words, f"{option} {path}: the token in line {number}") for number, words in lines.items()}
    first: dict[bytes, int] = {}
    for number, token in tokens.items():
        before = first.setdefault(token.secret, number)
        if before != number:
            raise UsageError(
                f"{option} {path}: a token is there twice, in lines {before} and {number}: whose would it be? delete one of the lines"
            )
    return tuple(tokens.values())


@dataclass(frozen=True, slots=True)
class Token:
    """A token and its name, "" without one."""

    name: str
    secret: bytes = field(repr=False)


def _token(words: list[bytes], where: str) -> Token:
    if len(words) > 2 or (len(words) == 2 and not _NAME.fullmatch(words[0])):
        raise UsageError(
            f"{where} is not written as a token, or as its name and the token with a space between; "
            "a name has at most 64 letters, digits, dots, dashes and underscores"
        )
    if len(words[-1]) < LEAST_CHARACTERS or not _TOKEN.fullmatch(words[-1]):
        raise UsageError(
            f"{where} is too short or has characters that no header may hold; take {LEAST_CHARACTERS} or more letters and digits"
        )
    return Token(words[0].decode() if len(words) == 2 else "", words[-1])


def header_of(token: Token) -> tuple[str, str]:
    """The header that contains a token."""
    return HEADER, f"Bearer {token.secret.decode()}"


def accepted(tokens: tuple[Token, ...], presented: str) -> Token | None:
    """The token that the header's value contains, None if it is none of these. A wrong token takes as long as a right one."""
    kind, _, secret = presented.partition(" ")
    matches = [token for token in tokens if hmac.compare_digest(secret.strip().encode(), token.secret)]
    return matches[0] if matches and kind.lower() == "bearer" else None
