"""Sets of offsets as ranges: the first and the last offset of each, one after the other and ascending, with a gap between ranges."""

from collections.abc import Iterable

Ranges = tuple[int, ...]


def joined(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """The offsets that are in any of some ranges, which may overlap."""
    found: list[int] = []
    for first, last in sorted(ranges):
        if found and first <= found[-1] + 1:
            found[-1] = max(found[-1], last)
        else:
            found += (first, last)
    return tuple(found)


def pairs(ranges: Ranges) -> Iterable[tuple[int, int]]:
    """First and last offset of each."""
    return zip(ranges[::2], ranges[1::2], strict=True)


def between(ranges: Ranges, start: int, end: int) -> int:
    """How many offsets from ``start`` on and before ``end`` are in the ranges."""
    return sum(max(min(last + 1, end) - max(first, start), 0) for first, last in pairs(ranges))


def after(ranges: Ranges, offset: int) -> int:
    """The first offset from this one on that is in no range."""
    for first, last in pairs(ranges):
        if first <= offset <= last:
            return last + 1
    return offset
