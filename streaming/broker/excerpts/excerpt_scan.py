"""Scans excerpts one after the other, as one kind of rows, and goes on where one of them is gone or damaged."""

import logging
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import TypeVar

import numpy as np
import pyarrow as pa

from streaming.broker.disk.locate import window
from streaming.broker.disk.logdirs import LogDir
from streaming.broker.disk.segment_files import list_segments
from streaming.broker.excerpts.excerpt_transactions import ENDED, Ended, end_transactions, open_at
from streaming.broker.excerpts.excerpt_walk import OpenExcerpt, Unread, WalkedPart, name_of, opened, partition_of, parts_of
from streaming.broker.journal.range_values import decode_steps, encode_steps
from streaming.broker.protocol.event_tables import events_table
from streaming.broker.protocol.excerpt_messages import Excerpt, Scan, UnreadPart
from streaming.common.arrays import Longs
from streaming.common.event_row import Event
from streaming.common.log_key import LogKey
from streaming.common.rows import BATCHES, CODECS, TRANSACTION_ROWS, Kind
from streaming.errors import AgentError, GoneError
from streaming.kafka.formats.layout import CURRENT_MAGIC, TIMESTAMP_TYPE_BIT, TRANSACTIONAL_BIT
from streaming.kafka.scan.pieces import Scanned, by_epoch
from streaming.kafka.scan.sums import COUNTS
from streaming.kafka.scan.transaction_steps import Steps, understood_steps
from streaming.rules.transaction_fold import NO_TRANSACTIONS, Transactions

log = logging.getLogger(__name__)

_CODECS = pa.array(CODECS)
_MOST_MS = ((1 << 63) - 1) // 1000

NO_FRONTIER = -1
"""Nothing was published before."""

DELETED = "deleted"
CORRUPT = "corrupt: {}"

_AT_ONCE = 256
"""So many ranges are one table: 2 GiB of large batches, or 256 segments of a quiet log."""

R = TypeVar("R", pa.RecordBatch, Event)

NO_SEQ = -1
"""The seq of a range that no journal has."""

LeadsIn = Callable[[LogKey, int], int]
"""Whether a log's replica led in a leader epoch: 1, 0, or -1 if that is not known."""


def _nobody_knows(_: LogKey, _epoch: int) -> int:
    return -1


def scan_excerpts(
    log_dirs: Sequence[LogDir], excerpts: Sequence[Excerpt], scan: Scan, *, ongoing: bool = False, leads: LeadsIn = _nobody_knows
) -> Generator[pa.RecordBatch, None, list[UnreadPart]]:
    """The rows of excerpts: `streaming.common.rows.BATCHES`, `streaming.common.event_row.EVENTS` or `TRANSACTION_ROWS`.

    Returns what was not there to be read.

    Args:
        excerpts: those of one log follow each other, in its order.
        ongoing: of transactions, a row also for each that is open at the end of each log.
        leads: says of ranges whether the replica led.

    Raises:
        AgentError: an excerpt is not valid, or a segment cannot be read now.
    """
    unread: list[UnreadPart] = []
    if scan is Scan.TRANSACTIONS:
        for _, own in groupby(enumerate(excerpts), lambda each: each[1].log):
            yield from _transactions(log_dirs, list(own), unread, ongoing=ongoing)
        return unread
    if scan is Scan.RANGES:
        ranges = _each(ranges_of, log_dirs, enumerate(excerpts), unread)
        yield from _tables(replace(each, leads=leads(each.log, each.log_epoch)) for each in ranges)
        return unread
    yield from _each(batches_of, log_dirs, enumerate(excerpts), unread)
    return unread


def _transactions(
    log_dirs: Sequence[LogDir], excerpts: list[tuple[int, Excerpt]], unread: list[UnreadPart], *, ongoing: bool
) -> Iterator[pa.RecordBatch]:
    """The transactions of one log. At its beginning, and after what cannot be read, its files show what is open."""
    transactions: Transactions = NO_TRANSACTIONS
    known_gaps = -1  # the number of gaps when it was looked what is open: a new one asks for another look
    for event in _each(ranges_of, log_dirs, iter(excerpts), unread):
        if known_gaps != len(unread):
            transactions, known_gaps = _open_before(log_dirs, excerpts[0][1], event, transactions), len(unread)
        transactions, ended = end_transactions(transactions, decode_steps(event.transactions))
        if len(ended):
            yield ended_rows(event.log, event.log_dir, ended)
    if ongoing and len(transactions):
        of = excerpts[0][1]
        yield open_rows(LogKey(of.broker, of.topic, of.partition, of.topic_id), of.log_dir, transactions)


