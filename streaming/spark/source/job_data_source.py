"""The data source of segtail's own job: the events of all agents as a stream of packed rows. The job registers it itself.

Spark imports this module in four processes, of which one only asks for the schema. So it imports little; the reader brings the rest.
"""

from pyspark.sql.datasource import DataSource, DataSourceStreamReader
from pyspark.sql.types import BinaryType, IntegerType, StructField, StructType

from streaming.spark.source.source_options import parse_options

FORMAT = "segtail-job"

SCHEMA = StructType([StructField("shard", IntegerType()), StructField("rows", BinaryType())])
"""That of `streaming.common.rows.PACKED`, which is Arrow's."""


class JobDataSource(DataSource):
    """Options: `streaming.spark.source.source_options`."""

    @classmethod
    def name(cls) -> str:
        """The format's name."""
        return FORMAT

    def schema(self) -> StructType:
        """The schema of packed rows; it checks the options."""
        parse_options(self.options)
        return SCHEMA

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        """The reader for the events."""
        from streaming.spark.source import stream

        del schema
        reader: DataSourceStreamReader = stream.EventStreamReader(parse_options(self.options))
        return reader
