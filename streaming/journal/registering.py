"""Registering a consumer: its row in the journal, written in the same transaction that publishes its beginning."""

import sqlite3
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Registration:
    """A consumer to register in this journal, by its id."""

    consumer: str


def write(run: sqlite3.Connection, registration: Registration, seq: int, now_ms: int) -> None:
    """Register the consumer at ``seq``, the last event that is not of its beginning; a known consumer stays where it is."""
    run.execute(
        "INSERT OR IGNORE INTO consumers (id, begun, streamed, committed, seen_ms) VALUES (?, ?, ?, ?, ?)",
        (registration.consumer, seq, seq, seq, now_ms),
    )
