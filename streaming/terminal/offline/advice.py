"""Which codec, batch size and linger would make a topic smaller: predicted from a sample, with the error of the sample."""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

import streaming
from streaming.broker.agent.cluster_view import ClusterView
from streaming.broker.agent.topic_configs import running_configs
from streaming.broker.disk.availability import LogDirs
from streaming.broker.disk.logdirs import Partition, list_partitions
from streaming.broker.disk.scanning import window
from streaming.broker.disk.segment_files import Segment, list_segments
from streaming.broker.protocol.advice_json import ADVISED, NOTHING, UNKNOWN, AdvicePage, AdviceRow, AdvisedSetting
from streaming.broker.protocol.disk_json import DiskRow
from streaming.broker.protocol.listing_json import ALL_ROWS
from streaming.broker.watcher.cursors import log_id
from streaming.cluster.usage.disk_answer import answer_of
from streaming.cluster.view.page_context import context_of
from streaming.common.arrays import Floats
from streaming.common.codecs import CODECS
from streaming.common.settings import Settings
from streaming.common.units import format_count, format_list
from streaming.kafka.formats.names import INTERNAL_TOPICS, METADATA_TOPIC, DirState
from streaming.kafka.formats.rebatching import AS_IT_IS, Expected, Sent, Setting, add_to_windows, full_at, rebatch, settled, without_full
from streaming.terminal.offline.cluster_logs import is_of_cluster
from streaming.terminal.offline.disk_reading import DiskQuestion, read_disk
from streaming.terminal.offline.read_pace import ReadPace
from streaming.terminal.offline.record_samples import WINDOWS, Sample, sample

_LINGERS, _SIZES = (5, 20, 100), (16 << 10, 64 << 10, 256 << 10)

_ADVISED_CODECS = ("lz4", "zstd")
"""From the lightest on. Others are advised where the topic has them already."""

_NEAR, _LEAST, _COMPRESSIBLE = 3.0, 5.0, 5.0
"""Percent: what a setting may save less than the best one; what is worth a change; what a codec takes from values that compress."""

_UNTIMELY = 0.01
_LEAST_BYTES = 32 << 10

_T = (math.nan, 12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36)
"""Student's t for 95 %, by degrees of freedom."""

_NAMED = 5

_TOO_LITTLE = "no setting saves more than a few percent"
_OF_TOPIC = "a producer's codec is not on the disk, set that of the topic; a batch.size holds where its producers have the same codec"
_NO_LINGER = "what linger.ms does is not known, and batches are filled, however long that takes"
_INCOMPRESSIBLE = "values do not compress: they are encrypted or compressed already"


def advise(
    log_dirs: LogDirs,
    names: Collection[str],
    settings: Settings,
    now_ms: int,
    *,
    most: int,
    largest: int,
    every: bool,
    progress: Callable[[int], None] = lambda _: None,
) -> tuple[AdvicePage, frozenset[str]]:
    """Advise about topics.

    Args:
        names: the topics; none for the largest ones.
        most: the bytes that are read of each.
        largest: so many topics, if none is named.
        every: with all settings that were tried.
        progress: called with the bytes of each read.

    Returns:
        The page, and all topics that are there.

    Raises:
        UsageError: as `read_disk`.
    """
    disk = read_disk(log_dirs, settings, DiskQuestion(now_ms=now_ms))
    uses = {row.topic: row for row in answer_of(disk, "topic", ALL_ROWS).rows}
    adviser = Adviser(log_dirs, settings, most, progress)
    asked = [name for name in uses if name in adviser.there and (name in names if names else name not in INTERNAL_TOPICS)]
    rows = [adviser.advise(name, uses[name], every=every) for name in (asked if names else asked[:largest])]
    left = len(asked) - len(rows)
    more = [f"{format_count(left, 'smaller topic')} not looked at: name them, or give --limit"] if left else []
    return (
        AdvicePage(at_ms=now_ms, version=streaming.__version__, total=len(asked), rows=rows, doubts=[*disk.doubts, *more]),
        frozenset(adviser.there),
    )


class Adviser:
    """Advises about one topic after the other. ``there``: the live directories of the cluster's partitions, by topic.

    Args:
        most, progress: as of `advise`.

    Raises:
        UsageError: as `read_disk`.
    """

    def __init__(self, log_dirs: LogDirs, settings: Settings, most: int, progress: Callable[[int], None]) -> None:
        limiter = context_of(settings, once=True).limiter
        self._limits_of = limiter.now()
        self._cluster = ClusterView(log_dirs, running_configs(log_dirs, limiter.is_given))
        self._cluster.refresh()
        self._most, self._buffer, self._pace = most, window(), ReadPace(settings.read_rate, time.monotonic, time.sleep, progress)
        self.there: dict[str, dict[int, list[Partition]]] = defaultdict(lambda: defaultdict(list))
        for log_dir in log_dirs.available:
            for each in list_partitions(log_dir):
                if each.state is DirState.LIVE and each.topic != METADATA_TOPIC and is_of_cluster(self._cluster, each):
                    self.there[each.topic][each.partition].append(each)

    def advise(self, name: str, use: DiskRow | None = None, *, every: bool = False) -> AdviceRow:
        """Advise about a topic that is there; ``every``: with all settings that were tried."""
        topic = self._topic(name, use)
        return _advised(topic, sample(topic.logs, self._most, self._buffer, self._pace), every=every)

    def _topic(self, name: str, use: DiskRow | None) -> _Topic:
        partitions = [*self.there[name].values()]
        states = [self._cluster.partition(log_id(some[0])) for some in partitions]
        first = log_id(partitions[0][0])
        limits = self._limits_of(first.broker, name, self._cluster.configs(first))
        logs = [max(map(_segments, some), key=_end, default=()) for some in partitions]
        return _Topic(
            name=name,
            logs=[one[-1:] if limits.compacts else one for one in logs],
            compacts=limits.compacts,
            compression=limits.compression,
            replicas=-1 if None in states else sum(len(state.replicas) for state in states if state is not None),
            use=use,
        )


