"""Answers where offsets lie in their logs, by the ladders, and whether a batch is sound. A silent log dir delays its own logs alone."""

import logging
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import astuple, replace
from functools import partial
from pathlib import Path

import pyarrow as pa

from streaming.broker.agent.dir_threads import DirCalls
from streaming.broker.agent.laddered_log import LadderedLog
from streaming.broker.agent.ladders import Ladders
from streaming.broker.disk.damaged_batches import BAD_CRC, damaged_batches
from streaming.broker.disk.locate import BatchBoundary, beginning, find_offset, scan_on, window
from streaming.broker.disk.segment_files import OpenSegment, Segment
from streaming.broker.ladder.opened_batches import OpenedBatches
from streaming.broker.ladder.positions import Position, PositionState, positions
from streaming.broker.protocol.group_json import BatchCheck
from streaming.broker.protocol.group_messages import MOST_POSITIONS, POSITIONS, POSITIONS_ASKED
from streaming.common.codecs import CODECS
from streaming.common.log_key import LogKey
from streaming.kafka.formats.layout import CURRENT_MAGIC
from streaming.kafka.scan.pieces import Scanned
from streaming.kafka.scan.walk import Bytes

log = logging.getLogger(__name__)

SECONDS = 10.0
"""How long a request waits for a log dir. What is not known by then is answered as not filled yet."""

PositionAnswer = tuple[str, Position]
"""The edition of the ladder, "" for none, and the position."""

_Log = list[tuple[int, int, int, bool]]  # rows of a log: the row, the offset, up to where the next record is looked for, of which isolation


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
                known.view,
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
        yield row, (known.view.edition, position)


def positions_table(questions: pa.Table, answers: Sequence[PositionAnswer]) -> pa.Table:
    """The positions (`POSITIONS`), one answer for each row of `POSITIONS_ASKED`."""
    rows = [(edition, position.state.name.lower(), *astuple(position)[2:]) for edition, position in answers]
    columns = list(zip(*rows, strict=True)) or [()] * (len(POSITIONS) - len(POSITIONS_ASKED))
    added = [pa.array(column, field.type) for column, field in zip(columns, list(POSITIONS)[len(POSITIONS_ASKED) :], strict=True)]
    return pa.Table.from_arrays([*(questions[name] for name in POSITIONS_ASKED.names), *added], schema=POSITIONS)


MOST_BYTES = 256 << 20
"""A larger batch is not read: its CRC is not checked."""


def check_batch(segments: Sequence[Segment], offset: int) -> BatchCheck:
    """Check the batch that holds an offset; where there is none, the next one after it.

    Raises:
        OSError: a segment is gone or cannot be read.
    """
    buffer = window()
    boundary = find_offset(segments, offset, buffer)
    while True:
        with boundary.segment.open() as file:
            scanned = scan_on(file, boundary.position, boundary.next_offset, buffer)
            if len(scanned.batches) or scanned.flaw is not None:
                return _checked(file, boundary, scanned, buffer)
        following = [segment for segment in segments if segment.base_offset > boundary.segment.base_offset]
        if not following:
            return BatchCheck(sound=True, error="the log ends there")
        boundary = beginning(following[0])


def _checked(file: OpenSegment, boundary: BatchBoundary, scanned: Scanned, buffer: Bytes) -> BatchCheck:
    if not len(scanned.batches):
        return BatchCheck(
            sound=False,
            error=scanned.flaw or "",
            position=boundary.position,
            segment=boundary.segment.base_offset,
            file=str(boundary.segment.path),
        )
    batch = scanned.batches.take(slice(0, 1))
    error = _crc_error(file, boundary, scanned, buffer)
    return BatchCheck(
        sound=not error,
        error=error,
        base_offset=int(batch.base_offset[0]),
        last_offset=int(batch.last_offset[0]),
        size=int(batch.size[0]),
        codec=CODECS[int(batch.codec[0])],
        records=int(batch.records[0]),
        producer_id=int(batch.headers["producer_id"][0]) if batch.magic[0] == CURRENT_MAGIC else -1,
        position=boundary.position,
        segment=boundary.segment.base_offset,
        file=str(boundary.segment.path),
    )


def _crc_error(file: OpenSegment, boundary: BatchBoundary, scanned: Scanned, buffer: Bytes) -> str:
    if int(scanned.batches.size[0]) > MOST_BYTES:
        return ""
    wrong = damaged_batches(file, boundary.position, scanned, buffer)
    return BAD_CRC if len(wrong) and wrong[0] == 0 else ""
