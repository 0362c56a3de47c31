"""Answers where offsets lie in their logs, by the ladders. A log dir that is silent delays its own logs alone."""

import logging
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import astuple, replace
from functools import partial
from pathlib import Path

import pyarrow as pa

from streaming.broker.agent.dir_calls import DirCalls
from streaming.broker.agent.laddered_log import LadderedLog
from streaming.broker.agent.ladders import Ladders
from streaming.broker.ladder.opened_batches import OpenedBatches
from streaming.broker.ladder.positions import Position, PositionState, positions
from streaming.broker.protocol.group_messages import MOST_POSITIONS, POSITIONS, POSITIONS_ASKED
from streaming.common.log_key import LogKey

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
            found |= calls.call(path, partial(_of_logs, logs, opened, now_ms, partial(_in_time, clock, ends)), max(0.0, ends - clock()))
        except TimeoutError:
            log.warning("positions are not found in time", extra={"log_dir": str(path), "logs": len(logs)})
    answers = [found.get(row, ("", Position(offset, PositionState.FILLING))) for row, offset in enumerate(questions["offset"].to_pylist())]
    return positions_table(questions, answers)


def _in_time(clock: Callable[[], float], ends: float) -> bool:
    return clock() < ends


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
