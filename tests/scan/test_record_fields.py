"""Many batches opened at once, against the same opened record by record: whatever they hold, and whatever is damaged."""

from collections.abc import Sequence
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.errors import FormatError
from streaming.kafka.formats.records import Header, Record, read_batch, read_records
from streaming.kafka.scan import record_fields
from streaming.kafka.scan.record_fields import MOST_HEADERS, PADDING, RecordFields, Spans, read_fields, take_records, walk_records
from streaming.simulator import batch_writer as written

HEADER = 61
BYTES = st.none() | st.binary(max_size=80) | st.sampled_from([63, 64, 8191, 8192, 20_000]).map(bytes)
RECORDS = st.lists(
    st.builds(
        written.Record,
        key=BYTES,
        value=BYTES,
        timestamp=st.integers(0, 2**40),
        headers=st.lists(st.tuples(st.text(max_size=5), st.none() | st.binary(max_size=5)), max_size=3).map(tuple),
    ),
    max_size=12,
)


def opened(sections: Sequence[tuple[bytes, int]], few: int = 0) -> tuple[bytes, RecordFields]:
    """The fields of sections with so many records each, walked side by side while there are more than a ``few``."""
    data = b"".join(section for section, _ in sections) + bytes(PADDING)
    ends = np.cumsum([len(section) for section, _ in sections], dtype=np.int64)
    starts = np.concatenate([[0], ends[:-1]]).astype(np.int64)
    counts = np.array([count for _, count in sections], np.int64)
    buffer = np.frombuffer(data, np.uint8)
    with patch.object(record_fields, "FEW_SECTIONS", few):
        return data, read_fields(buffer, walk_records(buffer, starts, ends, counts), headers=True)


def records_of(data: bytes, fields: RecordFields, item: int) -> list[Record]:
    """Those of one section, with its base offset and base timestamp as 0."""
    own = take_records(fields, fields.section == item)
    assert own.headers is not None
    names, contents = iter(spans(data, own.headers.names)), iter(spans(data, own.headers.contents))
    headers = [tuple(Header(next(names) or b"", next(contents)) for _ in range(count)) for count in own.headers.counts.tolist()]
    numbers = zip(own.offset_deltas.tolist(), own.timestamp_deltas.tolist(), strict=True)
    rows = zip(numbers, spans(data, own.keys), spans(data, own.values), headers, strict=True)
    return [Record(offset, time, -1, key, value, header) for (offset, time), key, value, header in rows]


def spans(data: bytes, of: Spans) -> list[bytes | None]:
    pairs = zip(of.starts.tolist(), of.sizes.tolist(), strict=True)
    return [None if size < 0 else data[start : start + size] for start, size in pairs]


def singly(section: bytes, count: int) -> list[Record] | None:
    """The same opened record by record; None if that is refused."""
    head = bytearray(written.encode(written.Batch(records=(written.Record(),)), 0)[:HEADER])
    head[8:12] = (HEADER - 12 + len(section)).to_bytes(4, "big")
    head[27:35] = bytes(8)
    head[57:61] = count.to_bytes(4, "big")
    batch = read_batch(memoryview(bytes(head) + section), check_crc=False)
    assert batch is not None
    try:
        return list(read_records(batch))
    except FormatError:
        return None


@given(sections=st.lists(RECORDS, min_size=1, max_size=6), few=st.sampled_from([0, 2, 100]))
def test_all_fields_of_all_records(sections: list[list[written.Record]], few: int) -> None:
    encoded = [(written.encode_records(records, 0), len(records)) for records in sections]
    data, fields = opened(encoded, few)
    assert fields.sound.all()
    for item, (section, count) in enumerate(encoded):
        assert records_of(data, fields, item) == singly(section, count)


@given(
    sections=st.lists(RECORDS, min_size=1, max_size=4),
    few=st.sampled_from([0, 100]),
    damage=st.lists(st.tuples(st.integers(0, 2**16), st.integers(0, 255)), max_size=3),
    more=st.integers(-1, 1),
)
def test_what_seems_sound_is_what_is_read_record_by_record(
    sections: list[list[written.Record]], few: int, damage: list[tuple[int, int]], more: int
) -> None:
    encoded = [(written.encode_records(records, 0), len(records)) for records in sections]
    broken, count = bytearray(encoded[0][0]), max(0, encoded[0][1] + more)
    for position, byte in damage:
        if broken:
            broken[position % len(broken)] = byte
    encoded[0] = bytes(broken), count
    data, fields = opened(encoded, few)
    assert fields.sound[1:].all(), "the others are not harmed"
    for item in range(1, len(encoded)):
        assert records_of(data, fields, item) == singly(*encoded[item])
    expected = singly(bytes(broken), count)
    if fields.sound[0]:
        assert records_of(data, fields, 0) == expected
    else:
        assert not count or expected is None or any(record.offset < 0 or len(record.headers) > MOST_HEADERS for record in expected)


@pytest.mark.parametrize("few", [0, 100])
def test_a_count_that_cannot_be_costs_nothing(few: int) -> None:
    _, fields = opened([(b"\x00" * 20, 2**31 - 1), (b"", 0), (b"\x00", 0)], few)
    assert fields.sound.tolist() == [False, True, False]
    assert not len(fields.section)
