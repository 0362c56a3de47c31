"""What reading at once has in common, whatever process opens the files: tasks, filters, and rows with what was not there."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSourceReader,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    InputPartition,
    LessThan,
    LessThanOrEqual,
)

from streaming.broker.protocol.consumer_messages import Selection
from streaming.broker.protocol.excerpt_messages import EVERYTHING, Excerpt, Scan, UnavailableDir, UnreadPart
from streaming.common.start_from import StartFrom
from streaming.spark.source.producer_names import ProducerNames
from streaming.spark.source.public_options import PublicOptions
from streaming.spark.source.public_rows import ARROW, public_batches, public_ranges, public_transactions, skipped_row
from streaming.spark.source.relations import Relation

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_BEFORE = (LessThan, LessThanOrEqual)
_AFTER = (GreaterThan, GreaterThanOrEqual)

_CUT = (Relation.BATCHES, Relation.RECORDS)

TASK_BYTES = 256 << 20
"""Excerpts share a task as long as they have at most so many bytes together."""

TASK_EXCERPTS = 1_000
"""The most excerpts of a task, which is one request to an agent."""

UNAVAILABLE = "unavailable"
"""The reason why rows of a whole log dir are missing; how many is not known."""

ROWS_TOGETHER = 4_096
"""Rows go to Spark when there are so many: what it does for each piece costs as much as hundreds of rows."""

WHOLE_SEGMENTS = 1 << 40
"""Segments are not cut: they are smaller."""

RowPieces = Generator[pa.Table | pa.RecordBatch, None, list[UnreadPart]]
"""Rows as they are scanned, piece by piece, and at the end what was not there."""


class PushingReader(DataSourceReader):
    """A reader that takes the filters of a query.

    What filters of a query say about which logs, and which parts of them, have to be read at all.
    """

    def __init__(self, options: PublicOptions) -> None:
        self._options = options
        self._wanted = PushedFilters()

    @property
    def pushFilters(self) -> Any:  # noqa: N802
        """Takes the filters of a query, and returns those that Spark has to check."""
        return _Pushing(self._push)

    def _push(self, filters: list[Filter]) -> list[Filter]:
        self._wanted, left = take(filters, self._options.relation)
        return left


class AtOnceReader(PushingReader):
    """Reads a relation once. It is pickled, and opens nothing before a call needs it."""

    def partitions(self) -> Sequence[Task]:
        """The tasks; one without work if there is nothing to read, because Spark would call `read` without a task.

        Raises:
            UsageError: nothing fits the selection.
            LogDirError: a path is no log dir, cannot be read, or all are not of one cluster.
            AgentError: an agent does not answer, is of another version or cluster, or a log cannot be read.
        """
        return self._planned() or [_NO_WORK]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one task.

        Raises:
            LogDirError: its log dirs are not there on this host.
            AgentError: the agent does not answer, or cannot read its files.
        """
        assert isinstance(partition, Task)
        yield from self._public(partition, self._rows(partition) if partition.excerpts else _nothing())

    @abstractmethod
    def _planned(self) -> list[Task]:
        """The tasks that have work."""

    @abstractmethod
    def _rows(self, task: Task) -> RowPieces:
        """The scanned rows of a task's excerpts, and what of them was not there."""

    @abstractmethod
    def _names(self, cluster_id: str) -> ProducerNames:
        """The transactional ids of a cluster, as far as they are needed."""

    def _made_public(self, cluster_id: str) -> Callable[[pa.Table], pa.RecordBatch]:
        """What makes rows of the relation of scanned ones."""
        match self._options.relation:
            case Relation.BATCHES:
                return public_batches
            case Relation.RANGES:
                return public_ranges
        names = self._names(cluster_id)
        return lambda rows: public_transactions(rows, names)

    def _selection(self) -> Selection | None:
        """What is wanted of the options' selection; None: nothing is."""
        return self._wanted.narrowed(self._options.selection)

    def _start(self) -> StartFrom | int:
        """Where to begin: a filter on times may allow to begin later."""
        options, asked = self._options, self._wanted.timestamp
        if options.starting_timestamp >= 0:
            return max(options.starting_timestamp, asked)
        position = options.starting_position or StartFrom.EARLIEST
        return asked if asked >= 0 and position is StartFrom.EARLIEST else position

    @property
    def excerpt_bytes(self) -> int:
        """So many bytes are read at once, whole segments of transactions."""
        return WHOLE_SEGMENTS if self._options.relation is Relation.TRANSACTIONS else TASK_BYTES

    def tasks(self, address: str, excerpts: Sequence[Excerpt], cluster_id: str) -> list[Task]:
        """What is wanted of excerpts, shared out to tasks."""
        wanted = [self._wanted.part_of(each) for each in excerpts if self._wanted.has(each)]
        groups = _together(wanted, by_log=self._options.relation is Relation.TRANSACTIONS)
        return [Task(address, tuple(group), ends, cluster_id=cluster_id) for group, ends in groups]

    def _public(self, task: Task, rows: RowPieces) -> Iterator[pa.RecordBatch]:
        """The rows of a task as all queries read them, and a row for each part that was not there to be read."""
        relation, names = self._options.relation, list(self._options.columns)
        schema = ARROW[relation]
        chosen = [each for each in schema.names if each in names] if names else schema.names
        yield pa.RecordBatch.from_pylist([], schema).select(chosen)
        made_public = self._made_public(task.cluster_id)
        unread = yield from _joined(rows, lambda some: made_public(some).select(chosen))
        for away in task.unavailable:
            values: dict[str, object] = {"broker": away.broker if away.broker >= 0 else None, "log_dir": away.log_dir}
            yield skipped_row(relation, {**values, "reason": UNAVAILABLE}).select(chosen)
        for part in unread:
            if 0 <= part.item < len(task.excerpts):
                yield _skipped(relation, task.excerpts[part.item], part).select(chosen)


