"""How far a start after a crash has come with the logs of a log dir, by the files that it leaves behind.

A log is recovered by one thread, segment after segment. When one is done, the broker writes a producer snapshot at the offset after it
(`LogLoader.recoverSegment`), and only this start writes one after its registration. So a segment is done if a snapshot after its base
offset is younger than that. Inside a segment nothing on disk shows how far it is: all of it is left until it is done. While the broker
reads one, it writes its index from scratch (`LogSegment.recover`).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from streaming.broker.disk.opening import Calling
from streaming.kafka.formats.names import FileKind, FileStage, parse_segment_file, segment_file_name

MOST_NAMED = 10
"""So many logs that are being recovered are named."""

LEAST_MS = 1_000

LEAST_BYTES = 64 << 20
"""What took less time, or was less, shows no rate: a start does more than read."""


class DirRecovery:
    """The starts of a broker with one log dir. Only one thread uses it."""

    def __init__(self) -> None:
        self.rate = -1.0
        """Bytes a second of the last recovery of which most was seen here, with all its threads; -1 if none was."""
        self._since_ms = -1
        self._logs: dict[Path, _Log] = {}

    def look(self, since_ms: int, logs: Iterable[ToRecover]) -> Recovering:
        """What is left of the start that began then; ``logs`` are taken at the first look at it. Raises OSError: a file cannot be read."""
        if since_ms != self._since_ms:
            self._since_ms = since_ms
            self._logs = {each.directory: _Log(each) for each in logs if any(size for _, size in each.segments)}
        self._look_again()
        unfinished = [each for each in self._logs.values() if each.left]
        working = [each.log.directory.name for each in unfinished if self._is_read(each)]
        return Recovering(
            left=sum(each.left for each in unfinished),
            logs=len(unfinished),
            working=tuple(working[:MOST_NAMED]),
            begun=any(each.done for each in self._logs.values()),
        )

    def end(self) -> None:
        """The start is over. The logs done since the last look, likely the largest ones, count for its rate.

        Raises:
            OSError: a file cannot be read.
        """
        if self._logs:
            self._look_again()
        self._logs, self._since_ms = {}, -1

    def _look_again(self) -> None:
        for each in self._logs.values():
            if each.left:
                self._look_at(each)
        self._measure()

    def _look_at(self, each: _Log) -> None:
        directory = each.log.directory
        try:
            with Calling(directory):
                changed_ms = directory.stat().st_mtime_ns // 1_000_000
            if changed_ms >= self._since_ms:  # only few of those that are left: no log is begun before its thread is done with another
                each.done = list(_done(each.log, self._since_ms))
        except FileNotFoundError:  # it was deleted or put aside: nothing of it is left
            each.log = ToRecover(directory, ())
            each.done = []

    def _is_read(self, each: _Log) -> bool:
        """Whether the index of its next segment has been written since the start began."""
        base_offset = each.log.segments[len(each.done)][0]
        index = each.log.directory / segment_file_name(base_offset, FileKind.INDEX)
        try:
            with Calling(index):
                return index.stat().st_mtime_ns // 1_000_000 >= self._since_ms
        except FileNotFoundError:
            return False

    def _measure(self) -> None:
        """Measure the rate from the first segment that was done to the last: at both, threads had read about as much of other segments.

        Not by the first few that are done: those are small, and while they are read others are.
        """
        done = sorted(each for log in self._logs.values() for each in log.done if each[1])
        if sum(size for _, size in done) < sum(each.left for each in self._logs.values()):
            return
        took_ms, read = (done[-1][0] - done[0][0], sum(size for _, size in done[1:])) if done else (0, 0)
        if took_ms >= LEAST_MS and read >= LEAST_BYTES:
            self.rate = read * 1000 / took_ms


@dataclass(frozen=True, slots=True)
class ToRecover:
    """A log as it was before the start: its directory, and base offset and size of each segment that the start reads."""

    directory: Path
    segments: Sequence[tuple[int, int]]


@dataclass(slots=True)
class _Log:
    log: ToRecover
    done: list[tuple[int, int]] = field(default_factory=list)  # when a segment was done, Unix milliseconds, and its bytes

    @property
    def left(self) -> int:
        return sum(size for _, size in self.log.segments) - sum(size for _, size in self.done)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovering:
    """What is left of a log dir, in bytes and logs, and the directories of some logs that are being recovered."""

    left: int
    logs: int
    working: tuple[str, ...]
    begun: bool
    """Whether any segment is done: a start after a clean shutdown reads none, but it sets the size of indexes."""


def _done(log: ToRecover, since_ms: int) -> Iterator[tuple[int, int]]:
    """The first segments of a log that are done: when, and their bytes. One that is gone was cut off behind a damaged batch."""
    written: dict[int, int] = {}
    there = set()
    with Calling(log.directory), os.scandir(log.directory) as entries:
        for entry in entries:
            name = parse_segment_file(entry.name)
            if name is None or name.stage is not FileStage.LIVE:
                continue
            if name.kind is FileKind.LOG:
                there.add(name.base_offset)
            elif name.kind is FileKind.SNAPSHOT:
                modified_ms = entry.stat().st_mtime_ns // 1_000_000
                if modified_ms >= since_ms:
                    written[name.base_offset] = modified_ms
    last_ms = since_ms
    for base_offset, size in log.segments:
        after = [(offset, at) for offset, at in written.items() if offset > base_offset]
        if after:
            last_ms = min(after)[1]
        elif size and base_offset in there:
            return
        yield last_ms, size
