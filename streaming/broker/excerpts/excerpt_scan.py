"""Scans excerpts one after the other, as one kind of rows, and goes on where one of them is gone or damaged."""

import logging
from collections.abc import Generator, Iterator, Sequence
from itertools import groupby

import pyarrow as pa

from streaming.broker.disk.locate import window
from streaming.broker.disk.logdirs import LogDir
from streaming.broker.disk.segment_files import list_segments
from streaming.broker.excerpts.ended_rows import ended_rows, open_rows
from streaming.broker.excerpts.excerpt_batches import batches_of
from streaming.broker.excerpts.excerpt_files import name_of, partition_of
from streaming.broker.excerpts.excerpt_ranges import ranges_of
from streaming.broker.excerpts.excerpt_transactions import OpenThere, end_transactions, open_at
from streaming.broker.excerpts.excerpt_walk import Unread
from streaming.broker.journal.blobs import decode_steps
from streaming.broker.protocol.event_tables import events_table
from streaming.broker.protocol.excerpt_messages import Excerpt, Scan, UnreadPart
from streaming.common.event_row import Event
from streaming.common.log_key import LogKey
from streaming.errors import AgentError, GoneError
from streaming.rules.transaction_fold import NO_TRANSACTIONS, Transactions

log = logging.getLogger(__name__)

DELETED = "deleted"
CORRUPT = "corrupt: {}"

_AT_ONCE = 256
"""So many ranges are one table: 2 GiB of large batches, or 256 segments of a quiet log."""

NO_SEQ = -1
"""Of a range that no journal has."""


def scan_excerpts(
    log_dirs: Sequence[LogDir], excerpts: Sequence[Excerpt], scan: Scan, *, ongoing: bool = False
) -> Generator[pa.RecordBatch, None, list[UnreadPart]]:
    """The rows of excerpts: `streaming.common.rows.BATCHES`, `streaming.common.event_row.EVENTS` or `TRANSACTION_ROWS`.

    Returns what was not there to be read.

    Args:
        excerpts: those of one log follow each other, in its order.
        ongoing: of transactions, a row also for each that is open at the end of each log.

    Raises:
        AgentError: an excerpt is not valid, or a segment cannot be read now.
    """
    unread: list[UnreadPart] = []
    if scan is Scan.TRANSACTIONS:
        for _, own in groupby(enumerate(excerpts), lambda each: each[1].log):
            yield from _transactions(log_dirs, list(own), unread, ongoing=ongoing)
        return unread
    if scan is Scan.RANGES:
        yield from _tables(_each(log_dirs, enumerate(excerpts), unread))
        return unread
    for item, excerpt in enumerate(excerpts):
        try:
            _note(unread, item, (yield from batches_of(log_dirs, excerpt)))
        except GoneError as error:
            _note_gone(unread, item, excerpt, error)
    return unread


def _each(log_dirs: Sequence[LogDir], excerpts: Iterator[tuple[int, Excerpt]], unread: list[UnreadPart]) -> Iterator[Event]:
    for item, excerpt in excerpts:
        try:
            _note(unread, item, (yield from ranges_of(log_dirs, excerpt)))
        except GoneError as error:
            _note_gone(unread, item, excerpt, error)


def _note(unread: list[UnreadPart], item: int, rest: Unread | None) -> None:
    if rest is not None:
        reason = CORRUPT.format(rest.reason)
        unread.append(UnreadPart(item=item, position=rest.position, bytes=rest.bytes, next_offset=rest.next_offset, reason=reason))


def _note_gone(unread: list[UnreadPart], item: int, excerpt: Excerpt, error: GoneError) -> None:
    log.info("an excerpt is not read", extra={"error": str(error)})
    unread.append(UnreadPart(item=item, position=excerpt.begin, bytes=excerpt.bytes, next_offset=-1, reason=DELETED))


def _tables(events: Iterator[Event]) -> Iterator[pa.RecordBatch]:
    some: list[Event] = []
    for event in events:
        some.append(event)
        if len(some) == _AT_ONCE:
            yield from events_table("", "", [(NO_SEQ, some)]).to_batches()
            some = []
    if some:
        yield from events_table("", "", [(NO_SEQ, some)]).to_batches()


def _transactions(
    log_dirs: Sequence[LogDir], excerpts: list[tuple[int, Excerpt]], unread: list[UnreadPart], *, ongoing: bool
) -> Iterator[pa.RecordBatch]:
    """The transactions of one log. At its beginning, and after what cannot be read, its files show what is open."""
    transactions: Transactions = NO_TRANSACTIONS
    known_gaps = -1  # the number of gaps when it was looked what is open: a new one asks for another look
    for event in _each(log_dirs, iter(excerpts), unread):
        if known_gaps != len(unread):
            transactions, known_gaps = _open_before(log_dirs, excerpts[0][1], event, transactions), len(unread)
        transactions, ended = end_transactions(transactions, decode_steps(event.transactions))
        if len(ended):
            yield ended_rows(event.log, event.log_dir, ended)
    if ongoing and len(transactions):
        of = excerpts[0][1]
        yield open_rows(LogKey(of.broker, of.topic, of.partition, of.topic_id), of.log_dir, transactions)


def _open_before(log_dirs: Sequence[LogDir], excerpt: Excerpt, event: Event, before: Transactions) -> Transactions:
    """What is open where a range begins; where the files do not show it, what was open ``before``."""
    directory = partition_of(log_dirs, excerpt).path
    try:
        there: OpenThere = open_at(directory, list_segments(directory), event.base_offset, window())
    except OSError as error:
        raise AgentError(f"{name_of(excerpt)} cannot be read: {error}") from error
    for doubt in there.doubts:
        log.warning("what is open in a log is not certain", extra={"error": doubt})
    return there.transactions if there.whole else before