def _advised(topic: _Topic, found: Sample, *, every: bool) -> AdviceRow:
    sampled = round(sum(found.taken))
    row = AdviceRow(
        topic=topic.name,
        verdict=UNKNOWN,
        segment_bytes=found.total,
        sampled_bytes=sampled,
        compression=topic.compression if topic.recompressed else "",
        notes=[*_notes(topic, found)],
    )
    if not found.records:
        return replace(row, why=_why_empty(found))
    timely = not found.append_time and found.back <= _UNTIMELY * found.records
    codec = CODECS[found.codecs.most_common(1)[0][0]]
    codecs = CODECS if every else dict.fromkeys(("none", codec, *_ADVISED_CODECS))
    tried = list(_tried(found, codecs, "" if topic.recompressed else codec, timely=timely))
    row = replace(
        row,
        codec=codec,
        batch_records=round(found.records / found.batches, 2),
        batch_bytes=sampled // found.batches,
        ratio=round(tried[0].ratio * (1 - tried[0].saving_percent / 100), 3),
        linger_known=timely,
        settings=tried if every else [],
    )
    return _judged(topic, row, tried)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Topic:
    """A topic of log dirs. ``logs``: the segments of one replica of each partition. ``compression``: as of `Limits`."""

    name: str
    logs: list[Sequence[Segment]]
    compacts: bool
    compression: str
    replicas: int  # assigned, of all partitions; -1 if not known
    use: DiskRow | None

    @property
    def recompressed(self) -> bool:
        """Whether brokers compress again what they are sent."""
        return self.compression not in ("", "producer")


def _notes(topic: _Topic, found: Sample) -> Iterator[str]:
    if topic.compacts:
        yield "it is compacted: of closed segments nobody knows what was produced, so active ones alone were read"
    if topic.recompressed:
        yield f"brokers compress anew (compression.type={topic.compression}): {_OF_TOPIC}"
    elif not topic.compression:
        yield "whether brokers compress anew is not known (their compression.type): give --server-properties"
    if found.unnamed:
        yield "records have no producer id: each partition counts as of one producer; with several, batches are smaller than predicted"
    if found.append_time:
        yield f"records have the brokers' times (LogAppendTime): {_NO_LINGER}"
    elif found.back > _UNTIMELY * found.records:
        yield f"records do not have the times of sending: {_NO_LINGER}"
    elif found.doubtful > _UNTIMELY * found.batches:
        what = "hold records from more than 1 s, or not from when their file was written, as in a copy"
        yield f"{found.doubtful:,} of {found.batches:,} batches {what}: if times are those of events, linger.ms does something else"
    for reason, count in found.left_out.items():
        yield f"left out, {reason}: {count:,}"


def _why_empty(found: Sample) -> str:
    if found.left_out:
        return f"nothing could be used of what was read: batches are {format_list([*found.left_out], _NAMED)}"
    return "no records are on the disk: it is empty, or all is in remote storage"


def _tried(found: Sample, codecs: Iterable[str], now: str, *, timely: bool) -> Iterator[AdvisedSetting]:
    """All settings, from the one that costs least: by linger, batch size and codec. ``now``: the codec of the producers, "" not known."""
    streams = [each for each in found.producers.values() if each.bodies]
    depths = [(-1, AS_IT_IS), *((linger, size) for linger in (_LINGERS if timely else (-1,)) for size in _SIZES)]
    full = None if not now else full_at(_longest(streams), CODECS.index(now))
    refilled = [] if full is None else [without_full(each, full) for each in streams]
    for linger, size in depths:
        for each in streams:
            each.forget(made=size == _SIZES[0])
        for codec in codecs:
            setting = Setting(codec=CODECS.index(codec), batch_size=size, linger_ms=linger)
            if full is not None and size == AS_IT_IS and codec != now:
                yield _predicted(
                    found, refilled, setting, *(replace(full, codec=setting.codec, linger_ms=each) for each in (full.linger_ms, -1))
                )
            else:
                yield _predicted(found, streams, setting, setting)


def _longest(streams: Sequence[Sent]) -> Sent:
    return max(streams, key=lambda each: len(each.bodies))


