"""The identity of a log dir."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.errors import FormatError
from streaming.kafka.formats.properties import MetaProperties, parse_meta_properties, parse_properties
from tests.tables import each_row

KRAFT = b"""#
#Fri Nov 20 00:12:09 UTC 2026
cluster.id=6UobWwV1TKKjK5dyV_yv9A
directory.id=LUY5vA9fymPrFwKhMwSRCw
node.id=1
version=1
"""


def test_a_kraft_nodes_identity() -> None:
    assert parse_meta_properties(KRAFT) == MetaProperties("6UobWwV1TKKjK5dyV_yv9A", 1, "LUY5vA9fymPrFwKhMwSRCw")


def test_before_kafka_3_7_a_log_dir_has_no_directory_id() -> None:
    data = b"version=1\ncluster.id=c\nnode.id=7\n"
    assert parse_meta_properties(data) == MetaProperties("c", 7, None)


@pytest.mark.parametrize("version", [b"version=0\n", b""])
def test_a_zookeeper_broker_calls_its_number_broker_id(version: bytes) -> None:
    assert parse_meta_properties(version + b"broker.id=12\ncluster.id=c\n") == MetaProperties("c", 12, None)
    assert parse_meta_properties(version + b"broker.id=12\n") == MetaProperties("", 12, None), "before Kafka 2.4"


@each_row(
    ("data", "named"),
    [
        (b"", "broker.id is missing"),
        (b"version=1\ncluster.id=c\nbroker.id=1\n", "node.id is missing"),
        (b"version=1\nnode.id=1\n", "cluster.id is missing"),
        (
            b"version=2\nnode.id=1\n",
            "version '2' is not known, so neither is its node and its cluster: .* reads 0 and 1",
        ),
        (b"version=1\nnode.id=-1\ncluster.id=c\n", "node.id '-1'"),
        (b"version=1\nnode.id=2147483648\ncluster.id=c\n", "node.id '2147483648'"),
        (b"version=1\nnode.id=one\ncluster.id=c\n", "node.id 'one'"),
    ],
)
def test_what_is_missing_or_wrong_is_named(data: bytes, named: str) -> None:
    with pytest.raises(FormatError, match=named):
        parse_meta_properties(data)


@each_row(
    ("text", "pairs"),
    [
        ("a=b", [("a", "b")]),
        ("  a : b ", [("a", "b ")]),
        ("a b c", [("a", "b c")]),
        ("a", [("a", "")]),
        ("a==b", [("a", "=b")]),
        ("a = = b", [("a", "= b")]),
        (r"a\=b\ c=d", [("a=b c", "d")]),
        (r"a=C\:\\logs", [("a", "C:\\logs")]),
        (r"a=\u00e9\t\q", [("a", "\u00e9\tq")]),
        ("a=b\\\n   c\nd=e", [("a", "bc"), ("d", "e")]),
        ("a=b\\\\\nd=e", [("a", "b\\"), ("d", "e")]),
        ("a=b\\\n#c", [("a", "b#c")]),
        ("# a=b\n! c=d\n\n \t\n e=f\r\ng=h\ri=j", [("e", "f"), ("g", "h"), ("i", "j")]),
        ("a=b\\", [("a", "b")]),
    ],
)
def test_java_properties_are_read_as_java_reads_them(text: str, pairs: list[tuple[str, str]]) -> None:
    assert parse_properties(text.encode("latin-1")) == tuple(pairs)


def test_a_malformed_unicode_escape_is_refused() -> None:
    with pytest.raises(FormatError, match="malformed"):
        parse_properties(rb"a=\u12g4")


def _stored(text: str) -> str:
    """`text` as `java.util.Properties.store` escapes a key."""
    plain = "".join(c for c in text if c.isascii() and c.isalnum())
    return "".join(c if c in plain else f"\\u{ord(c):04x}" for c in text)


@given(st.lists(st.tuples(st.text(st.characters(max_codepoint=0xFFFF, exclude_categories=["Cs"]), min_size=1), st.text("aZ0 =:#!\\\n\t"))))
def test_escaped_pairs_read_back(pairs: list[tuple[str, str]]) -> None:
    text = "".join(f"{_stored(key)}={_stored(value)}\n" for key, value in pairs)
    assert parse_properties(text.encode("latin-1")) == tuple(pairs)


@given(st.binary())
@pytest.mark.parametrize("parse", [parse_properties, parse_meta_properties])
def test_garbage_is_refused_and_nothing_else(parse, data: bytes) -> None:
    with suppress(FormatError):
        parse(data)
