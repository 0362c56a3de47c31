"""Real logs beside what Kafka's own dump tool printed of them, and that tool's lines made from our values."""

from pathlib import Path

import numpy as np

from streaming.common.rows import CODECS
from streaming.kafka.formats.control import EndTxnMarker, read_control
from streaming.kafka.formats.entries import OldMessage
from streaming.kafka.formats.layout import TRANSACTIONAL_BIT
from streaming.kafka.formats.producer_snapshot import ProducerState
from streaming.kafka.formats.records import Record, RecordBatch
from streaming.kafka.scan.headers import Batches, read_headers
from streaming.kafka.scan.walk import walk

LOGS = Path(__file__).parents[1] / "data" / "logs"


def files(suffix: str) -> list[str]:
    """Names below `LOGS` of all files of a kind."""
    return sorted(str(path.relative_to(LOGS)) for path in LOGS.glob(f"*/*/*{suffix}"))


def read(name: str) -> bytes:
    return (LOGS / name).read_bytes()


def reported(name: str) -> list[str]:
    """The lines that Kafka printed about a file."""
    return (LOGS / f"{name}.txt").read_text().splitlines()


def columns(data: bytes) -> Batches:
    """The headers of a segment."""
    buffer = np.frombuffer(data, np.uint8)
    return read_headers(buffer, walk(buffer, 0, len(buffer), None).positions)


def segment_of(name: str) -> Batches:
    """The headers of the segment that an index belongs to."""
    return columns(read(name.rsplit(".", 1)[0] + ".log"))


def base_offset_of(name: str) -> int:
    return int(Path(name).stem)


def batch_line(batch: RecordBatch, position: int, valid: bool) -> str:
    return (
        f"baseOffset: {batch.base_offset} lastOffset: {batch.last_offset} count: {batch.records_count} baseSequence: {batch.base_sequence} "
        f"lastSequence: {batch.last_sequence} producerId: {batch.producer_id} producerEpoch: {batch.producer_epoch} "
        f"partitionLeaderEpoch: {batch.partition_leader_epoch} isTransactional: {_bool(bool(batch.attributes & TRANSACTIONAL_BIT))} "
        f"isControl: {_bool(batch.is_control)} deleteHorizonMs: {_optional(batch.delete_horizon)} position: {position} "
        f"{_time_type(batch)}: {batch.max_timestamp} size: {batch.size} magic: 2 compresscodec: {CODECS[batch.codec]} crc: {batch.crc} "
        f"isvalid: {_bool(valid)}"
    )


def record_line(batch: RecordBatch, record: Record) -> str:
    """Without what a decoder adds."""
    line = (
        f"| offset: {record.offset} {_time_type(batch)}: {record.timestamp} keySize: {_size(record.key)} valueSize: {_size(record.value)} "
        f"sequence: {record.sequence} headerKeys: [{','.join(header.name.decode() for header in record.headers)}]"
    )
    if batch.is_control:
        marker = read_control(record)
        assert isinstance(marker, EndTxnMarker)
        line += f" endTxnMarker: {'COMMIT' if marker.committed else 'ABORT'} coordinatorEpoch: {marker.coordinator_epoch}"
    return line


def message_line(message: OldMessage, position: int) -> str:
    return (
        f"offset: {message.offset} position: {position} {_old_time_type(message)}: {message.timestamp} size: {message.size} "
        f"magic: {message.magic} compresscodec: {CODECS[message.codec]} crc: {message.crc} isvalid: {_bool(message.is_valid)}"
    )


def inner_line(wrapper: OldMessage, message: OldMessage) -> str:
    return (
        f"| offset: {message.offset} {_old_time_type(wrapper)}: {message.timestamp} keySize: {_size(message.key)} "
        f"valueSize: {_size(message.value)} isValid: {_bool(message.is_valid)} crc: {message.crc}"
    )


def producer_line(state: ProducerState) -> str:
    first = state.current_txn_first_offset
    line = (
        f"producerId: {state.producer_id} producerEpoch: {state.producer_epoch} coordinatorEpoch: {state.coordinator_epoch} "
        f"currentTxnFirstOffset: {_optional(None if first < 0 else first)} lastTimestamp: {state.timestamp}"
    )
    if state.last_offset < 0:
        return line
    return (
        f"{line} firstSequence: {state.first_sequence} lastSequence: {state.last_sequence} lastOffset: {state.last_offset} "
        f"offsetDelta: {state.offset_delta} timestamp: {state.timestamp}"
    )


def _time_type(batch: RecordBatch) -> str:
    return "LogAppendTime" if batch.is_log_append_time else "CreateTime"


def _old_time_type(message: OldMessage) -> str:
    return "NoTimestampType" if message.magic == 0 else "LogAppendTime" if message.is_log_append_time else "CreateTime"


def _bool(value: bool) -> str:
    return str(value).lower()


def _optional(value: int | None) -> str:
    return "OptionalLong.empty" if value is None else f"OptionalLong[{value}]"


def _size(field: bytes | None) -> int:
    return -1 if field is None else len(field)
