"""Reads log dirs once: the rules fold the events into the table, the view is made from the table, and judged as a job judges its own."""

import time
from collections.abc import Callable, Collection, Sequence
from math import inf
from pathlib import Path
from types import TracebackType
from typing import Self

import pyarrow as pa
import pyarrow.compute as pc

from streaming.broker.agent.cluster_view import ClusterView
from streaming.broker.agent.group_answers import answer
from streaming.broker.disk.availability import LogDirs
from streaming.broker.journal.range_values import cut, overwritten_from
from streaming.broker.protocol.listing_json import AwayBroker
from streaming.broker.watcher.registry import Scope
from streaming.broker.watcher.tail import Tail
from streaming.cluster.verdicts.circumstances import Circumstances, thresholds_of
from streaming.cluster.verdicts.commands import Commands, option
from streaming.cluster.view import transaction_columns
from streaming.cluster.view.answers import apply, written_ms
from streaming.cluster.view.disk_use import full_by_dir
from streaming.cluster.view.observer import AgentStatus
from streaming.cluster.view.page_context import context_of
from streaming.cluster.view.table import Snapshot, Table
from streaming.cluster.view.view import View, view
from streaming.common.catalog import NOTHING_DECIDED
from streaming.common.log_key import LogKey
from streaming.common.rows import pack_rows, unpack_rows
from streaming.common.settings import Settings
from streaming.common.state_row import STATES
from streaming.kafka.formats.metadata_records import server_of_any
from streaming.kafka.formats.names import TRANSACTION_TOPIC
from streaming.pages.api.history import MeanRates
from streaming.pages.api.judged_look import JudgedLook
from streaming.pages.api.listed_groups import ListedGroups
from streaming.pages.api.look import Look
from streaming.rules.limits import LimitsOf
from streaming.rules.shard import fold_shard
from streaming.rules.shard_state import ShardState
from streaming.rules.transaction_verdicts import TransactionVerdict
from streaming.terminal.offline.offline_agent import NAME, OfflineAgent
from streaming.terminal.offline.read_pace import uncollected

_SHARD = 0
_UNENDED = (TransactionVerdict.HANGING.label, TransactionVerdict.UNCLAIMED.label)
_NEVER_MS = 0


class SingleReading:
    """One reading of log dirs. Use it as a context manager: its exit closes all files. Only one thread uses it.

    Args:
        scope: which logs are read, decided from the metadata logs and the limits.
        at_ms: the time as of which everything is judged, Unix milliseconds; None for the moment at which it was last read.
        clock: the time at which files are read, Unix seconds.
        sleep, progress: as in `OfflineAgent`.

    Raises:
        UsageError: as `context_of`.
    """

    def __init__(
        self,
        log_dirs: LogDirs,
        settings: Settings,
        scope: Callable[[ClusterView, LimitsOf], Scope],
        at_ms: int | None,
        *,
        clock: Callable[[], float] = time.time,
        sleep: Callable[[float], None] = time.sleep,
        progress: Callable[[int], None] = lambda _: None,
    ) -> None:
        self._at_ms = at_ms
        self.read_ms = 0
        """When logs were last read, Unix milliseconds."""
        context = context_of(settings, once=True, list_all=True)
        limits_of = context.limiter.now()
        self._transactions = context.transactions
        self._table = Table(replicas="leaders", stale_after_s=inf, series_limit=0, context=context)
        self.agent = OfflineAgent(
            log_dirs,
            lambda cluster: scope(cluster, limits_of),
            read_rate=settings.read_rate,
            clock=clock,
            sleep=sleep,
            progress=progress,
            is_given=context.limiter.is_given,
        )
        self._state: bytes | None = None
        self._lists: bytes | None = None
        with uncollected():
            self._take(self.agent.begin())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.agent.close()

    @property
    def now_ms(self) -> int:
        """As of when everything is judged, Unix milliseconds: reading takes long, and what has come meanwhile was read, too."""
        return self.read_ms if self._at_ms is None else self._at_ms

    @property
    def away(self) -> list[AwayBroker]:
        """The brokers whose log dirs no process holds, as of the last reading."""
        return self.agent.away

    def again(self) -> None:
        """Read on in all logs."""
        self._take(self.agent.again([tail.partition.path for tail in self.agent.watcher.tails()]))

    def hold_to_what_was_open(self) -> None:
        """See `streaming.cluster.view.transaction_columns.TransactionJudge.hold_to_what_was_open`."""
        self._transactions.hold_to_what_was_open()

    def data_again(self, directories: Collection[Path]) -> None:
        """Read on in logs of data, and keep the coordinators' logs as they were read before.

        A marker is written before its coordinator stores the transaction as complete. The data is read after the coordinators' logs here.
        So if a transaction is still open in the data, none of the markers that they report as written has ended it.

        Args:
            directories: directories of logs that may have new segments.
        """
        rows = self.agent.again(directories)
        self._take(rows.filter(pc.not_equal(rows["topic"], TRANSACTION_TOPIC)))

    def _take(self, events: pa.Table) -> None:
        if len(events):
            (rows,) = events.combine_chunks().to_batches()
            before = ShardState(self._state, lambda: self._lists)
            folded = fold_shard(_SHARD, before, [pack_rows(rows)], cut=cut, overwritten_from=overwritten_from)
            self._state = self._state if folded.value is None else folded.value
            self._lists = self._lists if folded.lists is None else folded.lists
            if folded.changed_rows is not None:
                self._table.apply(pa.Table.from_batches([unpack_rows(folded.changed_rows, STATES)], STATES))
        status = self.agent.status()
        known = AgentStatus(
            name=NAME, up=True, broker_statuses=tuple(status.broker_statuses), unreadable_logs=tuple(status.unreadable_logs)
        )
        apply(self._table, [known], [status])
        if written_ms(status.broker_statuses) is None:  # it is not known when the metadata was written: it may be old
            self._table.set_context(metadata_ms=_NEVER_MS)
        decided = self.agent.watcher.decided(())
        if decided is not None:
            self._table.take_catalog(NAME, decided.applied(NOTHING_DECIDED))
        self.read_ms = self.agent.now_ms
        self._table.mark_agent(NAME, self.now_ms / 1000)
        self._table.set_reading({NAME: self.read_ms / 1000})

    def see(self) -> tuple[View, Snapshot]:
        """The view, and the snapshot that it was made from. The consumer groups that wait for hanging transactions are filled in."""
        seen = view(snapshot := self._table.snapshot(self.now_ms / 1000))
        waiting = self._table.waiting
        while asked := waiting.asked:
            answers = answer(transaction_columns.requests(asked), self.agent.watcher.tails(), str)
            waiting.update(dict.fromkeys(asked, ()) | transaction_columns.answered(answers))
            seen = view(snapshot)
        return seen, snapshot


