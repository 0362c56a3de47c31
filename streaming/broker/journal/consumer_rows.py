"""The consumers that are registered in a journal, and how far each has come: the table ``consumers``."""

import secrets
import sqlite3
from dataclasses import dataclass

from streaming.broker.journal.tables import StoredTable, value


@dataclass(frozen=True, slots=True)
class Consumer:
    """A consumer, and up to which seq Spark has *committed* what it was sent.

    ``begun``: the seq of its beginning. ``seen_ms``: when it was there last, in the journal's own time. ``missed``: the seq up to which it
    has missed events since open transactions were last published again for it, 0 for none. ``generation``: a word of its beginning that no
    other has. ``principal``: the name of the token with which it registered, "" if that has none.
    """

    id: str
    committed: int
    seen_ms: int
    missed: int
    begun: int
    generation: str
    principal: str
    resumed: int


@dataclass(frozen=True, slots=True)
class Registration:
    """A consumer to register in this journal, by its id and its principal, in the transaction that publishes its beginning.

    ``resumed``: it may know a part of the logs; the beginning publishes all of them.
    """

    consumer: str
    principal: str = ""
    resumed: bool = False


_CONSUMERS = StoredTable("consumers", Consumer)


def register(run: sqlite3.Connection, registration: Registration, seq: int, now_ms: int) -> None:
    """Register the consumer at ``seq``, the last event that is not of its beginning; a known consumer stays where it is."""
    generation = secrets.token_hex(4)
    new = Consumer(
        id=registration.consumer,
        committed=seq,
        seen_ms=now_ms,
        missed=0,
        begun=seq,
        generation=generation,
        principal=registration.principal,
        resumed=registration.resumed,
    )
    _CONSUMERS.add(run, new)


def read(run: sqlite3.Connection, consumer: str) -> Consumer | None:
    """A consumer, None if it is not known."""
    return _CONSUMERS.first(run, "WHERE id = ?", consumer)


def read_all(run: sqlite3.Connection) -> list[Consumer]:
    """All consumers."""
    return list(_CONSUMERS.all(run))


def note_seen(run: sqlite3.Connection, consumer: str, now_ms: int) -> bool:
    """Note that a consumer is there; returns whether it is known."""
    return run.execute("UPDATE consumers SET seen_ms = ? WHERE id = ?", (now_ms, consumer)).rowcount > 0


def note_committed(run: sqlite3.Connection, consumer: str, seq: int, now_ms: int) -> None:
    """Note a commit."""
    sql = "UPDATE consumers SET committed = max(committed, ?), seen_ms = ? WHERE id = ?"
    run.execute(sql, (seq, now_ms, consumer))


def take(run: sqlite3.Connection, consumer: str, principal: str) -> None:
    """Let a consumer without a principal belong to this one."""
    run.execute("UPDATE consumers SET principal = ? WHERE id = ? AND principal = ''", (principal, consumer))


def hand_over(run: sqlite3.Connection, consumer: str, principal: str) -> None:
    """Let a consumer belong to this principal, whose it was before does not matter."""
    run.execute("UPDATE consumers SET principal = ? WHERE id = ?", (principal, consumer))


def set_back(run: sqlite3.Connection, consumer: str, seq: int) -> None:
    """Let a consumer go on after ``seq``."""
    run.execute("UPDATE consumers SET committed = ? WHERE id = ?", (seq, consumer))


def note_missed(run: sqlite3.Connection, consumer: str, seq: int) -> None:
    """Note that a consumer misses events up to ``seq``."""
    run.execute("UPDATE consumers SET missed = ? WHERE id = ?", (seq, consumer))


def note_made_good(run: sqlite3.Connection, consumer: str, missed: int) -> None:
    """Note that what was missed up to there was made good; more may have been missed since."""
    run.execute("UPDATE consumers SET missed = 0 WHERE id = ? AND missed = ?", (consumer, missed))


def needed(run: sqlite3.Connection, seen_after_ms: int) -> int | None:
    """The seq after which events are needed by consumers that were there later than that, None if there are no such consumers."""
    holding = "NOT EXISTS (SELECT 1 FROM readers WHERE readers.consumer = consumers.id AND NOT readers.holds)"
    found: int | None = value(run, f"SELECT min(committed) FROM consumers WHERE seen_ms > ? AND {holding}", seen_after_ms)
    return found


def last_seen_ms(run: sqlite3.Connection) -> int | None:
    """When any consumer was there last, None if there are none."""
    found: int | None = value(run, "SELECT max(seen_ms) FROM consumers")
    return found


def limit_times(run: sqlite3.Connection, latest_ms: int) -> None:
    """Take times later than this as this one: they are of a clock that was ahead."""
    run.execute("UPDATE consumers SET seen_ms = ? WHERE seen_ms > ?", (latest_ms, latest_ms))


def forget(run: sqlite3.Connection, consumer: str) -> None:
    """Delete a consumer."""
    run.execute("DELETE FROM consumers WHERE id = ?", (consumer,))
