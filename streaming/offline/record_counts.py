"""The records of each partition in log dirs, counted by the headers of their batches: as many as consumers would get."""

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from streaming.agent.cluster_view import ClusterView
from streaming.disk.availability import LogDirs
from streaming.disk.logdirs import Partition
from streaming.disk.scanning import window
from streaming.disk.segment_files import Segment, list_segments
from streaming.errors import FormatError
from streaming.formatting import format_word
from streaming.kafka.names import METADATA_TOPIC
from streaming.ladder.count_log import CountedLog, count_log
from streaming.log_key import LogKey
from streaming.metrics.limiter import LimitsOf
from streaming.metrics.table import Snapshot
from streaming.metrics.view import View
from streaming.offline.doubts import refused, unread
from streaming.offline.single_reading import SingleReading
from streaming.progress_line import ProgressLine
from streaming.scan.walk import Bytes
from streaming.settings import Settings
from streaming.watcher.cursors import log_id
from streaming.watcher.scope import Scope
from streaming.watcher.tail import Tail

_TRIES = 3
"""How often a log is counted in which a running broker deletes or compacts segments meanwhile."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One partition, by the replica that is exported for it.

    ``first_offset`` and ``next_offset``: the offsets between which it was counted, from the log start (or from the first that is on this
    disk) to the high watermark (or to the end of the log if that is not known); None if its directory cannot be read.

    ``data`` records, of which ``aborted`` belong to aborted transactions; ``control`` records; ``readable``: data that is not aborted and
    below the last stable offset, which is what consumers of committed data get. ``waiting``: data between that offset and the high
    watermark. All of these are None if the log could not be counted, with the ``error``; the last two also if the last stable offset is
    not known.

    ``unreplicated``: data records after the high watermark. ``remote_offsets``: offsets that are only in remote storage.
    """

    broker: int
    topic: str
    partition: int
    leader: bool | None = None
    first_offset: int | None = None
    next_offset: int | None = None
    high_watermark: int | None = None
    last_stable_offset: int | None = None
    data: int | None = None
    aborted: int | None = None
    control: int | None = None
    readable: int | None = None
    waiting: int | None = None
    unreplicated: int = 0
    remote_offsets: int = 0
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """``rows`` by topic and partition. ``doubts``: what could not be read or understood, in sentences.

    ``elsewhere``: the partitions, with their topics, that the metadata log knows and that have no directory here, None if none is readable.
    """

    rows: tuple[Row, ...]
    doubts: tuple[str, ...]
    elsewhere: tuple[tuple[str, int], ...] | None

    @property
    def complete(self) -> bool:
        """Whether every partition was counted, as far as the metadata log shows which there are."""
        return self.elsewhere == () and not self.doubts and not any(row.error for row in self.rows)


def count_records(
    log_dirs: LogDirs, topics: Collection[str], settings: Settings, now_ms: int, progress: ProgressLine | None = None
) -> Answer:
    """Count the records of all topics, or of some.

    Args:
        now_ms: the present time, Unix milliseconds.
        progress: shows how far it is.

    Raises:
        UsageError: a ``server.properties`` cannot be read, or a given configuration is not valid.
    """
    listed: dict[Path, tuple[str, int]] = {}

    def scope(cluster: ClusterView, _: LimitsOf) -> Scope:
        return Scope(wants=_wants(cluster, topics, listed), once=True)

    with SingleReading(log_dirs, settings, scope, now_ms) as reading:
        seen, snapshot = reading.see()
        pace = _Pace(settings.read_rate, progress)
        exported = list(_exported(reading, seen, snapshot))
        if progress is not None:
            progress.expect(sum(segment.size for _, tail in exported for segment in _segments(tail)))
        rows = [_count(row, tail, pace) for row, tail in exported]
        uncounted = _refused(reading, topics, {(row.topic, row.partition) for row in rows})

        named = {(row.topic, row.partition) for row in rows if row.error} | uncounted.keys()  # their rows say why

        def counts(topic: str, partition: int) -> bool:
            return (not topics or topic in topics) and (topic, partition) not in named

        doubts = unread(reading.agent, counts, [tail for _, tail in exported], listed)
        return Answer(
            rows=tuple(sorted([*rows, *uncounted.values()], key=lambda row: (row.topic, row.partition, row.broker))),
            doubts=(*doubts, *refused(reading.agent, counts)),
            elsewhere=_elsewhere(reading.agent.cluster, topics, {*listed.values(), *uncounted}),
        )


def _refused(reading: SingleReading, topics: Collection[str], counted: Collection[tuple[str, int]]) -> dict[tuple[str, int], Row]:
    """The partitions of which no other replica was counted and whose directory may not be read."""
    found: dict[tuple[str, int], Row] = {}
    cluster = reading.agent.cluster
    for each in reading.agent.watcher.unreadable():
        topic, number = pair = each.log.topic, each.log.partition
        wanted = topic in topics if topics else topic != METADATA_TOPIC
        deleted = cluster.known and number >= (cluster.partition_count(topic) or 0)
        if wanted and not deleted and pair not in counted:
            found[pair] = Row(broker=each.log.broker, topic=topic, partition=number, error=f"{format_word(each.path)}: {each.error}")
    return found


