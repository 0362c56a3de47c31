"""The records of batches as tables, one row for each record. Batches are opened record by record, so that memory holds few rows."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import is_dataclass
from typing import cast

import numpy as np

from streaming.broker.disk.kafka_files import FileType, KafkaFile
from streaming.broker.disk.segment_walk import FormatFlaw, Report, Window
from streaming.errors import FormatError
from streaming.kafka.formats.consumer_offsets import read_key_type, read_offsets_key, read_offsets_value
from streaming.kafka.formats.control import ControlType, read_control, read_control_type
from streaming.kafka.formats.coordinator_states import (
    ShareKeyType,
    read_share_key,
    read_share_value,
    read_transaction_key,
    read_transaction_value,
)
from streaming.kafka.formats.entries import read_entry_records
from streaming.kafka.formats.metadata_records import MetadataKind, read_metadata_frame, read_metadata_record
from streaming.kafka.formats.names import METADATA_TOPIC, OFFSETS_TOPIC, SHARE_STATE_TOPIC, TRANSACTION_TOPIC
from streaming.kafka.formats.records import MAX_RECORDS_BYTES, Header, Record
from streaming.kafka.formats.stored_groups import KeyType
from streaming.kafka.scan.headers import Batches
from streaming.terminal.dump.request import Filters, Payload
from streaming.terminal.dump.row_table import Cell, Cells, Column, Numbers, RowTable, plain

Decoded = tuple[Cell, Cell]
"""A key and a value."""

Decoder = Callable[[Record], Decoded]
"""Raises FormatError if a record does not have the format of its topic."""

_ROWS = 4096
_NONE = -1


class RecordTables:
    """Makes the tables of one file's records.

    ``raw``: keys and values are the bytes in the log, if neither the topic nor ``payload`` defines how to show them.
    """

    def __init__(self, file: KafkaFile, payload: Payload, filters: Filters, report: Report, *, raw: bool) -> None:
        self._file = file
        self._filters = filters
        self._report = report
        topic = (
            METADATA_TOPIC if file.type is FileType.METADATA_SNAPSHOT else file.topic
        )  # bootstrap.checkpoint is in no partition's directory
        self._decode = decoder_for(topic, payload)
        self._raw = raw and payload is Payload.NATURAL and topic != METADATA_TOPIC and topic not in _BY_TOPIC
        self._payload = payload
        self._show_header: Callable[[bytes], Cell] | None = bytes if self._raw else bytes.hex if payload is Payload.HEX else text
        if payload is Payload.NONE:
            self._show_header = None

    def tables(self, window: Window, batches: Batches) -> Iterator[RowTable]:
        """The records of some batches of a window. The rest of a batch that cannot be opened is reported and skipped."""
        view = window.buffer.data
        rows: list[tuple[Record, str | None, Decoded]] = []
        control = batches.control.tolist()
        for item, position in enumerate(batches.positions.tolist()):
            at = window.position + position
            entry = view[position : position + int(batches.size[item])]
            try:
                for record in read_entry_records(entry, limit=MAX_RECORDS_BYTES, most=MAX_RECORDS_BYTES) or ():
                    if self._filters.wants(record):
                        rows.append(self._row(record, control[item], at))
                    if len(rows) >= _ROWS:
                        yield self._table(rows)
                        rows = []
            except FormatError as error:
                self._found(at, str(error))
        if rows:
            yield self._table(rows)

    def _row(self, record: Record, control: bool, position: int) -> tuple[Record, str | None, Decoded]:
        try:
            if control:
                return record, control_type(record), (None, None if self._payload is Payload.NONE else plain(read_control(record)))
            return record, None, (record.key, record.value) if self._raw else self._decode(record)
        except FormatError as error:
            self._found(position, f"record at offset {record.offset}: {error}")
            return record, None, (_hex(record.key), _hex(record.value))

    def _found(self, position: int, what: str) -> None:
        self._report(FormatFlaw(self._file.path, position, f"expected records as Kafka writes them: {what}"))

    def _table(self, rows: Sequence[tuple[Record, str | None, Decoded]]) -> RowTable:
        numbers = np.array([(row[0].offset, row[0].timestamp, row[0].sequence, _size(row[0].key), _size(row[0].value)) for row in rows])
        named = (Numbers(name, numbers[:, at]) for at, name in enumerate(("offset", "timestamp", "sequence", "key_size", "value_size")))
        columns: list[Column] = [*named, Cells("control", [control for _, control, _ in rows])]
        if self._payload is not Payload.NONE:
            columns += [
                Cells("key", [decoded[0] for _, _, decoded in rows], raw=True),
                Cells("value", [decoded[1] for _, _, decoded in rows], raw=True),
            ]
        headers = [[_header(header, self._show_header) for header in record.headers] for record, _, _ in rows]
        return RowTable("record", str(self._file.path), len(rows), (*columns, Cells("headers", headers)))


def decoder_for(topic: str, payload: Payload) -> Decoder:
    """How the records of a topic are shown. The metadata log may contain secrets, so its raw bytes are never shown.

    Shows keys and values of records for people: text, JSON, hex, or the content of a coordinator's record.
    """
    if payload is Payload.NONE:
        return lambda _record: (None, None)
    if topic == METADATA_TOPIC:
        return _metadata
    if payload is Payload.NATURAL and topic in _BY_TOPIC:
        return _BY_TOPIC[topic]
    show = _SHOWN[payload]
    return lambda record: (_nullable(record.key, show), _nullable(record.value, show))


def _metadata(record: Record) -> Decoded:
    if record.value is None:
        return _nullable(record.key, text), None
    frame = read_metadata_frame(record.value)
    kind = MetadataKind(frame.kind).name if frame.kind in set(MetadataKind) else str(frame.kind)
    parsed = read_metadata_record(record.value)
    values = plain(parsed) if is_dataclass(parsed) else {}
    return _nullable(record.key, text), {"type": kind, "version": frame.version, **cast(dict[str, Cell], values)}


def _nullable(data: bytes | None, show: Callable[[bytes], Cell]) -> Cell:
    return None if data is None else show(data)


def text(data: bytes) -> str:
    """Decode UTF-8; other bytes become ``\\xNN``."""
    return data.decode("utf-8", "backslashreplace")


def _transaction(record: Record) -> Decoded:
    transactional_id = read_transaction_key(record.key or b"")
    if transactional_id is None:
        return _nullable(record.key, bytes.hex), _nullable(record.value, bytes.hex)
    value = None if record.value is None else plain(read_transaction_value(record.value))
    return {"transactional_id": transactional_id}, value


def _offsets(record: Record) -> Decoded:
    key = read_offsets_key(record.key or b"")
    number = read_key_type(record.key or b"")
    kind = KeyType(number).name if number in set(KeyType) else str(number)
    value = None if record.value is None else plain(read_offsets_value(key, record.value))
    values = cast(dict[str, Cell], plain(key))
    values.pop("key_type", None)
    return {"type": kind, **values}, value


def _share_state(record: Record) -> Decoded:
    key = read_share_key(record.key or b"")
    if key is None:
        return _nullable(record.key, bytes.hex), _nullable(record.value, bytes.hex)
    value = None if record.value is None else plain(read_share_value(key, record.value))
    values = cast(dict[str, Cell], plain(key))
    values.pop("key_type", None)
    return {"type": ShareKeyType(key.key_type).name, **values}, value


_BY_TOPIC: dict[str, Decoder] = {TRANSACTION_TOPIC: _transaction, OFFSETS_TOPIC: _offsets, SHARE_STATE_TOPIC: _share_state}


def _json(data: bytes) -> Cell:
    try:
        return cast(Cell, json.loads(data))
    except (ValueError, RecursionError):  # not JSON: shown as text
        return text(data)


_SHOWN: dict[Payload, Callable[[bytes], Cell]] = {
    Payload.NATURAL: text,
    Payload.TEXT: text,
    Payload.JSON: _json,
    Payload.HEX: bytes.hex,
}


def control_type(record: Record) -> str:
    """The name of a control record's type. Raises FormatError."""
    number = read_control_type(record.key or b"")
    return ControlType(number).name if number in set(ControlType) else str(number)


def _hex(data: bytes | None) -> str | None:
    return None if data is None else data.hex()


def _size(data: bytes | None) -> int:
    return _NONE if data is None else len(data)


def _header(header: Header, show: Callable[[bytes], Cell] | None) -> dict[str, Cell]:
    if show is None:
        return {"key": text(header.name)}
    return {"key": text(header.name), "value": None if header.value is None else show(header.value)}
