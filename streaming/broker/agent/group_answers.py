"""The agent's answers about consumer groups, without the wire. Names that may not leave the host are replaced."""

from __future__ import annotations

import logging
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa

from streaming.broker.agent.dir_work import DirCalls
from streaming.broker.agent.group_following import GroupFollowing
from streaming.broker.agent.jobs import Jobs
from streaming.broker.agent.laddered_log import LadderedLog
from streaming.broker.agent.ladders import Ladders
from streaming.broker.agent.next_batch import check_batch
from streaming.broker.disk.availability import LogDirs
from streaming.broker.disk.locate import batches_between, window
from streaming.broker.disk.opening import bytes_read
from streaming.broker.disk.segment_files import Segment, list_segments
from streaming.broker.journal.journal import Journal
from streaming.broker.ladder.positions import Position, PositionState, positions
from streaming.broker.ladder.stretch import OpenedBatches
from streaming.broker.protocol.group_json import BatchCheck
from streaming.broker.protocol.group_messages import (
    MOST_POSITIONS,
    POSITIONS,
    POSITIONS_ASKED,
    RECORDS,
    BatchRequest,
    FollowedLog,
    GroupsRequest,
    JournalEnd,
    PositionsRequest,
    RecordsRequest,
)
from streaming.broker.protocol.group_stream import groups_messages, records_messages, table_message
from streaming.broker.protocol.status_messages import PendingCommits
from streaming.broker.watcher.tail import Tail
from streaming.common.log_key import LogKey, key_of
from streaming.common.short_names import short_name
from streaming.errors import AgentError, FormatError
from streaming.kafka.formats.consumer_offsets import OffsetCommitKey, read_offsets_key
from streaming.kafka.formats.entries import read_entry_records
from streaming.kafka.formats.names import OFFSETS_TOPIC
from streaming.kafka.groups.group_rows import GroupChanges
from streaming.kafka.scan.headers import Batches
from streaming.kafka.scan.walk import Bytes

log = logging.getLogger(__name__)

SECONDS = 10.0
"""How long a request waits for a log dir. A position that is not known by then is answered as not filled yet."""

PositionAnswer = tuple[str, Position]
"""The edition of the ladder, "" for none, and the position."""

_Log = list[tuple[int, int, int, bool]]  # rows of a log: the row, the offset, up to where the next record is looked for, of which isolation

MOST_GROUPS = 10
"""The most groups that are named; a transactional application mostly has one."""

READ_BYTES = 4 << 20
"""About how many bytes of the log are read for one transaction."""

_WINDOW_BYTES = 256 << 10
_END = 2**63 - 1

BATCH_SECONDS = 20.0
"""How long a log dir may take until a batch is checked."""

MOST_ANSWERED = 20
"""The most transactions that one request may contain: each needs a read of a log."""


@dataclass(frozen=True, slots=True)
class GroupAnswers:
    """Answers the calls about consumer groups, on the threads of the server.

    Args:
        tails: the logs that are watched at this moment.
        calls: make the calls into log dirs.
        ladders: None if no log is counted.
        clock: the present time, in seconds.
        redact: makes the form of a name that may leave the host; None if names leave it as they are.
    """

    journal: Journal
    jobs: Jobs
    log_dirs: LogDirs
    tails: Callable[[], list[Tail]]
    following: GroupFollowing
    calls: DirCalls
    ladders: Ladders | None = None
    clock: Callable[[], float] = time.time
    redact: Callable[[str], str] | None = None

    def groups(self, request: GroupsRequest, principal: str = "") -> Iterator[bytes | pa.Buffer]:
        """The messages of what has changed in the coordinators' logs."""

        def end() -> JournalEnd:
            return JournalEnd(journal=self.jobs.journal(principal, request.consumer), seq=self.journal.end().seq)

        return groups_messages(map(self._redacted, self.following.changes(request.known)), end)

    def _redacted(self, each: GroupChanges | FollowedLog) -> GroupChanges | FollowedLog:
        if self.redact is None or isinstance(each, FollowedLog):
            return each
        return replace(
            each,
            commits=_replaced(each.commits, self.redact, "group"),
            pending=_replaced(each.pending, self.redact, "group"),
            groups=_replaced(each.groups, self.redact, "group", "clients", "hosts", "rebalance_clients", "rebalance_hosts"),
        )

    def positions(self, request: PositionsRequest) -> Iterator[bytes | pa.Buffer]:
        """Where offsets lie in their logs, in one message. Without ladders, nothing is known of any."""
        yield table_message(find_positions(self.ladders, self.calls, request.table(), round(1000 * self.clock())).combine_chunks())

    def records(self, request: RecordsRequest) -> Iterator[bytes | pa.Buffer]:
        """The messages of how many records logs have."""
        if self.ladders is None:
            return records_messages("", 0, whole=True, rows=pa.RecordBatch.from_pylist([], RECORDS))
        totals = self.ladders.totals
        number, whole, rows = totals.changes(request.process, request.number)
        return records_messages(totals.process, number, whole=whole, rows=rows)

    def check_batch(self, request: BatchRequest) -> BatchCheck:
        """Check the batch at an offset. Raises AgentError: the log is not here, or cannot be read now."""
        key = LogKey(request.broker, request.topic, request.partition, request.topic_id)
        tail = next((tail for tail in self.tails() if tail.cursor.log == key), None)
        if tail is None or tail.away or tail.partition.log_dir.path in self.log_dirs.unavailable:
            raise AgentError(f"{key} is not here, or its log dir cannot be read now")
        path = tail.partition.path
        try:
            return self.calls.call(tail.partition.log_dir.path, lambda: check_batch(list_segments(path), request.offset), BATCH_SECONDS)
        except (OSError, TimeoutError) as error:
            raise AgentError(f"{key} cannot be read: {error}") from error


