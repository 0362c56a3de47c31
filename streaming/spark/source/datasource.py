"""``spark.readStream.format("segtail")`` and ``spark.read.format("segtail")``."""

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader
from pyspark.sql.types import StructType

from streaming.errors import UsageError
from streaming.spark.source import batches_relation, stream
from streaming.spark.source.source_options import parse_options

FORMAT = "segtail"


class SegtailDataSource(DataSource):
    """Register with ``spark.dataSource.register(SegtailDataSource)``; options: `streaming.spark.source.source_options`."""

    @classmethod
    def name(cls) -> str:
        """The format's name."""
        return FORMAT

    def schema(self) -> StructType:
        """The schema of the relation in the options."""
        return batches_relation.SCHEMA if parse_options(self.options).relation == "batches" else stream.SCHEMA

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
        return batches_relation.BatchReader(options)
