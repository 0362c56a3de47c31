"""``spark.readStream.format("segtail")``, and ``spark.read.format("segtail")``: the relation ``batches``, scanned when it is read."""

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType

from streaming.broker.protocol.segment_list import Log
from streaming.common.rows import BATCHES
from streaming.errors import AgentError, UsageError
from streaming.spark.source import agent_connections, stream
from streaming.spark.source.source_options import SourceOptions, parse_options

FORMAT = "segtail"

SCHEMA = from_arrow_schema(BATCHES)
ARROW_SCHEMA = to_arrow_schema(SCHEMA, timezone="UTC")


class SegtailDataSource(DataSource):
    """Register with ``spark.dataSource.register(SegtailDataSource)``; options: `streaming.spark.source.source_options`."""

    @classmethod
    def name(cls) -> str:
        """The format's name."""
        return FORMAT

    def schema(self) -> StructType:
        """The schema of the relation in the options."""
        return SCHEMA if parse_options(self.options).relation == "batches" else stream.SCHEMA

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        """The reader for the events."""
        del schema
        options = parse_options(self.options)
        if options.relation != "events":
            raise UsageError("the relation batches cannot be streamed: read it with spark.read")
        return stream.EventStreamReader(options)

    def reader(self, schema: StructType) -> DataSourceReader:
        """The reader for the batches."""
        del schema
        options = parse_options(self.options)
        if options.relation != "batches":
            raise UsageError('the relation events is read with spark.readStream; for batches one by one set option("relation", "batches")')
        return BatchReader(options)


TASK_BYTES = 256 << 20
"""Segments share a task as long as they have at most so many bytes together."""


@dataclass
class Segments(InputPartition):
    """The work of one task: segments of one agent."""

    address: str
    logs: list[Log]


class BatchReader(DataSourceReader):
    """Reads the relation ``batches`` once: a row for every record batch on the agents' disks."""

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
