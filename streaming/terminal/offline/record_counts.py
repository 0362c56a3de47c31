"""The records of each partition in log dirs, counted by the headers of sound batches: as many as consumers would get."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

import streaming
from streaming.broker.agent.cluster_view import ClusterView
from streaming.broker.disk.availability import LogDirs
from streaming.broker.disk.scanning import window
from streaming.broker.disk.segment_files import Segment, list_segments
from streaming.broker.ladder.positions import CountedLog
from streaming.broker.protocol.listing_json import ALL_ROWS, AwayBroker, CountPage, CountRow
from streaming.broker.watcher.registry import Scope
from streaming.broker.watcher.tail import Tail
from streaming.cluster.view.table import Snapshot
from streaming.cluster.view.view import View
from streaming.common.progress_line import ProgressLine
from streaming.common.settings import Settings
from streaming.common.units import format_be, format_count, format_list, format_word
from streaming.errors import FormatError
from streaming.kafka.formats.names import METADATA_TOPIC
from streaming.kafka.scan.walk import Bytes
from streaming.pages.api.counts_and_disks import page_of
from streaming.pages.listings.declared_lists import uncounted
from streaming.rules.limits import LimitsOf
from streaming.terminal.offline.cluster_logs import ClusterLogs, no_metadata
from streaming.terminal.offline.doubts import damage_advice, missing_offsets, refused, unread
from streaming.terminal.offline.local_agent import count_directory
from streaming.terminal.offline.read_pace import ReadPace
from streaming.terminal.offline.single_reading import SingleReading, names_of, tails_of

_NAMED = 5


def count_records(
    log_dirs: LogDirs, topics: Collection[str], settings: Settings, now_ms: int, progress: ProgressLine | None = None
) -> RecordCounts:
    """Count the records of all topics, or of some.

    Args:
        now_ms: the present time, Unix milliseconds.
        progress: shows how far it is.

    Raises:
        UsageError: a ``server.properties`` cannot be read, or a given configuration is not valid.
    """
    chosen = list[ClusterLogs]()

    def scope(cluster: ClusterView, _: LimitsOf) -> Scope:
        chosen.append(ClusterLogs(cluster, lambda topic, _: not topics or topic in topics))
        return Scope(wants=chosen[0], once=True)

    with SingleReading(log_dirs, settings, scope, now_ms) as reading:
        exported = list(_exported(reading, *reading.see()))
        buffer = window()
        pace = ReadPace(settings.read_rate, time.monotonic, time.sleep, progress.add if progress is not None else lambda _: None)
        if progress is not None:
            progress.expect(sum(segment.size for _, tail in exported for segment in _segments(tail)))
        holes = list[str]()
        rows = [_count(row, tail, buffer, pace, reading.agent.cluster, holes) for row, tail in exported]
        directories = {(row.topic, row.partition): tail.partition.path for row, tail in exported}

        def advice(row: CountRow) -> str:
            words = damage_advice(directories.get((row.topic, row.partition)), row.error)
            return f". {words}" if words else ""

        unreadable = _refused(reading, topics, {(row.topic, row.partition) for row in rows})

        named = {(row.topic, row.partition) for row in rows if row.error} | unreadable.keys()  # their rows say why

        def counts(topic: str, partition: int) -> bool:
            return (not topics or topic in topics) and (topic, partition) not in named

        rows = sorted([*rows, *unreadable.values()], key=lambda row: (row.topic, row.partition, row.broker))
        here = {*chosen[0].listed.values(), *unreadable}
        elsewhere = _elsewhere(reading.agent.cluster, topics, here)
        doubts = (
            *unread(reading.agent, counts, [tail for _, tail in exported], chosen[0].listed),
            *refused(reading.agent, counts),
            *chosen[0].doubts(),
            *holes,
        )
        return RecordCounts(
            rows=tuple(rows),
            doubts=(*_unseen(elsewhere, reading.agent.cluster), *doubts, *uncounted(rows, advice)),
            topics=frozenset(topic for topic, _ in (*here, *(elsewhere or ()))),
            unread=doubts,
            away=tuple(reading.away),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordCounts:
    """``rows`` of partitions. ``topics`` that have a partition here, or one elsewhere that the metadata knows."""

    rows: tuple[CountRow, ...]
    doubts: tuple[str, ...]  # what could not be read, understood or counted, and which partitions are not here
    topics: frozenset[str]
    unread: tuple[str, ...]  # those of the doubts for which a topic may have one that was not found
    away: tuple[AwayBroker, ...] = ()  # brokers whose log dirs no process holds


def _exported(reading: SingleReading, view: View, snapshot: Snapshot) -> Iterator[tuple[CountRow, Tail]]:
    """The logs that are exported, with nothing counted yet."""
    names = ("broker", "partition", "leader", "log_start_offset", "log_end_offset", "high_watermark", "last_stable_offset")
    columns = zip(*(view.logs[name].astype(int).tolist() for name in names), strict=True)
    tails, topics = tails_of(reading, view, snapshot), names_of(view, snapshot)
    for tail, topic, (broker, partition, leader, start, end, high_watermark, stable) in zip(tails, topics, columns, strict=True):
        if tail is None:
            continue
        row = CountRow(
            broker=broker,
            topic=topic,
            partition=partition,
            leader=leader == 1,
            first_offset=max(0, start),
            next_offset=end if high_watermark < 0 else min(end, high_watermark),
            high_watermark=high_watermark,
            last_stable_offset=stable,
        )
        yield row, tail


def _segments(tail: Tail) -> Sequence[Segment]:
    try:
        return list_segments(tail.partition.path)
    except OSError:
        return ()  # to count it fails as well, and is reported then


def _count(row: CountRow, tail: Tail, buffer: Bytes, pace: ReadPace, cluster: ClusterView, holes: list[str]) -> CountRow:
    """Count a log; what it lacks between two segments is added to ``holes``, in sentences."""
    try:
        counted = count_directory(tail.partition.path, row.first_offset, buffer, pace)
        holes.extend(missing_offsets(cluster, tail.cursor.log, counted, row.first_offset))
        return _counted(row, counted)
    except (FormatError, OSError) as error:
        return replace(row, error=str(error))


def _counted(row: CountRow, counted: CountedLog) -> CountRow:
    first = max(row.first_offset, counted.segments[0].base_offset)
    upto = max(first, min(row.next_offset, counted.end_offset))
    whole, damage = counted.between(first, upto), counted.damage(first)
    short = counted.cut and not 0 <= row.high_watermark < counted.end_offset  # what is damaged may be below the high watermark
    if whole is None or short or (damage and upto == first):  # nothing is known of what follows
        return replace(row, first_offset=first, next_offset=upto, error=damage or "it cannot be read")
    stable = None if row.last_stable_offset < 0 else counted.between(first, max(first, min(row.last_stable_offset, upto)))
    beyond = counted.between(upto, counted.end_offset) if row.high_watermark >= 0 else None
    return replace(
        row,
        first_offset=first,
        next_offset=upto,
        data=whole.data,
        aborted=whole.aborted,
        control=whole.control,
        readable=-1 if stable is None else stable.data - stable.aborted,
        waiting=-1 if stable is None else whole.data - whole.aborted - (stable.data - stable.aborted),
        unreplicated=0 if beyond is None else beyond.data,
        remote_offsets=first - row.first_offset,
        error=damage,
    )


def _refused(reading: SingleReading, topics: Collection[str], counted: Collection[tuple[str, int]]) -> dict[tuple[str, int], CountRow]:
    """The partitions of which no other replica was counted and whose directory may not be read."""
    found: dict[tuple[str, int], CountRow] = {}
    cluster = reading.agent.cluster
    for each in reading.agent.watcher.unreadable():
        topic, number = pair = each.log.topic, each.log.partition
        wanted = not topics or topic in topics
        deleted = cluster.known and topic != METADATA_TOPIC and number >= (cluster.partition_count(topic) or 0)
        if wanted and not deleted and pair not in counted:
            found[pair] = CountRow(broker=each.log.broker, topic=topic, partition=number, error=f"{format_word(each.path)}: {each.error}")
    return found


def _elsewhere(cluster: ClusterView, topics: Collection[str], here: Collection[tuple[str, int]]) -> tuple[tuple[str, int], ...] | None:
    if not cluster.known:
        return None
    asked = sorted(set(topics or cluster.topic_names()))
    known = ((topic, number) for topic in asked for number in range(cluster.partition_count(topic) or 0))
    return tuple(pair for pair in known if pair not in here)


def _unseen(elsewhere: Sequence[tuple[str, int]] | None, cluster: ClusterView) -> Iterator[str]:
    """The partitions that have no directory here."""
    if elsewhere is None:
        yield no_metadata(cluster, "nothing shows how many partitions there are")
    elif elsewhere:
        names = format_list([f"{topic}-{number}" for topic, number in elsewhere], _NAMED)
        count = len(elsewhere)
        yield (
            f"{format_count(count, 'partition')} that the metadata log knows {format_be(count)} not here, and not counted: {names}; "
            "name the log dirs of the brokers that have them too"
        )


def counted_page(counts: RecordCounts, query: str, at_ms: int) -> CountPage:
    """What a job answers at `COUNT_PATH`, from what was counted here."""
    page = page_of(counts.rows, query, at_ms, ALL_ROWS)
    return replace(page, version=streaming.__version__, doubts=list(counts.doubts), away=[*counts.away])
