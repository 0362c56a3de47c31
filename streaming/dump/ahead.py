"""The headers of a large segment, found by threads that each walk a part of it: numpy does its work outside of Python's lock.

A part begins where the index says that a batch does. That is believed only when the part before it ends exactly there.
"""

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from queue import SimpleQueue

from streaming.kafka.headers import Batches

PART_BYTES = 8 << 20
"""Bytes of a part: what stays in the processor's cache is walked twice as fast as what does not."""


@dataclass(frozen=True, slots=True)
class Part:
    """What a walk from ``start`` found: the batches, whose positions count from there, and where it ended."""

    start: int
    end: int
    batches: Batches


class _Task:
    """One part. What goes wrong in its thread is raised where the result is asked for."""

    def __init__(self, start: int, end: int) -> None:
        self.start = start
        self.end = end
        self._part: Part | None = None
        self._error: OSError | None = None
        self._ready = threading.Lock()
        self._ready.acquire()

    def run(self, walk_part: Callable[[int, int], Part]) -> None:
        try:
            self._part = walk_part(self.start, self.end)
        except OSError as error:
            self._error = error
        finally:
            self._ready.release()

    def result(self) -> Part:
        with self._ready:
            if self._error is not None:
                raise self._error
            assert self._part is not None, "the thread ended without a result"
            return self._part


def processors() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0))


def walk_ahead(starts: Sequence[int], walk_part: Callable[[int, int], Part], end: int) -> Iterator[Part]:
    """The parts in order, found by as many threads as there are processors, which are a few parts ahead of the reader.

    Args:
        starts: where parts begin, ascending; the last one reaches to ``end``.
        walk_part: walks from a position up to another one.
    """
    todo: SimpleQueue[_Task | None] = SimpleQueue()

    def work() -> None:
        while (task := todo.get()) is not None:
            task.run(walk_part)

    threads = [threading.Thread(target=work, daemon=True) for _ in range(processors())]
    for thread in threads:
        thread.start()
    waiting: list[_Task] = []
    try:
        for start, stop in zip(starts, [*starts[1:], end], strict=True):
            waiting.append(_Task(start, stop))
            todo.put(waiting[-1])
            if len(waiting) > 2 * len(threads):
                yield waiting.pop(0).result()
        while waiting:
            yield waiting.pop(0).result()
    finally:  # when the reader wants no more, too: the file is about to be closed
        for _ in threads:
            todo.put(None)
        for thread in threads:
            thread.join()
