"""How much the benches do, and how they time and print: CPU seconds of this process, medians, one kind of table."""

import os
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

ROOT = Path(__file__).parents[1]

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Small unless told otherwise. ``seconds`` is the length of each measurement; the job warms up for as long before it."""

    seconds: float = 20.0
    active: int = 1_000
    mostly_idle: int = 10_000
    agents: int = 100
    logs: int = 100_000
    gigabytes: tuple[float, ...] = (2.0, 6.0)


def show(title: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table under a title: the first column to the left, the others, numbers, to the right."""
    widths = [max(len(row[column]) for row in (heads, *rows)) for column in range(len(heads))]
    print(f"\n{title}\n")
    for row in (heads, ["-" * width for width in widths], *rows):
        first, *others = (f"{cell:{'<' if column == 0 else '>'}{widths[column]}}" for column, cell in enumerate(row))
        print("  " + "  ".join((first, *others)).rstrip())
    print(flush=True)


def timed(work: Callable[[], _T]) -> tuple[float, _T]:
    """CPU seconds of something, and what it gives."""
    began = time.process_time()
    done = work()
    return time.process_time() - began, done


def median(work: Callable[[], object], rounds: int = 5) -> float:
    """CPU seconds of something that can be repeated."""
    return statistics.median(timed(work)[0] for _ in range(rounds))


def resident_bytes() -> int:
    """Of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