@dataclass
class Task(InputPartition):
    """The work of one task: excerpts, of one agent or of log dirs here (address "").

    ``ongoing``: they end where their logs end. ``unavailable``: log dirs in which nothing was looked for. ``cluster_id``: "" not known.
    """

    address: str
    excerpts: tuple[Excerpt, ...]
    ongoing: bool
    unavailable: tuple[UnavailableDir, ...] = ()
    cluster_id: str = ""


_NO_WORK = Task("", (), ongoing=False)


def _nothing() -> Generator[pa.Table, None, list[UnreadPart]]:
    yield from ()
    return []


def _together(excerpts: Sequence[Excerpt], *, by_log: bool) -> Iterator[tuple[list[Excerpt], bool]]:
    """Excerpts in their order, as groups of about `TASK_BYTES`, and whether a group ends where a log ends.

    ``by_log``: a log is not divided, unless it has very many segments.
    """
    group: list[Excerpt] = []
    size = 0
    for item, each in enumerate(excerpts):
        group.append(each)
        size += each.bytes
        following = excerpts[item + 1] if item + 1 < len(excerpts) else None
        ends = following is None or following.log != each.log
        full = following is None or size + following.bytes > TASK_BYTES
        if len(group) >= TASK_EXCERPTS or (full and (ends or not by_log)):
            yield group, ends
            group, size = [], 0
    if group:
        yield group, True


def _joined(rows: RowPieces, public: Callable[[pa.Table], pa.RecordBatch]) -> Generator[pa.RecordBatch, None, list[UnreadPart]]:
    """The same rows, made public in fewer pieces: of `ROWS_TOGETHER` or more, but for the last."""
    pieces: list[pa.Table] = []
    count = 0
    while True:
        try:
            piece = next(rows)
        except StopIteration as end:
            if pieces:
                yield public(pa.concat_tables(pieces))
            unread: list[UnreadPart] = end.value
            return unread
        pieces.append(pa.Table.from_batches([piece]) if isinstance(piece, pa.RecordBatch) else piece)
        count += piece.num_rows
        if count >= ROWS_TOGETHER:
            yield public(pa.concat_tables(pieces))
            pieces, count = [], 0


def _skipped(relation: Relation, excerpt: Excerpt, part: UnreadPart) -> pa.RecordBatch:
    values: dict[str, object] = {
        "broker": excerpt.broker,
        "log_dir": excerpt.log_dir,
        "topic": excerpt.topic,
        "partition": excerpt.partition,
        "topic_id": excerpt.topic_id or None,
        "missing_bytes": part.bytes,
        "reason": part.reason,
    }
    base = part.next_offset if part.next_offset >= 0 else None
    if relation is Relation.RANGES:
        values |= {"segment": excerpt.segment, "start_position": part.position, "end_position": part.position + part.bytes}
        values |= {"base_offset": base}
    if relation is Relation.BATCHES:
        values |= {"segment": excerpt.segment, "position": part.position, "base_offset": base}
    return skipped_row(relation, values)