def _wants(cluster: ClusterView, topics: Collection[str], listed: dict[Path, tuple[str, int]]) -> Callable[[Partition], bool]:
    """Selects logs of these topics. One that has moved to another broker is left out: its broker deletes it at the next start."""

    def wants(partition: Partition) -> bool:
        if partition.topic == METADATA_TOPIC or (topics and partition.topic not in topics):
            return False
        state = cluster.partition(log_id(partition))
        if cluster.known and (state is None or partition.log_dir.broker not in state.replicas):
            return False
        listed[partition.path] = (partition.topic, partition.partition)
        return True

    return wants


def _elsewhere(cluster: ClusterView, topics: Collection[str], here: Collection[tuple[str, int]]) -> tuple[tuple[str, int], ...] | None:
    if not cluster.known:
        return None
    asked = sorted(set(topics or cluster.topic_names()))
    known = ((topic, number) for topic in asked for number in range(cluster.partition_count(topic) or 0))
    return tuple(pair for pair in known if pair not in here)


class _Pace:
    """Keeps counting below a rate in bytes a second, and shows how far it is."""

    def __init__(self, rate: int, progress: ProgressLine | None) -> None:
        self.buffer: Bytes = window()
        self._rate = rate
        self._progress = progress
        self._began = time.monotonic()
        self._read = 0

    def __call__(self, size: int) -> None:
        self._read += size
        if self._progress is not None:
            self._progress.add(size)
        early = self._read / self._rate - (time.monotonic() - self._began)
        if early > 0:
            time.sleep(early)


def _exported(reading: SingleReading, seen: View, snapshot: Snapshot) -> Iterator[tuple[Row, Tail]]:
    """The logs that are exported, with nothing counted yet."""
    tails = {tail.cursor.log: tail for tail in reading.agent.watcher.tails()}
    logs = seen.logs
    for item, topic_id in enumerate(logs.topic_ids):
        broker, partition, start, end = (int(logs[name][item]) for name in ("broker", "partition", "log_start_offset", "log_end_offset"))
        topic = snapshot.topic_names[int(logs["topic"][item])]
        tail = tails.get(LogKey(broker, topic, partition, topic_id))
        if tail is None:
            continue
        leader, high_watermark, stable = (int(logs[name][item]) for name in ("leader", "high_watermark", "last_stable_offset"))
        row = Row(
            broker=broker,
            topic=topic,
            partition=partition,
            leader=None if leader < 0 else leader == 1,
            first_offset=max(0, start),
            next_offset=end if high_watermark < 0 else min(end, high_watermark),
            high_watermark=None if high_watermark < 0 else high_watermark,
            last_stable_offset=None if stable < 0 else stable,
        )
        yield row, tail


def _count(row: Row, tail: Tail, pace: _Pace) -> Row:
    for attempt in range(_TRIES):
        try:
            segments = list_segments(tail.partition.path)
            if not segments:
                raise FileNotFoundError(f"{tail.partition.path} has no segments")
            return _counted(row, count_log(segments, row.first_offset or 0, pace.buffer, pace))
        except FileNotFoundError as error:  # a segment was deleted or compacted meanwhile
            if attempt == _TRIES - 1:
                return _failed(row, error)
        except (FormatError, OSError) as error:
            return _failed(row, error)
    raise AssertionError("unreachable")


def _segments(tail: Tail) -> Sequence[Segment]:
    try:
        return list_segments(tail.partition.path)
    except OSError:
        return ()  # to count it fails as well, and is reported then


def _failed(row: Row, error: Exception) -> Row:
    return replace(row, error=str(error))


def _counted(row: Row, counted: CountedLog) -> Row:
    assert row.first_offset is not None
    assert row.next_offset is not None
    first = max(row.first_offset, counted.segments[0].base_offset)
    upto = max(first, min(row.next_offset, counted.end_offset))
    whole = counted.between(first, upto)
    if whole is None or (counted.damage and upto == first):  # nothing is known of what follows
        return replace(row, first_offset=first, next_offset=upto, error=counted.damage or "it cannot be read")
    stable = None if row.last_stable_offset is None else counted.between(first, max(first, min(row.last_stable_offset, upto)))
    beyond = counted.between(upto, counted.end_offset) if row.high_watermark is not None else None
    return replace(
        row,
        first_offset=first,
        next_offset=upto,
        data=whole.data,
        aborted=whole.aborted,
        control=whole.control,
        readable=None if stable is None else stable.data - stable.aborted,
        waiting=None if stable is None else whole.data - whole.aborted - (stable.data - stable.aborted),
        unreplicated=0 if beyond is None else beyond.data,
        remote_offsets=first - row.first_offset,
        error=counted.damage,
    )