def _replaced(rows: pa.RecordBatch, redact: Callable[[str], str], *columns: str) -> pa.RecordBatch:
    """The rows with other names in columns of texts, or of lists of texts."""
    for column in columns:
        values = rows[column]
        texts = values.flatten() if pa.types.is_list(values.type) else values
        spelled = texts.dictionary_encode()
        names = pa.array([redact(name) for name in spelled.dictionary.to_pylist()], pa.string())
        changed = pa.DictionaryArray.from_arrays(spelled.indices, names).dictionary_decode()
        if pa.types.is_list(values.type):
            sizes = [0, *values.value_lengths().to_pylist()]
            changed = pa.ListArray.from_arrays(pa.array(np.cumsum(sizes), pa.int32()), changed)
        rows = rows.set_column(rows.schema.get_field_index(column), rows.schema.field(column), changed)
    return rows


def find_positions(
    ladders: Ladders | None, calls: DirCalls, questions: pa.Table, now_ms: int | None = None, clock: Callable[[], float] = time.monotonic
) -> pa.Table:
    """The positions (`POSITIONS`) of `POSITIONS_ASKED`, of the first `MOST_POSITIONS` rows. Where there is no ladder, the edition is "".

    Args:
        now_ms: as for `streaming.broker.ladder.positions.positions`.
    """
    questions = questions.slice(0, MOST_POSITIONS)
    ends, found = clock() + SECONDS, dict[int, PositionAnswer]()
    opened = OpenedBatches() if ladders is None else ladders.opened
    for path, logs in (_by_log_dir(ladders, questions) if ladders is not None else {}).items():
        try:
            found |= calls.call(path, partial(_of_logs, logs, opened, now_ms, lambda: clock() < ends), max(0.0, ends - clock()))
        except TimeoutError:
            log.warning("positions are not found in time", extra={"log_dir": str(path), "logs": len(logs)})
    answers = [found.get(row, ("", Position(offset, PositionState.FILLING))) for row, offset in enumerate(questions["offset"].to_pylist())]
    return positions_table(questions, answers)


def _by_log_dir(ladders: Ladders, questions: pa.Table) -> Mapping[Path, list[tuple[LadderedLog, _Log]]]:
    rows: dict[LogKey, _Log] = defaultdict(list)
    columns = (questions[name].to_pylist() for name in POSITIONS_ASKED.names)
    for row, (broker, topic, topic_id, partition, offset, upto, reads_uncommitted) in enumerate(zip(*columns, strict=True)):
        rows[LogKey(broker, topic, partition, topic_id)].append((row, offset, upto, reads_uncommitted > 0))
    found: dict[Path, list[tuple[LadderedLog, _Log]]] = defaultdict(list)
    for key, of_log in rows.items():
        one = ladders.of(key)
        if one is not None:
            found[one.tail.partition.log_dir.path].append((one, of_log))
    return found


def _of_logs(
    logs: Sequence[tuple[LadderedLog, _Log]], opened: OpenedBatches, now_ms: int | None, in_time: Callable[[], bool]
) -> dict[int, PositionAnswer]:
    found: dict[int, PositionAnswer] = {}
    for one, rows in logs:
        if not in_time():
            break
        found.update(_of_log(one, rows, opened, now_ms))
    return found


