"""All that a generator yields, and what it returns."""

from collections.abc import Generator
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


def drained(items: Generator[T, None, R]) -> tuple[list[T], R]:
    yielded: list[T] = []
    while True:
        try:
            yielded.append(next(items))
        except StopIteration as end:
            return yielded, end.value
