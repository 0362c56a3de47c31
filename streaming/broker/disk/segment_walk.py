"""Walks the batches of a file from its first byte to its last, window by window, and skips damaged parts."""

from __future__ import annotations

import mmap
import os
import struct
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import cycle
from pathlib import Path
from signal import SIGKILL
from typing import NoReturn, Self

import numpy as np
from numpy.typing import NDArray

from streaming.broker.disk.kafka_files import FileType, KafkaFile
from streaming.broker.disk.segment_files import OpenSegment, Segment
from streaming.kafka.formats.layout import (
    CURRENT_MAGIC,
    GIT_LFS_POINTER,
    HEADER,
    HEADER_BYTES,
    MAGIC_AT,
    MIN_BATCH_BYTES,
    MIN_LENGTH,
    NOT_FETCHED,
    OPAQUE_HEADER,
    PREFIX_BYTES,
    read_length,
    read_size,
)
from streaming.kafka.scan.headers import Batches, columns_of, find_flaws, first_broken, raw_headers, read_headers
from streaming.kafka.scan.soundness import wrong_crcs
from streaming.kafka.scan.walk import Bytes, Positions, Stop, walk

PART_BYTES = 8 << 20
"""The bytes of a part: bytes that stay in the processor's cache are walked twice as fast as others."""

