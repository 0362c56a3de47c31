"""Converts Kafka's values for JSON."""

from dataclasses import fields, is_dataclass
from enum import IntEnum, StrEnum

from streaming.kafka.formats.transaction_state import TransactionState
from streaming.terminal.dump.row_table import Cell


def plain(value: object) -> Cell:
    """Use fields by their names, bytes as hex, enumerations by Kafka's names."""
    if isinstance(value, TransactionState):
        return value.kafka_name
    if isinstance(value, IntEnum):
        return value.name
    if isinstance(value, StrEnum):
        return value.value
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, tuple):
        return [plain(item) for item in value]
    if is_dataclass(value):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    return value
