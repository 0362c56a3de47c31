"""The views of one thing: a partition with its segments and its last hour, a topic, a consumer group."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil, floor

from streaming.broker.protocol.group_json import GROUPS_PATH, GroupDetail, GroupFinding, GroupPartition, path_of
from streaming.broker.protocol.json_message import ASC
from streaming.broker.protocol.listing_json import (
    DEFAULT_LIMIT,
    PARTITIONS_PATH,
    TOPICS_PATH,
    Minute,
    PartitionDetail,
    PartitionPage,
    RetentionRow,
    SegmentRow,
    TopicDetail,
    path_of_partition,
    path_of_topic,
)
from streaming.broker.protocol.status_json import Status
from streaming.common.units import capitalized, format_age, format_count, format_duration, format_name, format_size, format_time
from streaming.pages.listings.declared_lists import GROUP_PARTITIONS, TRANSACTIONS, open_long
from streaming.pages.listings.declared_lists import PARTITIONS as PARTITION_LIST
from streaming.pages.listings.declared_lists import TOPICS as TOPIC_LIST
from streaming.pages.listings.details import (
    READERS,
    REPLICAS,
    group_facts,
    group_findings,
    listed_facts,
    partition_facts,
    retention_facts,
    segments_of,
)
from streaming.pages.listings.listing import Times, count, place, words
from streaming.pages.site.listing_views import by_key
from streaming.pages.site.page_links import GROUPS, HOME, PARTITIONS, TOPICS, Query, group_link, link, partition_link, topic_link
from streaming.pages.site.page_views import Fact, PageTable, PageView, Sorting, columns_of, draw, drawn_facts, paging
from streaming.pages.site.page_words import (
    HEIGHT,
    WIDTH,
    Chart,
    ChartLine,
    ChartMark,
    Link,
    area_path,
    bounds,
    bytes_rate,
    line_path,
    records_rate,
    y_of,
)
from streaming.pages.site.shown_incidents import ShownKind, by_kind, shown_problems

_MOST = 4
_ROUND = (1, 2, 5, 10, 20, 50, 100, 200, 500)

_ROOM = 12
"""Percent of a chart's height that a text above its line needs."""

_MOST_VERDICTS = 20

_MOST_PROBLEMS, _MOST_READERS, _MOST_ROWS = 10, 30, 20
"""So many of each are on one page, which is small with all of them."""

_MOST_OVER = 4
"""A limit so many times further away than the segments reach is not drawn: they would be a stroke at the edge."""

_HEIGHTS = {"due": (40, 60), "closed": (15, 85), "active": (0, 100)}
"""Top and height of a segment, so that its kind shows without color."""

_MOST_LISTED = 50
"""So many segments are listed below the drawing, the newest."""


