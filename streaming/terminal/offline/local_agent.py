"""Answers in this process what a job asks of agents about consumer groups: where offsets lie in logs, and whether a batch is sound."""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import numpy as np
import pyarrow as pa

from streaming.broker.agent.cluster_view import ClusterView
from streaming.broker.agent.group_answers import PositionAnswer, positions_table
from streaming.broker.agent.next_batch import check_batch
from streaming.broker.disk.locate import without_replaced
from streaming.broker.disk.scanning import kept_window
from streaming.broker.disk.segment_files import list_segments
from streaming.broker.ladder.append_bounds import AppendBounds
from streaming.broker.ladder.positions import CountedLog, Position, PositionState, count_log
from streaming.broker.protocol.group_json import BatchCheck
from streaming.broker.protocol.group_messages import POSITIONS_ASKED, BatchRequest
from streaming.cluster.consumers.commit_times import AppendedNext, with_seen
from streaming.cluster.consumers.group_lag import ABSENT, Lags
from streaming.cluster.consumers.group_logs import GroupLogs
from streaming.cluster.consumers.group_questions import distinct
from streaming.common.arrays import Longs
from streaming.common.log_key import LogKey
from streaming.common.units import format_word
from streaming.errors import AgentError, FormatError
from streaming.kafka.groups.commit_table import CommitRows
from streaming.kafka.scan.walk import Bytes
from streaming.terminal.offline.coordinator_logs import AsOf
from streaming.terminal.offline.doubts import damage_advice, missing_offsets

log = logging.getLogger(__name__)

A = TypeVar("A")

_TRIES = 3

_EDITION = "counted"
"""All positions of a log can be compared: after it was counted again, a caller that compares them has to ask for all of them again."""


class LocalAgent:
    """The agent of logs that are read once. Only one thread uses it.

    Args:
        directories: where the logs are.
        cluster: tells which logs are compacted.
        paced: called with the number of bytes after each read; it may wait.
    """

    def __init__(self, directories: Mapping[LogKey, Path], cluster: ClusterView, paced: Callable[[int], None]) -> None:
        self._directories = directories
        self._cluster = cluster
        self._paced = paced
        self._buffer = kept_window()
        self._counted: dict[LogKey, CountedLog | None] = {}
        self.doubts: list[str] = []
        """What could not be read, or is damaged, in sentences."""
        self.doubted: set[LogKey] = set()
        """The logs that they are about, if these were to be counted."""
        self.replaced: set[LogKey] = set()
        """The logs of which files were deleted or replaced since they were counted, so that positions are not known."""

    def count(self, begins: Mapping[LogKey, int]) -> None:
        """Count logs, each from an offset on. Of the others, and of what is before, no position is known."""
        for key, begin in begins.items():
            self.replaced.discard(key)
            before = len(self.doubts)
            counted = self._counted[key] = self._count(self._directories[key], begin)
            if len(self.doubts) > before:
                self.doubted.add(key)
            missing = () if counted is None else missing_offsets(self._cluster, key, counted, begin)
            self.doubts += [each for each in missing if each not in self.doubts]

    def positions(self, question: pa.Table) -> pa.Table:
        """As `streaming.spark.client.agent_client.AgentClient.positions`."""
        by_log: dict[tuple[LogKey, int, bool], list[tuple[int, int]]] = {}
        columns = (question[name].to_pylist() for name in POSITIONS_ASKED.names)
        for row, (broker, topic, topic_id, partition, offset, upto, reads_uncommitted) in enumerate(zip(*columns, strict=True)):
            by_log.setdefault((LogKey(broker, topic, partition, topic_id), upto, reads_uncommitted > 0), []).append((row, offset))
        answers: dict[int, PositionAnswer] = {}
        for (key, upto, reads_uncommitted), rows in by_log.items():
            found = self._positions(key, upto, [offset for _, offset in rows], reads_uncommitted=reads_uncommitted)
            answers |= zip((row for row, _ in rows), found, strict=True)
        return positions_table(question, [answers[row] for row in range(len(question))])

    def appended(self, key: LogKey, offset: int, timestamp: int, now_ms: int) -> AppendBounds:
        """When a record of a log that was counted was appended, by what its files show; nothing where they cannot be read any more."""
        counted = self._counted.get(key)
        if counted is not None:
            with suppress(FormatError, OSError):
                return counted.appended(offset, timestamp, now_ms)
        return AppendBounds(0, now_ms)

    def batch(self, request: BatchRequest) -> BatchCheck:
        """As `streaming.spark.client.agent_client.AgentClient.batch`."""
        directory = self._directories[LogKey(request.broker, request.topic, request.partition, request.topic_id)]
        try:
            return check_batch(list_segments(directory), request.offset)
        except OSError as error:
            self.doubts.append(f"{format_word(str(directory))}: the batch at {request.offset} cannot be read: {error}")
            raise AgentError(str(error)) from error

    def _positions(self, key: LogKey, upto: int, offsets: list[int], *, reads_uncommitted: bool) -> Iterator[PositionAnswer]:
        if key not in self._counted:
            return (("", Position(offset, PositionState.FILLING)) for offset in offsets)
        counted = self._counted[key]
        if counted is None:
            return ((_EDITION, Position(offset, PositionState.DAMAGED)) for offset in offsets)
        found = counted.positions(offsets, upto, reads_uncommitted=reads_uncommitted)
        if any(position.state is PositionState.FILLING for position in found):
            self.replaced.add(key)
        return ((_EDITION, position) for position in map(_as_damage, found))

    def _count(self, directory: Path, begin: int) -> CountedLog | None:
        try:
            counted = count_directory(directory, begin, self._buffer, self._paced)
        except (FormatError, OSError) as error:
            log.warning("log cannot be counted", extra={"path": str(directory), "error": str(error)})
            self.doubts.append(f"{format_word(str(directory))} cannot be counted: {error}")
            return None
        if damage := counted.damage(begin):
            doubt = f"what groups have left to read is not known where it is damaged: {damage}. {damage_advice(directory, damage)}"
            self.doubts += [doubt] if doubt not in self.doubts else []
        return counted


