"""``spark.read.format("segtail")`` and ``spark.readStream.format("segtail")``, for any Spark session.

Every Spark session of a Python that has segtail imports this module, whatever it reads. So it imports only PySpark itself; the readers
bring the rest.
"""

import json
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader
from pyspark.sql.types import StructField, StructType

if TYPE_CHECKING:
    from streaming.spark.source.public_options import PublicOptions


FORMAT = "segtail"

_OPTIONS = "segtail.options"
"""In the metadata of the first column of a table: its options as JSON. Spark gives them to `schema` when it is made, not to readers."""


class SegtailDataSource(DataSource):
    """Options: `streaming.spark.source.public_options`; relations: `streaming.spark.source.relations`."""

    @classmethod
    def name(cls) -> str:
        """The format's name."""
        return FORMAT

    def schema(self) -> StructType:
        """The schema of the relation in the options.

        Raises:
            UsageError: an option is not valid.
        """
        from streaming.spark.source.relations import schema_of

        options = self._parsed()
        found = schema_of(options.relation, options.columns)
        if "provider" not in self.options:
            return found
        first, *others = found.fields
        return StructType([StructField(first.name, first.dataType, first.nullable, {_OPTIONS: json.dumps(dict(self.options))}), *others])

    def reader(self, schema: StructType) -> DataSourceReader:
        """The reader of what is there now.

        Raises:
            UsageError: an option is not valid, or the schema is another one.
        """
        from streaming.spark.source.relations import Relation

        options = self._parsed(schema, at_once=True)
        self._check(schema, options)
        if options.relation is Relation.RECORDS:
            from streaming.spark.source.local_reader import RecordsReader

            records: DataSourceReader = RecordsReader(options)
            return records
        if options.log_dirs:
            from streaming.spark.source.local_reader import LocalReader

            return LocalReader(options)
        from streaming.spark.source.agent_reader import AgentReader

        return AgentReader(options)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        """The reader of what comes. It raises nothing: PySpark would report another error. So the first call of the reader does."""
        from streaming.errors import UsageError
        from streaming.spark.source.public_stream import PublicStreamReader, RefusedStream

        try:
            options = self._parsed(schema, at_once=False)
            self._check(schema, options)
        except UsageError as error:
            return RefusedStream(str(error))
        public: DataSourceStreamReader = PublicStreamReader(options)
        return public

    def _parsed(self, schema: StructType | None = None, *, at_once: bool | None = None) -> "PublicOptions":
        from streaming.spark.source.public_options import parse_public_options

        of_table = schema.fields[0].metadata.get(_OPTIONS, "{}") if schema and schema.fields else "{}"
        return parse_public_options({**json.loads(of_table), **self.options}, at_once=at_once)

    @staticmethod
    def _check(schema: StructType, options: "PublicOptions") -> None:
        """Check the schema that Spark wants the rows to have: a user may have named one.

        Raises:
            UsageError: it is another one than the relation's; the message names the columns that differ.
        """
        from streaming.errors import UsageError
        from streaming.spark.source.relations import schema_of

        own = {field.name: field.dataType.simpleString() for field in schema_of(options.relation, options.columns).fields}
        wanted = {field.name: field.dataType.simpleString() for field in schema.fields}
        if list(own.items()) == list(wanted.items()):
            return
        lines = [f"it has no column {name}" for name in wanted if name not in own]
        lines += [f"{name} is {own[name]} and not {kind}" for name, kind in wanted.items() if name in own and own[name] != kind]
        lines += [f"{name} is missing" for name in own if name not in wanted]
        what = "; ".join(lines) or "its columns have another order"
        raise UsageError(f"the schema is not that of the relation ({what}): leave schema() away, or choose by the option columns")
