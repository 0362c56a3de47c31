"""Directories that their brokers do not serve, or will not after their next start, and whether their records are anywhere else.

A broker renames the directory of a log to `-stray` if it starts with it and the metadata does not assign that log to it; so it does where
``partition.metadata`` is missing, although the topic is live, and then it serves an empty log (seen on 4.3.1 and 4.4.0).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from streaming.broker.agent.cluster_view import ClusterView
from streaming.broker.disk.availability import LogDirs
from streaming.broker.disk.contents import DirContents
from streaming.broker.disk.locate import find_offset
from streaming.broker.disk.logdirs import LogDir, Partition, list_partitions, read_topic_id
from streaming.broker.disk.opening import Calling
from streaming.broker.disk.scanning import has_data, window
from streaming.broker.disk.segment_files import Segment, list_segments
from streaming.broker.protocol.status_messages import LogDirStatus
from streaming.common.log_key import LogKey
from streaming.common.units import format_count, format_list, format_word
from streaming.kafka.formats.names import METADATA_TOPIC, PARTITION_METADATA, DirState, parse_partition_dir

_LONGEST_NAME = 255
"""A broker cuts the topic's name off where that of the directory would be longer."""

_NAMED = 3

_LOOK_EVERY_MS = 60_000

_MOST_JUDGED = 100
"""So many of a log dir's are looked into: each costs reads, and a broker that starts with wrong metadata sets all of its logs aside."""


def stray_sentences(log_dirs: Iterable[LogDir], cluster: ClusterView, counts: Callable[[str, int], bool]) -> Iterator[str]:
    """What an answer about topics and partitions lacks, or will after the next start of a broker.

    Args:
        counts: whether it is about a topic and partition.
    """
    found = [each for each in strays_in(log_dirs, cluster) if counts(each.partition.topic, each.partition.partition)]
    for kind, what in _SENTENCES.items():
        those = [format_word(str(each.partition.path)) for each in found if each.kind is kind]
        if those:
            yield f"{format_count(len(those), 'log')} {what}: {format_list(those, _NAMED)}; `segtail disk` says what to do"


def strays_in(log_dirs: Iterable[LogDir], cluster: ClusterView) -> Iterator[Stray]:
    """All of them. What cannot be read is not known; log dirs that cannot be listed are reported elsewhere."""
    every = list(log_dirs)
    for log_dir in every:
        try:
            there = list_partitions(log_dir, _named)
        except OSError:
            continue
        yield from judged(there, every, cluster)


class StrayKind(StrEnum):
    """What is known of such a directory."""

    NEEDLESS = "stray"  # the topic is deleted, or a replica in sync has the same last batch
    UNKNOWN = "stray_unknown"
    ONLY = "stray_only"  # the topic is live, and no replica in sync has its records
    UNNAMED = "unnamed"  # a live log without ``partition.metadata``: the next start of its broker makes it a stray


@dataclass(frozen=True, slots=True)
class Stray:
    """One of them. ``topic_id``: of a live topic, "" if there is none."""

    partition: Partition
    kind: StrayKind
    topic_id: str = ""


def _named(directory: Path) -> str:
    """Whether a directory has a topic id, without a look into it: "" if not."""
    path = f"{directory}/{PARTITION_METADATA}"
    with Calling(path):
        return PARTITION_METADATA if os.path.lexists(path) else ""


def judged(there: Iterable[Partition], log_dirs: Sequence[LogDir], cluster: ClusterView) -> Iterator[Stray]:
    """Those among some directories, by what is in the log dirs that can be read."""
    buffer = window()

    def boundary(segments: Sequence[Segment], upto: int | None) -> tuple[int, bytes]:
        """The end of the last batch up to an offset, and its header."""
        some = [each for each in segments if has_data(each) and (upto is None or each.base_offset < upto)]
        found = find_offset(some, upto, buffer)
        return found.next_offset, found.anchor

    for each in there:
        try:
            if each.state is DirState.STRAY:
                yield _judged(each, log_dirs, cluster, boundary)
            elif each.state is DirState.LIVE and _is_unnamed(each, cluster):
                yield Stray(each, StrayKind.UNNAMED, _topic_id(each, cluster))
        except OSError:
            yield Stray(each, StrayKind.UNKNOWN)


