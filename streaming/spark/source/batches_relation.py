"""The relation ``batches``: a row for every record batch on the agents' disks, scanned when it is read."""

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

from streaming.broker.protocol.segment_list import Log
from streaming.common.rows import BATCHES
from streaming.errors import AgentError
from streaming.spark.source import agent_connections
from streaming.spark.source.source_options import SourceOptions

SCHEMA = from_arrow_schema(BATCHES)
ARROW_SCHEMA = to_arrow_schema(SCHEMA, timezone="UTC")

TASK_BYTES = 256 << 20
"""Segments share a task as long as they have at most so many bytes together."""


@dataclass
class Segments(InputPartition):
    """The work of one task: segments of one agent."""

    address: str
    logs: list[Log]


class BatchReader(DataSourceReader):
    """Reads the relation once."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options

    def partitions(self) -> list[Segments]:
        """The tasks.

        Raises:
            AgentError: an agent does not answer.
        """
        addresses = self._options.addresses()
        found = agent_connections.ask_all(addresses, lambda client: client.logs(), self._options.files)
        missing = [address for address in addresses if address not in found]
        if missing:
            raise AgentError(f"agent at {', '.join(missing)} does not answer: is it running?")
        return [Segments(address, group) for address, logs in found.items() for group in pack(logs)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one task."""
        assert isinstance(partition, Segments)
        yield pa.RecordBatch.from_pylist([], ARROW_SCHEMA)
        for log in partition.logs:
            for batch in agent_connections.client(partition.address, self._options.files).batches(log):
                yield from pa.Table.from_batches([batch]).cast(ARROW_SCHEMA).to_batches()


def pack(logs: list[Log]) -> list[list[Log]]:
    """Group segments so that each group has about `TASK_BYTES`."""
    groups: list[list[Log]] = []
    room = 0
    for log in sorted(logs, key=lambda each: -each.size):
        if not groups or room < log.size:
            groups.append([])
            room = TASK_BYTES
        groups[-1].append(log)
        room -= log.size
    return groups
