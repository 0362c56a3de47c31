"""The events that each consumer was sent and has not committed, and its losses: the tables ``reads`` and ``losses``.

A consumer's fold is at the end of some range that it was sent, or at its last commit; the agent does not know at which. So no event of such
a range is forgotten before it is committed, however long its consumer is away. Nothing is merged across the end of such a range. Events
after the last range may be forgotten. The transaction that forgets them also stores how many bytes of logs they were, once for each
consumer. This loss is sent at the seq where the events were, because a fold drops known rows by their seq alone
(`streaming.rules.fold.Mark`).
"""

import sqlite3
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from streaming.broker.journal import consumer_rows, reader_rows, totals
from streaming.broker.journal.blocks import longs
from streaming.broker.journal.stored_blocks import counted_between
from streaming.broker.journal.tables import StoredTable


@dataclass(frozen=True, slots=True)
class Loss:
    """The events with ``after < seq <= upto`` were forgotten before a consumer had them: ``bytes`` of logs."""

    after: int
    upto: int
    bytes: int


@dataclass(frozen=True, slots=True)
class _LossRow:
    consumer: str
    loss: Loss


def _row(consumer: str, after: int, upto: int, bytes: int) -> _LossRow:
    return _LossRow(consumer, Loss(after, upto, bytes))


@dataclass(frozen=True, slots=True)
class _SentRange:
    """A range that a consumer was sent ends at ``seq``."""

    consumer: str
    seq: int


_LOSSES = StoredTable("losses", _row, {"consumer": "consumer", "after": "loss.after", "upto": "loss.upto", "bytes": "loss.bytes"})
_READS = StoredTable("reads", _SentRange)


def last_sent(run: sqlite3.Connection) -> dict[str, int]:
    """How far each consumer may have come: the end of the furthest range that it was sent, at least its last commit."""
    furthest: dict[str, int] = {}
    for read in _READS.all(run):
        furthest[read.consumer] = max(read.seq, furthest.get(read.consumer, 0))
    return {each.id: max(each.committed, furthest.get(each.id, 0)) for each in consumer_rows.read_all(run)}


def losses_of(run: sqlite3.Connection, consumer: str) -> list[Loss]:
    """The losses of a consumer that are not committed yet, in order."""
    return [row.loss for row in _LOSSES.all(run, "WHERE consumer = ? ORDER BY upto", consumer)]


def held(run: sqlite3.Connection) -> list[tuple[int, int]]:
    """The events that some consumer was sent and has not committed, as separate ranges ``after < seq <= upto``, in order."""
    found = []
    sent, loose = last_sent(run), reader_rows.loose(run)
    for consumer in [each for each in consumer_rows.read_all(run) if each.id not in loose]:
        after, upto = consumer.committed, sent[consumer.id]
        for loss in losses_of(run, consumer.id):
            found.append((after, min(upto, loss.after)))
            after = max(after, loss.upto)
        found.append((after, upto))
    joined: list[tuple[int, int]] = []
    for after, upto in sorted(each for each in found if each[0] < each[1]):
        if joined and after <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], upto))
        else:
            joined.append((after, upto))
    return joined


def without_lost(losses: Sequence[Loss], block: pa.RecordBatch) -> pa.RecordBatch:
    """The block without the lost rows: some of them may still be in the journal, because other consumers hold them."""
    seqs = longs(block, "seq")
    lost = np.zeros(len(seqs), np.bool_)
    for loss in losses:
        lost |= (loss.after < seqs) & (seqs <= loss.upto)
    return block.filter(pa.array(~lost)) if lost.any() else block


def frozen(run: sqlite3.Connection) -> list[tuple[int, int]]:
    """The events that some reader was sent and has not committed: a micro-batch that is run again gets the same rows."""
    readers, sent = reader_rows.names(run), last_sent(run)
    return [
        (each.committed, sent[each.id]) for each in consumer_rows.read_all(run) if each.id in readers and each.committed < sent[each.id]
    ]


def gaps(ranges: Iterable[tuple[int, int]], upto: int) -> list[tuple[int, int]]:
    """The gaps between such ranges, from the beginning of the journal up to ``upto``."""
    found, after = [], 0
    for begin, end in ranges:
        found.append((after, min(begin, upto)))
        after = end
    found.append((after, upto))
    return [each for each in found if each[0] < each[1]]


def cuts(run: sqlite3.Connection) -> list[int]:
    """The seqs across which no events may be merged: a fold may be there, or a loss may end there."""
    committed = {each.committed for each in consumer_rows.read_all(run)}
    sent, lost = {each.seq for each in _READS.all(run)}, {each.loss.upto for each in _LOSSES.all(run)}
    return sorted(committed | sent | lost | {totals.read(run).trimmed_seq})


def is_parted(parted: list[int], first: int, second: int) -> bool:
    """Whether some consumer may have had the first of two events and not the second."""
    at = bisect_left(parted, first)
    return at < len(parted) and parted[at] < second


def lose(run: sqlite3.Connection, trimmed: int, upto: int) -> None:
    """Store what each consumer loses with the events ``trimmed < seq <= upto``; the caller forgets these events next."""
    for consumer, sent in last_sent(run).items():
        if sent >= upto:
            continue
        # not by the running totals: a merge moves bytes to a later event and does not change the totals
        size = counted_between(run, max(sent, trimmed), upto)
        open_losses = [loss for loss in losses_of(run, consumer) if loss.upto > sent]
        if open_losses:
            sql = "UPDATE losses SET upto = ?, bytes = bytes + ? WHERE consumer = ? AND upto = ?"
            run.execute(sql, (upto, size, consumer, open_losses[-1].upto))
        else:
            add_loss(run, consumer, Loss(sent, upto, size))
        consumer_rows.note_missed(run, consumer, upto)


def note_sent(run: sqlite3.Connection, consumer: str, upto: int) -> None:
    """Note that a consumer is sent everything up to ``upto``."""
    _READS.add(run, _SentRange(consumer, upto))


def reads(run: sqlite3.Connection, consumer: str) -> list[int]:
    """The ends of the ranges that a consumer was sent and has not committed."""
    return [read.seq for read in _READS.all(run, "WHERE consumer = ?", consumer)]


def add_loss(run: sqlite3.Connection, consumer: str, loss: Loss) -> None:
    """Store a further loss of a consumer."""
    _LOSSES.insert(run, _LossRow(consumer, loss))


def forget(run: sqlite3.Connection, consumer: str) -> None:
    """Delete what is stored of a consumer."""
    for table in ("reads", "losses"):
        run.execute(f"DELETE FROM {table} WHERE consumer = ?", (consumer,))


def let_go(run: sqlite3.Connection, consumer: str, committed: int) -> None:
    """Forget the entries of everything that a consumer will not request again."""
    run.execute("DELETE FROM reads WHERE consumer = ? AND seq <= ?", (consumer, committed))
    run.execute("DELETE FROM losses WHERE consumer = ? AND upto <= ?", (consumer, committed))
