"""How far a job has counted logs, as it tells agents."""

import base64
import zlib

import pyarrow as pa
import pytest

from streaming.broker.protocol import known_ends
from streaming.broker.protocol.agent_calls import REGISTER_BYTES
from streaming.broker.protocol.known_ends import pack, unpack
from streaming.common.log_key import LogKey
from streaming.common.log_positions import KnownEnd
from streaming.errors import FormatError

ENDS = {
    LogKey(1, "orders", 0, "Zm9vYmFyYmF6cXV4MTIzNA"): KnownEnd(23, 4),
    LogKey(1, "orders", 1, "Zm9vYmFyYmF6cXV4MTIzNA"): KnownEnd(0, -1),
    LogKey(2, "Straße", 0, ""): KnownEnd((1 << 63) - 1, (1 << 31) - 1),
}


def packed(rows: pa.Table) -> str:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    return "1:" + base64.b64encode(zlib.compress(memoryview(sink.getvalue()))).decode()


def rows(**columns: list[object]) -> pa.Table:
    found: dict[str, list[object]] = {
        "broker": [1],
        "topic": ["orders"],
        "partition": [0],
        "topic_id": [""],
        "next_offset": [5],
        "epoch": [0],
    }
    found |= columns
    return pa.table([pa.array(found[each.name], each.type) for each in known_ends._SCHEMA], schema=known_ends._SCHEMA)


def test_what_is_packed_is_unpacked_and_nothing_is_no_text() -> None:
    assert unpack(pack(ENDS)) == ENDS
    assert pack({}) == ""
    assert unpack("") == {}
    assert unpack(packed(rows())) == {LogKey(1, "orders", 0, ""): KnownEnd(5, 0)}


def test_what_is_equal_is_packed_alike() -> None:
    assert pack(dict(reversed(ENDS.items()))) == pack(ENDS)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("2:" + pack(ENDS)[2:], "version '2', and this one reads 1"),
        ("nonsense", "version 'nonsense'"),
        (pack(ENDS)[:-8], "damaged"),
        (pack(ENDS)[:20] + "!" + pack(ENDS)[21:], "damaged"),
        ("1:", "damaged"),
        ("1:" + base64.b64encode(zlib.compress(b"no Arrow")).decode(), "damaged"),
        (packed(rows().select(["broker"])), "damaged"),
        (packed(rows().slice(0, 0)), "0 rows"),
        (packed(rows(next_offset=[None])), "1 rows"),
        (packed(rows(next_offset=[-1])), "negative"),
        (packed(rows(epoch=[-2])), "negative"),
        (packed(pa.concat_tables([rows(), rows(epoch=[1])])), "a log comes twice"),
    ],
)
def test_what_was_not_packed_here_is_refused(text: str, words: str) -> None:
    with pytest.raises(FormatError, match=words):
        unpack(text)


def test_a_small_message_cannot_take_much_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    bomb = "1:" + base64.b64encode(zlib.compress(bytes(1 << 20))).decode()
    monkeypatch.setattr(known_ends, "MOST_BYTES", 1 << 16)
    with pytest.raises(FormatError, match="holds more than"):
        unpack(bomb)
    monkeypatch.setattr(known_ends, "MOST_LOGS", 2)
    with pytest.raises(FormatError, match="3 rows"):
        unpack(packed(rows(**{name: 3 * values for name, values in rows().to_pydict().items()})))
    assert len(unpack(pack(ENDS))) == 2


def test_200_000_logs_are_one_request() -> None:
    ends = {
        LogKey(partition % 3, f"the-events-of-somebody-{topic:07}", partition, f"{topic * 0x9E3779B97F4A7C15 % (1 << 88):022x}"): KnownEnd(
            (topic * 20 + partition) * 0x9E3779B97F4A7C15 % (1 << 40), partition % 7
        )
        for topic in range(10_000)
        for partition in range(20)
    }
    assert len(pack(ends)) < REGISTER_BYTES / 2
