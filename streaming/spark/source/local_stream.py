"""Relations of log dirs that this Spark can open itself, as a stream. Its offset is where each log has been read up to.

A micro-batch is what lies between two offsets, and it is read from the disk as often as Spark asks for it. The offset is ``{broker:
positions}`` (`streaming.common.log_positions`); of records ``{"records": positions}``, because one replica of each partition is read.
"""

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxBytes, SupportsTriggerAvailableNow

from streaming.broker.disk.availability import LogDir, read_identity
from streaming.broker.disk.locate import window
from streaming.broker.disk.logdirs import Partition
from streaming.broker.excerpts.excerpt_listing import open_given_dirs, partitions_with_start, topics_of, wanted_partitions
from streaming.broker.excerpts.position_plan import OpenLog, PositionPlanner
from streaming.broker.excerpts.record_ends import ENDLESS, RecordEnds
from streaming.broker.excerpts.record_plan import check_named, choose_replicas, ranges_between
from streaming.broker.excerpts.record_ranges import RecordRange
from streaming.broker.protocol.excerpt_messages import Excerpt
from streaming.common.log_positions import LogName, Position, Positions, decode, encode, reached, without_begins
from streaming.common.start_from import StartFrom
from streaming.errors import AgentError, LogDirError
from streaming.kafka.scan.walk import Bytes
from streaming.spark.source.at_once import Task
from streaming.spark.source.kafka_options import EARLIEST, LATEST
from streaming.spark.source.local_reader import LocalReader, RecordsReader, RecordsTask, opened_below, pack_ranges
from streaming.spark.source.offsets import Offset
from streaming.spark.source.public_options import Isolation, PublicOptions, Until, nothing_fits
from streaming.spark.source.public_rows import skipped_row
from streaming.spark.source.relations import Relation, schema_of

log = logging.getLogger(__name__)

PLAN_SECONDS = 1.0
"""The shortest time between two plans of which the first found nothing: each asks for the sizes of all logs."""

RECORDS = "records"
"""In an offset, instead of a broker."""


@dataclass
class StreamTask(InputPartition):
    """The work of one task: excerpts or ranges of records, and rows that say what is not there."""

    scan: Task | RecordsTask | None = None
    missing: tuple[dict[str, object], ...] = ()


class LocalStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """A relation of log dirs as a stream. Every executor sees the log dirs under the same paths."""

    def __init__(
        self, options: PublicOptions, clock: Callable[[], float] = time.monotonic, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self._options, self._clock, self._sleep = options, clock, sleep
        self._logs: _Logs = _RecordLogs(options) if options.relation is Relation.RECORDS else _BrokerLogs(options)
        self._takes_all = False
        self._targets: dict[str, dict[LogName, Position]] | None = None
        self._checked_at = float("-inf")

    def initialOffset(self) -> Offset:  # noqa: N802
        """The offset before everything."""
        return {}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """How many bytes of logs go into one micro-batch."""
        return ReadMaxBytes(self._options.max_bytes)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """The ends of the logs at the first plan are those of the query."""
        self._takes_all = True

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802
        """How far the next micro-batch goes; ``start`` itself when nothing is new.

        Raises:
            UsageError: the offset is of another version, or a query that begins names topics that are not there.
            LogDirError: a log dir cannot be read.
        """
        at = _decoded(start)
        if self._takes_all and self._targets is None:
            self._targets = self._logs.plan(_Wanted(at=at, budget=None, first=not start))
        if self._targets is not None and all(reached(at.get(key, {}), each) for key, each in self._targets.items()):
            return start
        self._sleep(max(0.0, self._checked_at + PLAN_SECONDS - self._clock()))
        size = limit.max_bytes if isinstance(limit, ReadMaxBytes) else self._options.max_bytes
        budget = None if isinstance(limit, ReadAllAvailable) else size
        ends = self._logs.plan(_Wanted(at=at, budget=budget, first=not start, targets=self._targets))
        if start and {key: without_begins(each) for key, each in ends.items()} == {key: without_begins(each) for key, each in at.items()}:
            self._checked_at = self._clock()
            return start
        return {key: encode(ends[key]) for key in sorted(ends)}

    def reportLatestOffset(self) -> Offset | None:  # noqa: N802
        """Up to where the logs could be read at the last plan, None before it."""
        available = self._logs.available()
        return {key: encode(without_begins(available[key])) for key in sorted(available)} or None

    def partitions(self, start: Offset, end: Offset) -> list[StreamTask]:
        """The tasks of a micro-batch.

        Raises:
            LogDirError: a log cannot be read; or records that were planned are gone, and failOnDataLoss is not false.
        """
        before, to = _decoded(start), _decoded(end)
        return [task for key in sorted(to) for task in self._logs.tasks(key, without_begins(before.get(key, {})), to[key])]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one task.

        Raises:
            LogDirError: a log dir is not there on this host, or cannot be read.
        """
        assert isinstance(partition, StreamTask)
        options = self._options
        schema = to_arrow_schema(schema_of(options.relation, options.columns), timezone="UTC")
        yield pa.RecordBatch.from_pylist([], schema)
        if isinstance(partition.scan, RecordsTask):
            yield from RecordsReader(options).read(partition.scan)
        elif partition.scan is not None:
            yield from LocalReader(options).read(partition.scan)
        for values in partition.missing:
            yield skipped_row(options.relation, values).select(schema.names)

    def commit(self, end: Offset) -> None:
        """Nobody has to know: the logs are Kafka's, and the offsets Spark's."""

    def __getstate__(self) -> dict[str, Any]:
        """Only the options are pickled: tasks do not plan."""
        return {"_options": self._options}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["_options"])  # type: ignore[misc]


def _decoded(offset: Offset) -> dict[str, dict[LogName, Position]]:
    return {key: decode(each) for key, each in offset.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wanted:
    """What a micro-batch may have: from the positions ``at`` on, ``budget`` bytes, None for no bound. ``first``: nothing was planned yet.
    ``targets``: no log is read beyond them, and no other log is.
    """

    at: Mapping[str, Positions]
    budget: int | None
    first: bool
    targets: Mapping[str, Positions] | None = None


class _Logs:
    """What the relations have in common: a planner for each key of the offset."""

    def __init__(self, options: PublicOptions) -> None:
        self.options = options
        self._planners: dict[str, PositionPlanner] = {}
        self._paths: tuple[Path, ...] = ()
        self._away: set[Path] = set()

    def available(self) -> dict[str, dict[LogName, Position]]:
        """Up to where each log could be read at the last plan."""
        return {key: each.available for key, each in self._planners.items()}

    def plan(self, wanted: _Wanted) -> dict[str, dict[LogName, Position]]:
        """The positions after the next micro-batch."""
        raise NotImplementedError

    def tasks(self, key: str, before: Positions, to: Positions) -> list[StreamTask]:
        """The tasks between two positions of one key."""
        raise NotImplementedError

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
        self, key: str, partitions: Sequence[tuple[Partition, int]], wanted: _Wanted, limit: Callable[[OpenLog], int]
    ) -> dict[LogName, Position]:
        """The positions of the logs of one key; ``limit``: up to which offset a log may be read."""
        options, targets = self.options, None if wanted.targets is None else wanted.targets[key]
        start = options.starting_timestamp if options.starting_timestamp >= 0 else options.starting_position or StartFrom.LATEST
        planner = self._planners.setdefault(key, PositionPlanner(start, limit))
        planner.end_of = limit if targets is None else lambda opened: min(limit(opened), targets[opened.name].next_offset)
        planner.begins = self._begins() if targets is None else {name: each.begin for name, each in targets.items() if each.begin >= 0}
        some = [each for each in partitions if targets is None or LogName(each[0].topic, each[0].partition) in targets]
        try:
            ends = planner.plan(some, without_begins(wanted.at.get(key, {})), wanted.budget, first=wanted.first)
        except OSError as error:
            raise LogDirError(f"option log_dirs: {error.filename} cannot be read: {error.strerror or error}") from error
        if self._away or targets is not None:
            return ends
        there = {LogName(each.topic, each.partition) for each, _ in partitions}
        return {name: each for name, each in ends.items() if name in there}

    def opened(self, name: LogName, there: Mapping[LogName, tuple[Partition, int]], buffer: Bytes) -> OpenLog | None:
        """A log of which something was planned; None if it is not there any more.

        Raises:
            LogDirError: it cannot be read now, or may be in a log dir that cannot be used.
        """
        if name not in there:
            if self._away:
                away = ", ".join(sorted(map(str, self._away)))
                raise LogDirError(
                    f"option log_dirs: {away} cannot be used now, and {name.topic}-{name.partition} may be there: start the "
                    "query again when it is back"
                )
            return None
        partition, stored_start = there[name]
        try:
            return OpenLog.open(partition, stored_start, buffer)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise LogDirError(f"option log_dirs: {partition.path} cannot be read: {error.strerror or error}") from error


class _BrokerLogs(_Logs):
    """The logs of each broker, every replica by itself."""

    def plan(self, wanted: _Wanted) -> dict[str, dict[LogName, Position]]:
        log_dirs = self.log_dirs()
        by_broker: dict[str, list[tuple[Partition, int]]] = {key: [] for key in (*wanted.at, *(str(each.broker) for each in log_dirs))}
        for each in self._partitions(log_dirs):
            by_broker.setdefault(str(each[0].log_dir.broker), []).append(each)
        selection = self.options.selection
        if wanted.first and selection.topics and not any(by_broker.values()):
            raise nothing_fits(selection, topics_of(log_dirs))
        keys = by_broker if wanted.targets is None else wanted.targets
        share = None if wanted.budget is None else max(1, wanted.budget // max(1, len(by_broker)))
        shared = replace(wanted, budget=share)
        return {key: self.plan_of(key, by_broker.get(key, []), shared, lambda opened: opened.end) for key in keys}

    def tasks(self, key: str, before: Positions, to: Positions) -> list[StreamTask]:
        listed = self._partitions(self.log_dirs())
        there = {LogName(each.topic, each.partition): (each, start) for each, start in listed if str(each.log_dir.broker) == key}
        reader, buffer = LocalReader(self.options), window()
        excerpts: list[Excerpt] = []
        missing: list[dict[str, object]] = []
        for name in sorted({*before, *to}):
            found = _Between(key, name, before.get(name), to.get(name), ranges=self.options.relation is Relation.RANGES)
            if not found.moved:
                continue
            opened = self.opened(name, there, buffer)
            missing += found.missing(opened)
            if opened is not None and found.to is not None and opened.partition.topic_id == found.to.topic_id:
                excerpts += opened.excerpts(found.begin(opened), found.to, reader.excerpt_bytes, buffer)
        tasks = [StreamTask(replace(each, ongoing=False)) for each in reader.tasks("", excerpts, "")]
        return [*tasks, StreamTask(missing=tuple(missing))] if missing else tasks

    def _partitions(self, log_dirs: Sequence[LogDir]) -> list[tuple[Partition, int]]:
        """The wanted live partitions, each once for each broker."""
        try:
            found = partitions_with_start(log_dirs, self.options.selection)
            return list({(each.log_dir.broker, each.topic, each.partition): (each, start) for each, start in found}.values())
        except AgentError as error:
            raise LogDirError(f"option log_dirs: {error}") from error

    def _open(self) -> list[LogDir]:
        return list(opened_below(self.options.log_dirs))


class _RecordLogs(_Logs):
    """The records of one replica of each partition, up to where they are replicated, and decided."""

    def __init__(self, options: PublicOptions) -> None:
        super().__init__(options)
        self._committed = options.isolation is Isolation.READ_COMMITTED
        self._ends = RecordEnds(committed=self._committed, to_end=options.until is Until.END)

    def plan(self, wanted: _Wanted) -> dict[str, dict[LogName, Position]]:
        return {RECORDS: self.plan_of(RECORDS, self._partitions(first=wanted.first), wanted, self._ends)}

    def tasks(self, key: str, before: Positions, to: Positions) -> list[StreamTask]:
        there = {LogName(each.topic, each.partition): (each, start) for each, start in self._partitions(first=False)}
        buffer, ranges = window(), list[RecordRange]()
        for name in sorted({*before, *to}):
            found = _Between(key, name, before.get(name), to.get(name), ranges=False)
            if not found.moved:
                continue
            opened = self.opened(name, there, buffer)
            for each in found.missing(opened):
                self._lose(f"{name.topic}-{name.partition}: {each['reason']}")
            if opened is not None and found.to is not None and opened.partition.topic_id == found.to.topic_id:
                begin, end = max(found.begin(opened), opened.served), found.to.next_offset
                # what was planned is decided: by a marker that may lie behind it
                ranges += ranges_between(opened.partition, opened.segments, begin, end, stop=ENDLESS, committed=self._committed)
        return [StreamTask(RecordsTask(each)) for each in pack_ranges(ranges)]

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


@dataclass(frozen=True, slots=True)
class _Between:
    """A log between two positions. ``ranges``: rows of kind ``truncated`` and ``gone`` are wanted."""

    key: str
    name: LogName
    before: Position | None
    to: Position | None
    ranges: bool

    @property
    def moved(self) -> bool:
        """Whether there is anything to say of it."""
        return self.before is None or self.to is None or self.to._replace(begin=self.before.begin) != self.before

    def begin(self, opened: OpenLog) -> int:
        """The first offset that is read."""
        assert self.to is not None
        return opened.resumed(self.before, self.to.begin).offset

    def missing(self, opened: OpenLog | None) -> Iterator[dict[str, object]]:
        """Rows that say what a reader had, or would have had, and the log has no more."""
        before, to = self.before, self.to
        same = before is not None and to is not None and before.topic_id == to.topic_id
        if before is not None and not same and self.ranges:
            reason = "deleted" if to is None else "made anew"
            yield self._row(opened if to is None else None, {"kind": "gone", "topic_id": before.topic_id or None, "reason": reason})
        if to is None:
            return
        begin = before.next_offset if before is not None and same else to.begin
        if opened is None or opened.partition.topic_id != to.topic_id:
            if begin < to.next_offset:
                yield self._row(None, self._hole(begin, to.next_offset, None))
            return
        resumed = opened.resumed(before, to.begin)
        if resumed.cut_off and self.ranges:
            ends = {"next_offset": begin - resumed.cut_off, "reason": f"truncated: {resumed.cut_off} offsets"}
            yield self._row(opened, {"kind": "truncated", **ends})
        if resumed.deleted:
            yield self._row(opened, self._hole(resumed.offset - resumed.deleted, resumed.offset, opened))
        lost = max(resumed.offset, opened.end)
        if lost < to.next_offset:
            yield self._row(opened, {**_offsets(lost, to.next_offset), "reason": f"truncated: {to.next_offset - lost} offsets"})

    def _hole(self, begin: int, end: int, opened: OpenLog | None) -> dict[str, object]:
        """Offsets that are gone. Their bytes are estimated by what is left of the log, null if nothing is."""
        count, size = (0, 0) if opened is None else (opened.end - opened.start, sum(each.size for each in opened.segments))
        estimate = (end - begin) * size // count if count > 0 else None
        how = "" if estimate is None else "; their bytes are an estimate"
        return {**_offsets(begin, end), "missing_bytes": estimate, "reason": f"deleted: {end - begin} offsets{how}"}

    def _row(self, opened: OpenLog | None, values: dict[str, object]) -> dict[str, object]:
        place = {"topic": self.name.topic, "partition": self.name.partition}
        if self.key.isdigit():
            place["broker"] = int(self.key)
        if opened is not None:
            place |= {"log_dir": str(opened.partition.log_dir.path), "topic_id": opened.partition.topic_id or None}
        return {**place, **values}


def _offsets(begin: int, end: int) -> dict[str, object]:
    """In the columns of all relations."""
    return {"base_offset": begin, "first_offset": begin, "last_offset": end - 1, "next_offset": end}