_SLOTS = 8  # parts that a process may be ahead of the reader, while the reader imports a library
_MESSAGE = struct.Struct("qqqq")
_MOST_BATCHES = PART_BYTES // (PREFIX_BYTES + MIN_LENGTH) + 1
_SLOT_BYTES = -(-_MOST_BATCHES * (2 * 8 + HEADER_BYTES) // mmap.PAGESIZE) * mmap.PAGESIZE  # two numbers and a header each

WINDOW_BYTES = PART_BYTES
"""How much is read at once."""

SEEDED_BYTES = 1 << 20
"""For less than this, the plain walk is as fast as reading the index."""

_NO_BYTES = np.empty(0, np.uint8)
_NONE_WRONG = np.empty(0, np.intp)

Ticks = Callable[[int], None]
"""Receives the progress, in bytes of the file."""


class SegmentReader:
    """One ``.log``, or a metadata snapshot, open for reading: a context, at whose end it is closed."""

    def __init__(
        self,
        file: KafkaFile,
        report: Report,
        buffer: Bytes,
        *,
        whole: bool,
        crcs: bool,
        ticks: Ticks = lambda _: None,
        growing: bool = False,
    ) -> None:
        """Open the file. Raises OSError.

        Args:
            whole: return windows with all bytes of their batches, and not only headers.
            crcs: find the batches with wrong CRCs. Bytes that are read only for this do not stay in the page cache, which the broker needs.
            growing: a broker may be writing here, so a last batch that is not all there yet is no damage.
        """
        self.file = file
        self.tail = SegmentTail()
        self._report = report
        self._buffer = buffer
        self._whole = whole
        self._crcs = crcs
        self._ticks = ticks
        self._growing = growing
        self._open = OpenSegment(file.path, file.base_offset)
        self._seeded = file.type is FileType.SEGMENT and file.live  # the other files have no index under this name

    @classmethod
    def of(cls, segment: Segment, report: Report, buffer: Bytes, *, growing: bool, crcs: bool) -> Self:
        """A reader of a listed segment whose windows have all bytes of their batches. Raises OSError.

        Args:
            growing: it is the active segment.
        """
        file = KafkaFile(segment.path, FileType.SEGMENT, None, segment.base_offset, live=not segment.swap, active=growing)
        return cls(file, report, buffer, whole=True, crcs=crcs, growing=growing)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def size(self) -> int:
        """The size of the file in bytes."""
        return self._open.size()

    def proven_start(self, offset: int) -> int:
        """A position from which to read all batches that reach ``offset`` or beyond: the index's if the log proves it, else 0."""
        found = self._open.indexed(offset) if self._seeded and offset > self.file.base_offset else None
        return found[1] if found is not None and self._open.proven_at(found[1], found[0], self.size()) is not None else 0

    def read(self, position: int, size: int) -> bytes:
        """Read bytes of the file."""
        return self._open.read(position, size)

    def windows(self, position: int) -> Iterator[Window]:
        """All complete batches from ``position``, where one begins. Damaged parts are reported and skipped."""
        if not self._whole and self._seeded and self.size() - position > 4 * PART_BYTES and processors() > 1:
            seeds = self._open.seeds(position, self.size())
            for part in walk_ahead(_part_starts(position, self.size(), seeds), partial(self._walk_part, seeds), self.size()):
                if part.start != position:  # the index was wrong here, or there is damage: continue window by window
                    break
                if len(part.positions):
                    yield Window(position, _NO_BYTES, self._batches_of(part), part.wrong)
                position = part.end
                self._ticks(position)
        yield from self._one_by_one(position)

    def _walk_part(self, seeds: Positions, start: int, end: int) -> Part:
        """Walk until the first problem; the rest is for `_one_by_one`. ``seeds`` are those of the whole file."""
        buffer = self._buffer[: end - start]
        size = self._open.read_into(buffer, start, spare_cache=self._crcs)
        walked = walk(buffer, 0, size, seeds[np.searchsorted(seeds, start) : np.searchsorted(seeds, end)] - start)
        positions, reached = walked.positions, walked.end
        headers = raw_headers(buffer, positions)
        if (broken := first_broken(headers)) is not None:
            positions, headers, reached = positions[:broken], headers[:broken], int(positions[broken])
        wrong = self._wrong(buffer, read_headers(buffer, positions)) if self._crcs else _NONE_WRONG
        return Part(start, start + reached, positions, headers, wrong)

    def _batches_of(self, part: Part) -> Batches:
        batches = columns_of(part.positions, part.headers)
        if (batches.magic < CURRENT_MAGIC).any():  # for old messages, the header alone is not enough
            size = self._open.read_into(self._buffer, part.start)
            return read_headers(self._buffer[:size], part.positions)
        return batches

    def _wrong(self, buffer: Bytes, batches: Batches) -> NDArray[np.intp]:
        return wrong_crcs(buffer, batches) if self._crcs else _NONE_WRONG

    def _one_by_one(self, position: int) -> Iterator[Window]:
        while True:
            window, position, more = self._next(position)
            if window is not None:
                self._ticks(position)
                yield window
            if not more:
                return

    def _next(self, position: int) -> tuple[Window | None, int, bool]:
        """The window at a position, the position of the next one, and whether there may be one."""
        buffer = self._buffer
        size = self._open.read_into(buffer, position, spare_cache=self._crcs)
        seeds = self._open.seeds(position, position + size) - position if self._seeded and size >= SEEDED_BYTES else None
        walked = walk(buffer, 0, size, seeds)
        batches, end, stop = read_headers(buffer, walked.positions), walked.end, walked.stop
        if (broken := first_broken(batches.headers)) is not None:
            batches, end, stop = batches.take(slice(0, broken)), int(batches.positions[broken]), Stop.BAD_LENGTH
        window = Window(position, buffer, batches, self._wrong(buffer, batches)) if len(batches) else None
        position += end
        if stop is Stop.END:
            return window, position, size > 0
        if stop is Stop.SHORT and (end or size == len(buffer)):  # the end of the buffer, perhaps not of the file
            return (window, position, True) if end else self._large(position)
        if stop is Stop.SHORT and position + size < self.size():  # it has grown since it was read
            return window, position, True
        following = self._over_damage(position, stop)
        return window, position if following is None else following, following is not None

    def _large(self, position: int) -> tuple[Window | None, int, bool]:
        """Read one batch that is larger than the buffer."""
        size, magic = read_size(self._open.read(position, PREFIX_BYTES)), int(self._buffer[MAGIC_AT])
        if position + size > self.size():
            following = self._over_damage(position, Stop.SHORT)
            return None, position if following is None else following, following is not None
        needed = size if self._whole or self._crcs or magic < CURRENT_MAGIC else HEADER_BYTES
        buffer = np.frombuffer(self._open.read(position, needed), np.uint8)
        batches = read_headers(buffer, np.zeros(1, np.int64))
        return Window(position, buffer, batches, self._wrong(buffer, batches)), position + size, True

    def _over_damage(self, position: int, stop: Stop) -> int | None:
        """The position to continue at after bytes that are no batch: None at the end of the file, or if no batch can be found any more."""
        left = self.size() - position
        if stop is Stop.ZEROS and (ends := self._zeros_end(position)) == self.size():
            self.tail.zeros += left
            return None
        if stop is Stop.ZEROS:
            what = f"expected a batch or zeros to the end of the file, found zeros up to position {ends}"
        else:
            what = self._expected(position, left)
        following = self._resume(position)
        if following is None and self._growing and stop is Stop.SHORT:
            return None
        passed = (self.size() if following is None else following) - position
        self.tail.damaged += passed
        going_on = "nothing after it can be read" if following is None else f"going on at position {following}"
        self._report(FormatFlaw(self.file.path, position, f"{what}; {passed} bytes are passed over, {going_on}"))
        return following

    def _expected(self, position: int, left: int) -> str:
        head = self._open.read(position, HEADER_BYTES)
        if len(head) < PREFIX_BYTES:
            return f"expected a batch or the end of the file, found {left} bytes, the beginning of a batch that is not whole"
        if head.startswith(GIT_LFS_POINTER):
            return f"this is {NOT_FETCHED}"
        length = read_length(head)
        if length < MIN_LENGTH:
            return f"expected a batch, found the length {length}, where {MIN_LENGTH} is the smallest"
        if len(head) > MAGIC_AT and head[MAGIC_AT] > CURRENT_MAGIC:
            return f"expected a batch of magic 0, 1 or 2, found magic {head[MAGIC_AT]}"
        if PREFIX_BYTES + length <= left:
            return f"expected a batch of magic 2 of at least {MIN_BATCH_BYTES} bytes, found one of {PREFIX_BYTES + length}"
        return f"expected a whole batch of {PREFIX_BYTES + length} bytes, found {left} up to the end of the file"

    def _zeros_end(self, position: int) -> int:
        """The end of the zeros that begin at a position. Holes are passed over: they may be larger than any disk."""
        while chunk := self._open.read(position := self._open.stored_from(position), WINDOW_BYTES):
            rest = chunk.lstrip(b"\0")
            if rest:
                return position + len(chunk) - len(rest)
            position += len(chunk)
        return position

    def _resume(self, position: int) -> int | None:
        """The next batch that the index names and whose CRC proves it."""
        if not self._seeded:
            return None
        seeds = self._open.seeds(position + 1, self.size()).tolist()
        return next((seed for seed in seeds if self._open.proven_at(seed, None, self.size()) is not None), None)


@dataclass(frozen=True, slots=True)
class FormatFlaw:
    """``position`` is a byte in the file, None for the whole file."""

    path: Path
    position: int | None
    what: str

    def __str__(self) -> str:
        place = "" if self.position is None else f" position {self.position}:"
        return f"{self.path}:{place} {self.what}"


Report = Callable[[FormatFlaw], None]
"""Takes a finding as soon as it is found; the work continues after it."""


@dataclass(slots=True)
class SegmentTail:
    """The bytes after the last batch: zeros of a preallocated file, and bytes that are no complete batch."""

    zeros: int = 0
    damaged: int = 0


@dataclass(frozen=True, slots=True)
class Window:
    """Complete batches that follow each other: ``batches.positions`` count from byte ``position`` of the file, where ``buffer`` begins.

    The buffer and the raw headers are reused for the next window. Unless the reader was created for complete batches, the buffer may be
    empty, or contain only a header. ``wrong`` are the items that do not have the CRC of their header, if the reader was created to find
    them.
    """

    position: int
    buffer: Bytes
    batches: Batches
    wrong: NDArray[np.intp]


def processors() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0))


