"""Decides whether a replica led when a range was appended, by the leader epoch of the batches. It does not matter when the range is read.

The metadata that was read may lag behind a new epoch for a moment. Then the range is held back for a limited time: a decision that is too
early would count it for both replicas or for neither.
"""

import logging
from collections.abc import Callable

from streaming.watcher.cluster_knowledge import Cluster, Leads
from streaming.watcher.tail import Tail, Waiting

log = logging.getLogger(__name__)

WAIT_MS = 5_000
"""How long a range is held back at most because the metadata does not contain its epoch yet."""


class Leading:
    """Queries the metadata, and notes in a tail what it waits for. Only the watcher's thread calls it."""

    def __init__(self, cluster: Cluster, clock_ms: Callable[[], int]) -> None:
        self._cluster = cluster
        self._clock_ms = clock_ms

    def of(self, tail: Tail, epoch: int) -> int | None:
        """1 if the replica led, 0 if not, -1 if this cannot be known; None: not known yet, and the range has to wait (`Tail.waiting`)."""
        leads, before = self._cluster.leads(tail.cursor.log, epoch), tail.waiting
        again = before is not None and before.epoch == epoch
        if leads is Leads.BEHIND and not again:
            self._cluster.refresh()
            leads = self._cluster.leads(tail.cursor.log, epoch)
        if leads in (Leads.YES, Leads.NO, Leads.UNKNOWN):
            tail.waiting = None
            return int(leads)
        if before is None or not again:
            before = tail.waiting = Waiting(epoch, self._clock_ms())
        if leads is Leads.BEHIND and (before.given_up or not 0 <= self._clock_ms() - before.since_ms < WAIT_MS):
            self._give_up(tail, before)
            return -1
        return None

    def waits(self, tail: Tail) -> bool:
        """Whether the tail still has to wait; called before it is read."""
        return tail.waits and tail.waiting is not None and self.of(tail, tail.waiting.epoch) is None

    def _give_up(self, tail: Tail, waiting: Waiting) -> None:
        if not waiting.given_up:
            tail.waiting = Waiting(waiting.epoch, waiting.since_ms, given_up=True)
            log.warning(
                "the metadata log names no leader: a range is counted without one",
                extra={"log": str(tail.cursor.log), "path": tail.path, "leader_epoch": waiting.epoch},
            )
