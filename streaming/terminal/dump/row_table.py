"""Rows of one kind as columns: the basis of every output."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, is_dataclass
from enum import IntEnum, StrEnum

import numpy as np
from numpy.typing import NDArray

from streaming.kafka.formats.coordinator_states import TransactionState

Cell = object
"""None, a bool, an int, a str, bytes, or a structure of lists and dicts of these that JSON can hold."""


@dataclass(frozen=True, slots=True)
class Numbers:
    """Whole numbers; a column that is ``nullable`` uses -1 for none."""

    name: str
    values: NDArray[np.integer]
    nullable: bool = False


@dataclass(frozen=True, slots=True)
class Flags:
    """A column of true and false."""

    name: str
    values: NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Choices:
    """One of a few names in each row: ``codes`` are indexes in ``names``."""

    name: str
    codes: NDArray[np.integer]
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Cells:
    """Any other values, one Python value in each row. ``raw``: bytes or None, which a binary format stores unchanged."""

    name: str
    values: Sequence[Cell]
    raw: bool = False


Column = Numbers | Flags | Choices | Cells


@dataclass(frozen=True, slots=True)
class RowTable:
    """Rows from one file; all columns have ``rows`` items. ``kind`` names the type of a row, such as ``batch``."""

    kind: str
    path: str
    rows: int
    columns: tuple[Column, ...]


def cells_of(column: Column) -> list[Cell]:
    """The values of any column as Python values."""
    match column:
        case Numbers(values=values, nullable=nullable):
            return [None if nullable and value == -1 else value for value in values.tolist()]
        case Flags(values=values):
            return list(values.tolist())
        case Choices(codes=codes, names=names):
            return [names[code] for code in codes.tolist()]
        case Cells(values=values):
            return list(values)


def cells(kind: str, path: str, names: Sequence[str], rows: Sequence[Sequence[Cell]]) -> RowTable:
    """A table of a few rows."""
    return RowTable(kind, path, len(rows), tuple(Cells(name, [row[at] for row in rows]) for at, name in enumerate(names)))


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