def _each(
    read: Callable[[Sequence[LogDir], Excerpt], Generator[R, None, Unread | None]],
    log_dirs: Sequence[LogDir],
    excerpts: Iterator[tuple[int, Excerpt]],
    unread: list[UnreadPart],
) -> Iterator[R]:
    """What is read of each excerpt. Parts that are not there any more, or are damaged, are added to ``unread``."""
    for item, excerpt in excerpts:
        try:
            rest = yield from read(log_dirs, excerpt)
        except GoneError as error:
            log.info("an excerpt is not read", extra={"error": str(error)})
            unread.append(UnreadPart(item=item, position=excerpt.begin, bytes=excerpt.bytes, next_offset=-1, reason=DELETED))
        else:
            if rest is not None:
                reason = CORRUPT.format(rest.reason)
                unread.append(UnreadPart(item=item, position=rest.position, bytes=rest.bytes, next_offset=rest.next_offset, reason=reason))


def ranges_of(log_dirs: Sequence[LogDir], excerpt: Excerpt) -> Generator[Event, None, Unread | None]:
    """Events of kind APPENDED, each of whole batches of one leader epoch, 8 MiB or one batch at most.

    The batches of an excerpt as ranges with their sums, as an agent publishes those that it sees being appended.

    Returns what of the excerpt cannot be read, None if that is nothing. Whether the replica led is not known (``leads`` -1), nor when
    batches came, and how late.

    Raises:
        GoneError: its segment is not there any more.
        AgentError: the excerpt is not valid, or its segment cannot be read now.
    """
    buffer = window()
    with opened(log_dirs, excerpt) as segment:
        times = segment.times()
        for part in parts_of(segment, buffer):
            if isinstance(part, Unread):
                return part
            for piece, start in by_epoch(part.scanned, part.start, NO_FRONTIER):
                understood, steps = understood_steps(piece, buffer, start, lambda: times)
                if understood.sums is not None:
                    yield _event(segment, part.position + start, part.position + understood.end, understood, steps)
                if understood is not piece:
                    return _at_marker(segment, part, understood)
    return None


def _event(segment: OpenExcerpt, start: int, end: int, scanned: Scanned, steps: Steps) -> Event:
    sums, partition = scanned.sums, segment.partition
    assert sums is not None
    return Event(
        kind=Kind.APPENDED,
        broker=partition.log_dir.broker,
        log_dir=str(partition.log_dir.path),
        topic=partition.topic,
        partition=partition.partition,
        topic_id=partition.topic_id,
        segment=segment.excerpt.segment,
        start_position=start,
        end_position=end,
        base_offset=sums.base_offset,
        next_offset=sums.next_offset,
        log_epoch=sums.leader_epoch,
        max_timestamp=sums.max_timestamp,
        transactions=encode_steps(steps),
        **{name: getattr(sums, name) for name in COUNTS},
    )


def _at_marker(segment: OpenExcerpt, part: WalkedPart, understood: Scanned) -> Unread:
    """The rest of the excerpt, from a marker on that is not understood."""
    position = part.position + understood.end
    next_offset = int(part.batches.base_offset[0]) if understood.sums is None else understood.sums.next_offset
    end = min(segment.excerpt.end, segment.file.size())
    return Unread(position, max(0, end - position), next_offset, understood.flaw or "")


def _open_before(log_dirs: Sequence[LogDir], excerpt: Excerpt, event: Event, before: Transactions) -> Transactions:
    """What is open where a range begins; where the files do not show it, what was open ``before``."""
    directory = partition_of(log_dirs, excerpt).path
    try:
        there = open_at(directory, list_segments(directory), event.base_offset, window())
    except OSError as error:
        raise AgentError(f"{name_of(excerpt)} cannot be read: {error}") from error
    for doubt in there.doubts:
        log.warning("what is open in %s is not certain: %s", directory, doubt)
    return there.opened if there.whole else before


