"""Reads a range of the journal for a consumer: what it has lost, then its rows, a few blocks at a time."""

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from streaming.broker.agent.consumer_memory import ConsumerArrivals
from streaming.broker.journal.blocks import longs
from streaming.broker.journal.consumer_states import Loss, without_lost
from streaming.broker.journal.consumers import Consumers
from streaming.broker.journal.journal import BLOCKS_AT_ONCE, Journal
from streaming.broker.protocol.consumer_messages import Range
from streaming.broker.protocol.event_tables import blocks_table
from streaming.common.event_row import EVENTS, Event
from streaming.common.rows import Kind
from streaming.errors import AgentError
from streaming.kafka.formats.names import TRANSACTION_TOPIC


@dataclass(frozen=True, slots=True)
class RangeReading:
    """For several threads. ``agent``: its name; ``broker``: the one that a loss without a log is reported for."""

    agent: str
    journal: Journal
    consumers: Consumers
    arrivals: ConsumerArrivals

    def rows(self, request: Range, broker: int) -> Iterator[pa.RecordBatch]:
        """The rows of a range; none if the consumer has no such journal any more.

        Raises:
            AgentError: the consumer began anew while they were read: it gets none of them.
        """
        with self.journal.database.reading():  # the consumer is not forgotten between these two
            found = self._begin(request) if self._is_of(request) else None
        if found is None:
            yield pa.RecordBatch.from_pylist([], EVENTS)
            return
        after, losses = found
        lost = [(loss.upto, self._loss_events(loss, broker)) for loss in losses if loss.upto <= request.upto]
        while True:
            with self.journal.database.reading():
                if not self._is_of(request):
                    raise AgentError("the consumer has begun anew meanwhile: it has to plan again")
                blocks = self.journal.blocks(after, request.upto, BLOCKS_AT_ONCE)
            table = blocks_table(self.agent, request.journal, [without_lost(losses, block) for block in blocks], lost)
            yield from table.to_batches() or [pa.RecordBatch.from_pylist([], EVENTS)]
            if len(blocks) < BLOCKS_AT_ONCE:
                return
            lost, after = [], int(longs(blocks[-1], "seq")[-1])

    def _is_of(self, request: Range) -> bool:
        """Whether the range is of the journal as its consumer knows it. Without registering, only readers without an id get rows."""
        known = not request.consumer or self.consumers.committed(request.consumer) is not None
        return known and request.journal == self.consumers.journal(request.consumer)

    def _begin(self, request: Range) -> tuple[int, list[Loss]] | None:
        """The seq from which a range is sent, and the events in it that the journal has trimmed; None if the consumer begins anew."""
        committed = self.consumers.committed(request.consumer)
        if committed is None:
            after, trimmed = max(0, request.after), self.journal.trimmed()
            size = trimmed.total - request.after_total if request.after >= 0 else 0
            return after, [Loss(after, trimmed.seq, max(0, size))] if after < trimmed.seq else []
        if 0 <= request.after < committed and self.arrivals.upto(request.consumer, request.run, request.journal) < 0:
            if not self.consumers.set_back(request.consumer, request.after):
                return None
            committed = request.after
        return committed, self.consumers.send(request.consumer, request.upto) or []

    def _loss_events(self, loss: Loss, broker: int) -> list[Event]:
        """The events that report a loss: the lost bytes, and for each coordinator log that its state is not known any more."""
        missed = [Event(kind=Kind.MISSED, **each.log._asdict()) for each in self.journal.cursors() if each.log.topic == TRANSACTION_TOPIC]
        return [*([Event(kind=Kind.SKIPPED, broker=broker, reason="journal_trimmed", bytes=loss.bytes)] if loss.bytes else []), *missed]
