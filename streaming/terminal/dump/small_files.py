"""The files next to the segments as tables: checkpoints, producer snapshots, identities, and indexes without their log."""

from collections.abc import Callable, Sequence
from dataclasses import fields

import numpy as np

from streaming.broker.disk.kafka_files import FileType, KafkaFile, read_file
from streaming.errors import FormatError
from streaming.kafka.formats.checkpoint_files import (
    parse_clean_shutdown,
    parse_leader_epochs,
    parse_offset_checkpoint,
    parse_partition_metadata,
)
from streaming.kafka.formats.producer_snapshot import ProducerState, read_producer_snapshot
from streaming.kafka.formats.properties import parse_meta_properties
from streaming.kafka.formats.quorum_state import parse_quorum_state
from streaming.kafka.formats.transaction_index import ENTRY_BYTES, AbortedTransaction, read_aborted_transactions
from streaming.terminal.dump.plain import plain
from streaming.terminal.dump.row_table import Cell, Numbers, RowTable, cells

_NULLABLE = frozenset({"current_txn_first_offset"})


def small_table(file: KafkaFile) -> RowTable:
    """The table of a file that is read at once.

    Raises:
        OSError: it cannot be read.
        FormatError: it does not have the format of its name, or is not complete.
    """
    return _TABLES[file.type](str(file.path), read_file(file))


def is_small(file: KafkaFile) -> bool:
    """Whether `small_table` reads files of this type."""
    return file.type in _TABLES


def _snapshot(path: str, data: bytes) -> RowTable:
    states = read_producer_snapshot(data)
    if states is None:
        raise FormatError(f"expected a whole producer snapshot, found {len(data)} bytes of one", len(data))
    names = (*(field.name for field in fields(ProducerState)), "first_sequence")
    return _numbers("producer", path, names, [[getattr(state, name) for name in names] for state in states])


def _aborted(path: str, data: bytes) -> RowTable:
    found, used = read_aborted_transactions(data)
    names = [field.name for field in fields(AbortedTransaction)]
    if used != len(data):
        raise FormatError(f"expected entries of {ENTRY_BYTES} bytes, found one of {len(data) - used}", used)
    return _numbers("aborted_transaction", path, names, [[getattr(each, name) for name in names] for each in found])


def _leader_epochs(path: str, data: bytes) -> RowTable:
    return _numbers(
        "leader_epoch", path, ("epoch", "start_offset"), [(each.epoch, each.start_offset) for each in parse_leader_epochs(data)]
    )


def _offsets(path: str, data: bytes) -> RowTable:
    rows = [(each.topic, each.partition, each.offset) for each in parse_offset_checkpoint(data)]
    return cells("offset_checkpoint", path, ("topic", "partition", "offset"), rows)


def _partition_metadata(path: str, data: bytes) -> RowTable:
    return cells("partition_metadata", path, ("topic_id",), [(parse_partition_metadata(data),)])


def _meta_properties(path: str, data: bytes) -> RowTable:
    return _one("meta_properties", path, parse_meta_properties(data))


def _quorum_state(path: str, data: bytes) -> RowTable:
    return _one("quorum_state", path, parse_quorum_state(data))


def _lock(path: str, data: bytes) -> RowTable:
    return cells("lock", path, ("size",), [(len(data),)])


def _clean_shutdown(path: str, data: bytes) -> RowTable:
    version, epoch = parse_clean_shutdown(data)
    return cells("clean_shutdown", path, ("version", "broker_epoch"), [(version, epoch)])


def _one(kind: str, path: str, value: object) -> RowTable:
    values = plain(value)
    assert isinstance(values, dict)
    return cells(kind, path, tuple(values), [tuple(values.values())])


def _numbers(kind: str, path: str, names: Sequence[str], rows: Sequence[Sequence[Cell]]) -> RowTable:
    columns = np.array(rows, np.int64).reshape(-1, len(names)).T
    return RowTable(
        kind, path, len(rows), tuple(Numbers(name, column, name in _NULLABLE) for name, column in zip(names, columns, strict=True))
    )


_TABLES: dict[FileType, Callable[[str, bytes], RowTable]] = {
    FileType.PRODUCER_SNAPSHOT: _snapshot,
    FileType.TRANSACTION_INDEX: _aborted,
    FileType.LEADER_EPOCHS: _leader_epochs,
    FileType.OFFSET_CHECKPOINT: _offsets,
    FileType.PARTITION_METADATA: _partition_metadata,
    FileType.META_PROPERTIES: _meta_properties,
    FileType.QUORUM_STATE: _quorum_state,
    FileType.BROKER_LOCK: _lock,
    FileType.CLEAN_SHUTDOWN: _clean_shutdown,
}
