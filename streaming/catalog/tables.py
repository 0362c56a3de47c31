"""The catalog: what is decided of topics, partitions and logs, as three tables of Arrow with a row for each key."""

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

_TEXT, _INT, _LONG = pa.string(), pa.int32(), pa.int64()
_INTS = pa.list_(_INT)

TOPICS = pa.schema([("broker", _INT), ("topic", _TEXT), ("topic_id", _TEXT), ("configs", _TEXT)])
"""``configs``: what the files of a broker set for a topic (`streaming.rules.limits.Configs.text`)."""

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
    ]
)
"""By the newest copy of the metadata log that the agent reads.

``leader`` is -1 where nobody leads, -2 where that is not known, and ``leader_epoch`` -1 then. ``replicas`` (without ``adding_replicas``,
which a reassignment adds) and ``isr`` are broker ids, null where they are not known. ``leader_metadata_version`` is the highest
metadata.version that the leader's registration supports, -1 where it names none (before Kafka 3.3), nobody leads or nobody knows.
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
    ]
)
"""What checkpoint files say of a log: offsets, -1 where there is no entry, `UNREADABLE`."""

UNREADABLE = -2
"""Stands for an offset of a checkpoint that is there and cannot be read, or is of a version that is not known."""

_KEY = ("broker", "topic", "topic_id", "partition")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Catalog:
    """All that is decided, as far as one agent knows. A topic without an id ("") goes by its name. No key comes twice."""

    topics: pa.Table
    partitions: pa.Table
    logs: pa.Table

    @property
    def tables(self) -> tuple[pa.Table, pa.Table, pa.Table]:
        """The tables in the order of `SCHEMAS`."""
        return self.topics, self.partitions, self.logs


SCHEMAS = (TOPICS, PARTITIONS, LOGS)
NOTHING_DECIDED = Catalog(topics=TOPICS.empty_table(), partitions=PARTITIONS.empty_table(), logs=LOGS.empty_table())


def key_of(schema: pa.Schema) -> list[str]:
    """The columns that tell a row of a table from every other."""
    return [name for name in _KEY if name in schema.names]


def spelled(rows: pa.Table, key: list[str]) -> pa.Array:
    """The key of each row as one text: neither the name of a topic nor its id holds a slash."""
    columns = [pc.cast(rows[name], _TEXT) for name in key]
    return together(pc.binary_join_element_wise(*columns, "/"))


def together(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """A column in one piece."""
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
