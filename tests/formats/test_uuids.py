"""Kafka's spelling of a UUID."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.errors import FormatError
from streaming.kafka.formats.wire import check_uuid, uuid_text
from tests.tables import each_row


@given(st.binary(min_size=16, max_size=16))
def test_a_uuid_has_22_characters_that_read_back(raw: bytes) -> None:
    text = uuid_text(raw)
    assert len(text) == 22
    assert check_uuid(text) == text


def test_the_id_of_the_metadata_topic() -> None:
    assert uuid_text(bytes(15) + b"\x01") == "AAAAAAAAAAAAAAAAAAAAAQ"


def test_two_spellings_of_one_uuid_compare_equal() -> None:
    assert check_uuid("AAAAAAAAAAAAAAAAAAAAAR") == "AAAAAAAAAAAAAAAAAAAAAQ"


@each_row("text", ["", "AAAAAAAAAAAAAAAAAAAAAQ==", "AAAAAAAAAAAAAAAAAAAAA", "AAAAAAAAAA+AAAAAAAAAAQ", "AAAAAAAAAAAAAAAAAAAAA\u00e9"])
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(FormatError, match="is not a UUID"):
        check_uuid(text)