def partition_view(detail: PartitionDetail, status: Status) -> PartitionView:
    """The view of a partition."""
    row, now, times = detail.row, detail.at_ms, Times(detail.at_ms)
    strips = (by_size(detail.segments, detail.retention, detail.omitted), by_time(detail.segments, detail.retention, now, detail.omitted))
    newest = detail.segments[::-1][:_MOST_LISTED]
    return PartitionView(
        title=place(row.topic, row.partition),
        here=PARTITIONS,
        status=status,
        json=path_of_partition(row.topic, row.partition) if row.topic not in ("", ".", "..") else PARTITIONS_PATH,
        problems=by_kind(shown_problems(detail.problems, now)),
        facts=drawn_facts(partition_facts(detail, times)),
        charts=tuple(hour_charts(detail.minutes, now)),
        strips=tuple(each for each in strips if each is not None),
        retention=drawn_facts(retention_facts(detail, times)),
        transactions=draw(
            "transactions",
            f"Transactions {open_long(detail.late_after_ms, detail.young_transactions)}",
            columns_of(TRANSACTIONS.page_columns[1:]),
            detail.transactions,
            now,
            empty=f"None is {open_long(detail.late_after_ms, detail.young_transactions)}.",
        ),
        segments=draw(
            "segments",
            f"Newest {len(newest)} segments" if len(newest) > 1 else "Segments",
            columns_of(segments_of(row).columns),
            newest,
            now,
            empty="No segment is known.",
        ),
        replicas=draw(
            "replicas", "Replicas that are watched", columns_of(REPLICAS.columns), detail.replicas, now, empty="No replica is watched."
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Strip:
    """Segments on one scale, the oldest at the left. ``limit``: where the limit is drawn, "" if it is not; ``words``: what it is."""

    key: str
    heading: str
    title: str
    words: str
    left: str
    right: str
    due: str
    closed: str
    active: str
    limit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionView(PageView):
    """One partition."""

    problems: tuple[ShownKind, ...]
    facts: tuple[Fact, ...]
    charts: tuple[Chart, ...]
    strips: tuple[Strip, ...]
    retention: tuple[Fact, ...]
    transactions: PageTable
    segments: PageTable
    replicas: PageTable


def by_size(segments: Sequence[SegmentRow], retention: RetentionRow | None, omitted: int) -> Strip | None:
    """As wide as they are large; None if nothing is known of their sizes. The limit is that of all that is kept, from the newest on."""
    sizes = [max(0, each.size_bytes) for each in segments]
    total = sum(sizes)
    if not total:
        return None
    limit = -1 if retention is None else retention.retention_limit_bytes
    reach = max(total, limit) if 0 <= limit <= total * _MOST_OVER and not omitted else total
    ends = [reach - total]
    for each in sizes:
        ends.append(ends[-1] + each)
    spans = [(ends[index] / reach, ends[index + 1] / reach) for index in range(len(sizes))]
    return _strip(
        "by-size",
        "By size",
        segments,
        spans,
        words=_size_limit(limit, total) + _left_out(omitted),
        left=format_size(reach) if reach > total else "oldest",
        right="newest",
        limit=(reach - limit) / reach if 0 <= limit <= reach and not omitted else None,
        what=f"{format_count(len(segments), 'segment')}, {format_size(total)}",
    )


def _strip(
    key: str,
    heading: str,
    segments: Sequence[SegmentRow],
    spans: Sequence[tuple[float, float]],
    *,
    words: str,
    left: str,
    right: str,
    limit: float | None,
    what: str,
) -> Strip:
    paths: dict[str, list[str]] = {"due": [], "closed": [], "active": []}
    for segment, (start, end) in zip(segments, spans, strict=True):
        kind = "active" if segment.active else "due" if segment.deletable else "closed"
        top, height = _HEIGHTS[kind]
        x, width = start * WIDTH, max(0.4, (end - start) * WIDTH - 0.6)  # a gap between two, and none vanishes
        paths[kind].append(f"M{x:.1f} {top}h{width:.1f}v{height}h-{width:.1f}z")
    due = sum(each.deletable and not each.active for each in segments)
    return Strip(
        key=key,
        heading=heading,
        title=f"{heading}: {what}; {due:,} beyond the limit. {words}",
        words=words,
        left=left,
        right=right,
        due="".join(paths["due"]),
        closed="".join(paths["closed"]),
        active="".join(paths["active"]),
        limit="" if limit is None else f"M{limit * WIDTH:.1f} 0v{HEIGHT}",
    )


def _size_limit(limit: int, total: int) -> str:
    if limit < 0:
        return "No limit by size."
    over = f"{format_size(total - limit)} over it" if total > limit else f"{format_size(limit - total)} below it"
    return f"Limit by size: {format_size(limit)}, {over}."


def _left_out(omitted: int) -> str:
    return f" {format_count(omitted, 'segment')} in the middle left out." if omitted else ""


def by_time(segments: Sequence[SegmentRow], retention: RetentionRow | None, now_ms: int, omitted: int) -> Strip | None:
    """From the largest time of the segment before to its own; None if no time is known.

    A partition's segments drawn to scale, by size and by time, with the limit of retention in the same scale.
    """
    times = [each.max_timestamp_ms for each in segments]
    known = [each for each in times if 0 <= each <= now_ms]
    first = -1 if retention is None else retention.oldest_record_ms
    oldest = first if 0 <= first <= now_ms else min(known, default=-1)
    if not known or oldest >= now_ms:
        return None
    age = now_ms - oldest
    limit = -1 if retention is None else retention.retention_limit_ms
    reach = max(age, limit) if 0 <= limit <= age * _MOST_OVER else age

    def place(time: int) -> float:
        return 1 - (now_ms - time) / reach

    spans, here = [], oldest
    for each, time in zip(segments, times, strict=True):
        end = now_ms if each.active else max(here, min(time, now_ms)) if time >= 0 else here
        spans.append((place(here), place(end)))
        here = end
    return _strip(
        "by-time",
        "By time of records",
        segments,
        spans,
        words=_time_limit(limit, age) + _left_out(omitted),
        left=format_age(reach / 1000),
        right="now",
        limit=1 - limit / reach if 0 <= limit <= reach else None,
        what=f"{format_count(len(segments), 'segment')}, oldest record {format_age(age / 1000)}",
    )


def _time_limit(limit: int, age: int) -> str:
    if limit < 0:
        return "No limit by time."
    over = f"{format_duration((age - limit) / 1000)} older" if age > limit else f"{format_duration((limit - age) / 1000)} younger"
    return f"Limit by time: {format_duration(limit / 1000)}; the oldest record is {over}."


def hour_charts(minutes: Sequence[Minute], now_ms: int) -> list[Chart]:
    """The charts, none if nothing is known: a line has two ends.

    The last hour of a partition as charts: how fast it grows, and its last stable offset against its end; each time in words, too.
    """
    if sum(each.log_end_offset >= 0 for each in minutes) < 2:
        return []
    times = tuple(format_time(each.at_ms, "minutes").rpartition("T")[2] for each in minutes)
    hour = _Hour(times=times, left=format_age((now_ms - minutes[0].at_ms) / 1000))
    return [
        _rate(hour, "bytes", "Bytes a second", [each.bytes_rate for each in minutes], bytes_rate, unit=1024),
        _rate(hour, "records", "Records a second", [each.records_rate for each in minutes], records_rate, least=0.1),
        _offsets(hour, minutes),
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Hour:
    """When its minutes ended, in UTC without the day, and how long ago the first one did."""

    times: tuple[str, ...]
    left: str


def _rate(
    hour: _Hour, key: str, heading: str, values: list[float], words: Callable[[float], str], *, unit: int = 1000, least: float = 1.0
) -> Chart:
    _, high = bounds(values)
    last = next((value for value in reversed(values) if value >= 0), -1.0)
    title = f"{heading}, from {hour.left} to now: at most {words(high)}, now {words(last)}"
    return Chart(
        key=key,
        heading=heading,
        title=title if last >= 0 else f"{heading}: not known",
        lines=(ChartLine(path=line_path(values, 0.0, high), title=heading, name=""),),
        marks=marks(0.0, high, words, unit=unit, least=least),
        points=tuple(f"{time}: {_known(value, words)}" for time, value in zip(hour.times, values, strict=True)),
        left=hour.left,
        right="now",
    )


def marks(low: float, high: float, text: Callable[[float], str], *, unit: int = 1000, least: float = 1.0) -> tuple[ChartMark, ...]:
    """Lines from ``low`` to ``high``, five at most.

    Args:
        low: the value at the bottom of the chart.
        high: the one at its top.
        text: what stands for a value.
        unit: the factor between two units of the text: 1,000, or 1,024 of bytes.
        least: the smallest difference that the text shows.
    """
    step = _step(high - low, unit, least)
    values = [number * step for number in range(ceil(low / step), floor(high / step) + 1)]
    return tuple(_mark(value, low, high, text) for value in values)


def _step(span: float, unit: int, least: float) -> float:
    steps = (least * number * float(unit) ** power for power in itertools.count() for number in _ROUND)
    return next(step for step in steps if span <= step * _MOST)


def _mark(value: float, low: float, high: float, text: Callable[[float], str]) -> ChartMark:
    y = y_of(value, low, high, HEIGHT)
    return ChartMark(y=f"{y}%", text=text(value), below=float(y) < _ROOM)


def _known(value: float, words: Callable[[float], str]) -> str:
    return words(value) if value >= 0 else "not known"


def _offsets(hour: _Hour, minutes: Sequence[Minute]) -> Chart:
    ends, stable = [float(each.log_end_offset) for each in minutes], [float(each.last_stable_offset) for each in minutes]
    low, high = bounds(ends, stable)
    apart = [end - here for end, here in zip(ends, stable, strict=True) if end >= 0 and here >= 0]
    both = f"Log end offset and last stable offset, from {hour.left} to now"
    title = f"{both}: {apart[-1]:,.0f} offsets apart now" if apart else "Offsets: not known"
    return Chart(
        key="offsets",
        heading="Last stable offset against the end",
        title=title,
        lines=(
            ChartLine(path=line_path(ends, low, high), title="log end offset", name="end"),
            ChartLine(path=line_path(stable, low, high), title="last stable offset", name="stable"),
        ),
        marks=marks(low, high, count),
        points=tuple(
            f"{time}: end {_known(end, count)}, stable {_known(here, count)}"
            for time, end, here in zip(hour.times, ends, stable, strict=True)
        ),
        left=hour.left,
        right="now",
        area=area_path(ends, stable, low, high),
    )


def group_view(detail: GroupDetail, query: Query, status: Status) -> GroupView:
    """The view of a group.

    The view of one consumer group: why it does not go on, the command for it, and all of its partitions.

    Raises:
        UsageError: the query asks for what is not there.
    """
    name = detail.summary.group
    findings = group_findings(detail)
    omitted = len(findings) - _MOST_VERDICTS
    return GroupView(
        title=format_name(name, 255),
        here=GROUPS,
        status=status,
        json=path_of(name) if name not in ("", ".", "..") else GROUPS_PATH,
        verdicts=tuple(_verdict(f"verdict-{index}", each) for index, each in enumerate(findings[:_MOST_VERDICTS])),
        more=f"{format_count(omitted, 'more reason')} below, by partition." if omitted > 0 else "",
        facts=drawn_facts(group_facts(detail, Times(detail.at_ms))),
        table=_table(detail, query),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownVerdict:
    """A verdict as it is drawn."""

    key: str
    tone: str
    badge: str
    text: str
    about: Link | None
    command: str
    no_command: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupView(PageView):
    """One consumer group."""

    verdicts: tuple[ShownVerdict, ...]
    more: str
    facts: tuple[Fact, ...]
    table: PageTable


def _verdict(key: str, finding: GroupFinding) -> ShownVerdict:
    log = finding.topic, finding.partition
    about = Link(text=f"partition {place(*log)}", href=partition_link(*log)) if finding.topic else None
    return ShownVerdict(
        key=key,
        tone=finding.severity,
        badge=words(finding.verdict),
        text=capitalized(finding.text),
        about=about,
        command=finding.command,
        no_command=finding.no_command,
    )


def _table(detail: GroupDetail, query: Query) -> PageTable:
    path, name = group_link(detail.summary.group).partition("?")[0], detail.summary.group
    parameters = {"group": name} if path == GROUPS else {}
    sort = query.word("sort", GROUP_PARTITIONS.sortable, GROUP_PARTITIONS.default)
    order = query.order(GROUP_PARTITIONS.order(sort))
    rows = _ordered(detail.partitions, sort, order)
    page = rows[query.offset : query.offset + DEFAULT_LIMIT]
    return draw(
        "rows",
        "Partitions of the group",
        columns_of(GROUP_PARTITIONS.page_columns),
        page,
        detail.at_ms,
        empty="It has no committed offsets, or none any more.",
        sorting=Sorting(path=path, sort=sort, order=order, others=parameters),
        paging=paging(
            path,
            {**parameters, **query.given("sort", "order")},
            offset=query.offset,
            rows=len(page),
            matched=len(rows),
            total=len(rows) + detail.omitted,
        ),
    )


def _ordered(rows: Sequence[GroupPartition], sort: str, order: str) -> Sequence[GroupPartition]:
    """The rows by a field; they come the worst first, as by their verdict."""
    if sort == "verdict":
        return rows if order == ASC else rows[::-1]
    if sort == "topic":
        return by_key(rows, lambda row: f"{row.topic}\0{row.partition:010}", order)
    if sort == "next_append_ms":  # as its cell shows it
        return by_key(rows, lambda row: row.next_ms, order)
    return by_key(rows, lambda row: getattr(row, sort), order)  # a field's name: one of the words that the query may name


def topic_view(detail: TopicDetail, partitions: Callable[[str], PartitionPage], query: Query, status: Status) -> TopicView:
    """The view of a topic.

    The view of one topic: what is wrong, what it comes to, its partitions, and who reads it.

    Args:
        partitions: the page of partitions that a query asks for.

    Raises:
        UsageError: the query asks for what is not there.
    """
    name = detail.row.topic
    readers, problems = (detail.readers or [])[:_MOST_READERS], shown_problems(detail.problems, detail.at_ms, status)
    omitted = len(detail.readers or []) - len(readers) + detail.more_readers
    return TopicView(
        title=format_name(name, 249),
        here=TOPICS,
        status=status,
        json=path_of_topic(name) if name not in ("", ".", "..") else TOPICS_PATH,
        problems=by_kind(problems[:_MOST_PROBLEMS]),
        more_problems=Link(text="All problems", href=link(HOME, {"filter": name})) if len(problems) > _MOST_PROBLEMS else None,
        facts=drawn_facts(listed_facts(TOPIC_LIST, detail.row, Times(detail.at_ms), without=("topic",))),
        readers=draw(
            "readers",
            "Consumer groups that read it",
            columns_of(READERS.columns),
            readers,
            detail.at_ms,
            empty="No groups are read." if detail.readers is None else "No consumer group has committed offsets in it.",
        ),
        more=f"{format_count(omitted, 'more group')} not listed." if omitted else "",
        table=_partitions_of_topic(name, partitions, query),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicView(PageView):
    """One topic."""

    problems: tuple[ShownKind, ...]
    more_problems: Link | None
    facts: tuple[Fact, ...]
    readers: PageTable
    more: str
    table: PageTable


def _partitions_of_topic(name: str, partitions: Callable[[str], PartitionPage], query: Query) -> PageTable:
    path = topic_link(name).partition("?")[0]
    own = {"topic": name} if path == TOPICS else {}
    asked = query.given("sort", "order", "offset")
    page = partitions(link(PARTITIONS_PATH, {**asked, "topic": name, "limit": str(_MOST_ROWS)}).partition("?")[2])
    return draw(
        "rows",
        "Partitions",
        columns_of(PARTITION_LIST.page_columns),
        page.rows,
        page.at_ms,
        empty="No partition of it is watched.",
        sorting=Sorting(path=path, sort=page.sort, order=page.order, others=own),
        paging=paging(
            path,
            {**own, **query.given("sort", "order")},
            offset=page.offset,
            rows=len(page.rows),
            matched=page.matched,
            total=page.matched,
            limit=_MOST_ROWS,
        ),
    )
