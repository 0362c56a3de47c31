"""All that a generator yields, and what it returns; all excerpts of some log dirs."""

from collections.abc import Generator, Sequence
from typing import TypeVar

from streaming.broker.disk.logdirs import LogDir
from streaming.broker.excerpts.excerpt_listing import excerpts_of, partitions_with_start
from streaming.broker.protocol.consumer_messages import Selection
from streaming.broker.protocol.excerpt_messages import Excerpt
from streaming.common.start_from import StartFrom

T = TypeVar("T")
R = TypeVar("R")


def drained(items: Generator[T, None, R]) -> tuple[list[T], R]:
    yielded: list[T] = []
    while True:
        try:
            yielded.append(next(items))
        except StopIteration as end:
            return yielded, end.value


def list_excerpts(log_dirs: Sequence[LogDir], selection: Selection, start: StartFrom | int, excerpt_bytes: int) -> list[Excerpt]:
    return list(excerpts_of(partitions_with_start(log_dirs, selection), start, excerpt_bytes))
