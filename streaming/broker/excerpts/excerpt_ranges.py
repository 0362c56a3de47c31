"""The batches of an excerpt as ranges with their sums, as an agent publishes those that it sees being appended."""

from collections.abc import Generator, Sequence

from streaming.broker.disk.locate import window
from streaming.broker.disk.logdirs import LogDir
from streaming.broker.excerpts.excerpt_files import OpenExcerpt, name_of, opened
from streaming.broker.excerpts.excerpt_walk import Unread, WalkedPart, parts_of
from streaming.broker.journal.blobs import encode_steps
from streaming.broker.protocol.excerpt_messages import Excerpt
from streaming.common.event_row import Event
from streaming.common.rows import Kind
from streaming.errors import AgentError
from streaming.kafka.scan.epochs import by_epoch
from streaming.kafka.scan.pieces import Scanned
from streaming.kafka.scan.range_steps import understood_steps
from streaming.kafka.scan.sums import COUNTS
from streaming.kafka.scan.transaction_steps import Steps
from streaming.kafka.scan.walk import Bytes

NO_FRONTIER = -1
"""Nothing was published before."""


def ranges_of(log_dirs: Sequence[LogDir], excerpt: Excerpt) -> Generator[Event, None, Unread | None]:
    """Events of kind APPENDED, each of whole batches of one leader epoch, 8 MiB or one batch at most.

    Returns what of the excerpt cannot be read, None if that is nothing. Whether the replica led is not known (``leads`` -1), nor how late
    batches came.

    Raises:
        GoneError: its segment is not there any more.
        AgentError: the excerpt is not valid, or its segment cannot be read now.
    """
    with opened(log_dirs, excerpt) as segment:
        try:
            return (yield from _ranges(segment, window()))
        except OSError as error:
            raise AgentError(f"{name_of(excerpt)} cannot be read: {error}") from error


def _ranges(segment: OpenExcerpt, buffer: Bytes) -> Generator[Event, None, Unread | None]:
    parts, times = parts_of(segment, buffer), segment.times()
    while True:
        try:
            part = next(parts)
        except StopIteration as end:
            unread: Unread | None = end.value
            return unread
        for piece, start in by_epoch(part.scanned, part.start, NO_FRONTIER):
            understood, steps = understood_steps(piece, buffer, start, lambda: times)
            if understood.sums is not None:
                yield _event(segment, part.position + start, part.position + understood.end, understood, steps)
            if understood is not piece:
                return _at_marker(segment, part, understood)


def _at_marker(segment: OpenExcerpt, part: WalkedPart, understood: Scanned) -> Unread:
    """The rest of the excerpt, from a marker on that is not understood."""
    position = part.position + understood.end
    next_offset = int(part.batches.base_offset[0]) if understood.sums is None else understood.sums.next_offset
    end = min(segment.excerpt.end, segment.file.size())
    return Unread(position, max(0, end - position), next_offset, understood.flaw or "")


def _event(segment: OpenExcerpt, start: int, end: int, scanned: Scanned, steps: Steps) -> Event:
    sums, partition = scanned.sums, segment.partition
    assert sums is not None
    return Event(
        kind=Kind.APPENDED,
        broker=partition.log_dir.broker,
        log_dir=str(partition.log_dir.path),
        topic=partition.topic,
        partition=partition.partition,
        topic_id=partition.topic_id,
        segment=segment.excerpt.segment,
        start_position=start,
        end_position=end,
        base_offset=sums.base_offset,
        next_offset=sums.next_offset,
        log_epoch=sums.leader_epoch,
        seen_at=segment.file.modified_ms(),
        max_timestamp=sums.max_timestamp,
        transactions=encode_steps(steps),
        **{name: getattr(sums, name) for name in COUNTS},
    )