def ended_rows(log: LogKey, log_dir: str, ended: Ended) -> pa.RecordBatch:
    """The rows of transactions that ended in a log."""
    count = len(ended)
    named = log._asdict() | {"log_dir": log_dir}
    columns = [
        pa.repeat(pa.scalar(named[each.name], each.type), count)
        if each.name in named
        else pa.array(np.ascontiguousarray(ended[each.name])).cast(each.type)
        for each in TRANSACTION_ROWS
    ]
    return pa.RecordBatch.from_arrays(columns, schema=TRANSACTION_ROWS)


def open_rows(log: LogKey, log_dir: str, transactions: Transactions) -> pa.RecordBatch:
    """The rows of transactions that are open in a log."""
    rows = np.zeros(len(transactions), ENDED)
    for name in transactions.dtype.names or ():
        rows[name] = transactions[name]
    rows["end_ms"] = -1
    return ended_rows(log, log_dir, rows)


def _tables(events: Iterator[Event]) -> Iterator[pa.RecordBatch]:
    some: list[Event] = []
    for event in events:
        some.append(event)
        if len(some) == _AT_ONCE:
            yield from events_table("", "", [(NO_SEQ, some)]).to_batches()
            some = []
    if some:
        yield from events_table("", "", [(NO_SEQ, some)]).to_batches()


def batches_of(log_dirs: Sequence[LogDir], excerpt: Excerpt) -> Generator[pa.RecordBatch, None, Unread | None]:
    """The rows of an excerpt (`streaming.common.rows.BATCHES`); returns what of it cannot be read, None if that is nothing.

    The record batches of an excerpt as rows, one for each, made when they are read.

    Raises:
        GoneError: its segment is not there any more.
        AgentError: the excerpt is not valid, or its segment cannot be read now.
    """
    with opened(log_dirs, excerpt) as segment:
        for part in parts_of(segment, window()):
            if isinstance(part, Unread):
                return part
            yield _rows(segment, part)
    return None


def _rows(segment: OpenExcerpt, part: WalkedPart) -> pa.RecordBatch:
    batches, partition = part.batches, segment.partition
    count, current = len(batches), batches.magic == CURRENT_MAGIC

    def producer(field: str) -> Longs:
        values: Longs = np.where(current, batches.headers[field].astype(np.int64), -1)
        return values

    columns = {
        "broker": pa.repeat(partition.log_dir.broker, count),
        "log_dir": pa.repeat(str(partition.log_dir.path), count),
        "topic": pa.repeat(partition.topic, count),
        "partition": pa.repeat(partition.partition, count),
        "topic_id": pa.repeat(partition.topic_id, count),
        "segment": pa.repeat(segment.excerpt.segment, count),
        "position": batches.positions + part.position,
        "size": batches.size,
        "base_offset": batches.base_offset,
        "last_offset": batches.last_offset,
        "records": batches.records,
        "leader_epoch": batches.leader_epoch,
        "magic": batches.magic,
        "codec": _CODECS.take(pa.array(batches.codec)),
        "transactional": current & ((batches.attributes & TRANSACTIONAL_BIT) != 0),
        "control": batches.control,
        "log_append_time": (batches.attributes & TIMESTAMP_TYPE_BIT) != 0,
        "max_timestamp": _times(batches.max_timestamp),
        "producer_id": producer("producer_id"),
        "producer_epoch": producer("producer_epoch"),
        "base_sequence": producer("base_sequence"),
    }
    arrays = [pa.array(values).cast(BATCHES.field(name).type) for name, values in columns.items()]
    return pa.RecordBatch.from_arrays(arrays, schema=BATCHES)


def _times(milliseconds: Longs) -> pa.Array:
    """None where there is none, or a client has written one that no timestamp can hold."""
    held = (milliseconds >= 0) & (milliseconds <= _MOST_MS)
    return pa.array(np.where(held, milliseconds, 0) * 1000, pa.int64(), mask=~held)
