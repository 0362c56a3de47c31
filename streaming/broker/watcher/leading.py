"""Decides whether a replica led when a range was appended, by the leader epoch of the batches. It does not matter when the range is read.

The metadata that was read may lag behind a new epoch for a moment. Then the range is held back for a limited time: a decision that is too
early would count it for both replicas or for neither.
"""

import logging
from collections.abc import Callable

from streaming.broker.watcher.cluster_knowledge import Cluster, Leads
from streaming.broker.watcher.tail import Awaited, Tail
from streaming.broker.watcher.tail_states import TailState

log = logging.getLogger(__name__)

WAIT_MS = 5_000
"""How long a range is held back at most because the metadata does not contain its epoch yet."""


class Leading:
    """Queries the metadata, and notes in a tail what it waits for. Only the watcher's thread calls it."""

    def __init__(self, cluster: Cluster, clock_ms: Callable[[], int]) -> None:
        self._cluster = cluster
        self._clock_ms = clock_ms

    def of(self, tail: Tail, epoch: int) -> int | None:
        """1 if the replica led, 0 if not, -1 if this cannot be known; None: not known yet, and the range has to wait (`Tail.awaited`)."""
        leads, before = self._cluster.leads(tail.cursor.log, epoch), tail.awaited
        again = before is not None and before.epoch == epoch
        if leads is Leads.BEHIND and not again:
            self._cluster.refresh()
            leads = self._cluster.leads(tail.cursor.log, epoch)
        if leads in (Leads.YES, Leads.NO, Leads.UNKNOWN):
            if before is not None:
                tail.know_leader()
            return int(leads)
        awaited = tail.wait_for(epoch, self._clock_ms())
        if leads is Leads.BEHIND and (awaited.given_up or not 0 <= self._clock_ms() - awaited.since_ms < WAIT_MS):
            self._give_up(tail, awaited)
            return -1
        return None

    def waits(self, tail: Tail) -> bool:
        """Whether the tail still has to wait; called before it is read."""
        awaited = tail.awaited
        return tail.unread_state is TailState.WAITING and awaited is not None and self.of(tail, awaited.epoch) is None

    @staticmethod
    def _give_up(tail: Tail, awaited: Awaited) -> None:
        if not awaited.given_up:
            tail.give_up_leader()
            log.warning(
                "the metadata log names no leader: a range is counted without one",
                extra={"log": str(tail.cursor.log), "path": tail.path, "leader_epoch": awaited.epoch},
            )
