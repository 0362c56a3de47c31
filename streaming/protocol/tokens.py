"""Bearer tokens (RFC 6750). The agent's file holds those that it accepts, the job's file the one that it sends.

A token may have a name. A consumer that registers with it belongs to that name, and no other token can do anything in its place.
"""

import hmac
import re
from dataclasses import dataclass, field
from pathlib import Path

from streaming.errors import UsageError
from streaming.reloading import read_secret

HEADER = "authorization"
LEAST_CHARACTERS = 16
"""Shorter ones can be guessed."""

_TOKEN = re.compile(rb"[A-Za-z0-9._~+/=-]+")  # the characters that a header may hold: b64token of RFC 6750, section 2.1
_NAME = re.compile(rb"[A-Za-z0-9._-]{1,64}")


@dataclass(frozen=True, slots=True)
class Token:
    """A token and its name, "" without one."""

    name: str
    secret: bytes = field(repr=False)


def read_tokens(path: Path, option: str) -> tuple[Token, ...]:
    """All tokens of a file, one in each line, behind its name if it has one. Empty lines and lines that begin with ``#`` are skipped.

    Raises:
        UsageError: the file cannot be read, or has no token, or has one that is too short or has characters that a header may not hold, or
            one token has two names.
    """
    lines = [line.split() for line in read_secret(path, option).splitlines() if line.strip() and not line.strip().startswith(b"#")]
    if not lines:
        raise UsageError(f"{option} {path} holds no token: write one into it, such as the output of `openssl rand -hex 32`")
    tokens = tuple(_token(words, f"{option} {path}: token {number}") for number, words in enumerate(lines, 1))
    if len({token.secret for token in tokens}) < len(tokens):
        raise UsageError(f"{option} {path}: a token is there twice: whose would it be? delete one of the lines")
    return tokens


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


def accepted(tokens: tuple[Token, ...], shown: str) -> Token | None:
    """The token that the header's value contains, None if it is none of these. A wrong token takes as long as a right one."""
    kind, _, secret = shown.partition(" ")
    matches = [token for token in tokens if hmac.compare_digest(secret.strip().encode(), token.secret)]
    return matches[0] if matches and kind.lower() == "bearer" else None
