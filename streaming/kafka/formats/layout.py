"""The fixed layout of the head of every entry of a ``.log``.

Record batch, magic 2 (`DefaultRecordBatch`), 61 bytes, big-endian::

    0 base_offset i64 | 8 batch_length i32 (bytes after it) | 12 partition_leader_epoch i32 | 16 magic i8 | 17 crc u32 (CRC-32C of 21..end)
    21 attributes i16 | 23 last_offset_delta i32 | 27 base_timestamp i64 | 35 max_timestamp i64 | 43 producer_id i64
    51 producer_epoch i16 | 53 base_sequence i32 | 57 records_count i32

Message, magic 0 and 1 (`LegacyRecord`): offset, size, crc, magic at the same position 16, attributes i8 at 17, timestamp i64 at 18 (magic 1
only). The offset and the length are at the same position in all three, so one walk serves them.
"""

import numpy as np

LENGTH_AT = 8
MAGIC_AT = 16
PREFIX_BYTES = 12  # base_offset and batch_length, which batch_length does not count
HEADER_BYTES = 61
MIN_LENGTH = 14  # batch_length of the smallest thing Kafka ever wrote: an empty message of magic 0
MIN_BATCH_BYTES = HEADER_BYTES
CURRENT_MAGIC = 2

GIT_LFS_POINTER = b"version http"  # the first 12 bytes of what a checkout without Git LFS has in place of a file
NOT_FETCHED = "a pointer of Git LFS, not the file: `git lfs pull` fetches that"

CODEC_MASK = 0x07
TIMESTAMP_TYPE_BIT = 0x08
TRANSACTIONAL_BIT = 0x10
CONTROL_BIT = 0x20
DELETE_HORIZON_BIT = 0x40

HEADER = np.dtype(
    {
        "names": [
            "base_offset",
            "batch_length",
            "partition_leader_epoch",
            "magic",
            "crc",
            "attributes",
            "last_offset_delta",
            "base_timestamp",
            "max_timestamp",
            "producer_id",
            "producer_epoch",
            "base_sequence",
            "records_count",
        ],
        "formats": [">i8", ">i4", ">i4", "i1", ">u4", ">i2", ">i4", ">i8", ">i8", ">i8", ">i2", ">i4", ">i4"],
        "offsets": [0, 8, 12, 16, 17, 21, 23, 27, 35, 43, 51, 53, 57],
        "itemsize": HEADER_BYTES,
    }
)
"""A batch header of magic 2 as a numpy record of exactly 61 bytes."""

OPAQUE_HEADER = np.dtype(f"V{HEADER_BYTES}")
"""The same bytes without fields: numpy copies such items at once, several times faster than field by field."""
