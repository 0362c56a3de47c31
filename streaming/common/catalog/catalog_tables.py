"""The catalog: decided values of topics, partitions and logs, as three Arrow tables with one row for each key."""

import struct
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streaming.common.log_key import KEY

_TEXT, _INT, _LONG = pa.string(), pa.int32(), pa.int64()
_INTS = pa.list_(_INT)

TOPICS = pa.schema([("broker", _INT), ("topic", _TEXT), ("topic_id", _TEXT), ("configs", _TEXT)])
"""``configs``: the configuration of a topic in the files of a broker (`streaming.rules.config_values.Configs.text`)."""

PARTITIONS = pa.schema(
    [
        ("topic", _TEXT),
        ("topic_id", _TEXT),
        ("partition", _INT),
        ("leader", _INT),
        ("leader_epoch", _INT),
        ("replicas", _INTS),
        ("adding_replicas", _INTS),
        ("isr", _INTS),
        ("leader_metadata_version", _INT),
        ("eligible", _INTS),
    ]
)
"""The state of partitions in the newest copy of the metadata log that the agent reads.

``leader`` is -1 if there is no leader, and -2 if the leader is not known; then ``leader_epoch`` is -1. ``replicas`` (without
``adding_replicas``, which a reassignment adds) and ``isr`` are broker ids, null if they are not known. ``leader_metadata_version`` is the
highest metadata.version that the leader's registration supports. It is -1 if the registration names none (before Kafka 3.3), if there is
no leader, or if it is not known. ``eligible`` are the eligible leader replicas of a partition without any replica in sync: each of them has
everything up to the high watermark (KIP-966). Null if they are not known.
"""

LOGS = pa.schema(
    [
        ("broker", _INT),
        ("topic", _TEXT),
        ("topic_id", _TEXT),
        ("partition", _INT),
        ("high_watermark", _LONG),
        ("cleaner_checkpoint", _LONG),
        ("log_start_checkpoint", _LONG),
        ("recovery_point", _LONG),
        ("recovery_position", _LONG),
        ("moving", _LONG),
        ("epochs", pa.binary()),
    ]
)
"""Offsets of a log in checkpoint files: -1 if there is no entry, `UNREADABLE` if the file cannot be used.

``recovery_position``: so many bytes of the segment that holds the recovery point lie below it, at least.
``moving``: 1 while a copy of the log is being made in another log dir of its broker (`-future`), else 0.
``epochs``: an array of `EPOCHS`, what was appended to the log in which leader epoch.
"""

EPOCHS = np.dtype([("epoch", "<i4"), ("start_offset", "<i8"), ("began_ms", "<i8")])
"""Leader epochs, ascending: of each the first offset, -1 if the log has none of it, and when it began by the metadata log, Unix
milliseconds, -1 if that is not known. Epoch 0 begins when its partition is created.
"""

_EPOCH = struct.Struct("<iqq")  # as one of these, in a tenth of the time

MOST_EPOCHS = 16
"""How many of the latest epochs of a log, and besides them epoch 0, are in its row."""


def packed_epochs(start_offsets: Mapping[int, int], began_ms: Mapping[int, int]) -> bytes:
    """The latest epochs that a log has, by epoch, and the first one where it is known when that began."""
    known = [*([0] if 0 in began_ms and 0 not in start_offsets else []), *start_offsets]
    kept = [epoch for at, epoch in enumerate(known) if epoch == 0 or at >= len(known) - MOST_EPOCHS]
    return b"".join([_EPOCH.pack(epoch, start_offsets.get(epoch, -1), began_ms.get(epoch, -1)) for epoch in kept])


UNREADABLE = -2
"""In place of an offset: the checkpoint file exists but cannot be read, or its version is not known."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Catalog:
    """All decided values that one agent knows. A topic without an id ("") is identified by its name. No key occurs twice."""

    topics: pa.Table
    partitions: pa.Table
    logs: pa.Table

    @property
    def tables(self) -> tuple[pa.Table, pa.Table, pa.Table]:
        """The tables in the order of `SCHEMAS`."""
        return self.topics, self.partitions, self.logs


SCHEMAS = (TOPICS, PARTITIONS, LOGS)
_EMPTY = {name: pa.Table.from_batches([], schema) for name, schema in (("topics", TOPICS), ("partitions", PARTITIONS), ("logs", LOGS))}
NOTHING_DECIDED = Catalog(**_EMPTY)  # not by `empty_table`, which imports pandas if it is there


def key_of(schema: pa.Schema) -> list[str]:
    """The columns that identify a row of a table."""
    return [name for name in KEY if name in schema.names]


def spelled(rows: pa.Table, key: list[str]) -> pa.Array:
    """The key of each row as one text, its parts joined by slashes: no topic name and no topic id contains a slash."""
    columns = [pc.cast(rows[name], _TEXT) for name in key]
    return together(pc.binary_join_element_wise(*columns, "/"))


def together(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """A column in one piece."""
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
