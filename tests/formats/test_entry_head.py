"""One head at a time gives what many at once give, and what Kafka's own tool printed of the same files."""

import pytest

from streaming.errors import FormatError
from streaming.kafka.formats.layout import (
    CURRENT_MAGIC,
    HEADER_BYTES,
    has_right_crc,
    read_base_offset,
    read_entry_head,
    read_leader_epoch,
    read_length,
    read_size,
)
from tests.formats.dumped import columns, files, read
from tests.formats.vectors import DATA_BATCH
from tests.tables import each_row


@each_row("name", files(".log"))
def test_one_head_is_read_as_the_columns_of_all_are(name: str) -> None:
    data, batches = read(name), columns(read(name))
    for item, position in enumerate(batches.positions.tolist()):
        head, size = data[position : position + HEADER_BYTES], int(batches.size[item])
        entry = read_entry_head(head)
        assert entry is not None
        assert (entry.size, read_size(head), read_length(head)) == (size, size, size - 12)
        assert read_base_offset(head) == int.from_bytes(data[position : position + 8], "big")
        assert has_right_crc(memoryview(data)[position : position + size])
        assert entry.max_timestamp == batches.max_timestamp[item]
        if batches.magic[item] == CURRENT_MAGIC:
            assert entry.last_offset == batches.last_offset[item]
            assert read_base_offset(head) == batches.base_offset[item]
            assert read_leader_epoch(head) == batches.leader_epoch[item]
        else:
            assert read_leader_epoch(head) == -1


def test_a_changed_byte_behind_the_head_makes_the_crc_wrong() -> None:
    assert has_right_crc(memoryview(DATA_BATCH))
    assert not has_right_crc(memoryview(DATA_BATCH[:-1] + bytes([DATA_BATCH[-1] ^ 1])))


def test_the_head_of_a_file_s_end_is_no_entry() -> None:
    assert read_entry_head(b"") is None
    assert read_entry_head(DATA_BATCH[:17]) is None
    assert read_entry_head(DATA_BATCH[: HEADER_BYTES - 1]) is None
    assert read_entry_head(bytes(HEADER_BYTES)) is None
    assert read_leader_epoch(DATA_BATCH[: HEADER_BYTES - 1]) == -1


def test_a_length_or_magic_that_kafka_cannot_have_written_is_an_error() -> None:
    with pytest.raises(FormatError, match="bad batch length 1"):
        read_entry_head(DATA_BATCH[:8] + (1).to_bytes(4, "big") + DATA_BATCH[12:])
    with pytest.raises(FormatError, match="bad magic 3"):
        read_entry_head(DATA_BATCH[:16] + b"\3" + DATA_BATCH[17:])