def walk_ahead(starts: Sequence[int], walk_part: Callable[[int, int], Part], end: int) -> Iterator[Part]:
    """Yield the parts in order, found by as many processes as there are processors. A part is valid until the next one is requested.

    Finds the batches of a large segment with several processes. Each one walks parts of it, a few parts ahead of the reader. They are
    processes, not threads: a walk is thousands of short steps, and threads would wait for Python's lock at each of them. A part
    begins where a batch begins according to the index. That is believed only if the part before it ends exactly there.

    The parts end early if no process can be started, or if one ends before its work is done (its part cannot be read, the machine is short
    of memory). Then the caller continues from there by itself and either does the work or gets the error.

    Args:
        starts: where parts begin, ascending; the last one reaches to ``end``.
        walk_part: walks from one position to another, at most `PART_BYTES` further.
    """
    parts = list(zip(starts, [*starts[1:], end], strict=True))
    count = min(processors(), len(parts))
    walkers: list[_Walker] = []
    try:
        try:
            for first in range(count):
                walkers.append(_Walker(parts[first::count], walk_part, walkers))
        except OSError:
            return
        for walker, _ in zip(cycle(walkers), parts, strict=False):
            part = walker.next()
            if part is None:
                return
            yield part
    finally:  # also if the reader stops early
        for walker in walkers:
            walker.close()


@dataclass(frozen=True, slots=True)
class Part:
    """The result of a walk from ``start``: batches, at positions that count from there, by their raw headers, and where it ended.

    ``wrong`` are the items that do not have the CRC of their header, if that was requested.
    """

    start: int
    end: int
    positions: Positions
    headers: NDArray[np.void]
    wrong: NDArray[np.intp]


