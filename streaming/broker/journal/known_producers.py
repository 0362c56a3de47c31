"""The producers of one log at its cursor."""

from streaming.kafka.scan.headers import Batches
from streaming.kafka.scan.producer_states import EXPIRATION_MS, Producers

EXPIRE_EVERY_MS = 600_000
"""How often a broker forgets silent producers (``producer.id.expiration.check.interval.ms``)."""


class KnownProducers:
    """The producers of one log at its cursor.

    Args:
        limit: most producers to remember.
        now: the producers, None if they are not known.
    """

    __slots__ = ("_expired_ms", "expiration_ms", "limit", "now")  # there is one for each log

    def __init__(self, limit: int, now: Producers | None = None) -> None:
        self.limit = limit
        self.now = now
        self.expiration_ms = EXPIRATION_MS
        self._expired_ms = 0  # when silent producers were forgotten last

    def copy(self) -> "KnownProducers":
        """A copy, for changes that may be thrown away."""
        copied = KnownProducers(self.limit, self.now)
        copied._expired_ms = self._expired_ms
        copied.expiration_ms = self.expiration_ms
        return copied

    @property
    def active(self) -> int:
        """The number of producers, -1 if it is not known."""
        active = None if self.now is None else self.now.active
        return -1 if active is None else active

    def reset(self, now: Producers | None) -> None:
        """Replace all producers."""
        self.now = now
        self._expired_ms = 0

    def append(self, batches: Batches, now_ms: int, *, compacted: bool) -> int:
        """Add what was appended; returns how many gaps there are in its sequences."""
        if self.now is None:
            return 0
        self.expire(now_ms)
        taken = self.now.take(batches, compacted=compacted)
        self.now = taken.producers
        return taken.gaps

    def expire_at(self, now_ms: int) -> bool:
        """Whether it is time to forget those that have been silent for long."""
        return self.now is not None and not 0 <= now_ms - self._expired_ms < EXPIRE_EVERY_MS

    def expire(self, now_ms: int) -> None:
        """Forget producers that have been silent for long, at intervals as a broker does."""
        if self.now is not None and self.expire_at(now_ms):
            self._expired_ms = now_ms
            self.now = self.now.expired(now_ms, self.expiration_ms)
