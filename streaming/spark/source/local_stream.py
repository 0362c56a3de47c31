"""Log dirs that this Spark can open itself, as the place of a stream's logs. What it knows of them, the disk says each time."""

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from streaming.broker.disk.availability import LogDir, read_identity
from streaming.broker.disk.locate import window
from streaming.broker.disk.logdirs import Partition
from streaming.broker.excerpts.excerpt_listing import open_given_dirs, topics_of, wanted_partitions
from streaming.broker.excerpts.position_between import between, moves_of
from streaming.broker.excerpts.position_plan import KnownLogs, OpenLog, PositionPlanner, SelectedOrRead
from streaming.broker.excerpts.record_ends import ENDLESS, RecordEnds
from streaming.broker.excerpts.record_plan import check_named, choose_replicas, ranges_between
from streaming.broker.excerpts.record_ranges import RecordRange
from streaming.broker.protocol.excerpt_messages import Excerpt
from streaming.broker.protocol.position_messages import SKIPPED
from streaming.common.log_positions import LogName, Position
from streaming.common.start_from import StartFrom
from streaming.errors import AgentError, LogDirError
from streaming.spark.source.kafka_options import EARLIEST, LATEST
from streaming.spark.source.local_reader import LocalReader, RecordsReader, RecordsTask, opened_below, pack_ranges
from streaming.spark.source.public_options import Isolation, PublicOptions, Until, nothing_fits
from streaming.spark.source.stream_logs import RECORDS, AllPositions, StreamLogs, StreamTask, Wanted, missing_row

log = logging.getLogger(__name__)


class _LocalLogs(StreamLogs):
    """What the relations have in common: a planner for each key of the offset."""

    def __init__(self, options: PublicOptions) -> None:
        self.options = options
        self.known = KnownLogs()
        self._planners: dict[str, PositionPlanner] = {}
        self._paths: tuple[Path, ...] = ()
        self._away: set[Path] = set()

    def available(self) -> dict[str, dict[LogName, Position]]:
        """Up to where each log could be read at the last plan."""
        return {key: each.available for key, each in self._planners.items()}

    def log_dirs(self) -> list[LogDir]:
        """The log dirs that can be used now; all of them the first time.

        Raises:
            LogDirError: at first one cannot be used.
        """
        if not self._paths:
            found = self._open()
            self._paths = tuple(each.path for each in found)
            return found
        there: list[LogDir] = []
        for path in self._paths:
            try:
                there.append(read_identity(path))
            except (LogDirError, OSError) as error:
                if path not in self._away:
                    log.warning("option log_dirs: %s cannot be used now, and nothing of it is read: %s", path, error)
                self._away.add(path)
            else:
                self._away.discard(path)
        return there

    def _open(self) -> list[LogDir]:
        raise NotImplementedError

    def _begins(self) -> dict[LogName, int | StartFrom]:
        ends = {EARLIEST: StartFrom.EARLIEST, LATEST: StartFrom.LATEST}
        return {LogName(*name): ends.get(offset, offset) for name, offset in self.options.starting_offsets.items()}

    def plan_of(
        self, key: str, listed: Sequence[tuple[Partition, int]], wanted: Wanted, limit: Callable[[OpenLog], int]
    ) -> dict[LogName, Position]:
        """The positions of the logs of one key; ``limit``: up to which offset a log may be read."""
        options = self.options
        start = options.starting_timestamp if options.starting_timestamp >= 0 else options.starting_position or StartFrom.LATEST
        planner = self._planners.setdefault(key, PositionPlanner(start, limit, known=self.known))
        planner.end_of, planner.begins = limit, self._begins()
        partitions = [each for each in listed if options.selection.has(each[0].topic, each[0].partition)]
        try:
            ends = planner.plan(partitions, wanted.at.get(key, {}), wanted.budget, first=key not in wanted.at)
        except OSError as error:
            raise _unreadable(error) from error
        if self._away:
            return ends
        there = {LogName(each.topic, each.partition) for each, _ in listed}
        return {name: each for name, each in ends.items() if name in there}

    def refuse_absent(self, name: LogName) -> None:
        """Raise a LogDirError if a log that is not there may be in a log dir that cannot be used."""
        if self._away:
            away = ", ".join(sorted(map(str, self._away)))
            raise LogDirError(
                f"option log_dirs: {away} cannot be used now, and {name.topic}-{name.partition} may be there: start the query again when "
                "it is back"
            )


