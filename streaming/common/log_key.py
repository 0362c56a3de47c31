"""The identity of a log: the one declaration for watcher, journal, rows, fold, catalog and table."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import NamedTuple, Protocol

import pyarrow as pa

from streaming.common.column_types import Int, Text, columns_of


class LogKey(NamedTuple):
    """One replica of one partition, for as long as its topic lives: a topic that was re-created has another topic id.

    It may move between the log dirs of its broker. ``topic_id`` is "" without a ``partition.metadata``. It is a tuple because the keys of
    all logs are made, compared and hashed in every micro-batch and on every page.
    """

    broker: Int
    topic: Text
    partition: Int
    topic_id: Text

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


def key_of(value: Keyed) -> LogKey:
    """The log that a value belongs to."""
    return LogKey(value.broker, value.topic, value.partition, value.topic_id)


class Keyed(Protocol):
    """A value that belongs to one log, whatever else it has."""

    @property
    def broker(self) -> int: ...
    @property
    def topic(self) -> str: ...
    @property
    def partition(self) -> int: ...
    @property
    def topic_id(self) -> str: ...


def key_arrays(keys: Iterable[LogKey]) -> list[pa.Array]:
    """The columns `KEY_COLUMNS` of some keys."""
    columns = list(zip(*keys, strict=True)) or [()] * len(KEY)
    return [pa.array(column, each.type) for column, each in zip(columns, KEY_COLUMNS, strict=True)]


KEY = LogKey._fields
"""The names of its columns."""


KEY_COLUMNS = tuple(columns_of(LogKey))
"""Its columns in Arrow."""


def keys_in(rows: pa.Table) -> list[LogKey]:
    """The keys of some rows: there are many, and a tuple is made twice as fast past the constructor of its names."""
    return list(map(partial(tuple.__new__, LogKey), zip(*(rows[name].to_pylist() for name in KEY), strict=True)))
