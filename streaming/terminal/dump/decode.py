"""Shows keys and values of records for people: text, JSON, hex, or the content of a coordinator's record."""

import json
from collections.abc import Callable
from dataclasses import is_dataclass
from typing import cast

from streaming.kafka.formats.consumer_groups import KeyType
from streaming.kafka.formats.consumer_offsets import read_key_type, read_offsets_key, read_offsets_value
from streaming.kafka.formats.control import ControlType, read_control, read_control_type
from streaming.kafka.formats.metadata_records import MetadataKind, read_metadata_frame, read_metadata_record
from streaming.kafka.formats.names import METADATA_TOPIC, OFFSETS_TOPIC, SHARE_STATE_TOPIC, TRANSACTION_TOPIC
from streaming.kafka.formats.records import Record
from streaming.kafka.formats.share_group_state import ShareKeyType, read_share_key, read_share_value
from streaming.kafka.formats.transaction_state import read_transaction_key, read_transaction_value
from streaming.terminal.dump.plain import plain
from streaming.terminal.dump.request import Payload
from streaming.terminal.dump.row_table import Cell

Decoded = tuple[Cell, Cell]
"""A key and a value."""

Decoder = Callable[[Record], Decoded]
"""Raises FormatError if a record does not have the format of its topic."""


def decoder_for(topic: str, payload: Payload) -> Decoder:
    """How the records of a topic are shown. The metadata log may contain secrets, so its raw bytes are never shown."""
    if payload is Payload.NONE:
        return lambda _record: (None, None)
    if topic == METADATA_TOPIC:
        return _metadata
    if payload is Payload.NATURAL and topic in _BY_TOPIC:
        return _BY_TOPIC[topic]
    show = _SHOWN[payload]
    return lambda record: (_nullable(record.key, show), _nullable(record.value, show))


def is_opened(topic: str) -> bool:
    """Whether the format of a topic's records is known by its name."""
    return topic == METADATA_TOPIC or topic in _BY_TOPIC


def control_type(record: Record) -> str:
    """The name of a control record's type. Raises FormatError."""
    number = read_control_type(record.key or b"")
    return ControlType(number).name if number in set(ControlType) else str(number)


def decode_control(record: Record) -> Decoded:
    """Show a control record; its key is None, because the type shows it. Raises FormatError."""
    return None, plain(read_control(record))


def text(data: bytes) -> str:
    """Decode UTF-8; other bytes become ``\\xNN``."""
    return data.decode("utf-8", "backslashreplace")


def _nullable(data: bytes | None, show: Callable[[bytes], Cell]) -> Cell:
    return None if data is None else show(data)


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


def _metadata(record: Record) -> Decoded:
    if record.value is None:
        return _nullable(record.key, text), None
    frame = read_metadata_frame(record.value)
    kind = MetadataKind(frame.kind).name if frame.kind in set(MetadataKind) else str(frame.kind)
    parsed = read_metadata_record(record.value)
    values = plain(parsed) if is_dataclass(parsed) else {}
    return _nullable(record.key, text), {"type": kind, "version": frame.version, **cast(dict[str, Cell], values)}


_BY_TOPIC: dict[str, Decoder] = {TRANSACTION_TOPIC: _transaction, OFFSETS_TOPIC: _offsets, SHARE_STATE_TOPIC: _share_state}
