"""A data source with the relation ``records`` alone, for tests of its reader under Spark."""

from pyspark.sql.datasource import DataSource, DataSourceReader
from pyspark.sql.types import StructType

from streaming.spark.source.public_options import parse_public_options
from streaming.spark.source.records_reader import RecordsReader
from streaming.spark.source.relations import Relation, schema_of

FORMAT = "segtail_records"


class RecordsSource(DataSource):
    """``spark.read.format("segtail_records").option("log_dirs", ...)``."""

    @classmethod
    def name(cls) -> str:
        """The format's name."""
        return FORMAT

    def schema(self) -> StructType:
        """The wanted columns of the relation."""
        return schema_of(Relation.RECORDS, parse_public_options({"relation": "records", **self.options}).columns)

    def reader(self, schema: StructType) -> DataSourceReader:
        """The reader."""
        del schema
        return RecordsReader(parse_public_options({"relation": "records", **self.options}))
