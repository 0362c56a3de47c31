"""Reads relations at once from log dirs that this Spark can open itself: of a broker, running or not, or copied."""

from __future__ import annotations

import socket
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path

import pyarrow as pa
from pyspark.sql.datasource import InputPartition
from pyspark.sql.pandas.types import to_arrow_schema

from streaming.broker.disk.availability import LogDir, read_identity
from streaming.broker.disk.broker_processes import ask_lock
from streaming.broker.disk.log_dir_search import open_below, unsearched_words
from streaming.broker.disk.segment_files import list_segments
from streaming.broker.excerpts.excerpt_listing import copied_in_part, excerpts_of, partitions_with_start, topics_of
from streaming.broker.excerpts.excerpt_scan import scan_excerpts
from streaming.broker.excerpts.excerpt_walk import OnDamage, RecordDamage
from streaming.broker.excerpts.producer_owners import owners_in
from streaming.broker.excerpts.record_plan import WantedRecords, plan_records
from streaming.broker.excerpts.record_ranges import RangeReader, RecordRange
from streaming.common.start_from import StartFrom
from streaming.errors import LogDirError
from streaming.kafka.formats.properties import known_clusters
from streaming.spark.source.at_once import AtOnceReader, PushingReader, RowPieces, Task, scan_of
from streaming.spark.source.producer_names import ProducerNames, known_producers
from streaming.spark.source.public_options import Isolation, Mode, Until, nothing_fits
from streaming.spark.source.relations import Relation, schema_of

MOST_TASK_BYTES = 256 << 20
"""Segments that follow each other share a task as long as they have at most so many bytes together."""

_LEAST_TASK_BYTES = 32 << 20

_TASKS = 16
"""Into so many tasks a small read is split, if they get enough to do: more than the cores of most machines."""

_ON_DAMAGE = {Mode.PERMISSIVE: OnDamage.READ, Mode.DROPMALFORMED: OnDamage.LEAVE_OUT, Mode.FAILFAST: OnDamage.FAIL}


class LocalReader(AtOnceReader):
    """Every executor sees the log dirs under the same paths."""

    def _planned(self) -> list[Task]:
        log_dirs = opened_below(self._options.log_dirs)
        selection = self._options.selection
        if not any(True for _ in partitions_with_start(log_dirs, selection)):
            raise nothing_fits(selection, topics_of(log_dirs))
        wanted = self._selection()
        if wanted is None:
            return []
        partitions = list(partitions_with_start(log_dirs, wanted))
        # refuse a log at rest that has indexes without their segment: its rows would be missing without a word
        for log_dir, own in groupby([partition for partition, _ in partitions], lambda each: each.log_dir.path):
            try:
                if not ask_lock(log_dir).state.is_held_by_nobody:
                    continue  # a broker that deletes a segment leaves its indexes for a moment
                for each in own:
                    if lost := copied_in_part(each.path, list_segments(each.path)):
                        raise LogDirError(f"option log_dirs: {lost}: copy it whole, or remove what is left")
            except OSError as error:
                raise LogDirError(f"option log_dirs: {log_dir} cannot be read: {error.strerror or error}") from error
        cluster_id = next(iter(known_clusters(each.cluster_id for each in log_dirs)), "")
        return self.tasks("", list(excerpts_of(partitions, self._start(), self.excerpt_bytes)), cluster_id)

    def _rows(self, task: Task) -> RowPieces:
        log_dirs = [_here(path) for path in dict.fromkeys(each.log_dir for each in task.excerpts)]
        return scan_excerpts(log_dirs, task.excerpts, scan_of(self._options.relation), ongoing=task.ongoing)

    def _names(self, cluster_id: str) -> ProducerNames:
        paths = self._options.log_dirs
        return ProducerNames(known_producers(cluster_id, paths), lambda known: owners_in(opened_below(paths), known))


def opened_below(paths: Sequence[Path]) -> Sequence[LogDir]:
    """All log dirs at or below some paths. One that cannot be used is an error: rows would be missing."""
    try:
        found = open_below(paths)
    except LogDirError as error:
        raise LogDirError(f"option log_dirs: {error}") from error
    if found.unsearched:
        raise LogDirError(f"option log_dirs: {unsearched_words(found.unsearched)}")
    if found.unavailable:
        raise LogDirError(f"option log_dirs: {'; '.join(found.unavailable.values())}")
    return found


def _here(path: str) -> LogDir:
    try:
        return read_identity(Path(path))
    except LogDirError as error:
        raise LogDirError(
            f"{error}; on {socket.gethostname()}, which reads this part: every executor has to see log_dirs under the same paths"
        ) from error


class RecordsReader(PushingReader):
    """Reads the relation once, as the log dirs are when it is planned.

    ``relation=records``: the records of log dirs that this Spark can open itself, as rows of Spark's Kafka source.
    """

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
            begins=given.starting_offsets,
            ends=given.ending_offsets,
        )
        return [RecordsTask(each) for each in pack_ranges(self._wanted_of(plan_records(wanted)))] or [RecordsTask([])]

    def _wanted_of(self, ranges: Iterable[RecordRange]) -> Sequence[RecordRange]:
        """What filters leave of planned ranges."""
        wanted = self._wanted
        cut = [
            replace(each, begin=max(each.begin, wanted.from_offset), end=min(each.end, wanted.until_offset))
            for each in ranges
            if wanted.has_log(each.topic, each.partition)
        ]
        return [each for each in cut if each.begin < each.end]

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


@dataclass
class RecordsTask(InputPartition):
    """The work of one task."""

    ranges: list[RecordRange]


def pack_ranges(ranges: Sequence[RecordRange]) -> list[list[RecordRange]]:
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
