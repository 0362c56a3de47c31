"""The last changes of a cluster, in memory that is bounded: what began, ended, moved and was started again while the job looked."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from threading import Lock

import streaming
from streaming.broker.protocol.cluster_messages import MetadataChanges
from streaming.broker.protocol.history_json import KeptChanges
from streaming.broker.protocol.listing_json import LARGEST_LIMIT
from streaming.broker.protocol.status_json import ClusterEvent, EventKind, EventPage
from streaming.cluster.verdicts.admin_events import event_of
from streaming.cluster.verdicts.cluster_changes import SURE_MS, YOUNG_MS, ClusterMoment, changes, kept_moment, moment_of, recalled_moment
from streaming.cluster.view.broker_status import newest, topic_partitions
from streaming.common.units import format_list, format_name
from streaming.errors import UsageError
from streaming.pages.api.judged_look import JudgedLook
from streaming.pages.api.paging import filter_of, flag_of, limit_of, number_of, offset_of, parameters_of, topics_of

MOST_EVENTS = 200
"""So many are kept, the newest."""

SAME_MS = 3_600_000
"""What comes again within an hour is the same event once more: what flickers does not push everything else out."""

APART_MS = 10_000
"""Moments that are closer together are not compared."""

_LATEST_MS = 10**15


class EventLog:
    """Compares each look with the one before, and keeps the newest changes. Thread-safe."""

    def __init__(self) -> None:
        self._lock = Lock()  # protects everything below
        self._events: list[ClusterEvent] = []  # the oldest first
        self._last: ClusterMoment | None = None
        self._since_ms = -1
        self._recalled: ClusterMoment | None = None  # the last moment of a job before
        self._ready_ms = -1

    def notice(self, judged: JudgedLook) -> None:
        """Compare a look with the one before.

        Until the job has read its disks, nothing is compared: what is found then was there. What a job before has kept is the look before
        the first one.
        """
        with self._lock:
            if not judged.ready:
                return
            before, first, now_ms = self._last or self._recalled, self._last is None, judged.look.now_ms
            if before is not None and (self._is_settling(now_ms) if first else now_ms - before.at_ms < APART_MS):
                return
            if first and judged.started_ms >= 0:
                self._add([ClusterEvent(kind=EventKind.JOB_STARTED, at_ms=judged.started_ms, what="This job of segtail was started")])
            young = self._recalled is not None and now_ms - judged.started_ms < YOUNG_MS
            now = moment_of(judged.circumstances, judged.problems, young=young)
            if before is None:
                self._last, self._since_ms = now, now.at_ms
                return
            found = changes(before, now)
            if any(each.problem for each in found.events):  # only then are other sentences worth their time
                found = changes(before, moment_of(judged.circumstances, judged.lasting_problems(), young=young))
            self._last = found.now
            self._add(found.events)

    def _is_settling(self, now_ms: int) -> bool:
        """Whether a job that goes on with another's looks is just ready: what its first ones lack or have too much is no change."""
        self._ready_ms = now_ms if self._ready_ms < 0 else self._ready_ms
        return 0 <= now_ms - self._ready_ms < SURE_MS

    def kept(self) -> KeptChanges | None:
        """What the next job over the same checkpoint goes on with; None as long as nothing was compared."""
        with self._lock:
            last = self._last or self._recalled
            return None if last is None else kept_moment(last, list(self._events), self._since_ms)

    def recall(self, kept: KeptChanges) -> None:
        """Go on where a job before has ended. Raises ValueError if nothing can."""
        last = recalled_moment(kept)
        with self._lock:
            self._events, self._recalled, self._since_ms = kept.events, last, kept.since_ms

    def _add(self, events: Iterable[ClusterEvent]) -> None:
        for each in events:
            same = next((old for old in self._events if _key(old) == _key(each) and each.at_ms - old.at_ms <= SAME_MS), None)
            if same is not None:
                self._events.remove(same)
                first_ms = same.at_ms if same.first_ms < 0 else same.first_ms
                self._events.append(replace(each, times=same.times + 1, first_ms=first_ms))
            else:
                self._events.append(each)
        if len(self._events) > MOST_EVENTS:
            self._events = self._events[-MOST_EVENTS:]
            self._since_ms = max(self._since_ms, self._events[0].at_ms)

    def page(self, query: str, judged: JudgedLook, largest: int = LARGEST_LIMIT) -> EventPage:
        """The events that a query string asks for, the newest first, ``largest`` at most.

        Raises:
            UsageError: a parameter is not understood; the sentence names it.
        """
        given = parameters_of(query, ("topic", "admin", "since_ms", "filter", "offset", "limit"))
        wanted, offset, limit = filter_of(given).casefold(), offset_of(given), limit_of(given, largest=largest)
        latest = newest(judged.circumstances.brokers)
        topics, from_ms, known = topics_of(query), number_of(given, "since_ms", 0, 0, _LATEST_MS), judged.circumstances.admin_changes
        with self._lock:
            seen, since_ms = self._events[::-1], self._since_ms
        events = [*_by_admins(known, judged), *([] if flag_of(given, "admin") else seen)]
        events.sort(key=lambda each: -each.at_ms)  # what a look finds may be of before what the look before has found
        _check_topics(topics, events, judged)
        matched = [
            each
            for each in events
            if (not wanted or wanted in _text(each).casefold()) and (not topics or each.topic in topics) and each.at_ms >= from_ms
        ]
        return EventPage(
            at_ms=judged.at_ms,
            version=streaming.__version__,
            doubts=judged.list_doubts,
            total=len(events),
            matched=len(matched),
            offset=offset,
            rows=matched[offset : offset + limit],
            since_ms=since_ms,
            admin_since_ms=-1 if known is None else known.from_ms,
            admin_since_offset=-1 if known is None else known.from_offset,
            admin_until_ms=-1 if latest is None else latest.appended_ms,
        )


def _key(event: ClusterEvent) -> tuple[object, ...]:
    """What is the same when it comes again; elections of other partitions are not."""
    if not event.problem:
        return event.kind, event.broker, event.what
    return event.kind, event.runbook, event.broker, event.topic, event.partition, event.group, event.log_dir, event.agent


def _by_admins(known: MetadataChanges | None, judged: JudgedLook) -> Iterator[ClusterEvent]:
    """What admins did to what may be shown, the newest first; log dirs that are judged as of a time have nothing after it."""
    of = judged.circumstances
    for each in () if known is None else reversed(known.rows):
        if (not each.topic or of.export.has_topic(each.topic)) and (of.live or each.at_ms <= judged.at_ms):
            yield event_of(each)


def _check_topics(topics: frozenset[str], events: Iterable[ClusterEvent], judged: JudgedLook) -> None:
    """Check that each topic is there, or that something is known of it. Raises UsageError: nothing is, and all topics are known."""
    there, known = topic_partitions(newest(judged.circumstances.brokers)), {each.topic for each in events}
    has = judged.circumstances.export.has_topic
    missing = sorted(each for each in topics - known if there is not None and not (each in there and has(each)))
    if missing:
        raise UsageError(f"there is no topic {format_list([format_name(each) for each in missing], 5)}, and nothing is known of one before")


def _text(event: ClusterEvent) -> str:
    """What a filter is looked for in."""
    place = f"{event.topic}-{event.partition}" if event.partition >= 0 else event.topic
    return " ".join((event.kind, event.what, event.severity, place, event.group, event.log_dir, event.agent))
