"""Looks of a job at its own state: one at a time, judged together; and the file that keeps what was seen over a restart."""

from __future__ import annotations

import logging
import zlib
from collections.abc import Callable
from pathlib import Path
from threading import Lock

from streaming.broker.protocol.history_json import KeptGroups, KeptHistory
from streaming.cluster.consumers.group_partitions import GroupPartitions
from streaming.cluster.consumers.group_snapshot import GroupBoard, GroupSnapshot
from streaming.cluster.verdicts.circumstances import Circumstances, Thresholds
from streaming.cluster.verdicts.commands import Commands, option
from streaming.cluster.verdicts.group_judge import JudgedGroups, judge_groups
from streaming.cluster.view.disk_use import full_now
from streaming.cluster.view.observer import Observer
from streaming.cluster.view.table import Table
from streaming.cluster.view.transaction_columns import TransactionJudge
from streaming.cluster.view.view import view
from streaming.common.whole_files import write_whole
from streaming.errors import AgentError
from streaming.pages.api.event_log import EventLog
from streaming.pages.api.history import MINUTE_MS, History
from streaming.pages.api.judged_look import JudgedLook
from streaming.pages.api.listed_groups import GroupResults, ListedGroups, MakeDetails
from streaming.pages.api.look import Look
from streaming.rules.transaction_verdicts import AbortingClients

log = logging.getLogger(__name__)

KEEP_SECONDS = 60.0
"""The last look is kept for so long after a request has wanted one: it takes as much memory as the table."""

_NO_GROUPS = ("Nothing is known of consumer groups yet",)

SAVE_SECONDS = 60.0
"""What was seen within the last minute before a kill is not kept."""

_MOST_BYTES = 256 << 20
"""The most bytes of the file, unpacked."""


class JudgedLooks:
    """Judges looks: each once, however many callers ask. Thread-safe.

    Args:
        groups: what is known of consumer groups; None for nothing.
        details: asks agents for what only they know of a group.
        redacted: names of groups and transactional ids are not Kafka's own.

    ``events`` has what changed from look to look.
    """

    def __init__(
        self,
        table: Table,
        observer: Observer,
        looks: Looks,
        groups: GroupBoard | None,
        details: MakeDetails,
        thresholds: Thresholds,
        *,
        redacted: bool,
    ) -> None:
        self.events = EventLog()
        self._table = table
        self._observer = observer
        self._looks = looks
        self._groups = groups
        self._details = details
        self._thresholds = thresholds
        self._redacted = redacted
        self._lock = Lock()  # protects what follows
        self._aborting = AbortingClients()
        self._last: JudgedLook | None = None
        self._last_groups: JudgedGroups | None = None
        self._results: GroupResults | None = None  # about the snapshot of the last groups

    def look(self) -> JudgedLook:
        """The state as it was a few seconds ago, at most."""
        look = self._looks.recent()
        with self._lock:
            if self._last is None or self._last.look is not look:
                self._last = self._judged(look)
                self.events.notice(self._last)  # its problems are found here, once, and not by every thread that waits for it
            return self._last

    def notice(self, look: Look) -> None:
        """Judge a look that no request has asked for, only for what has changed."""
        with self._lock:
            if self._last is None or self._last.look is not look:
                self.events.notice(self._judged(look))

    def forget(self) -> None:
        """Keep the last look, and what follows from it, no longer."""
        with self._lock:
            self._last, self._last_groups, self._results = None, None, None

    def _judged(self, look: Look) -> JudgedLook:
        now = look.now_ms / 1000
        agents = self._observer.agents
        topics = look.snapshot.topic_names
        snapshot = None if self._groups is None else self._groups.latest(look.now_ms)
        answering = [each for each in agents if each.up]
        url = self._observer.page_url
        commands = Commands(server=self._observer.server, asked=option("--job", url) if url else "", redacted=self._redacted)
        groups = self._judged_groups(snapshot)
        start = None if self._table.ready else self._observer.start_progress(now)
        read_ms = dict(zip(look.snapshot.agents, look.snapshot.read_ms.tolist(), strict=True))
        circumstances = Circumstances(
            view=look.view,
            topics=topics,
            now_ms=look.now_ms,
            agents=agents,
            lags=self._observer.lags(now),
            groups=groups,
            thresholds=self._thresholds,
            commands=commands,
            export=self._table.export,
            stale=self._observer.is_stale(now),
            start=start,
            aborting=self._aborting.look(look.view.observed.coordinators.coordinators.table, look.now_ms),
            full=full_now(self._table, look.view, answering, look.now_ms),
            min_isr=self._table.limiter.min_isr,
        )
        return JudgedLook(
            look=look,
            circumstances=circumstances,
            groups=self._answers(groups, circumstances, look),
            rates=self._looks.history,
            newest_ms=min((read_ms.get(each.name, -1) for each in answering), default=-1),
            url=url,
            started_ms=round(self._observer.started * 1000) if self._observer.started is not None else -1,
            unknown=_NO_GROUPS if snapshot is None and self._groups is not None and start is None else (),
        )

    def _judged_groups(self, snapshot: GroupSnapshot | None) -> JudgedGroups | None:
        """A snapshot is judged once, however many looks show it."""
        last = self._last_groups
        if snapshot is None or last is None or last.snapshot is not snapshot:
            self._last_groups = None if snapshot is None else judge_groups(snapshot, snapshot.at_ms, self._thresholds.groups)
        return self._last_groups

    def _answers(self, groups: JudgedGroups | None, circumstances: Circumstances, look: Look) -> ListedGroups | None:
        """The answers about consumer groups; None while nothing is known of any, and what is there is still on its way."""
        if groups is None or not (self._table.ready or len(groups.snapshot.rows) or groups.snapshot.groups):
            return None
        if self._results is None or self._results.snapshot is not groups.snapshot:
            self._results = GroupResults(groups.snapshot, self._table.export.has_consumer)
        return ListedGroups(
            judged=groups,
            results=self._results,
            messages=lambda: GroupPartitions(groups.snapshot, look.view, look.snapshot.topic_names),
            details=self._details,
            commands=lambda _: circumstances.commands,
            away=circumstances.away,
            causes=circumstances.causes,
        )


