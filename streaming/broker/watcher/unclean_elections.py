"""Publishes unclean elections as events of the new leader's log, with the offset from which on it replaces what other replicas had.

The agent of the new leader publishes an election, so it is published once, however many copies of the metadata there are. After a restart
the metadata is read again, and the election is published again: the fold counts each leader epoch once.
"""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from streaming.broker.disk.segment_files import read_leader_epochs
from streaming.broker.watcher.cluster_knowledge import Cluster
from streaming.broker.watcher.tail import Tail
from streaming.common.event_row import Event
from streaming.common.log_key import LogKey
from streaming.common.rows import Kind
from streaming.kafka.formats.metadata_partitions import UncleanElection

log = logging.getLogger(__name__)

LOG_MS = 600_000
"""How long an election waits for its log to be found, or to be readable again."""

EPOCH_MS = 10_000
"""How long it waits for `leader-epoch-checkpoint`, which a leader writes when it begins to lead."""


@dataclass(frozen=True, slots=True)
class _Pending:
    election: UncleanElection
    since_ms: int


class UncleanElections:
    """The elections that are not published yet. Only the watcher's thread calls it."""

    def __init__(self, cluster: Cluster, clock_ms: Callable[[], int]) -> None:
        self._cluster = cluster
        self._clock_ms = clock_ms
        self._pending: list[_Pending] = []

    def events(self, tails: Mapping[LogKey, Tail]) -> list[Event]:
        """The events that can be published now."""
        now = self._clock_ms()
        self._pending += [_Pending(election, now) for election in self._cluster.unclean_elections()]
        pending, self._pending = self._pending, []
        events = []
        for each in pending:
            event = self._event(each, tails, now)
            if event is not None:
                events.append(event)
        return events

    def _event(self, pending: _Pending, tails: Mapping[LogKey, Tail], now: int) -> Event | None:
        election, waited = pending.election, now - pending.since_ms
        tail = _tail_of(election, tails)
        if tail is None or tail.away:
            if waited < LOG_MS:
                self._pending.append(pending)
            else:
                log.warning(
                    "a leader was elected that is asked to recover, and its log is not watched: it is not counted", extra=_named(election)
                )
            return None
        start = _start_of(election, tail)
        if start is None and waited < EPOCH_MS:
            self._pending.append(pending)
            return None
        log.warning("a leader was elected that is asked to recover", extra={**_named(election), "offset": -1 if start is None else start})
        return replace(
            tail.event(Kind.UNCLEAN),
            leader=election.leader,
            leader_epoch=election.leader_epoch,
            next_offset=-1 if start is None else start,
            seen_at=election.timestamp,
            reason=",".join(map(str, election.in_sync)),
        )


def _tail_of(election: UncleanElection, tails: Mapping[LogKey, Tail]) -> Tail | None:
    for topic_id in (election.topic_id, ""):
        tail = tails.get(LogKey(election.leader, election.topic, election.partition, topic_id))
        if tail is not None:
            return tail
    return None


def _start_of(election: UncleanElection, tail: Tail) -> int | None:
    """The offset where the new epoch begins. If nothing was appended in it, a later epoch has replaced its entry."""
    try:
        entries = read_leader_epochs(tail.partition.path)
    except OSError as error:
        log.info("leader epochs cannot be read", extra={"path": tail.path, "error": str(error)})
        return None
    return next((entry.start_offset for entry in entries if entry.epoch >= election.leader_epoch), None)


def _named(election: UncleanElection) -> dict[str, object]:
    return {"log": f"{election.topic}-{election.partition}", "broker": election.leader, "leader_epoch": election.leader_epoch}
