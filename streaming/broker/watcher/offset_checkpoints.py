"""The offset checkpoints at the root of the log dirs, read again when a broker has replaced one; among them the recovery points."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from pathlib import Path

from streaming.broker.disk.availability import LogDirs
from streaming.broker.disk.locate import start_near
from streaming.broker.disk.logdirs import NOTHING_WRITTEN, LogDir, Partition, load_offset_checkpoint
from streaming.broker.disk.opening import Calling
from streaming.broker.watcher.tail import Tail
from streaming.kafka.formats.names import (
    CLEANER_CHECKPOINT,
    HIGH_WATERMARK_CHECKPOINT,
    LOG_START_OFFSET_CHECKPOINT,
    RECOVERY_POINT_CHECKPOINT,
)

log = logging.getLogger(__name__)

_NAMES = (
    HIGH_WATERMARK_CHECKPOINT,  # written every 5 s
    LOG_START_OFFSET_CHECKPOINT,  # there is an entry only if it is not the beginning of a segment
    CLEANER_CHECKPOINT,  # up to which offset a log has been compacted
    RECOVERY_POINT_CHECKPOINT,  # the first offset that may not be on disk yet; written every 60 s
)

_LOG_DIR = attrgetter("log_dir")

_Names = Collection[tuple[str, int]]

Point = tuple[int, int]
"""A recovery point and its position, as in `RecoveryPositions.of`."""

MOST_LOOKUPS = 100
"""So many positions are looked up in indexes between two calls of `RecoveryPositions.begin`; until then all of a segment counts."""


class RecoveryPositions:
    """Recovery points of logs, with their positions: each is looked up once. Only the watcher's thread uses it.

    ``version``: it changes whenever `of` returns something else of a log that may be read. ``unsettled``: logs whose position could not be
    looked up yet, with their recovery point; they are to be asked for again.
    """

    def __init__(self, checkpoints: Checkpoints) -> None:
        self._checkpoints = checkpoints
        self.version = 0
        self.unsettled: dict[Tail, int] = {}
        self._found: dict[Tail, Point] = {}
        self._left = MOST_LOOKUPS

    def begin(self, tails: Collection[Tail]) -> None:
        """Allow so many lookups again, and forget all logs but these."""
        self._left = MOST_LOOKUPS
        if len(self._found) + len(self.unsettled) > len(tails):
            there = set(tails)
            self._found = {tail: point for tail, point in self._found.items() if tail in there}
            self.unsettled = {tail: offset for tail, offset in self.unsettled.items() if tail in there}

    def of(self, tails: Sequence[Tail]) -> list[Point]:
        """The recovery point of each log as `OffsetCheckpoint.of_all` has it, and so many bytes of its segment lie below it, at least.

        Kafka flushes a segment when it rolls, so mostly the recovery point is where the active segment begins.
        """
        points: list[Point] = []
        offsets = self._checkpoints.offsets([tail.partition for tail in tails], RECOVERY_POINT_CHECKPOINT)
        for tail, offset in zip(tails, offsets, strict=True):
            found = self._found.get(tail)
            points.append(found if found is not None and found[0] == offset else self._look_up(tail, offset))
        return points

    def _look_up(self, tail: Tail, offset: int) -> Point:
        if tail.away:
            return offset, 0
        position: int | None = 0
        if offset > 0 and all(each.base_offset != offset for each in tail.segments[-2:]):
            position = self._find(tail, offset)
        if position is None:
            self._found.pop(tail, None)
            self.version += self.unsettled.get(tail) != offset
            self.unsettled[tail] = offset
            return offset, 0
        self.unsettled.pop(tail, None)
        self._found[tail] = offset, position
        self.version += 1
        return offset, position

    def _find(self, tail: Tail, offset: int) -> int | None:
        cursor = tail.cursor
        if offset == cursor.next_offset and not tail.has_later_segment:
            return cursor.position
        held = [each for each in tail.segments if each.base_offset <= offset]
        if not held or not self._left:
            return None
        self._left -= 1
        try:
            with held[-1].open() as file:
                return start_near(file, offset)[0]
        except OSError as error:  # rolled, deleted or compacted since: the next look finds another file
            log.debug("the position of a recovery point is not known", extra={"path": tail.path, "error": str(error)})
            return None


class Checkpoints:
    """The contents of these files. Offsets are as `OffsetCheckpoint.of_all` returns them.

    Only the watcher's thread calls `refresh`.
    """

    def __init__(self, log_dirs: LogDirs) -> None:
        self._log_dirs = log_dirs
        self._files = [_File(log_dir, name) for log_dir in log_dirs for name in _NAMES]
        self._by_name = {(file.log_dir.path, file.name): file for file in self._files}

    def refresh(self) -> ChangedOffsets:
        """Read the files that were replaced. Returns what has changed. The known offsets of an unavailable log dir stay."""
        unavailable = self._log_dirs.unavailable
        changed: dict[Path, _Names | None] = {}
        for file in self._files:
            path = file.log_dir.path
            if path in unavailable:
                continue
            names = file.refresh()
            if names is None or changed.get(path, ()) is None:
                changed[path] = None
            elif names:
                changed[path] = {*(changed.get(path) or ()), *names}
        return ChangedOffsets(changed)

    @property
    def unreadable(self) -> int:
        """Files that could not be read or were not understood, so far; each counts once until it is replaced."""
        return sum(file.failures for file in self._files)

    @property
    def not_understood(self) -> list[Path]:
        """The files whose offsets are not known, because they cannot be read or are damaged."""
        return [file.path for file in self._files if not file.content.readable]

    def offsets(self, partitions: Sequence[Partition], name: str) -> list[int]:
        """The offset of each log in the file of a name, as its broker last wrote it.

        Of all of them at once: a call for each costs ten times as much, and a busy broker moves them all every few seconds.
        """
        found: list[int] = []
        for log_dir, inside in groupby(partitions, _LOG_DIR):
            found += self._by_name[log_dir.path, name].content.of_all(inside)
        return found


class _File:
    def __init__(self, log_dir: LogDir, name: str) -> None:
        self.log_dir = log_dir
        self.name = name
        self.content = NOTHING_WRITTEN
        self.failures = 0
        self.path: Path = log_dir.path / name
        self._identity = (0, 0)  # of the file that was read last: Kafka replaces it by another file

    def refresh(self) -> _Names | None:
        """Read it again if it was replaced; returns topic and partition of whatever has another offset now, None for all there are."""
        try:
            with Calling(self.path):
                stat = self.path.stat()
        except OSError:  # not written yet, or a log dir that cannot be read: the known offsets stay
            return ()
        identity = (stat.st_ino, stat.st_mtime_ns)
        if identity == self._identity:
            return ()
        before, self.content = self.content, load_offset_checkpoint(self.log_dir, self.name, self.content)
        self.failures += not self.content.readable
        self._identity = identity
        return self.content.differing(before)


@dataclass(frozen=True, slots=True)
class ChangedOffsets:
    """By log dir, topic and partition of the logs of which some offset has changed, None for all logs of it. False if there is none."""

    logs: Mapping[Path, _Names | None]

    def __bool__(self) -> bool:
        return bool(self.logs)

    def among(self, tails: Sequence[Tail]) -> list[int]:
        """The indexes of those of them that are among these."""
        if not self.logs:
            return []
        found, log_dir, names = [], None, None
        for number, tail in enumerate(tails):
            where = tail.partition
            if where.log_dir is not log_dir:
                log_dir = where.log_dir
                names = self.logs.get(log_dir.path, ())
            if names is None or (where.topic, where.partition) in names:
                found.append(number)
        return found
