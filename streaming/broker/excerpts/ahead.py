"""Finds the batches of a large segment with several processes. Each one walks parts of it, a few parts ahead of the reader.

They are processes, not threads: a walk is thousands of short steps, and threads would wait for Python's lock at each of them. A part begins
where a batch begins according to the index. That is believed only if the part before it ends exactly there.
"""

import mmap
import os
import struct
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import cycle
from signal import SIGKILL
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from streaming.kafka.formats.layout import HEADER, HEADER_BYTES, MIN_LENGTH, OPAQUE_HEADER, PREFIX_BYTES
from streaming.kafka.scan.walk import Positions

PART_BYTES = 8 << 20
"""The bytes of a part: bytes that stay in the processor's cache are walked twice as fast as others."""

_SLOTS = 8  # parts that a process may be ahead of the reader, while the reader imports a library
_MESSAGE = struct.Struct("qqqq")
_MOST_BATCHES = PART_BYTES // (PREFIX_BYTES + MIN_LENGTH) + 1
_SLOT_BYTES = -(-_MOST_BATCHES * (2 * 8 + HEADER_BYTES) // mmap.PAGESIZE) * mmap.PAGESIZE  # two numbers and a header each


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


def processors() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0))


def walk_ahead(starts: Sequence[int], walk_part: Callable[[int, int], Part], end: int) -> Iterator[Part]:
    """Yield the parts in order, found by as many processes as there are processors. A part is valid until the next one is requested.

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


class _Walker:
    """One process, and the memory that it shares with this one: slots that it fills in turn, each again once it is allowed to."""

    def __init__(self, parts: Sequence[tuple[int, int]], walk_part: Callable[[int, int], Part], others: Sequence["_Walker"]) -> None:
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
