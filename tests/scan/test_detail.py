"""The batches of a range one by one, packed."""

from contextlib import suppress

import numpy as np
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from streaming.errors import FormatError
from streaming.kafka.scan.headers import read_headers
from streaming.kafka.scan.sums import first_offset_above, pack, sum_ranges, sums_from
from tests.builders import NOW, batch
from tests.formats.dumped import columns, read
from tests.formats.segments import Content, contents, written
from tests.tables import each_row

whole = np.zeros(1, np.intp)


@given(contents, st.data())
def test_cut_at_any_offset_it_gives_the_sums_of_the_batches_from_there_on(content: Content, draw: st.DataObject) -> None:
    batches = read_headers(content.buffer, np.array(content.positions, np.int64))
    first = content.entries[0].base_offset if content.entries else 0
    offset = draw.draw(st.integers(max(0, first - 2), content.next_offset + 2))
    rest = batches.take(batches.base_offset >= offset)
    assert sums_from(pack(batches), offset) == (sum_ranges(rest, whole)[0] if len(rest) else None)


def test_old_wrappers_are_cut_by_the_offsets_inside_them() -> None:
    batches = columns(read("old_formats/magic1to2-0/00000000000000000000.log"))
    for place, offset in enumerate(batches.base_offset.tolist()):
        assert sums_from(pack(batches), offset) == sum_ranges(batches.take(slice(place, None)), whole)[0]


@given(contents, st.integers(-1, 10))
def test_where_a_later_leader_epoch_begins(content: Content, epoch: int) -> None:
    later = [entry.base_offset for entry, own in zip(content.entries, content.epochs, strict=True) if own > epoch]
    batches = read_headers(content.buffer, np.array(content.positions, np.int64))
    assert first_offset_above(pack(batches), epoch) == (later[0] if later else None)


DETAIL = pack(columns(written([batch(1), batch(1)]).data))


@each_row("damaged", [b"", b"\x02" + DETAIL[1:], DETAIL[:-1], DETAIL[:3], b"\x01" + zstandard.compress(b"short")])
def test_another_version_or_a_damaged_one_is_refused(damaged: bytes) -> None:
    with pytest.raises(FormatError, match="packed batches"):
        sums_from(damaged, 0)
    with pytest.raises(FormatError, match="packed batches"):
        first_offset_above(damaged, 0)


@given(st.binary(max_size=200))
def test_garbage_is_refused_and_nothing_else(data: bytes) -> None:
    with suppress(FormatError):
        sums_from(b"\x01" + data, 0)


def test_a_batch_takes_a_few_bytes() -> None:
    packed = pack(columns(written([batch(1, value_bytes=size % 7, timestamp=NOW + size) for size in range(1000)]).data))
    assert len(packed) < 4000
