"""Which tokens a file may hold, and which header opens an agent."""

from pathlib import Path

import pytest

from streaming.errors import UsageError
from streaming.protocol.tokens import LEAST_CHARACTERS, accepts, header_of, read_tokens

TOKEN = b"t" * LEAST_CHARACTERS
OTHER = b"o" * LEAST_CHARACTERS


def written(path: Path, text: bytes) -> Path:
    file = path / "tokens"
    file.write_bytes(text)
    file.chmod(0o600)
    return file


def test_each_line_is_a_token_but_empty_ones_and_remarks(tmp_path: Path) -> None:
    assert read_tokens(written(tmp_path, b"# " + OTHER + b"\n\n" + TOKEN + b"\n  " + OTHER + b" \n"), "--token-file") == (TOKEN, OTHER)


@pytest.mark.parametrize("text", [b"", b"# only\n", TOKEN[1:], TOKEN + b"\n" + OTHER[1:], TOKEN + b"\xff", TOKEN[1:] + b"!"])
def test_a_file_without_a_token_or_with_one_that_is_none_is_refused(tmp_path: Path, text: bytes) -> None:
    with pytest.raises(UsageError):
        read_tokens(written(tmp_path, text), "--token-file")


def test_a_token_opens_only_as_a_bearer_token_and_only_whole() -> None:
    name, value = header_of(OTHER)
    assert (name, accepts((TOKEN, OTHER), value.decode())) == (b"authorization", True)
    assert accepts((TOKEN, OTHER), f"bearer {TOKEN.decode()}")
    for shown in ("", TOKEN.decode(), f"Basic {TOKEN.decode()}", f"Bearer {TOKEN.decode()[1:]}", f"Bearer {TOKEN.decode()}t", "Bearer"):
        assert not accepts((TOKEN, OTHER), shown)
