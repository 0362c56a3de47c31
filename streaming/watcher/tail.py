"""One log under watch: the file that is open, the segments that are known, and the place up to which it is read."""

import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from streaming.disk.logdirs import Partition
from streaming.disk.segments import Identity, OpenSegment, Segment
from streaming.rows import Kind
from streaming.watcher.events import Event, LogId, Place
from streaming.watcher.locate import Spot

log = logging.getLogger(__name__)

EVERYTHING = 2**63 - 1
"""A frontier that says: any offset may have been told before."""


def log_id(partition: Partition) -> LogId:
    """Which replica a directory holds."""
    return LogId(partition.log_dir.broker, partition.topic, partition.partition, partition.topic_id)


def place_at(log: LogId, spot: Spot, segments: Sequence[Segment], frontier: int) -> Place:
    """The place of a log whose reading begins at ``spot``; its first backlog reaches to the end of what is listed now."""
    return Place(
        log=log,
        segment=spot.segment.base_offset,
        device=spot.segment.identity.device,
        inode=spot.segment.identity.inode,
        position=spot.position,
        next_offset=spot.next_offset,
        log_epoch=spot.log_epoch,
        anchor=spot.anchor,
        anchor_position=spot.anchor_position,
        frontier=max(frontier, spot.next_offset),
        stopped="",
        settled_segment=segments[-1].base_offset,
        settled_position=segments[-1].size,
    )


def moved(place: Place, spot: Spot) -> Place:
    """The same log read on from another spot."""
    return replace(
        place,
        segment=spot.segment.base_offset,
        device=spot.segment.identity.device,
        inode=spot.segment.identity.inode,
        position=spot.position,
        next_offset=spot.next_offset,
        log_epoch=spot.log_epoch if spot.anchor else place.log_epoch,
        anchor=spot.anchor,
        anchor_position=spot.anchor_position,
    )


class Tail:
    """What the watcher holds of one log. Only the watcher's thread changes it; others look at ``place`` and ``log_start``."""

    def __init__(self, partition: Partition, place: Place, segments: Sequence[Segment]) -> None:
        self.partition = partition
        self.place = place
        self.segments = tuple(segments)
        self.log_start = segments[0].base_offset
        self.file: OpenSegment | None = None
        self.size = -1  # of the open file when it was last looked at
        self.zero_tail = False  # preallocated: the size does not tell growth
        self.suspect = -1  # position of a flaw that the next look must find again
        self.live = False  # whether what is read now is growing under our eyes, not a backlog
        self.skipped_to = -1  # of a stopped log: the size up to which its bytes are counted as skipped

    @property
    def path(self) -> str:
        """The directory, as text for logs."""
        return str(self.partition.path)

    def open(self) -> OpenSegment:
        """The open file at the place, opened if need be. Raises OSError."""
        if self.file is None:
            listed = next((segment for segment in self.segments if segment.base_offset == self.place.segment), None)
            path = listed.path if listed else self.partition.path / f"{self.place.segment:020}.log"
            self.file = OpenSegment(path, self.place.segment)
            self.size = -1
        return self.file

    def close(self) -> None:
        """Let go of the open file."""
        if self.file is not None:
            self.file.close()
            self.file = None
        self.size = -1
        self.zero_tail = False
        self.suspect = -1

    def is_at(self, segment: Segment) -> bool:
        """Whether a listed file is the one that the place stands in."""
        return segment.identity == Identity(self.place.device, self.place.inode) and segment.base_offset == self.place.segment

    def event(self, kind: Kind, **values: Any) -> Event:
        """An event of this log at its place."""
        log = self.place.log
        return Event(
            kind=kind,
            broker=log.broker,
            log_dir=str(self.partition.log_dir.path),
            topic=log.topic,
            partition=log.partition,
            topic_id=log.topic_id,
            **{"segment": self.place.segment, "settled": self.place.settled, **values},
        )
