"""Directories that their brokers do not serve, or will not after their next start, and whether their records are anywhere else.

A broker renames the directory of a log to `-stray` if it starts with it and the metadata does not assign that log to it; so it does where
``partition.metadata`` is missing, although the topic is live, and then it serves an empty log (seen on 4.3.1 and 4.4.0).
"""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from streaming.broker.agent.cluster_view import ClusterView
from streaming.broker.disk.calls import Calling
from streaming.broker.disk.locate import find_offset
from streaming.broker.disk.logdirs import LogDir, Partition, list_partitions, read_topic_id
from streaming.broker.disk.preallocated import has_data
from streaming.broker.disk.scanning import window
from streaming.broker.disk.segment_files import Segment, list_segments
from streaming.common.formatting import format_count, format_list, format_word
from streaming.common.log_key import LogKey
from streaming.kafka.formats.names import METADATA_TOPIC, PARTITION_METADATA, DirState

_LONGEST_NAME = 255
"""A broker cuts the topic's name off where that of the directory would be longer."""

_NAMED = 3


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


def strays_in(log_dirs: Iterable[LogDir], cluster: ClusterView) -> Iterator[Stray]:
    """All of them. What cannot be read is not known; log dirs that cannot be listed are reported elsewhere."""
    every, buffer = list(log_dirs), window()

    def boundary(segments: Sequence[Segment], upto: int | None) -> tuple[int, bytes]:
        """The end of the last batch up to an offset, and its header."""
        some = [each for each in segments if has_data(each) and (upto is None or each.base_offset < upto)]
        found = find_offset(some, upto, buffer)
        return found.next_offset, found.anchor

    for log_dir in every:
        try:
            there = list_partitions(log_dir, _named)
        except OSError:
            continue
        for each in there:
            try:
                if each.state is DirState.STRAY:
                    yield _judged(each, every, cluster, boundary)
                elif each.state is DirState.LIVE and _is_unnamed(each, cluster):
                    yield Stray(each, StrayKind.UNNAMED, _topic_id(each, cluster))
            except OSError:
                yield Stray(each, StrayKind.UNKNOWN)


def _named(directory: Path) -> str:
    """Whether a directory has a topic id, without a look into it: "" if not."""
    path = directory / PARTITION_METADATA
    with Calling(path):
        return PARTITION_METADATA if os.path.lexists(path) else ""


def _is_unnamed(partition: Partition, cluster: ClusterView) -> bool:
    """Whether a log of a live topic has records and no topic id: a broker writes that before the first of them."""
    if partition.topic_id or partition.topic == METADATA_TOPIC or partition.log_dir.zookeeper or not _topic_id(partition, cluster):
        return False
    return any(map(has_data, list_segments(partition.path)))


def _topic_id(partition: Partition, cluster: ClusterView) -> str:
    ids = cluster.topic_ids() or ()
    return next((each for each in ids if cluster.topic_name(each) == partition.topic), "")


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


_SENTENCES = {
    StrayKind.ONLY: "of live topics set aside by their brokers, with records that no replica in sync has",
    StrayKind.UNNAMED: "without partition.metadata: the next start of their brokers sets them aside, and serves empty logs",
}
