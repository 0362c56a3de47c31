"""The looks of a job at its own state: the table, what agents report, and consumer groups, judged together."""

from threading import Lock

from streaming.cluster.consumers.group_partitions import GroupPartitions
from streaming.cluster.consumers.group_snapshot import GroupBoard, GroupSnapshot
from streaming.cluster.verdicts.circumstances import Circumstances, Thresholds
from streaming.cluster.verdicts.commands import Commands
from streaming.cluster.verdicts.group_judge import JudgedGroups, judge_groups
from streaming.cluster.view.disk_use import full_by_dir
from streaming.cluster.view.observer import Observer
from streaming.cluster.view.table import Table
from streaming.pages.api.judged import Judged
from streaming.pages.api.listed_groups import ListedGroups, MakeDetails
from streaming.pages.api.seen import Seen
from streaming.pages.api.views import Views


class Looks:
    """For several threads. A look is judged once, however many ask.

    Args:
        groups: what is known of consumer groups; None for nothing.
        details: asks agents for what only they know of a group.
        redacted: names of groups and transactional ids are not Kafka's own.
    """

    def __init__(
        self,
        table: Table,
        observer: Observer,
        views: Views,
        groups: GroupBoard | None,
        details: MakeDetails,
        thresholds: Thresholds,
        *,
        redacted: bool,
    ) -> None:
        self._table = table
        self._observer = observer
        self._views = views
        self._groups = groups
        self._details = details
        self._thresholds = thresholds
        self._redacted = redacted
        self._lock = Lock()  # protects what follows
        self._last: Judged | None = None
        self._last_groups: JudgedGroups | None = None

    def look(self) -> Judged:
        """The state as it was a few seconds ago, at most."""
        seen = self._views.recent()
        with self._lock:
            if self._last is None or self._last.seen is not seen:
                self._last = self._judged(seen)
                self._last.problems  # noqa: B018  # found here, once, and not by every thread that waits for it
            return self._last

    def forget(self) -> None:
        """Keep the last look no longer."""
        with self._lock:
            self._last = None

    def _judged(self, seen: Seen) -> Judged:
        now = seen.now_ms / 1000
        agents = self._observer.agents
        topics = seen.snapshot.topic_names
        snapshot = None if self._groups is None else self._groups.latest(seen.now_ms)
        answering = [each for each in agents if each.up]
        commands = Commands(server=self._observer.server, redacted=self._redacted)
        groups = self._judged_groups(snapshot)
        read_ms = dict(zip(seen.snapshot.agents, seen.snapshot.read_ms.tolist(), strict=True))
        return Judged(
            seen=seen,
            of=Circumstances(
                view=seen.shown,
                topics=topics,
                now_ms=seen.now_ms,
                agents=agents,
                lags=self._observer.lags(now),
                groups=groups,
                thresholds=self._thresholds,
                commands=commands,
                export=self._table.export,
                stale=self._observer.is_stale(now),
                full=self._table.full_times.of(lambda: full_by_dir(seen.shown, answering, seen.now_ms), seen.now_ms),
                min_isr=self._table.min_isr,
            ),
            groups=self._answers(groups, seen, commands),
            rates=self._views.history,
            ready=self._table.ready,
            newest_ms=min((read_ms.get(each.name, -1) for each in answering), default=-1),
            started_ms=round(self._observer.started * 1000) if self._observer.started is not None else -1,
            unknown=_NO_GROUPS if snapshot is None and self._groups is not None else (),
        )

    def _judged_groups(self, snapshot: GroupSnapshot | None) -> JudgedGroups | None:
        """A snapshot is judged once, however many looks show it."""
        last = self._last_groups
        if snapshot is None or last is None or last.snapshot is not snapshot:
            self._last_groups = None if snapshot is None else judge_groups(snapshot, snapshot.at_ms)
        return self._last_groups

    def _answers(self, groups: JudgedGroups | None, seen: Seen, commands: Commands) -> ListedGroups | None:
        """The answers about consumer groups; None while nothing is known of any, and what is there is still on its way."""
        if groups is None or not (self._table.ready or len(groups.snapshot.rows) or groups.snapshot.groups or groups.snapshot.unread):
            return None
        return ListedGroups(
            judged=groups,
            is_exported=self._table.export.has_consumer,
            messages=lambda: GroupPartitions(groups.snapshot, seen.shown, seen.snapshot.topic_names),
            details=self._details,
            commands=lambda _: commands,
        )


_NO_GROUPS = ("Nothing is known of consumer groups yet",)
