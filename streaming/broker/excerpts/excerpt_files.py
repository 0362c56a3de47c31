"""Opens the segment of an excerpt, by its names alone: a log dir with very many partitions is not listed for it."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from streaming.broker.disk.logdirs import LogDir, Partition, read_topic_id
from streaming.broker.disk.segment_files import OpenSegment, Segment, list_segments
from streaming.broker.protocol.excerpt_messages import Excerpt
from streaming.errors import AgentError, GoneError
from streaming.kafka.formats.names import DirState, parse_partition_dir
from streaming.kafka.scan.transaction_steps import AppendTimes


@dataclass(frozen=True, slots=True)
class OpenExcerpt:
    """An excerpt with the open file of its segment, and the log's ``segments`` as they are listed now; ``item``: the index of its own."""

    excerpt: Excerpt
    partition: Partition
    segments: Sequence[Segment]
    item: int
    file: OpenSegment

    @property
    def active(self) -> bool:
        """Whether the log ends in this segment: a batch that is not complete yet is none that is damaged."""
        return self.item == len(self.segments) - 1

    def times(self) -> AppendTimes:
        """The times between which its batches were appended: not before the last write to the previous segment."""
        return AppendTimes.recorded(self.segments[self.item - 1].modified_ms if self.item else 0, self.file.modified_ms())


def partition_of(log_dirs: Sequence[LogDir], excerpt: Excerpt) -> Partition:
    """The partition of an excerpt.

    Raises:
        GoneError: there is none, or another one of that name.
        AgentError: no partition can have that name, or the log dir is not among these.
    """
    log_dir = next((each for each in log_dirs if str(each.path) == excerpt.log_dir), None)
    if log_dir is None:
        raise AgentError(f"log dir {excerpt.log_dir} is not among those that can be read now")
    name = f"{excerpt.topic}-{excerpt.partition}"
    parsed = parse_partition_dir(name)
    if parsed is None or (parsed.topic, parsed.partition, parsed.state) != (excerpt.topic, excerpt.partition, DirState.LIVE):
        raise AgentError(f"no partition can have the name {name!r:.100}")
    path = log_dir.path / name
    topic_id = read_topic_id(path)
    if topic_id != excerpt.topic_id:
        raise GoneError(f"{name_of(excerpt)} is not there any more")
    return Partition(log_dir, path, excerpt.topic, excerpt.partition, topic_id, DirState.LIVE)


@contextmanager
def opened(log_dirs: Sequence[LogDir], excerpt: Excerpt) -> Iterator[OpenExcerpt]:
    """Open the segment of an excerpt for a block.

    Raises:
        GoneError: it is not there any more.
        AgentError: the excerpt is not valid, or the segment cannot be read now.
    """
    if min(excerpt.begin, excerpt.segment) < 0:
        raise AgentError("an excerpt begins at a position and a base offset from 0 on")
    partition = partition_of(log_dirs, excerpt)
    try:
        segments = list_segments(partition.path)
        item = next((item for item, each in enumerate(segments) if each.base_offset == excerpt.segment), None)
        if item is None:
            raise GoneError(f"{name_of(excerpt)} is not there any more")
        file = OpenSegment(segments[item].path, excerpt.segment)
    except FileNotFoundError as error:
        raise GoneError(f"{name_of(excerpt)} is not there any more") from error
    except OSError as error:
        raise AgentError(f"{name_of(excerpt)} cannot be read: {error}") from error
    with file:
        yield OpenExcerpt(excerpt, partition, segments, item, file)


def name_of(excerpt: Excerpt) -> str:
    """An excerpt for a message."""
    return f"segment {excerpt.segment} of {excerpt.topic}-{excerpt.partition} in {excerpt.log_dir}"
