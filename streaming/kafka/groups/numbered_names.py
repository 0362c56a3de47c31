"""Names by small numbers, so that columns of them take four bytes a row."""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Numbers = NDArray[np.int32]


class NumberedNames:
    """Numbers count from 0 in the order in which the names come."""

    __slots__ = ("_numbers", "names")

    def __init__(self) -> None:
        self.names: list[str] = []
        self._numbers: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self.names)

    def find(self, name: str) -> int:
        """The number of a name, -1 if it has none."""
        return self._numbers.get(name, -1)

    def number(self, name: str) -> int:
        """The number of a name, which gets one if it has none."""
        found = self._numbers.get(name, -1)
        if found < 0:
            found = self._numbers[name] = len(self.names)
            self.names.append(name)
        return found


def named(names: list[str], numbers: Numbers) -> pa.Array:
    """The names of some numbers, as a column."""
    if 2 * len(numbers) > len(names):
        return pa.array(names, pa.string()).take(pa.array(numbers))
    return pa.array([names[number] for number in numbers.tolist()], pa.string())
