"""Unpacking to a bound."""

import zlib
from base64 import b64encode

import pytest

from streaming.broker.protocol.cluster_messages import PartitionCounts
from streaming.common.arrow_streams import inflate
from streaming.common.catalog import Version, unpack
from streaming.errors import AgentError, FormatError
from tests.tables import each_row


@each_row("size", [0, 1, 999, 1000])
def test_what_was_packed_comes_back(size: int) -> None:
    assert inflate(zlib.compress(bytes(size)), 1000) == bytes(size)


@each_row(
    ("packed", "what"),
    [
        (zlib.compress(bytes(1001)), "more than 1000 bytes"),
        (zlib.compress(bytes(1 << 24)), "more than 1000 bytes"),
        (zlib.compress(b"text")[:-1], "cut short"),
        (b"", "cut short"),
        (b"no stream", "incorrect header"),
    ],
)
def test_more_or_something_else_is_refused(packed: bytes, what: str) -> None:
    with pytest.raises(ValueError, match=what):
        inflate(packed, 1000)


def test_an_agent_cannot_make_a_job_unpack_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streaming.common.catalog.MOST_CATALOG_BYTES", 1000)
    monkeypatch.setattr("streaming.broker.protocol.cluster_messages.MOST_COUNTS_BYTES", 1000)
    bomb = b64encode(zlib.compress(bytes(1 << 20))).decode()
    with pytest.raises(FormatError, match="more than 1000 bytes"):
        unpack(bomb, Version("p", 1), whole=True)
    with pytest.raises(AgentError, match="more than 1000 bytes"):
        PartitionCounts.unpack(bomb)
