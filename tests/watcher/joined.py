"""Joining without waiting."""

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

from streaming.broker.journal import joining
from streaming.broker.journal.joining import Joining
from streaming.broker.journal.journal import Journal


@contextmanager
def at_once() -> Iterator[None]:
    """Whatever can be joined is, however little it is and however new."""
    with patch.object(joining, "LEAST", 2), patch.object(joining, "LOOKS", 0), patch.object(joining, "WAIT_MS", 0):
        yield


def join(journal: Journal) -> None:
    """Join all that a journal holds."""
    joining = Joining(journal)
    with at_once():
        while joining.join(journal.now_ms()):
            pass