def _judged(
    stray: Partition,
    log_dirs: Sequence[LogDir],
    cluster: ClusterView,
    boundary: Callable[[Sequence[Segment], int | None], tuple[int, bytes]],
) -> Stray:
    topic_id = read_topic_id(stray.path)
    cut = len(stray.path.name) >= _LONGEST_NAME and not topic_id
    if not cluster.known or topic_id is None or cut:
        return Stray(stray, StrayKind.UNKNOWN)
    segments = list_segments(stray.path)
    key = LogKey(stray.log_dir.broker, stray.topic, stray.partition, topic_id)
    state = cluster.partition(key)
    if state is None or not any(map(has_data, segments)):
        return Stray(stray, StrayKind.NEEDLESS)
    topic = cluster.topic_name(topic_id) if topic_id else stray.topic
    live_id = topic_id or _topic_id(stray, cluster)
    end, last = boundary(segments, None)
    differing = set[int]()
    for log_dir in log_dirs if last else ():
        path = log_dir.path / f"{topic}-{stray.partition}"
        if log_dir.broker not in state.isr or not path.is_dir():
            continue
        live = list_segments(path)
        if any(has_data(each) and each.base_offset < end for each in live) and boundary(live, end) == (end, last):
            return Stray(stray, StrayKind.NEEDLESS, live_id)
        if live and live[0].base_offset < end:
            differing.add(log_dir.broker)
    surely = state.isr and differing >= {*state.isr} and not cluster.limits(key).compacts  # compaction changes the batches
    return Stray(stray, StrayKind.ONLY if surely else StrayKind.UNKNOWN, live_id)


def _topic_id(partition: Partition, cluster: ClusterView) -> str:
    ids = cluster.topic_ids() or ()
    return next((each for each in ids if cluster.topic_name(each) == partition.topic), "")


def _is_unnamed(partition: Partition, cluster: ClusterView) -> bool:
    """Whether a log of a live topic has records and no topic id: a broker writes that before the first of them."""
    if partition.topic_id or partition.topic == METADATA_TOPIC or partition.log_dir.zookeeper or not _topic_id(partition, cluster):
        return False
    return any(map(has_data, list_segments(partition.path)))


_SENTENCES = {
    StrayKind.ONLY: "of live topics set aside by their brokers, with records that no replica in sync has",
    StrayKind.UNNAMED: "without partition.metadata: the next start of their brokers sets them aside, and serves empty logs",
}


class StrayWatch:
    """What an agent knows of them in its log dirs, looked at again once a minute. Only the watcher's thread uses it."""

    def __init__(self, log_dirs: LogDirs, cluster: ClusterView) -> None:
        self._log_dirs, self._cluster = log_dirs, cluster
        self._looked: dict[Path, tuple[int, tuple[str, ...], tuple[Stray, ...]]] = {}

    def within(self, status: LogDirStatus, contents: DirContents, live: Iterable[Partition], now_ms: int) -> LogDirStatus:
        """The status of a log dir, with the logs of live topics that its broker has set aside, or will.

        Args:
            live: the logs that are watched.
        """
        log_dir = contents.log_dir
        at_ms, names, found = self._looked.get(log_dir.path, (-_LOOK_EVERY_MS, (), ()))
        if names != contents.strays or not 0 <= now_ms - at_ms < _LOOK_EVERY_MS:
            aside = [_partition(log_dir, name) for name in contents.strays[:_MOST_JUDGED]]
            own = (each for each in live if each.log_dir.path == log_dir.path)
            unnamed = [replace(each, topic_id="") for each in own if not _named(each.path)]
            there = judged([*aside, *unnamed], list(self._log_dirs.available), self._cluster)
            found = tuple(each for each in there if each.kind in (StrayKind.ONLY, StrayKind.UNNAMED))
            self._looked[log_dir.path] = now_ms, contents.strays, found
        kinds = [each.kind for each in found]
        named = [each.partition.path.name for each in found[:_NAMED]]
        return replace(status, stray_only=kinds.count(StrayKind.ONLY), unnamed=kinds.count(StrayKind.UNNAMED), set_aside=named)


def _partition(log_dir: LogDir, name: str) -> Partition:
    parsed = parse_partition_dir(name)
    assert parsed is not None
    return Partition(log_dir, log_dir.path / name, parsed.topic, parsed.partition, "", parsed.state)
