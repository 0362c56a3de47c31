"""The files of recorded checkpoints, and what is left of them after a crash."""

import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.errors import FormatError, SegtailError
from streaming.queries import LARGEST_BYTES, SourceOffset, check_commit, parse_offsets, parse_query_id
from tests.queries.written import CHECKPOINTS
from tests.tables import each_row

ORDERS = {("orders", 0): 30, ("orders", 1): 15}
KAFKA = '{"orders":{"0":30,"1":15}}'


def offsets(lines: str, version: str = "v1") -> bytes:
    return f"{version}\n{{}}\n{lines}".encode()


@each_row(
    ("name", "expected"),
    [
        ("plain", [ORDERS]),
        ("state-v2", [ORDERS]),
        ("two-sources", [ORDERS, {("clicks.eu", 0): 21}]),
        ("offset-v2", [{("clicks.eu", 0): 21}, ORDERS]),
        ("file-and-kafka", [None, ORDERS]),
        ("rate-and-kafka", [None, {("orders", 0): 34, ("orders", 1): 15}]),
    ],
)
def test_what_spark_has_written(name: str, expected: list[dict[tuple[str, int], int] | None]) -> None:
    directory = CHECKPOINTS / name
    assert [each.offsets for each in parse_offsets((directory / "offsets" / "2").read_bytes())] == expected
    check_commit((directory / "commits" / "2").read_bytes())
    assert len(parse_query_id((directory / "metadata").read_bytes())) == 36


def test_sources_have_numbers_or_names() -> None:
    assert [each.source for each in parse_offsets(offsets(f"{KAFKA}\n-"))] == ["0", "1"]
    assert [each.source for each in parse_offsets(offsets(f"b:{KAFKA}\na:-", "v2"))] == ["b", "a"]
    assert parse_offsets(offsets("-"))[0] == parse_offsets(b"v1\n\n-")[0] == SourceOffset("0", {}, "")


NO_OFFSETS = """{"logOffset":3} | 12 | "text" | null | [1] | {"sourceVersion":1,"reservoirId":"a","index":2} | {"orders":{"0":"30"}}
{"shard-0":{"iteratorType":"TRIM_HORIZON"}} | {"orders":{"0":true}} | {"orders":{"0":1.5}} | {"orders":{"-1":3}} | {"orders":{"0":-1}}
{"orders":{"2147483648":1}} | {"orders":{"0":9223372036854775808}} | {"or ders":{"0":1}} | {"orders":{"0":1},"more":2}"""


@each_row("offset", re.split(r" \| |\n", NO_OFFSETS))
def test_what_is_no_offset_of_kafka(offset: str) -> None:
    assert [each.offsets for each in parse_offsets(offsets(offset))] == [None]


TORN = {
    parse_offsets: [
        *[b"", b"v1", b"v1\n", b"v1\n{}", b"v1\n{}\n", b'v1\n{"batch', b'v1\n{"batch\n-', b"v\n{}\n-", b"x1\n{}\n-", b"\xff\xfe"],
        *[offsets('{"orders":{"0":3'), offsets(f"{KAFKA}\n"), offsets("-", "v3"), offsets(KAFKA.replace(":", "="), "v2")],
        *[bytes(100), offsets("[" * 100_000), offsets('{"orders":{"0":' + "9" * 5000 + "}}"), b"v1\n{}\n" + b"1" * LARGEST_BYTES],
    ],
    check_commit: [b"", b"v1", b"v1\n", b'v1\n{"next', b"v4\n{}", b"v1{}"],
    parse_query_id: [b"", b"{", b"[]", b"{}", b'{"id":3}', b'{"id":""}'],
}


@each_row(("parse", "content"), [(parse, content) for parse, contents in TORN.items() for content in contents])
def test_what_is_torn_is_refused(parse: Callable[[bytes], object], content: bytes) -> None:
    with pytest.raises(FormatError):
        parse(content)


def test_every_beginning_of_a_file_is_refused_or_has_fewer_sources() -> None:
    whole = (CHECKPOINTS / "two-sources" / "offsets" / "2").read_bytes()
    for end in range(len(whole)):
        try:
            assert len(parse_offsets(whole[:end])) < 2
        except FormatError:
            continue


@given(st.binary(max_size=200) | st.text(max_size=200).map(lambda text: b"v1\n{}\n" + text.encode()))
def test_any_bytes_are_understood_or_refused(content: bytes) -> None:
    for parse in (parse_offsets, check_commit, parse_query_id):
        try:
            parse(content)
        except SegtailError:
            continue
