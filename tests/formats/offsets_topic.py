"""Records of a coordinator of groups, out of its segments."""

import re

from streaming.kafka.formats.consumer_offsets import OffsetsKey, OffsetsValue, read_offsets_key, read_offsets_value
from streaming.kafka.formats.entries import read_entry_records
from streaming.kafka.formats.records import Record
from streaming.kafka.scan.headers import Batches
from streaming.simulator import batch_writer

PAYLOAD = re.compile(r" key: (.*?\}\}) payload: (.*)$")


def records_of(data: bytes, headers: Batches) -> list[Record]:
    """The records of a segment that are not control records."""
    found: list[Record] = []
    for position in headers.positions[~headers.control].tolist():
        found += read_entry_records(memoryview(data), position) or ()
    return found


def read(record: Record | batch_writer.Record) -> tuple[OffsetsKey, OffsetsValue]:
    assert record.key is not None
    assert record.value is not None
    key = read_offsets_key(record.key)
    return key, read_offsets_value(key, record.value)