@dataclass(frozen=True, slots=True)
class PushedFilters:
    """The logs that a query wants: topics and partitions (None: all), batches by their base offsets, and by time.

    ``reached_offset``: no batch that ends before it is wanted. ``timestamp``: Unix milliseconds; nothing before the first batch that has a
    record of then or later is wanted. -1: no such bound.
    """

    topics: frozenset[str] | None = None
    partitions: frozenset[int] | None = None
    from_offset: int = 0
    until_offset: int = EVERYTHING
    reached_offset: int = 0
    timestamp: int = -1

    def has_log(self, topic: str, partition: int) -> bool:
        """Whether rows of a log can be wanted."""
        return (self.topics is None or topic in self.topics) and (self.partitions is None or partition in self.partitions)

    def has(self, excerpt: Excerpt) -> bool:
        """Whether rows of an excerpt can be wanted."""
        return (
            self.has_log(excerpt.topic, excerpt.partition)
            and excerpt.until_offset > max(self.from_offset, self.reached_offset)
            and excerpt.from_offset < self.until_offset
        )

    def part_of(self, excerpt: Excerpt) -> Excerpt:
        """What is wanted of an excerpt."""
        return replace(
            excerpt,
            from_offset=max(excerpt.from_offset, self.from_offset),
            until_offset=min(excerpt.until_offset, self.until_offset),
        )

    def narrowed(self, selection: Selection) -> Selection | None:
        """The part of a selection that is wanted; None if that is nothing."""
        wanted = None if self.topics is None else frozenset(filter(selection.has_topic, self.topics))
        topics = _common(selection.topics, wanted)
        partitions = _common(selection.partitions, self.partitions)
        return None if topics is None or partitions is None else replace(selection, topics=topics, partitions=partitions)


def _common(selected: Sequence[Any], wanted: frozenset[Any] | None) -> tuple[Any, ...] | None:
    """Values that are in both; of a selection, no values stand for all. None: there are none."""
    if wanted is None:
        return tuple(selected)
    both = wanted.intersection(selected) if selected else wanted
    return tuple(sorted(both)) or None


class _Pushing:
    """A reader's `pushFilters`. PySpark refuses a reader that has one of its own while ``spark.sql.python.filterPushdown.enabled`` is off,
    which it is by default. By ``__func__`` PySpark finds out: so this one looks like that of every reader.
    """

    def __init__(self, push: Callable[[list[Filter]], Iterable[Filter]]) -> None:
        self._push = push
        self.__func__ = DataSourceReader.pushFilters

    def __call__(self, filters: list[Filter]) -> Iterable[Filter]:
        return self._push(filters)


def take(filters: Iterable[Filter], relation: Relation) -> tuple[PushedFilters, list[Filter]]:
    """What some filters want, and those that Spark still has to check.

    Topics and partitions are the same for all rows of a log, so nothing is left to check. Offsets and times only exclude what cannot be
    wanted, and only of batches and records: a range would begin elsewhere, and so be another one.
    """
    wanted, left = PushedFilters(), []
    for each in filters:
        narrowed = _logs(wanted, each)
        if narrowed is None:
            left.append(each)
            narrowed = _rows(wanted, each) if relation in _CUT else wanted
        wanted = narrowed
    return wanted, left


def _logs(wanted: PushedFilters, each: Filter) -> PushedFilters | None:
    """What is wanted with a filter on topic or partition as well; None if the filter is another one."""
    if not isinstance(each, EqualTo | In) or each.attribute not in (("topic",), ("partition",)):
        return None
    values = each.value if isinstance(each, In) else (each.value,)
    kind = str if each.attribute == ("topic",) else int
    if any(type(value) is not kind for value in values):  # a null fits nothing, and is Spark's to compare
        return None
    if kind is str:
        return replace(wanted, topics=frozenset(values) if wanted.topics is None else wanted.topics & frozenset(values))
    return replace(wanted, partitions=frozenset(values) if wanted.partitions is None else wanted.partitions & frozenset(values))


def _rows(wanted: PushedFilters, each: Filter) -> PushedFilters:
    """What is wanted with what a filter says of offsets or times as well."""
    if not isinstance(each, (EqualTo, *_BEFORE, *_AFTER)):
        return wanted
    (name, *inner), value = each.attribute, each.value
    if inner:
        return wanted
    if name == "max_timestamp" and isinstance(value, datetime) and value.tzinfo is not None and isinstance(each, (EqualTo, *_AFTER)):
        return replace(wanted, timestamp=max(wanted.timestamp, (value - _EPOCH) // timedelta(milliseconds=1)))
    if name not in ("base_offset", "last_offset", "offset") or type(value) is not int:
        return wanted
    if isinstance(each, (EqualTo, *_BEFORE)):  # a batch begins before it ends
        wanted = replace(wanted, until_offset=min(wanted.until_offset, value + (not isinstance(each, LessThan))))
    if isinstance(each, (EqualTo, *_AFTER)):
        least = value + isinstance(each, GreaterThan)
        if name == "last_offset":
            return replace(wanted, reached_offset=max(wanted.reached_offset, least))
        wanted = replace(wanted, from_offset=max(wanted.from_offset, least))
    return wanted


def scan_of(relation: Relation) -> Scan:
    """How the batches of a relation are scanned."""
    return Scan(relation.value)
