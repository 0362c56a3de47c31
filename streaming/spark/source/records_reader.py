"""``relation=records``: the records of log dirs that this Spark can open itself, as rows of Spark's Kafka source."""

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema

from streaming.broker.excerpts.damaged_records import OnDamage, RecordDamage
from streaming.broker.excerpts.record_plan import WantedRecords, plan_records
from streaming.broker.excerpts.record_ranges import RangeReader, RecordRange
from streaming.common.start_from import StartFrom
from streaming.spark.source.public_options import Isolation, Mode, PublicOptions, Until
from streaming.spark.source.relations import Relation, schema_of

MOST_TASK_BYTES = 256 << 20
"""Segments that follow each other share a task as long as they have at most so many bytes together."""

_LEAST_TASK_BYTES = 32 << 20
_TASKS = 16
"""Into so many tasks a small read is split, if they get enough to do: more than the cores of most machines."""

_ON_DAMAGE = {Mode.PERMISSIVE: OnDamage.READ, Mode.DROPMALFORMED: OnDamage.LEAVE_OUT, Mode.FAILFAST: OnDamage.FAIL}


@dataclass
class RecordsTask(InputPartition):
    """The work of one task."""

    ranges: list[RecordRange]


class RecordsReader(DataSourceReader):
    """Reads the relation once, as the log dirs are when it is planned."""

    def __init__(self, options: PublicOptions) -> None:
        self._options = options

    def partitions(self) -> list[RecordsTask]:
        """The tasks; one without work if there is nothing to read, because Spark would call `read` without a task.

        Raises:
            UsageError: an option is not possible as given, or a log dir cannot be read; names both.
        """
        given = self._options
        wanted = WantedRecords(
            log_dirs=given.log_dirs,
            selection=given.selection,
            start_from=given.starting_position or StartFrom.EARLIEST,
            timestamp=given.starting_timestamp,
            committed=given.isolation is Isolation.READ_COMMITTED,
            to_end=given.until is Until.END,
            fails_on_loss=given.fails_on_loss,
        )
        return [RecordsTask(each) for each in pack_ranges(plan_records(wanted))] or [RecordsTask([])]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one task, by partition and offset.

        Raises:
            LogDirError: a segment is gone and failOnDataLoss is not false, or it cannot be read.
            FormatError: a batch is damaged, and mode is FAILFAST; names file and position.
        """
        assert isinstance(partition, RecordsTask)
        schema = to_arrow_schema(schema_of(Relation.RECORDS, self._options.columns), timezone="UTC")
        yield pa.RecordBatch.from_pylist([], schema)
        damage = RecordDamage(_ON_DAMAGE[self._options.mode])
        reader = RangeReader(schema, damage, fails_on_loss=self._options.fails_on_loss)
        for each in partition.ranges:
            yield from reader.read(each)
        damage.close()


def pack_ranges(ranges: tuple[RecordRange, ...]) -> list[list[RecordRange]]:
    """Group ranges in their order, so that each group has about as many bytes as a task should have."""
    room = min(MOST_TASK_BYTES, max(_LEAST_TASK_BYTES, sum(each.size for each in ranges) // _TASKS))
    groups: list[list[RecordRange]] = []
    left = 0
    for each in ranges:
        if not groups or left < each.size:
            groups.append([])
            left = room
        groups[-1].append(each)
        left -= each.size
    return groups