def _as_damage(position: Position) -> Position:
    """A position BEYOND the end as DAMAGED: no process appends to a counted log, so what the high watermark has more is damaged or gone."""
    return Position(position.offset, PositionState.DAMAGED) if position.state is PositionState.BEYOND else position


def count_directory(directory: Path, begin: int, buffer: Bytes, paced: Callable[[int], None]) -> CountedLog:
    """Count a log from an offset on, also while its broker deletes or compacts segments.

    Raises:
        OSError: it cannot be read, or has no segment.
        FormatError: it is not understood.
    """
    for _ in range(_TRIES):
        segments = list_segments(directory)
        if not segments:
            break
        with suppress(FileNotFoundError):  # of a segment that went meanwhile: the next try lists the others again
            return count_log(without_replaced(segments, buffer), begin, buffer, paced)
    raise FileNotFoundError(f"{directory} has no segments that stay")


def ask_locally(calls: Mapping[str, Callable[[], A]]) -> dict[str, A]:
    """Make some calls, one after the other; those that fail have left their doubts."""
    return dict(_answered(calls.items()))


def _answered(calls: Iterable[tuple[str, Callable[[], A]]]) -> Iterator[tuple[str, A]]:
    for name, call in calls:
        try:
            yield name, call()
        except AgentError as error:
            log.info("a consumer group is shown without what its log shows", extra={"of": name, "error": str(error)})


class DiskPast:
    """As `GroupPast`. ``agent``: of the logs that groups read, which it has counted by the time that it is asked."""

    def __init__(self, as_of: Iterable[AsOf], agent: LocalAgent, now_ms: int) -> None:
        self._since = {key: value for each in as_of for key, value in each.since.items()}
        self._agent, self._now_ms = agent, now_ms

    def since(self, rows: CommitRows) -> Longs:
        """Since when commits stand, by the coordinators' logs."""
        keys = zip(rows.group.tolist(), rows.topic.tolist(), rows.partition.tolist(), rows.offset.tolist(), strict=True)
        stands = (
            (self._since.get((rows.group_names[group], rows.topic_names[topic], partition)), offset)
            for group, topic, partition, offset in keys
        )
        return np.array([ABSENT if held is None or held[0] != offset else held[1] for held, offset in stands], np.int64)

    def appended(self, logs: GroupLogs, lags: Lags) -> AppendedNext:
        """When the next records were appended. Each is looked up once, however many groups read it."""
        unseen = np.flatnonzero((lags.next_offset >= 0) & (lags.next_append_ms < 0))
        log, offset, of_item = distinct(logs.of_row[unseen], lags.next_offset[unseen])
        timestamp = np.empty(len(log), np.int64)
        timestamp[of_item] = lags.next_timestamp_ms[unseen]
        places = zip(log.tolist(), offset.tolist(), timestamp.tolist(), strict=True)
        bounds = [self._agent.appended(_key(logs, number), at, own, self._now_ms) for number, at, own in places]
        earliest, latest = (np.full(len(lags.start), ABSENT, np.int64) for _ in range(2))
        earliest[unseen] = np.array([each.earliest_ms for each in bounds], np.int64)[of_item]
        latest[unseen] = np.array([each.latest_ms for each in bounds], np.int64)[of_item]
        return with_seen(lags, earliest, latest)


def _key(logs: GroupLogs, number: int) -> LogKey:
    return LogKey(int(logs.broker[number]), logs.topics[number], int(logs.partition[number]), logs.topic_ids[number])
