"""Which clients abort most of their transactions, by what is seen of their coordinators' entries now and then.

Between two looks a client may end many transactions, of which the entry shows the last one. So shares are of those that were seen. How many
there were is known where each of them raises the producer's epoch (KIP-890). A client costs memory from the first abort on that is seen.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

WINDOW_MS = 1_800_000
"""So far back it is counted."""

LEAST_SEEN = 10
"""Of fewer transactions nothing is said: an abort now and then is what transactions are for."""

MOST_OF_THEM = 0.5

PAUSE_MS = 10_000
"""Two looks are so far apart, at least."""

_MOST_CLIENTS = 10_000
_ENDS = ("CompleteCommit", "CompleteAbort")


@dataclass(frozen=True, slots=True)
class AbortingClient:
    """A client that has aborted ``aborted`` of the ``seen`` transactions since ``since_ms``; ``per_second`` ended, -1 if not known."""

    transactional_id: str
    seen: int
    aborted: int
    since_ms: int
    per_second: float = -1.0


@dataclass(frozen=True, slots=True)
class _End:
    """The end of a transaction that was seen, and how often the producer's epoch had risen since the one before; -1 if not known."""

    at_ms: int
    aborted: bool
    epochs: int


class AbortingClients:
    """The ends that were seen lately, of clients that have aborted. For one thread."""

    def __init__(self) -> None:
        self._looked_ms = self._upto_ms = -1
        self._ends: dict[str, list[_End]] = {}
        self._epochs: dict[str, tuple[int, int]] = {}  # producer id and epoch as they were last seen

    def look(self, table: pa.Table, now_ms: int) -> tuple[AbortingClient, ...]:
        """Take the newest entries (`streaming.common.rows.COORDINATOR`) as of ``now_ms``; returns who aborts most, the worst first."""
        if now_ms - self._looked_ms >= PAUSE_MS:
            if self._looked_ms >= 0:
                self._take(table, now_ms)
            self._looked_ms = now_ms
            self._upto_ms = max(self._upto_ms, int(np.max(table["last_update_ms"].to_numpy(), initial=-1)))
        return tuple(sorted(self._found(now_ms), key=lambda each: (-each.aborted, each.transactional_id)))

    def _take(self, table: pa.Table, now_ms: int) -> None:
        new = table.take(np.flatnonzero(table["last_update_ms"].to_numpy() > self._upto_ms))
        columns = (new[name].to_pylist() for name in ("transactional_id", "state", "producer_id", "producer_epoch"))
        for name, state, producer, epoch in zip(*columns, strict=True):
            if state in _ENDS and (name in self._ends or (state == _ENDS[1] and len(self._ends) < _MOST_CLIENTS)):
                before = self._epochs.get(name)
                epochs = epoch - before[1] if before is not None and before[0] == producer and epoch > before[1] else -1
                self._ends.setdefault(name, []).append(_End(now_ms, state == _ENDS[1], epochs))
                self._epochs[name] = producer, epoch
        for name, ends in list(self._ends.items()):
            self._ends[name] = [each for each in ends if now_ms - each.at_ms <= WINDOW_MS]
            if not any(each.aborted for each in self._ends[name]):
                del self._ends[name], self._epochs[name]

    def _found(self, now_ms: int) -> Iterator[AbortingClient]:
        for name, ends in self._ends.items():
            aborted, since_ms = sum(each.aborted for each in ends), ends[0].at_ms
            if len(ends) >= LEAST_SEEN and aborted > MOST_OF_THEM * len(ends):
                epochs, seconds = [each.epochs for each in ends[1:]], (ends[-1].at_ms - since_ms) / 1000
                known = min(epochs) > 0 and now_ms - ends[-1].at_ms <= WINDOW_MS
                yield AbortingClient(name, len(ends), aborted, since_ms, sum(epochs) / seconds if known and seconds else -1.0)
