"""The headers of batches as a table, one row for each batch, with the terms of Kafka's own dump tool."""

import numpy as np
from numpy.typing import NDArray

from streaming.broker.excerpts.segment_walk import Window
from streaming.common.codecs import CODECS
from streaming.kafka.formats.layout import CURRENT_MAGIC, DELETE_HORIZON_BIT, TIMESTAMP_TYPE_BIT, TRANSACTIONAL_BIT
from streaming.kafka.scan.crc_check import stored_crcs
from streaming.kafka.scan.headers import Batches
from streaming.terminal.dump.row_table import Choices, Column, Flags, Numbers, RowTable

TIMESTAMP_TYPES = ("CreateTime", "LogAppendTime", "NoTimestampType")
_NO_TIMESTAMP_TYPE = 2
_CODEC_NAMES = (*CODECS, "5", "6", "7")  # 5 to 7 are in damaged headers
_MOST_SEQUENCE = 0x7FFFFFFF
_OLD_ATTRIBUTES_SHIFT = 24  # an old message has its attributes in the byte where the CRC of magic 2 begins


def batch_table(path: str, window: Window, batches: Batches, valid: NDArray[np.bool_] | None) -> RowTable:
    """The table of some batches of a window.

    Args:
        valid: whether each batch has the CRC of its header; None if that was not checked.
    """
    headers = batches.headers
    producer_ids = producer_column(batches, "producer_id")
    base_sequence = producer_column(batches, "base_sequence")
    columns: tuple[Column, ...] = (
        Numbers("position", batches.positions + window.position),
        Numbers("base_offset", batches.base_offset),
        Numbers("last_offset", batches.last_offset),
        Numbers("count", batches.records.astype(np.int32)),
        Numbers("base_sequence", base_sequence),
        Numbers("last_sequence", _last_sequence(base_sequence, headers["last_offset_delta"])),
        Numbers("producer_id", producer_ids),
        Numbers("producer_epoch", producer_column(batches, "producer_epoch")),
        Numbers("leader_epoch", batches.leader_epoch.astype(np.int32)),
        Flags("transactional", transactional(batches)),
        Flags("control", batches.control),
        Numbers("delete_horizon", _delete_horizon(batches), nullable=True),
        Choices("timestamp_type", _timestamp_types(batches), TIMESTAMP_TYPES),
        Numbers("max_timestamp", batches.max_timestamp),
        Numbers("size", batches.size.astype(np.int32)),
        Numbers("magic", batches.magic),
        Choices("codec", batches.codec.astype(np.int8), _CODEC_NAMES),
        Numbers("crc", stored_crcs(batches)),
    )
    if valid is not None:
        columns += (Flags("valid", valid),)
    return RowTable("batch", path, len(batches), columns)


def producer_column(batches: Batches, name: str) -> NDArray[np.integer]:
    """A field of the header that only magic 2 has, -1 in older messages."""
    values: NDArray[np.integer] = batches.headers[name].astype(batches.headers[name].dtype.newbyteorder("="))
    old = batches.magic < CURRENT_MAGIC
    if old.any():
        values[old] = -1
    return values


def transactional(batches: Batches) -> NDArray[np.bool_]:
    """Whether each batch belongs to a transaction, including markers."""
    flags: NDArray[np.bool_] = (batches.attributes & TRANSACTIONAL_BIT) != 0
    return flags


def _last_sequence(base: NDArray[np.integer], deltas: NDArray[np.integer]) -> NDArray[np.integer]:
    last: NDArray[np.integer] = base + deltas.astype(np.int32)  # after 2^31 - 1 they continue at 0, which the mask makes of the overflow
    last &= _MOST_SEQUENCE
    last[base < 0] = -1
    return last


def _delete_horizon(batches: Batches) -> NDArray[np.int64]:
    has = (batches.attributes & DELETE_HORIZON_BIT) != 0
    if not has.any():
        return np.full(len(batches), -1, np.int64)
    return np.where(has, batches.headers["base_timestamp"].astype(np.int64), -1)


def _timestamp_types(batches: Batches) -> NDArray[np.int8]:
    attributes = batches.attributes
    old = batches.magic < CURRENT_MAGIC
    if old.any():  # for an old message, only the codec is kept
        attributes = np.where(old, (batches.headers["crc"] >> _OLD_ATTRIBUTES_SHIFT).astype(np.int16), attributes)
    types: NDArray[np.int8] = ((attributes & TIMESTAMP_TYPE_BIT) != 0).astype(np.int8)
    types[batches.magic == 0] = _NO_TIMESTAMP_TYPE
    return types
