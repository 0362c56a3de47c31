"""Reads the records of an entry of a `.log`, whether a batch of magic 2 or a message of magic 0 or 1 (`AbstractRecords`)."""

from collections.abc import Iterator

from streaming.errors import FormatError
from streaming.kafka.formats.layout import CURRENT_MAGIC, MAGIC_AT
from streaming.kafka.formats.legacy_messages import OldMessage, inner_messages, read_message
from streaming.kafka.formats.record_batches import read_batch, read_begun_batch
from streaming.kafka.formats.records import MAX_OPENED_BYTES, MAX_OPENED_RECORDS, MAX_TIMED_BYTES, Record, read_record_times, read_records

TIMED_ENTRY_BYTES = MAX_TIMED_BYTES + (64 << 10)
"""How much of an entry is worth reading for times: more only holds what lies beyond `MAX_TIMED_BYTES`, or what does not grow at all."""


def read_entry_records(
    data: memoryview, position: int = 0, limit: int = MAX_OPENED_BYTES, most: int = MAX_OPENED_RECORDS
) -> Iterator[Record] | None:
    """The records of the entry at `position`, opened as they are taken; None if the entry is not complete yet. The CRC is not checked.

    Raises:
        FormatError: there is no entry of any magic; or, while records are taken, they are damaged.
        TooLargeError: while records are taken: they grow beyond `limit` bytes, or are more than `most`.
    """
    if len(data) - position <= MAGIC_AT:
        return None
    if data[position + MAGIC_AT] < CURRENT_MAGIC:
        message = read_message(data, position)
        return None if message is None else (_record(one) for one in inner_messages(message, limit, most))
    batch = read_batch(data, position, check_crc=False)
    return None if batch is None else read_records(batch, limit, most)


def read_entry_times(data: memoryview, limit: int = MAX_TIMED_BYTES) -> Iterator[tuple[int, int]]:
    """Offset and timestamp of each record of an entry, of which `data` is all or the beginning (`TIMED_ENTRY_BYTES`), one by one.

    Raises:
        FormatError: it is damaged, or ends too early.
        TooLargeError: it grows beyond `limit` bytes before the record that is asked for.
    """
    if len(data) > MAGIC_AT and data[MAGIC_AT] >= CURRENT_MAGIC:
        yield from read_record_times(read_begun_batch(data), limit)
        return
    message = read_message(data)
    if message is None:
        raise FormatError("no whole message")
    yield from ((one.offset, one.timestamp) for one in inner_messages(message, limit, limit))


def _record(message: OldMessage) -> Record:
    return Record(message.offset, message.timestamp, -1, message.key, message.value, ())
