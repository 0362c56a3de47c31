"""The looks of a job at its own state: the table, what agents report, and consumer groups, judged together."""

from threading import Lock

from streaming.api.judged import Judged
from streaming.api.seen import Seen
from streaming.api.suspect_groups import suspect_groups
from streaming.api.views import Views
from streaming.formatting import format_be, format_count
from streaming.metrics.disk_use import full_by_dir
from streaming.metrics.group_snapshot import GroupBoard
from streaming.metrics.observer import Observer
from streaming.metrics.table import Table
from streaming.verdicts.circumstances import Circumstances, Thresholds
from streaming.verdicts.commands import Commands


class Looks:
    """For several threads. A look is judged once, however many ask.

    Args:
        groups: what is known of consumer groups; None for nothing.
        redacted: names of groups and transactional ids are not Kafka's own.
    """

    def __init__(
        self, table: Table, observer: Observer, views: Views, groups: GroupBoard | None, thresholds: Thresholds, *, redacted: bool
    ) -> None:
        self._table = table
        self._observer = observer
        self._views = views
        self._groups = groups
        self._thresholds = thresholds
        self._redacted = redacted
        self._lock = Lock()  # protects what follows
        self._last: Judged | None = None

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
        server = self._observer.server
        groups, omitted = suspect_groups(snapshot, self._table.export.has_consumer, seen.shown, topics, seen.now_ms, server)
        read_ms = dict(zip(seen.snapshot.agents, seen.snapshot.read_ms.tolist(), strict=True))
        return Judged(
            seen=seen,
            of=Circumstances(
                shown=seen.shown,
                topics=topics,
                now_ms=seen.now_ms,
                agents=agents,
                lags=self._observer.lags(now),
                groups=groups,
                thresholds=self._thresholds,
                commands=Commands(server=server, redacted=self._redacted),
                export=self._table.export,
                full=self._table.full_times.of(lambda: full_by_dir(seen.shown, answering, seen.now_ms), seen.now_ms),
                min_isr=self._table.min_isr,
            ),
            rates=self._views.history,
            ready=self._table.ready,
            newest_ms=min((read_ms.get(each.name, -1) for each in answering), default=-1),
            started_ms=round(self._observer.started * 1000) if self._observer.started is not None else -1,
            unknown=_left_out(omitted) if snapshot is not None else _NO_GROUPS if self._groups is not None else (),
        )


_NO_GROUPS = ("Nothing is known of consumer groups yet",)


def _left_out(groups: int) -> tuple[str, ...]:
    if not groups:
        return ()
    return (
        f"{format_count(groups, 'consumer group')} with a lag that may matter {format_be(groups)} not judged, because there are too many",
    )