def _predicted(found: Sample, streams: Sequence[Sent], setting: Setting, *trials: Setting) -> AdvisedSetting:
    """What a setting saves that is one of these: the middle; the error holds all of them."""
    savings, errors = list[float](), list[float]()
    batches = raw = size = 0
    for trial in trials:
        totals: Floats = np.zeros(WINDOWS)
        expected = defaultdict(Expected, {-1: settled(_longest(streams), trial)})
        for stream in streams:
            for made in rebatch(stream, trial, expected[stream.born]):
                add_to_windows(stream, made, totals)
                batches, raw, size = batches + 1, raw + made.raw, size + made.size
        saving, error = saving_of(np.array(found.taken), totals)
        savings.append(saving)
        errors.append(error)
    beside = (max(savings) - min(savings)) / 2
    return AdvisedSetting(
        codec=CODECS[setting.codec],
        batch_size=setting.batch_size or -1,
        linger_ms=setting.linger_ms,
        saving_percent=round(min(savings) + beside, 2),
        error_percent=round(max(errors) + beside, 2) if min(errors) >= 0 else -1.0,
        ratio=round(raw / size, 3),
        batch_records=round(found.records * len(trials) / batches, 2),
    )


def saving_of(now: Floats, then: Floats) -> tuple[float, float]:
    """What is saved in percent, and half of its interval of 95 %, -1 for fewer than two windows: the ratio of sums, by its windows.

    What each setting makes of a sample.

    Args:
        now: bytes of each window as it is.
        then: as it would be.
    """
    read = now > 0
    now, then = now[read], then[read]
    part, count = float(then.sum() / now.sum()), len(now)
    if count < 2:
        return 100 * (1 - part), -1.0
    spread = float(((then - part * now) ** 2).sum()) / (count * (count - 1))
    return 100 * (1 - part), 100 * _T[count - 1] * math.sqrt(spread) / float(now.mean())


def _judged(topic: _Topic, row: AdviceRow, tried: Sequence[AdvisedSetting]) -> AdviceRow:
    """The setting that costs least of those that save nearly as much as the best one."""
    candidates = dict.fromkeys((row.codec, *_ADVISED_CODECS))
    of_depth: dict[tuple[int, int], dict[str, AdvisedSetting]] = defaultdict(dict)
    for each in tried:
        of_depth[each.linger_ms, each.batch_size][each.codec] = each
    by_cost = [(each[codec], each["none"]) for each in of_depth.values() for codec in candidates]
    best = max(each.saving_percent for each, _ in by_cost)
    chosen = next(each for each, _ in by_cost if each.saving_percent >= best - _NEAR)
    compressed = max(100 - 100 * (100 - each.saving_percent) / (100 - plain.saving_percent) for each, plain in by_cost)
    if row.sampled_bytes < _LEAST_BYTES:
        return replace(row, why="too little is on the disk to say anything")
    if chosen.saving_percent < max(_LEAST, chosen.error_percent):
        return replace(row, verdict=NOTHING, why=_INCOMPRESSIBLE if compressed < _COMPRESSIBLE else _TOO_LITTLE)
    if compressed < _COMPRESSIBLE:
        return replace(row, verdict=NOTHING, why=f"{_INCOMPRESSIBLE}; larger batches alone, without their heads, save {best:.0f} %")
    return replace(
        row,
        verdict=ADVISED,
        advised=[chosen],
        setting=in_words(chosen, of_topic=topic.recompressed),
        saving=with_error(chosen),
        saved_day=_saved_day(topic, chosen.saving_percent),
    )


def in_words(setting: AdvisedSetting, *, of_topic: bool) -> str:
    """A setting as a producer gets it, or with ``of_topic`` a topic, and if batches are to be others, its producers, too.

    The advice.
    """
    depth = f" batch.size={setting.batch_size}" if setting.batch_size > 0 else ""
    linger = f" linger.ms={setting.linger_ms}" if setting.linger_ms >= 0 else ""
    where = " (topic and producers)" if of_topic and depth else " (topic)" if of_topic else ""
    codec = "uncompressed" if of_topic and setting.codec == "none" else setting.codec
    return f"compression.type={codec}{where}{depth}{linger}"


def with_error(setting: AdvisedSetting) -> str:
    """What it saves."""
    error = f" ± {setting.error_percent:.1f}" if setting.error_percent >= 0 else ""
    return f"{setting.saving_percent:z.1f}{error} %"


def _saved_day(topic: _Topic, percent: float) -> int:
    use = topic.use
    known = 0 if use is None else use.replicas - use.growth_unknown
    if use is None or use.growth_day < 0 or known <= 0 or topic.replicas < 0:
        return -1
    return round(use.growth_day / known * topic.replicas * percent / 100)


def _segments(partition: Partition) -> Sequence[Segment]:
    try:
        return list_segments(partition.path)
    except OSError:
        return ()


def _end(segments: Sequence[Segment]) -> tuple[int, int]:
    """Up to where a replica reaches, as a key by which the one that reaches further is larger."""
    return (segments[-1].base_offset, segments[-1].size) if segments else (-1, -1)
