"""Which tokens a file may hold, whose they are, and which header opens an agent."""

from pathlib import Path

import pytest

from streaming.broker.protocol.tokens import HEADER, LEAST_CHARACTERS, Token, accepted, header_of, read_tokens
from streaming.errors import UsageError

SECRET = b"t" * LEAST_CHARACTERS
OTHER_SECRET = b"o" * LEAST_CHARACTERS
TOKEN, OTHER = Token("", SECRET), Token("payments", OTHER_SECRET)


def written(path: Path, text: bytes) -> Path:
    file = path / "tokens"
    file.write_bytes(text)
    file.chmod(0o600)
    return file


def test_each_line_is_a_token_but_empty_ones_and_remarks(tmp_path: Path) -> None:
    text = b"# " + OTHER_SECRET + b"\n\n" + SECRET + b"\n  payments\t" + OTHER_SECRET + b" \n"
    assert read_tokens(written(tmp_path, text), "--token-file") == (TOKEN, OTHER)


@pytest.mark.parametrize(
    "text",
    [
        *(b"", b"# only\n", SECRET[1:], SECRET + b"\n" + OTHER_SECRET[1:], SECRET + b"\xff", SECRET[1:] + b"!"),
        *(b"a b " + SECRET, b"a:b " + SECRET, b"n" * 65 + b" " + SECRET, b"name " + SECRET[1:]),
        b"one " + SECRET + b"\ntwo " + SECRET,
    ],
)
def test_a_file_without_a_token_or_with_one_that_is_none_is_refused(tmp_path: Path, text: bytes) -> None:
    with pytest.raises(UsageError) as refused:
        read_tokens(written(tmp_path, text), "--token-file")
    assert SECRET.decode() not in str(refused.value)


def test_a_token_that_is_there_twice_is_named_by_its_lines(tmp_path: Path) -> None:
    text = b"# of all jobs\n\none " + SECRET + b"\nthree " + OTHER_SECRET + b"\ntwo " + SECRET
    with pytest.raises(UsageError, match=r"--token-file .*tokens: a token is there twice, in lines 3 and 5"):
        read_tokens(written(tmp_path, text), "--token-file")
    with pytest.raises(UsageError, match="the token in line 2 is too short"):
        read_tokens(written(tmp_path, b"# one\nshort"), "--token-file")


def test_a_token_opens_only_as_a_bearer_token_and_only_whole() -> None:
    name, value = header_of(OTHER)
    assert (name, accepted((TOKEN, OTHER), value)) == (HEADER, OTHER)
    secret = SECRET.decode()
    assert accepted((TOKEN, OTHER), f"bearer {secret}") == TOKEN
    for shown in ("", secret, f"Basic {secret}", f"Bearer {secret[1:]}", f"Bearer {secret}t", "Bearer"):
        assert accepted((TOKEN, OTHER), shown) is None


def test_a_token_shows_no_secret() -> None:
    assert SECRET.decode() not in repr(TOKEN)