def see_twice(reading: SingleReading) -> tuple[View, Snapshot]:
    """The view; if no producer seems to end some transactions in it, the view after more readings: of everything, and then of their logs.

    What was open before the coordinators' logs were read, and still is after that, had its entry there if it has one. What has begun
    since may have one by now, as each of a producer that goes from one to the next.
    """
    seen, snapshot = reading.see()
    if _unended(seen):
        reading.hold_to_what_was_open()
        reading.again()
        seen, snapshot = reading.see()
    if unended := _unended(seen):
        reading.data_again(_directories(reading, seen, snapshot, unended))
        seen, snapshot = reading.see()
    return seen, snapshot


def _unended(view: View) -> set[int]:
    """The logs with transactions that, it seems, no producer ends."""
    return {late.log for late in view.logs.late if late.verdict in _UNENDED}


def _directories(reading: SingleReading, view: View, snapshot: Snapshot, items: set[int]) -> Sequence[Path]:
    tails = tails_of(reading, view, snapshot)
    return [tail.partition.path for item in items if (tail := tails[item]) is not None]


def tails_of(reading: SingleReading, view: View, snapshot: Snapshot) -> list[Tail | None]:
    """The tails of the logs that are exported, in their order."""
    tails = {tail.cursor.log: tail for tail in reading.agent.watcher.tails()}
    columns = view.logs.columns
    keys = zip(columns["broker"].tolist(), names_of(view, snapshot), columns["partition"].tolist(), view.logs.topic_ids, strict=True)
    return [tails.get(LogKey(*key)) for key in keys]


def names_of(view: View, snapshot: Snapshot) -> list[str]:
    """The topics of the logs that are exported, in their order."""
    return [snapshot.topic_names[topic] for topic in view.logs.columns["topic"].tolist()]


def judged(
    reading: SingleReading,
    view: View,
    snapshot: Snapshot,
    settings: Settings,
    *,
    groups: ListedGroups | None = None,
    unknown: Sequence[str] = (),
    whole: bool = False,
) -> JudgedLook:
    """The reading, judged as of its own time.

    Args:
        unknown: sentences about what cannot be told.
        whole: all logs were read, so what is out of sight is unknown, too.
    """
    agent, now_ms = agent_of(reading), reading.now_ms
    return JudgedLook(
        look=Look(view, snapshot),
        circumstances=Circumstances(
            view=view,
            topics=snapshot.topic_names,
            now_ms=now_ms,
            agents=(agent,),
            groups=None if groups is None else groups.judged,
            thresholds=thresholds_of(settings),
            commands=Commands(
                server=server_of_any(map(reading.agent.cluster.broker, agent.brokers)),
                asked=option("--log-dirs", ",".join(map(str, settings.log_dirs))),
            ),
            live=False,
            full=full_by_dir(view, (agent,), now_ms),
            min_isr=snapshot.context.limiter.min_isr,
        ),
        groups=groups,
        rates=MeanRates(),
        newest_ms=now_ms,
        unknown=tuple(dict.fromkeys(unknown)),
        whole=whole,
    )


def agent_of(reading: SingleReading) -> AgentStatus:
    """What an agent would say of these log dirs."""
    status = reading.agent.status()
    return AgentStatus(
        name=NAME,
        up=True,
        brokers=tuple(status.brokers),
        cluster_id=status.cluster_id,
        metadata_brokers=frozenset(status.brokers) - frozenset(status.unreadable_metadata),
        log_dirs=tuple(status.log_dirs),
        broker_statuses=tuple(status.broker_statuses),
        unreadable_logs=tuple(status.unreadable_logs),
        logs=status.logs,
        directories=tuple(status.directories),
    )
