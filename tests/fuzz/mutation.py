"""Damaged bytes, made fast: what a long run feeds to parsers, where Hypothesis would spend most of its time on making them."""

import random
from collections.abc import Callable

_EXTREMES = tuple(
    value.to_bytes(size, "big", signed=value < 0)
    for size in (1, 2, 4, 8)
    for value in (0, 1, -1, 2 ** (8 * size - 1) - 1, -(2 ** (8 * size - 1)), 2 ** (8 * size - 2))
)
"""Counts, lengths and offsets that a writer never means."""


def mutated(seed: bytes, other: bytes, chance: random.Random) -> bytes:
    """``seed`` with one to six changes; some of them take bytes from ``other``."""
    data = bytearray(seed)
    for _ in range(chance.randint(1, 6)):
        chance.choice(_CHANGES)(data, other, chance)
    return bytes(data)


def _flip(data: bytearray, _: bytes, chance: random.Random) -> None:
    if data:
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)


def _overwrite(data: bytearray, _: bytes, chance: random.Random) -> None:
    value = chance.choice(_EXTREMES)
    at = chance.randint(0, len(data))
    data[at : at + len(value)] = value


def _cut(data: bytearray, _: bytes, chance: random.Random) -> None:
    del data[chance.randint(0, len(data)) :]


def _remove(data: bytearray, _: bytes, chance: random.Random) -> None:
    at = chance.randint(0, len(data))
    del data[at : at + chance.randint(1, 16)]


def _insert(data: bytearray, _: bytes, chance: random.Random) -> None:
    at = chance.randint(0, len(data))
    data[at:at] = chance.randbytes(chance.randint(1, 16))


def _splice(data: bytearray, other: bytes, chance: random.Random) -> None:
    begin, at = chance.randint(0, len(other)), chance.randint(0, len(data))
    piece = other[begin : begin + chance.randint(1, 64)]
    data[at : at + len(piece)] = piece


_CHANGES: tuple[Callable[[bytearray, bytes, random.Random], None], ...] = (_flip, _overwrite, _overwrite, _cut, _remove, _insert, _splice)
