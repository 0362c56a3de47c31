"""Registering a consumer: its row in the journal, written in the one transaction that publishes its beginning."""

import sqlite3
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Registration:
    """A consumer that this journal is to know from now on, by its id."""

    consumer: str


def write(run: sqlite3.Connection, registration: Registration, seq: int, now_ms: int) -> None:
    """Put the consumer behind ``seq``, the last event that is not of its beginning; one that is known stays where it is."""
    run.execute(
        "INSERT OR IGNORE INTO consumers (id, begun, streamed, committed, seen_ms) VALUES (?, ?, ?, ?, ?)",
        (registration.consumer, seq, seq, seq, now_ms),
    )
