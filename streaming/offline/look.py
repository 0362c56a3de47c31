"""What a look at log dirs comes to: its events folded by the rules into the table, and what the view makes of that."""

import gc
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from math import inf
from pathlib import Path
from types import TracebackType
from typing import Self

import pyarrow as pa
import pyarrow.compute as pc

from streaming.agent.cluster import ClusterView
from streaming.agent.messages import PendingCommits
from streaming.agent.pending import answer
from streaming.catalog.tables import NOTHING_DECIDED
from streaming.disk.availability import LogDirs
from streaming.kafka.names import TRANSACTION_TOPIC
from streaming.metrics.answers import tell, written_ms
from streaming.metrics.judging import judges_of
from streaming.metrics.limiter import LimitsOf
from streaming.metrics.observer import AgentStatus
from streaming.metrics.table import Snapshot, Table
from streaming.metrics.view import View, view
from streaming.metrics.waiting import Subject
from streaming.offline.onlooker import NAME, Onlooker
from streaming.query.cutting import cut, overwritten_from
from streaming.rows import STATES, pack_rows, unpack_rows
from streaming.rules.shard import fold_shard
from streaming.rules.shard_state import ShardState
from streaming.settings import Settings
from streaming.watcher.scope import Scope

_SHARD = 0
_NEVER_MS = 0


class Look:
    """Use as a context manager: leaving lets go of all files. For one thread.

    Args:
        scope: which logs are looked at, as metadata logs and limits tell of them.
        now_ms: the time at which everything is judged, Unix milliseconds.
        clock: the time at which it is looked, Unix seconds.
        sleep: as in `Onlooker`.

    Raises:
        UsageError: as `judges_of`.
    """

    def __init__(
        self,
        log_dirs: LogDirs,
        settings: Settings,
        scope: Callable[[ClusterView, LimitsOf], Scope],
        now_ms: int,
        *,
        clock: Callable[[], float] = time.time,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._now_ms = now_ms
        self._clock = clock
        judges = judges_of(settings, once=True, list_all=True)
        limits_of = judges.limiter.now()
        self._table = Table(replicas="leaders", stale_after_s=inf, series_limit=0, judges=judges)
        self.onlooker = Onlooker(
            log_dirs, lambda cluster: scope(cluster, limits_of), read_rate=settings.read_rate, clock=clock, sleep=sleep
        )
        self._state: bytes | None = None
        self._lists: bytes | None = None
        with _uncollected():
            self._take(self.onlooker.begin())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.onlooker.close()

    def data_again(self, directories: Collection[Path]) -> None:
        """Read on in logs of data, and leave those of coordinators as they were found.

        A marker is written before its coordinator says that the transaction is complete. So what is still open in a log that is read after
        the coordinators' was not closed by any marker that one of them has told of.

        Args:
            directories: those of logs in which segments may be new.
        """
        rows = self.onlooker.again(directories)
        self._take(rows.filter(pc.not_equal(rows["topic"], TRANSACTION_TOPIC)))

    def _take(self, events: pa.Table) -> None:
        if len(events):
            (rows,) = events.combine_chunks().to_batches()
            before = ShardState(self._state, lambda: self._lists)
            folded = fold_shard(_SHARD, before, [pack_rows(rows)], cut=cut, overwritten_from=overwritten_from)
            self._state = self._state if folded.value is None else folded.value
            self._lists = self._lists if folded.lists is None else folded.lists
            if folded.told is not None:
                self._table.apply(pa.Table.from_batches([unpack_rows(folded.told, STATES)], STATES))
        status = self.onlooker.status()
        known = AgentStatus(
            name=NAME, up=True, broker_statuses=tuple(status.broker_statuses), unreadable_logs=tuple(status.unreadable_logs)
        )
        tell(self._table, [known], [status])
        if written_ms(status.broker_statuses) is None:  # nothing says that it is not old
            self._table.told_metadata(_NEVER_MS)
        decided = self.onlooker.watcher.decided(())
        if decided is not None:
            self._table.take_catalog(NAME, decided.applied(NOTHING_DECIDED))
        self._table.mark_agent(NAME, self._now_ms / 1000)
        self._table.told_reading({NAME: self._clock()})

    def see(self) -> tuple[View, Snapshot]:
        """What is exported, and of what; the groups that wait for hanging transactions are known."""
        seen = view(snapshot := self._snapshot())
        waiting = self._table.waiting
        while asked := waiting.asked:
            requests = [PendingCommits(**each._asdict()) for each in asked]
            found = {_subject(each): (*each.groups, "...") if each.more else tuple(each.groups) for each in self._answers(requests)}
            waiting.told(dict.fromkeys(asked, ()) | found)
            seen = view(snapshot)
        return seen, snapshot

    def _snapshot(self) -> Snapshot:
        return self._table.snapshot(self._now_ms / 1000)

    def _answers(self, requests: list[PendingCommits]) -> list[PendingCommits]:
        return list(answer(requests, self.onlooker.watcher.tails(), str))


@contextmanager
def _uncollected() -> Iterator[None]:
    """Collect no garbage meanwhile: nearly all that a look makes is needed to its end, and to go through it again and again is a third of
    its cost."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _subject(told: PendingCommits) -> Subject:
    return Subject(told.broker, told.topic, told.partition, told.topic_id, told.producer_id, told.first_offset)