class _Walker:
    """One process, and the memory that it shares with this one: slots that it fills in turn, each again once it is allowed to."""

    def __init__(self, parts: Sequence[tuple[int, int]], walk_part: Callable[[int, int], Part], others: Sequence[_Walker]) -> None:
        self._memory = memoryview(mmap.mmap(-1, _SLOTS * _SLOT_BYTES))  # memory is only allocated where it is written
        self._taken = 0
        self._done_parts, done_parts = os.pipe()
        allowed, self._allowing = os.pipe()
        try:
            self._process = _fork()
        except OSError:
            for end in (self._done_parts, done_parts, allowed, self._allowing):
                os.close(end)
            raise
        if self._process:
            os.close(done_parts)
            os.close(allowed)
            return
        for walker in (*others, self):  # otherwise a walker would not notice the end of its reader
            walker._close_pipes()
        _as_process(lambda: self._work(parts, walk_part, done_parts, allowed))

    def next(self) -> Part | None:
        """The next part, or None if the process ended without it."""
        if self._taken:  # the part before is no longer used
            with suppress(BrokenPipeError):  # the process has ended, which the next line detects
                os.write(self._allowing, b"+")
        message = os.read(self._done_parts, _MESSAGE.size)
        if len(message) < _MESSAGE.size:
            return None
        start, end, count, wrong_count = _MESSAGE.unpack(message)
        self._taken += 1
        positions, wrong, headers = self._slot(self._taken - 1, count, wrong_count)
        return Part(start, end, positions, headers.view(HEADER), wrong)

    def close(self) -> None:
        """End the process, whatever it is doing: it holds nothing."""
        self._close_pipes()
        os.kill(self._process, SIGKILL)
        os.waitpid(self._process, 0)

    def _close_pipes(self) -> None:
        os.close(self._done_parts)
        os.close(self._allowing)

    def _work(self, parts: Sequence[tuple[int, int]], walk_part: Callable[[int, int], Part], done_parts: int, allowed: int) -> None:
        for number, (begin, end) in enumerate(parts):
            if number >= _SLOTS and not os.read(allowed, 1):
                return
            part = walk_part(begin, end)
            positions, wrong, headers = self._slot(number, len(part.positions), len(part.wrong))
            positions[:], wrong[:], headers[:] = part.positions, part.wrong, part.headers.view(OPAQUE_HEADER)
            os.write(done_parts, _MESSAGE.pack(part.start, part.end, len(part.positions), len(part.wrong)))

    def _slot(self, number: int, count: int, wrong_count: int) -> tuple[Positions, NDArray[np.intp], NDArray[np.void]]:
        at = number % _SLOTS * _SLOT_BYTES
        positions = np.frombuffer(self._memory, np.int64, count, at)
        wrong = np.frombuffer(self._memory, np.intp, wrong_count, at + positions.nbytes)
        return positions, wrong, np.frombuffer(self._memory, OPAQUE_HEADER, count, at + positions.nbytes + wrong.nbytes)


def _fork() -> int:
    with warnings.catch_warnings():
        # Python 3.12 warns if other threads run, because their locks stay held. The new process needs none of them.
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


def _as_process(work: Callable[[], None]) -> NoReturn:
    """Do the work and end the process, whatever happens: nothing that the command has begun may happen twice."""
    try:
        work()
    finally:
        os._exit(0)


def _part_starts(position: int, end: int, seeds: Positions) -> list[int]:
    """The position, and then repeatedly the last position from the index that is within one part."""
    starts = [position]
    while starts[-1] + PART_BYTES < end:
        found = int(np.searchsorted(seeds, starts[-1] + PART_BYTES, side="right")) - 1
        if found < 0 or seeds[found] <= starts[-1]:  # too few index entries: the walk ends within this part, and continues without it
            break
        starts.append(int(seeds[found]))
    return starts


def report_flaws(window: Window, next_offset: int, path_report: Callable[[int, str], None]) -> int:
    """Report every batch of a window with a header that Kafka cannot have written there; returns the offset after the window.

    Args:
        next_offset: the smallest offset that its first batch may have.
        path_report: takes the position in the file and what is wrong.
    """
    batches = window.batches
    expected = np.empty(len(batches), np.int64)
    expected[0] = next_offset
    expected[1:] = batches.last_offset[:-1] + 1
    for flaw in find_flaws(batches, np.arange(len(batches)), expected):
        path_report(window.position + int(batches.positions[flaw.item]), flaw.what)
    return int(batches.last_offset[-1]) + 1
