"""The transactional ids of producers, for rows of transactions: read from coordinators' logs as far as they are needed, and kept."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from functools import cache

import pyarrow as pa

from streaming.broker.protocol.excerpt_messages import OwnersRequest, ReadUpto
from streaming.spark.source import agent_connections
from streaming.spark.source.public_options import PublicOptions

Read = Callable[[list[ReadUpto]], Iterable[pa.Table | pa.RecordBatch]]
"""Reads rows of `streaming.common.rows.PRODUCER_OWNERS`, from where logs are known on."""

LATE_SECONDS = 1.0
"""So long a stream waits for a transactional id: where the coordinator's log is a follower's, it may come later than the marker."""

_PAUSE_SECONDS = 0.1


class ProducerNames:
    """The transactional ids of the rows of one task.

    Args:
        wait: how long it may wait for ids that no coordinator's log has yet, in seconds.
    """

    def __init__(
        self,
        known: KnownProducers,
        read: Read,
        wait: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._known, self._read, self._wait, self._clock, self._sleep = known, read, wait, clock, sleep
        self._missing: set[int] = set()

    def __call__(self, producer_ids: pa.Array) -> pa.Array:
        """The transactional id of each producer; null where no coordinator's log that is there has it."""
        ids = producer_ids.to_pylist()
        wanted = {each for each in ids if each is not None}
        names = self._known.names(wanted)
        if wanted - names.keys() - self._missing:
            until = self._clock() + self._wait
            while True:
                self._known.read_on(self._read)
                names = self._known.names(wanted)
                if len(names) == len(wanted) or self._clock() >= until or not self._known.has_logs():
                    break
                self._sleep(_PAUSE_SECONDS)
            self._missing |= wanted - names.keys()
            self._wait = 0.0 if self._missing else self._wait
        return pa.array([names.get(each) for each in ids], pa.string())


class KnownProducers:
    """What this process has read of coordinators' logs. Nothing of it ever changes: a producer id is given away once."""

    def __init__(self) -> None:
        self._names: dict[int, str] = {}
        self._upto: dict[tuple[int, int], int] = {}

    def has_logs(self) -> bool:
        """Whether there is a coordinator's log that names a producer."""
        return bool(self._upto)

    def names(self, producer_ids: Iterable[int]) -> dict[int, str]:
        """The transactional ids of those that are known."""
        return {each: self._names[each] for each in producer_ids if each in self._names}

    def read_on(self, read: Read) -> None:
        """Read what the logs have got since the last time."""
        for rows in read([ReadUpto(*log, offset) for log, offset in self._upto.items()]):
            self._names.update(zip(rows["producer_id"].to_pylist(), rows["transactional_id"].to_pylist(), strict=True))
            for broker, partition, offset in zip(*(rows[name].to_pylist() for name in ("broker", "partition", "offset")), strict=True):
                self._upto[broker, partition] = max(offset + 1, self._upto.get((broker, partition), 0))


def names_of_agents(options: PublicOptions, cluster_id: str, wait: float = 0.0) -> ProducerNames:
    """The transactional ids that agents know. One that does not answer is not waited for: others may have the same logs."""

    def read(known: list[ReadUpto]) -> Iterable[pa.Table]:
        request = OwnersRequest(known=known)
        answers = agent_connections.ask_all(options.addresses(), lambda client: client.owners(request), options.files)
        return [table for tables in answers.values() for table in tables]

    return ProducerNames(known_producers(cluster_id, (options.agents, options.files)), read, wait)


def known_producers(cluster_id: str, source: object) -> KnownProducers:
    """What this process knows of a cluster by a source: log dirs, or agents. Another cluster may be there later, with the same numbers."""
    return _known(cluster_id, source) if cluster_id else KnownProducers()


_known = cache(lambda cluster_id, source: KnownProducers())
