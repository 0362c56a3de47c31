"""Reads the records of an entry of a `.log`, whether a batch of magic 2 or a message of magic 0 or 1 (`AbstractRecords`)."""

from collections.abc import Iterator

from streaming.errors import FormatError
from streaming.kafka.layout import CURRENT_MAGIC, MAGIC_AT
from streaming.kafka.legacy_messages import Message, inner_messages, read_message
from streaming.kafka.record_batches import read_batch
from streaming.kafka.records import MAX_RECORDS_BYTES, Record, read_record_times, read_records


def read_entry_records(data: memoryview, position: int = 0, limit: int = MAX_RECORDS_BYTES) -> tuple[Record, ...] | None:
    """The records of the entry at `position`, decompressed to at most `limit` bytes; None if the entry is not complete yet.

    The CRC is not checked.

    Raises:
        FormatError: there is no entry of any magic, or its records are damaged or grow beyond `limit`.
    """
    if len(data) - position <= MAGIC_AT:
        return None
    if data[position + MAGIC_AT] < CURRENT_MAGIC:
        message = read_message(data, position)
        return None if message is None else tuple(_record(one) for one in inner_messages(message, limit))
    batch = read_batch(data, position, check_crc=False)
    return None if batch is None else read_records(batch, limit)


def read_entry_times(data: memoryview, limit: int = MAX_RECORDS_BYTES) -> Iterator[tuple[int, int]]:
    """Offset and timestamp of each record of the entry that `data` is, one by one. Raises FormatError, also if it is not complete."""
    if len(data) > MAGIC_AT and data[MAGIC_AT] >= CURRENT_MAGIC:
        batch = read_batch(data, check_crc=False)
        if batch is not None:
            yield from read_record_times(batch, limit)
            return
    records = read_entry_records(data, 0, limit)
    if records is None:
        raise FormatError("no whole batch")
    yield from ((record.offset, record.timestamp) for record in records)


def _record(message: Message) -> Record:
    return Record(message.offset, message.timestamp, -1, message.key, message.value, ())
