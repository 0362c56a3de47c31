"""The consumers of a journal, how far each has come, and how much of the journal may be forgotten."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter

from streaming.broker.journal import consumer_states as states
from streaming.broker.journal.consumer_states import Consumer, Loss, Registration
from streaming.broker.journal.forgetting import Forgetting, TrimLimits
from streaming.broker.journal.journal import Journal
from streaming.common.logs import RareLog
from streaming.errors import ConsumerError

log = logging.getLogger(__name__)

MOST_READS = 64
"""The most ranges that a consumer may be sent without a commit, because the journal keeps all of them. A job has two at most."""

MOST_CONSUMERS = 32
"""The most consumers of one principal. A job has one for as long as it has its checkpoint."""


@dataclass(frozen=True, slots=True)
class JournalBounds:
    """How many unread bytes are kept, and for how many milliseconds; how many milliseconds a silent consumer holds the journal."""

    max_bytes: int
    max_age_ms: int
    consumer_expiry_ms: int


class Consumers:
    """The consumers of one journal, stored in its file.

    A range is *committed* when Spark will not request it again. Until then it may be requested once more.
    """

    def __init__(self, journal: Journal, clock_ms: Callable[[], int]) -> None:
        self._journal = journal
        self._clock_ms = clock_ms
        self._forgetting = Forgetting(journal)
        self._log = RareLog(log)  # of what those who call as a consumer cause
        self._lost = 0  # bytes of logs, since the last log message about it

    def find(self, consumer: str) -> Consumer | None:
        """What is known of a consumer, None if it is not known."""
        with self._journal.database.reading() as run:
            return states.read(run, consumer)

    def note_seen(self, consumer: str) -> bool:
        """Note that a consumer is there; returns whether this journal knows it."""
        with self._journal.database.transaction() as run:
            found = states.read(run, consumer)
            if found is not None:
                states.write(run, found._replace(seen_ms=self._clock_ms()))
            return found is not None

    def register(self, consumer: str) -> None:
        """Register a new consumer after all events. A consumer that wants a beginning is registered with it (`Journal.publish`)."""
        self._journal.publish([], registers=Registration(consumer))

    def belongs_to(self, consumer: str, principal: str) -> bool:
        """Whether this principal may act for a consumer. One that is not known, or has no principal yet, belongs to whoever asks first."""
        with self._journal.database.reading():
            found = self.find(consumer)
            if found is None or found.principal:
                return found is None or found.principal == principal
            if principal:
                self._take(consumer, principal)
                extra = {"consumer": consumer, "principal": principal}
                self._log.write(logging.INFO, "a consumer belongs to the token with this name from now on", extra)
        return True

    def owner(self, consumer: str) -> str:
        """The principal to which a consumer belongs, "" where it is not known or belongs to whoever asks first."""
        found = self.find(consumer)
        return "" if found is None else found.principal

    def hand_over(self, consumer: str, principal: str) -> None:
        """Let a consumer belong to another principal. It goes on from where it is."""
        self._take(consumer, principal)
        self._log.write(logging.WARNING, "a consumer is handed over to another token", {"consumer": consumer, "principal": principal})

    def _take(self, consumer: str, principal: str) -> None:
        with self._journal.database.transaction() as run:
            found = states.read(run, consumer)
            if found is not None:
                states.write(run, found._replace(principal=principal))

    def make_room(self, principal: str, expiry_ms: int) -> bool:
        """Whether a principal may register one more consumer.

        If it has as many as it may have, one is forgotten that was silent for ``expiry_ms``, or has never committed anything: that which
        was silent longest. If it comes back, it begins anew.
        """
        with self._journal.database.reading() as run:
            own = [each for each in states.read_all(run) if each.principal == principal]
            if len(own) < MOST_CONSUMERS:
                return True
            before = self._clock_ms() - expiry_ms
            idle = [each for each in own if each.seen_ms <= before or each.committed <= each.begun]
            if not idle:
                return False
            oldest = min(idle, key=attrgetter("seen_ms"))
            self.forget(oldest.id)
        extra = {"consumer": oldest.id, "most": MOST_CONSUMERS}
        self._log.write(logging.WARNING, "a consumer is forgotten to make room for another", extra)
        return True

    def committed(self, consumer: str) -> int | None:
        """The seq up to which nothing will be requested again, None if the consumer is not known."""
        found = self.find(consumer)
        return None if found is None else found.committed

    def has_committed(self, consumer: str) -> bool:
        """Whether a consumer has committed anything since its beginning."""
        found = self.find(consumer)
        return found is not None and found.committed > found.begun

    def was_sent(self, consumer: str) -> bool:
        """Whether a consumer was sent anything since its beginning."""
        found = self.find(consumer)
        return found is not None and (found.committed > found.begun or bool(found.reads))

    def begins_as_known(self, consumer: str) -> bool:
        """Whether a consumer's beginning here is one for a consumer that knows a part of the logs."""
        found = self.find(consumer)
        return found is not None and found.resumed

    def has_lost_its_beginning(self, consumer: str) -> bool:
        """Whether a consumer that knows a part of the logs was sent nothing, and events of its beginning are forgotten.

        Their bytes are still on disk. As a loss they would be counted without a log, and once more with the next range of each log that
        the consumer knows from another journal.
        """
        with self._journal.database.reading():
            found = self.find(consumer)
            begins = found is not None and found.resumed and not self.was_sent(consumer)
            return begins and found is not None and found.begun < self._journal.trimmed().seq

    def journal(self, consumer: str) -> str:
        """The journal's name for a consumer, another one after each of its beginnings.

        What a consumer has had under one name shows nothing about another name. So one that cannot go on from where it was begins anew, and
        no other consumer notices. It cannot go on if the journal was restored from a copy that it had read beyond, or if it was set back
        itself and events that it asks for again are forgotten.
        """
        found = self.find(consumer)
        return self._journal.id if found is None else f"{self._journal.id}.{found.generation}"

    def forget(self, consumer: str) -> None:
        """Forget a consumer that has lost its state, or cannot go on: it begins anew."""
        with self._journal.database.transaction() as run:
            states.forget(run, consumer)

    def any(self) -> bool:
        """Whether any consumer is known."""
        with self._journal.database.reading() as run:
            return bool(states.read_all(run))

    def note_committed(self, consumer: str, seq: int) -> None:
        """Note that Spark has committed everything up to ``seq`` and will not request it again."""
        with self._journal.database.transaction() as run:
            found = states.read(run, consumer)
            if found is not None:
                seq = max(found.committed, seq)
                reads, losses = tuple(end for end in found.reads if end > seq), tuple(each for each in found.losses if each.upto > seq)
                states.write(run, found._replace(committed=seq, seen_ms=self._clock_ms(), reads=reads, losses=losses))

    def send(self, consumer: str, upto: int) -> list[Loss] | None:
        """Note that a consumer is about to be sent everything up to ``upto``: none of it is forgotten until it is committed.

        Returns:
            The losses of the consumer that are not committed yet, in order; None if the consumer is not known.

        Raises:
            ConsumerError: it was sent `MOST_READS` ranges and has committed none of them.
        """
        with self._journal.database.transaction() as run:
            found = states.read(run, consumer)
            if found is None:
                return None
            upto, reads = min(upto, self._journal.end().seq), found.reads
            if upto > found.committed and upto not in reads:
                if len(reads) >= MOST_READS:
                    raise ConsumerError(f"consumer {consumer} reads on and commits nothing: commit what it was sent")
                reads = (*reads, upto)
            states.write(run, found._replace(seen_ms=self._clock_ms(), reads=reads))
            return list(found.losses)

    def set_back(self, consumer: str, seq: int) -> bool:
        """Let a consumer go on from an earlier seq than it has committed, because its job was restored from a copy.

        Returns whether it can: if events after it are forgotten, or merged for another consumer that has missed them, the consumer is
        forgotten too. Then it begins anew, and reads the logs again.
        """
        with self._journal.database.transaction() as run:
            can, found = seq >= self._journal.first_unchanged(), states.read(run, consumer)
            if not can:
                states.forget(run, consumer)
            elif found is not None:
                states.write(run, found._replace(committed=seq, reads=(), losses=()))
        extra = {"consumer": consumer, "after": seq, "anew": not can}
        self._log.write(logging.WARNING, "consumer resumes before the seq that it had committed", extra)
        return can

    def missed(self, consumer: str) -> int:
        """The seq up to which a consumer has missed events since the open transactions were last published again for it, 0 for none."""
        found = self.find(consumer)
        return 0 if found is None else found.missed

    def made_good(self, consumer: str, missed: int) -> None:
        """Note that the open transactions were published again after the events that a consumer had missed; it may miss more by now."""
        with self._journal.database.transaction() as run:
            found = states.read(run, consumer)
            if found is not None and found.missed == missed:
                states.write(run, found._replace(missed=0))

    def trim(self, bounds: JournalBounds) -> bool:
        """Forget a slice of the events that no consumer needs, or that are beyond the bounds. Returns whether there is more to do."""
        now = self._clock_ms()
        limits = TrimLimits(now - bounds.max_age_ms, bounds.max_bytes)
        with self._journal.database.reading() as run:  # after a clock was set back, a time may be in the future: it counts as now
            holding = [each for each in states.read_all(run) if each.seen_ms > now - bounds.consumer_expiry_ms]
        needed, end = min((each.committed for each in holding), default=None), self._journal.end().seq
        if self._forgetting.forget(end if needed is None else needed, limits if needed is None else None):
            return True
        if self._forgetting.join(now):
            return True
        lost, more = self._forgetting.merge(self._journal.trimmed().seq if needed is None else end, limits)
        self._lost += lost
        if self._lost and not more:
            log.warning("journal trimmed beyond its slowest consumer", extra={"lost_bytes": self._lost})
            self._lost = 0
        return more or self._journal.database.shrink()
