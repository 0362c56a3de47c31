"""The readers of a journal: where each begins, what lay on disk before, and what it has lost."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from streaming.broker.journal import consumer_rows, reader_rows
from streaming.broker.journal.consumer_rows import Registration
from streaming.broker.journal.consumers import Consumers
from streaming.broker.journal.journal import Journal
from streaming.broker.journal.losses import Loss
from streaming.broker.journal.published_ends import PublishedEnd
from streaming.broker.journal.reader_rows import BacklogExcerpt, StoredReader
from streaming.common.log_key import LogKey


@dataclass(frozen=True, slots=True)
class Readers:
    """For several threads."""

    journal: Journal
    consumers: Consumers

    def begin(self, reader: str, principal: str) -> Mapping[LogKey, PublishedEnd]:
        """Register a reader after all events; returns up to where each log is published at that moment.

        It is complete once `keep` was called. One that is not begins anew.
        """
        with self.journal.database.reading():
            self.consumers.forget(reader)
            self.journal.publish([], registers=Registration(reader, principal))
            return self.journal.published_ends()

    def keep(self, reader: str, backlog: Sequence[BacklogExcerpt], *, holds: bool) -> None:
        """Store what lay on disk before a reader's beginning, in the order in which it will read it.

        Args:
            holds: the journal keeps what the reader has not read yet.
        """
        with self.journal.database.transaction() as run:
            reader_rows.write(run, StoredReader(reader, holds, len(backlog)), backlog)

    def begun(self, reader: str) -> int:
        """The last seq that was published before a reader began, 0 if it is not known."""
        with self.journal.database.reading() as run:
            found = consumer_rows.read(run, reader)
        return 0 if found is None else found.begun

    def is_known(self, reader: str) -> bool:
        """Whether a reader has begun."""
        with self.journal.database.reading() as run:
            return reader_rows.read(run, reader) is not None and self.consumers.committed(reader) is not None

    def backlog(self, reader: str, begin: int, end: int) -> list[BacklogExcerpt]:
        """The excerpts of its backlog from one number to another."""
        with self.journal.database.reading() as run:
            return reader_rows.backlog(run, reader, begin, end)

    def backlog_size(self, reader: str) -> int:
        """How many excerpts its backlog has."""
        with self.journal.database.reading() as run:
            found = reader_rows.read(run, reader)
        return 0 if found is None else found.excerpts

    def send(self, reader: str, after: int, after_total: int, upto: int) -> list[Loss]:
        """Note that a reader is about to be sent what is between two seqs; returns what of that is forgotten, in order.

        Args:
            after_total: the bytes of logs that were published up to ``after``.
        """
        with self.journal.database.reading():
            losses = self.consumers.send(reader, upto) or []
            found = [Loss(max(after, loss.after), loss.upto, loss.bytes) for loss in losses if after < loss.upto <= upto]
            trimmed = self.journal.trimmed()
            if not found and after < trimmed.seq:  # it has committed that, and was restored from a copy
                found = [Loss(after, min(trimmed.seq, upto), max(0, trimmed.total - after_total))]
        return found
