"""Pieces that are packed one by one are one gzip member, whoever unpacks it."""

import gzip
import zlib
from random import Random

from hypothesis import example, given
from hypothesis import strategies as st

from streaming.pages.exposition.kept_lines import crc_of, join, pack

SIZES = st.one_of(st.integers(0, 300), st.integers(60_000, 70_000), st.just(3_000_000))


@given(texts=st.lists(st.binary(max_size=200), max_size=6))
@example(texts=[])
@example(texts=[b"", b"a", b""])
def test_what_is_unpacked_is_all_texts_in_their_order(texts: list[bytes]) -> None:
    assert gzip.decompress(join([pack(text) for text in texts])) == b"".join(texts)


@given(sizes=st.lists(SIZES, max_size=5), order=st.randoms(use_true_random=False))
def test_pieces_follow_each_other_in_any_order(sizes: list[int], order: Random) -> None:
    texts = [bytes(range(1, 252)) * (size // 251) + b"\0" * (size % 251) for size in sizes]
    pairs = [(text, pack(text)) for text in texts] * 2
    order.shuffle(pairs)
    whole = b"".join(text for text, _ in pairs)
    pieces = [piece for _, piece in pairs]
    assert crc_of(pieces) == zlib.crc32(whole)
    assert gzip.decompress(join(pieces)) == whole


def test_the_member_is_one_and_nothing_follows_it() -> None:
    texts = [b"# HELP a A.\n", b'a{b="1"} 2\n' * 5000, b"", b'a{b="2"} 3\n']
    reader = zlib.decompressobj(wbits=31)
    assert reader.decompress(join([pack(text) for text in texts])) == b"".join(texts)
    assert (reader.eof, reader.unused_data) == (True, b"")