def _of_log(one: LadderedLog, rows: _Log, opened: OpenedBatches, now_ms: int | None) -> Iterator[tuple[int, PositionAnswer]]:
    known = one.known()
    if known is None:
        return
    alike: dict[tuple[int, bool], _Log] = defaultdict(list)
    for each in rows:
        alike[each[2:]].append(each)
    answers = [
        (row, position)
        for (upto, reads_uncommitted), some in alike.items()
        for (row, *_), position in zip(
            some,
            positions(
                known.segments,
                known.ladder,
                [offset for _, offset, *_ in some],
                upto,
                opened,
                reads_uncommitted=reads_uncommitted,
                now_ms=now_ms,
            ),
            strict=True,
        )
    ]
    if not one.holds(known):  # it was truncated meanwhile
        return
    read = one.tail.cursor.next_offset
    for row, position in answers:
        if position.state is PositionState.BEYOND and position.offset <= read:  # the watcher is further than the ladder
            position = replace(position, state=PositionState.FILLING)
        yield row, (known.ladder.edition, position)


def positions_table(questions: pa.Table, answers: Sequence[PositionAnswer]) -> pa.Table:
    """The positions (`POSITIONS`), one answer for each row of `POSITIONS_ASKED`."""
    rows = [(edition, position.state.name.lower(), *astuple(position)[2:]) for edition, position in answers]
    columns = list(zip(*rows, strict=True)) or [()] * (len(POSITIONS) - len(POSITIONS_ASKED))
    added = [pa.array(column, field.type) for column, field in zip(columns, list(POSITIONS)[len(POSITIONS_ASKED) :], strict=True)]
    return pa.Table.from_arrays([*(questions[name] for name in POSITIONS_ASKED.names), *added], schema=POSITIONS)


def answer(transactions: Iterable[PendingCommits], tails: Iterable[Tail], redact: Callable[[str], str]) -> Iterator[PendingCommits]:
    """Return those of the transactions whose logs are here and can be read, with their groups.

    Finds the consumer groups that wait for an open transaction in ``__consumer_offsets``: it contains commits of their offsets. The
    keys of its records name the groups. While it is open, none of these offsets is stable, and none of them expires.

    Args:
        redact: makes the name of a group that may leave the host.
    """
    wanted = [each for each in transactions if each.topic == OFFSETS_TOPIC][:MOST_ANSWERED]
    if not wanted:
        return
    there = {tail.cursor.log: tail for tail in tails}
    for each in wanted:
        tail = there.get(key_of(each))
        if tail is None or tail.away or not tail.resumed:
            continue
        try:
            found = waiting_groups(list_segments(tail.partition.path), each.producer_id, each.first_offset)
        except OSError as error:
            log.warning("groups that wait cannot be read", extra={"path": str(tail.partition.path), "error": str(error)})
            continue
        yield replace(each, groups=[redact(group) for group in found.groups], more=found.more)


def waiting_groups(segments: Sequence[Segment], producer_id: int, first_offset: int) -> PendingGroups:
    """The groups of a transaction that is open in a log of ``__consumer_offsets``. Damaged batches name no group.

    Raises:
        OSError: a segment is gone or cannot be read.
    """
    began, buffer, found, more = bytes_read(), window()[:_WINDOW_BYTES], dict[str, None](), False
    try:
        for batches, _ in batches_between(segments, first_offset, _END, buffer):
            for group in _groups(batches, buffer, producer_id):
                if group is None:
                    more = True
                else:
                    found[group] = None
            if len(found) > MOST_GROUPS or bytes_read() - began > READ_BYTES:
                return PendingGroups(tuple(found)[:MOST_GROUPS], True)
    except FormatError:  # a flaw of the log: the watcher publishes it when it reads the log
        more = True
    return PendingGroups(tuple(found), more)


@dataclass(frozen=True, slots=True)
class PendingGroups:
    """The groups that wait, by their short names, in the order of their commits. ``more``: there may be others."""

    groups: tuple[str, ...]
    more: bool


def _groups(batches: Batches, buffer: Bytes, producer_id: int) -> Iterator[str | None]:
    """The group of each commit, None for a damaged batch."""
    own = (batches.headers["producer_id"] == producer_id) & ~batches.control
    for item in own.nonzero()[0].tolist():
        position = int(batches.positions[item])
        try:
            for record in read_entry_records(buffer.data[position : position + int(batches.size[item])]) or ():
                key = read_offsets_key(record.key or b"")
                if isinstance(key, OffsetCommitKey):
                    yield short_name(key.group)
        except FormatError:
            yield None
