"""Checks whether the offsets of a log follow each other, from batch to batch and from segment to segment.

An offset that comes again, or goes back, is never right. A missing offset is right only if compaction removed it. So gaps are reported
unless the log has been compacted, which its content or the log dir's own list of compacted logs shows.
"""

import logging

import numpy as np

from streaming.broker.disk.kafka_files import FileType, KafkaFile
from streaming.broker.disk.opening import CHECKPOINT_BYTES, read_small
from streaming.broker.excerpts.finding import FormatFlaw, Report
from streaming.broker.excerpts.segment_walk import Window, report_flaws
from streaming.errors import FormatError
from streaming.kafka.formats.checkpoint_files import parse_offset_checkpoint
from streaming.kafka.formats.layout import CURRENT_MAGIC, DELETE_HORIZON_BIT
from streaming.kafka.formats.names import CLEANER_CHECKPOINT, INTERNAL_TOPICS
from streaming.kafka.scan.headers import Batches

log = logging.getLogger(__name__)


class Continuity:
    """Checks the segments of one directory in order. ``gaps``: report missing offsets, too."""

    def __init__(self, first: KafkaFile, report: Report, *, gaps: bool) -> None:
        self._report = report
        self._next_offset: int | None = None
        self._file = first
        self._gaps: list[FormatFlaw] = []
        self._finds_gaps = gaps
        self._compacted = gaps and _is_compacted(first)

    def begin(self, file: KafkaFile, *, at_start: bool) -> None:
        """Begin the next file, read from its start or from a later position."""
        self._file = file
        if file.type is not FileType.SEGMENT or not at_start:
            self._next_offset = 0 if at_start else None
        elif self._next_offset is None or self._next_offset < file.base_offset or not file.live:
            if self._next_offset is not None and file.live:
                self._missing(0, self._next_offset, file.base_offset)
            self._next_offset = file.base_offset

    def add(self, window: Window) -> None:
        """Check the next window of the file."""
        batches = window.batches
        first = int(batches.base_offset[0]) if self._next_offset is None else self._next_offset
        if self._finds_gaps and not self._compacted:
            self._compacted = _shows_compaction(batches)
            following = np.append(first, batches.last_offset[:-1] + 1)
            for item in np.flatnonzero(batches.base_offset > following).tolist():
                position = window.position + int(batches.positions[item])
                self._missing(position, int(following[item]), int(batches.base_offset[item]))
        path = self._file.path
        self._next_offset = report_flaws(window, first, lambda position, what: self._report(FormatFlaw(path, position, what)))

    def end(self) -> None:
        """The log has been read: report its gaps."""
        if not self._compacted:
            for gap in self._gaps:
                self._report(gap)

    def _missing(self, position: int, expected: int, offset: int) -> None:
        if self._finds_gaps and self._file.type is FileType.SEGMENT and not self._compacted:
            what = f"expected offset {expected}, found {offset}: offsets are missing, which is right in a compacted topic alone"
            self._gaps.append(FormatFlaw(self._file.path, position, what))


def _shows_compaction(batches: Batches) -> bool:
    """Fewer records than offsets, or a delete horizon: only compaction leaves these."""
    current = batches.magic == CURRENT_MAGIC
    fewer = batches.records < batches.last_offset - batches.base_offset + 1
    return bool((current & (fewer | ((batches.attributes & DELETE_HORIZON_BIT) != 0))).any())


def _is_compacted(file: KafkaFile) -> bool:
    """Whether the log dir's list contains this log as compacted; the coordinators' topics always count as compacted."""
    if file.partition is None:
        return False
    if file.topic in INTERNAL_TOPICS:
        return True
    path = file.path.absolute().parent.parent / CLEANER_CHECKPOINT
    try:
        entries = parse_offset_checkpoint(read_small(path, CHECKPOINT_BYTES))
    except FileNotFoundError:  # a directory that was copied from its log dir
        return False
    except (FormatError, OSError) as error:
        log.warning("checkpoint cannot be read", extra={"path": str(path), "error": str(error)})
        return False
    return any((entry.topic, entry.partition) == (file.topic, file.partition.partition) for entry in entries)