class Looks:
    """Makes looks at the table. Every one feeds the history. ``clock``: the present time, Unix seconds. Thread-safe."""

    def __init__(self, table: Table, clock: Callable[[], float]) -> None:
        self.history = History()
        self._table = table
        self._clock = clock
        self._making = Lock()  # protects everything below; what looks remember of each other is for one thread
        self._last: Look | None = None
        self._wanted_at = float("-inf")

    def new(self) -> Look:
        """The table as it is."""
        with self._making:
            return self._make()

    def recent(self, oldest_s: float = 2.0) -> Look:
        """The table as it was at most so many seconds ago."""
        with self._making:
            now = self._clock()
            self._wanted_at = now
            if self._last is not None and 0 <= now - self._last.now_ms / 1000 <= oldest_s:
                return self._last
            return self._make()

    @property
    def is_wanted(self) -> bool:
        """Whether the last look is kept."""
        with self._making:
            return self._last is not None

    def remember(self) -> Look | None:
        """Call this every few seconds: it records a minute at which no request looked, and forgets the last look when no request wants it.

        Returns: a look once a minute, if one had to be made.
        """
        with self._making:
            now = self._clock()
            if now - self._wanted_at > KEEP_SECONDS:
                self._last = None
            if now * 1000 // MINUTE_MS != self.history.recorded_minute:
                return self._make()
            self.history.sample(self._table.snapshot(now))
            return None

    def _make(self) -> Look:
        now = self._clock()
        snapshot = self._table.snapshot(now)
        look = Look(view(snapshot), snapshot)
        self.history.sample(snapshot)
        self.history.record(look)
        self._last = look if now - self._wanted_at <= KEEP_SECONDS else None
        return look


class JobHistory:
    """The file that keeps what a job has seen over its restart. Only one thread uses it.

    Args:
        path: the file.
        looks, transactions: what remembers changes and transactions.
        groups: returns what is kept of polls of the groups.
    """

    def __init__(
        self,
        path: Path,
        looks: JudgedLooks,
        transactions: TransactionJudge,
        groups: Callable[[], KeptGroups],
        monotonic: Callable[[], float],
    ) -> None:
        self._path, self._looks, self._transactions, self._groups = path, looks, transactions, groups
        self._monotonic = monotonic
        self._saved_at = monotonic()

    def recall(self, recall_groups: Callable[[KeptGroups], None]) -> None:
        """Go on with what is in the file. One that is damaged is said and left: nothing that is counted is in it."""
        try:
            kept = self._read()
            if kept is None:
                return
            if kept.changes is not None:
                self._looks.events.recall(kept.changes)
        except (OSError, ValueError, zlib.error, AgentError) as error:
            log.warning(
                "what the job had seen before its start cannot be read: it begins anew", extra={"path": self._path, "error": str(error)}
            )
            return
        self._transactions.recall(kept.transactions)
        recall_groups(kept.groups)

    def _read(self) -> KeptHistory | None:
        try:
            packed = self._path.read_bytes()
        except FileNotFoundError:
            return None
        unpacker = zlib.decompressobj()
        body = unpacker.decompress(packed, _MOST_BYTES)
        if not unpacker.eof:
            raise ValueError("it is cut off, or too large")
        return KeptHistory.decode(body)

    def save_sometimes(self) -> None:
        """Write the file if that was long ago."""
        if self._monotonic() - self._saved_at >= SAVE_SECONDS:
            self.save()

    def save(self) -> None:
        """Write the file. If that fails it is said, and the job goes on."""
        self._saved_at = self._monotonic()
        kept = KeptHistory(
            changes=self._looks.events.kept(),
            transactions=self._transactions.kept(),
            groups=self._groups(),
        )
        try:
            write_whole(self._path, zlib.compress(kept.encode(), 1), lasting=False)
        except OSError as error:
            log.warning("what the job has seen cannot be kept for its next start", extra={"path": self._path, "error": str(error)})