class BrokerLogs(_LocalLogs):
    """The logs of each broker, every replica by itself."""

    def plan(self, wanted: Wanted) -> dict[str, dict[LogName, Position]]:
        """Raises UsageError: a query that begins names topics that are not there."""
        log_dirs = self.log_dirs()
        by_broker: dict[str, list[tuple[Partition, int]]] = {key: [] for key in (*wanted.at, *(str(each.broker) for each in log_dirs))}
        for each in self._partitions(log_dirs, wanted.at):
            by_broker.setdefault(str(each[0].log_dir.broker), []).append(each)
        selection = self.options.selection
        if not wanted.at and selection.topics and not any(by_broker.values()):
            raise nothing_fits(selection, topics_of(log_dirs))
        shared = replace(wanted, budget=None if wanted.budget is None else max(1, wanted.budget // max(1, len(by_broker))))
        return {key: self.plan_of(key, by_broker[key], shared, lambda opened: opened.end) for key in by_broker}

    def tasks(self, before: AllPositions, to: AllPositions) -> list[StreamTask]:
        """Raises LogDirError: a log cannot be read."""
        listed, reader = self._partitions(self.log_dirs(), before, to), LocalReader(self.options)
        excerpts: list[Excerpt] = []
        missing: list[dict[str, object] | None] = []
        for key in sorted(to):
            there = {LogName(each.topic, each.partition): (each, start) for each, start in listed if str(each.log_dir.broker) == key}
            moves, absent = moves_of(before.get(key, {}), to[key]), list[LogName]()
            try:
                for found in between(moves, there, reader.excerpt_bytes, absent):
                    if isinstance(found, Excerpt):
                        excerpts.append(found)
                    else:
                        missing.append(missing_row(self.options.relation, key, found))
            except OSError as error:
                raise _unreadable(error) from error
            for move in moves:
                if move.name in absent:
                    self.refuse_absent(move.name)
                    missing += [missing_row(self.options.relation, key, each) for each in move.missing(None)]
        tasks = [StreamTask(replace(each, ongoing=False)) for each in reader.tasks("", excerpts, "")]
        rows = tuple(each for each in missing if each is not None)
        return [*tasks, StreamTask(missing=rows)] if rows else tasks

    def rows(self, scan: InputPartition) -> Iterator[pa.RecordBatch]:
        """Raises LogDirError: a log dir is not there on this host, or cannot be read."""
        yield from LocalReader(self.options).read(scan)

    def _partitions(self, log_dirs: Sequence[LogDir], *read: AllPositions) -> list[tuple[Partition, int]]:
        """The wanted live partitions, and those that were read, each once for each broker."""
        names = {name for each in read for positions in each.values() for name in positions}
        try:
            return self.known.partitions(log_dirs, SelectedOrRead(self.options.selection, names))
        except AgentError as error:
            raise LogDirError(f"option log_dirs: {error}") from error

    def _open(self) -> list[LogDir]:
        return list(opened_below(self.options.log_dirs))


def _unreadable(error: OSError) -> LogDirError:
    return LogDirError(f"option log_dirs: {error.filename} cannot be read: {error.strerror or error}")


class RecordLogs(_LocalLogs):
    """The records of one replica of each partition, up to where they are replicated, and decided."""

    def __init__(self, options: PublicOptions) -> None:
        super().__init__(options)
        self._committed = options.isolation is Isolation.READ_COMMITTED
        self._ends = RecordEnds(committed=self._committed, to_end=options.until is Until.END)

    def plan(self, wanted: Wanted) -> dict[str, dict[LogName, Position]]:
        """Raises UsageError: a query that begins names what is not there."""
        return {RECORDS: self.plan_of(RECORDS, self._partitions(first=not wanted.at), wanted, self._ends)}

    def tasks(self, before: AllPositions, to: AllPositions) -> list[StreamTask]:
        """Raises LogDirError: a log cannot be read; or records that were planned are gone, and failOnDataLoss is not false."""
        there = {LogName(each.topic, each.partition): (each, start) for each, start in self._partitions(first=False)}
        buffer, ranges = window(), list[RecordRange]()
        for move in moves_of(before.get(RECORDS, {}), to.get(RECORDS, {})):
            try:
                opened = move.opened(there, buffer)
            except OSError as error:
                raise _unreadable(error) from error
            if opened is None:
                self.refuse_absent(move.name)
            for each in move.missing(opened):
                if each.kind == SKIPPED:
                    self._lose(f"{each.topic}-{each.partition}: {each.reason}")
            if opened is not None and move.to is not None and move.is_in(opened):
                begin, end = max(move.begin(opened), opened.served), move.to.next_offset
                # what was planned is decided: by a marker that may lie behind it
                ranges += ranges_between(opened.partition, opened.segments, begin, end, stop=ENDLESS, committed=self._committed)
        return [StreamTask(RecordsTask(each)) for each in pack_ranges(ranges)]

    def rows(self, scan: InputPartition) -> Iterator[pa.RecordBatch]:
        """Raises LogDirError: a segment is gone and failOnDataLoss is not false, or it cannot be read."""
        yield from RecordsReader(self.options).read(scan)

    def _lose(self, what: str) -> None:
        if self.options.fails_on_loss:
            raise LogDirError(f"option log_dirs: {what}; failOnDataLoss=false goes on with what is there")
        log.warning("records are missing: %s; the query goes on, as failOnDataLoss is false", what)

    def _partitions(self, *, first: bool) -> list[tuple[Partition, int]]:
        """The wanted partitions, one replica of each, after what their log dirs say now was read."""
        log_dirs = self.log_dirs()
        self._ends.look(log_dirs)
        wanted = wanted_partitions(log_dirs, self.options.selection, refuses=first and not self.options.selection.pattern)
        if first:
            check_named("startingOffsets", self.options.starting_offsets, wanted)
        return [(each, self._ends.start_of(each)) for each in choose_replicas(wanted, logs=first)]

    def _open(self) -> list[LogDir]:
        return list(open_given_dirs(self.options.log_dirs))
