"""The data source of segtail's own job: the events of all agents as a stream of packed rows."""

from pyspark.sql.datasource import DataSource, DataSourceStreamReader
from pyspark.sql.types import StructType

from streaming.spark.source.job_options import SCHEMA, parse_options

FORMAT = "segtail-job"


class JobDataSource(DataSource):
    """Options: `streaming.spark.source.job_options`."""

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
