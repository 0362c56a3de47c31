"""What a journal knows of its consumers: how far each has come, what it was sent, and what it has lost.

All of a consumer is one value, a row of the table ``consumers``: its fields as JSON, by their order.
"""

import json
import sqlite3
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from secrets import token_hex
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from streaming.broker.journal.blocks import counted_between, longs
from streaming.broker.journal.tables import value

TABLES = """
CREATE TABLE consumers (id TEXT PRIMARY KEY, state TEXT NOT NULL) WITHOUT ROWID;
"""


@dataclass(frozen=True, slots=True)
class Registration:
    """A consumer to register in this journal, by its id and its principal, in the transaction that publishes its beginning.

    ``resumed``: it may know a part of the logs; the beginning publishes all of them.
    """

    consumer: str
    principal: str = ""
    resumed: bool = False


class Loss(NamedTuple):
    """The events with ``after < seq <= upto`` were forgotten before a consumer had them: ``bytes`` of logs."""

    after: int
    upto: int
    bytes: int


class Consumer(NamedTuple):
    """A consumer, and up to which seq Spark has *committed* what it was sent.

    ``begun``: the seq of its beginning. ``seen_ms``: when it was there last, in the journal's own time. ``missed``: the seq up to which it
    has missed events since open transactions were last published again for it, 0 for none. ``generation``: a word of its beginning that no
    other has. ``principal``: the name of the token with which it registered, "" if that has none. ``reads``: the ends of the ranges that it
    was sent and has not committed; ``losses``: those that are not committed yet, in order.
    """

    id: str
    committed: int
    seen_ms: int
    begun: int
    generation: str
    principal: str
    resumed: bool
    missed: int = 0
    reads: tuple[int, ...] = ()
    losses: tuple[Loss, ...] = ()

    @property
    def sent(self) -> int:
        """How far it may have come: the end of the furthest range that it was sent, at least its last commit."""
        return max(self.committed, *self.reads, 0)


def read_all(run: sqlite3.Connection) -> list[Consumer]:
    """All consumers."""
    return [_consumer(packed) for (packed,) in run.execute("SELECT state FROM consumers")]


def read(run: sqlite3.Connection, consumer: str) -> Consumer | None:
    """A consumer, None if it is not known."""
    packed = value(run, "SELECT state FROM consumers WHERE id = ?", consumer)
    return None if packed is None else _consumer(packed)


@lru_cache(256)
def _consumer(packed: str) -> Consumer:
    found = Consumer._make(json.loads(packed))
    return found._replace(reads=tuple(found.reads), losses=tuple(map(Loss._make, found.losses)))


def write(run: sqlite3.Connection, consumer: Consumer) -> None:
    """Write a consumer, in place of what was known of it."""
    run.execute("INSERT OR REPLACE INTO consumers (id, state) VALUES (?, ?)", (consumer.id, json.dumps(consumer)))


def register(run: sqlite3.Connection, new: Registration, seq: int, now_ms: int) -> None:
    """Register the consumer at ``seq``, the last event that is not of its beginning; a known consumer stays where it is."""
    if read(run, new.consumer) is None:
        made = Consumer(
            id=new.consumer,
            committed=seq,
            seen_ms=now_ms,
            begun=seq,
            generation=token_hex(4),
            principal=new.principal,
            resumed=new.resumed,
        )
        write(run, made)


def forget(run: sqlite3.Connection, consumer: str) -> None:
    """Delete all that is known of a consumer."""
    run.execute("DELETE FROM consumers WHERE id = ?", (consumer,))


def limit_times(run: sqlite3.Connection, latest_ms: int) -> None:
    """Take times later than this as this one: they are of a clock that was ahead."""
    for each in read_all(run):
        if each.seen_ms > latest_ms:
            write(run, each._replace(seen_ms=latest_ms))


def lose(run: sqlite3.Connection, trimmed: int, upto: int) -> None:
    """Store what each consumer loses with the events ``trimmed < seq <= upto``; the caller forgets these events next."""
    for each in read_all(run):
        if each.sent >= upto:
            continue
        # not by the running totals: a merge moves bytes to a later event and does not change the totals
        size = counted_between(run, max(each.sent, trimmed), upto)
        losses, last = each.losses, each.losses[-1] if each.losses else None
        if last is not None and last.upto > each.sent:
            losses, size, after = losses[:-1], last.bytes + size, last.after
        else:
            after = each.sent
        write(run, each._replace(losses=(*losses, Loss(after, upto, size)), missed=upto))


def held(consumers: Iterable[Consumer]) -> list[tuple[int, int]]:
    """The events that some consumer was sent and has not committed, as separate ranges ``after < seq <= upto``, in order."""
    found = []
    for each in consumers:
        after = each.committed
        for loss in each.losses:
            found.append((after, min(each.sent, loss.after)))
            after = max(after, loss.upto)
        found.append((after, each.sent))
    joined: list[tuple[int, int]] = []
    for after, upto in sorted(one for one in found if one[0] < one[1]):
        if joined and after <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], upto))
        else:
            joined.append((after, upto))
    return joined


def gaps(ranges: Iterable[tuple[int, int]], upto: int) -> list[tuple[int, int]]:
    """The gaps between such ranges, from the beginning of the journal up to ``upto``."""
    found, after = [], 0
    for begin, end in ranges:
        found.append((after, min(begin, upto)))
        after = end
    found.append((after, upto))
    return [each for each in found if each[0] < each[1]]


class Partings:
    """The seqs across which no events may be merged: a fold may be there, or a loss may end there."""

    def __init__(self, consumers: Sequence[Consumer], trimmed: int) -> None:
        ends = {end for each in consumers for end in (each.committed, *each.reads, *(loss.upto for loss in each.losses))}
        self._ends = sorted(ends | {trimmed})

    def part(self, first: int, second: int) -> bool:
        """Whether some consumer may have had the first of two events and not the second."""
        at = bisect_left(self._ends, first)
        return at < len(self._ends) and self._ends[at] < second


def without_lost(losses: Sequence[Loss], block: pa.RecordBatch) -> pa.RecordBatch:
    """The block without the lost rows: some of them may still be in the journal, because other consumers hold them."""
    seqs = longs(block, "seq")
    lost = np.zeros(len(seqs), np.bool_)
    for loss in losses:
        lost |= (loss.after < seqs) & (seqs <= loss.upto)
    return block.filter(pa.array(~lost)) if lost.any() else block
