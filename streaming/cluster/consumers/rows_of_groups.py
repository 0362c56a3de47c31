"""Which commits are of which group: all of them are sorted by their groups once, when the first group is asked for."""

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from streaming.kafka.groups.commit_table import CommitRows


class RowsOfGroups:
    """The indexes of commits by the names of their groups. Any thread may ask."""

    def __init__(self, rows: CommitRows) -> None:
        self._rows = rows

    def __call__(self, group: str) -> list[int]:
        """The indexes of a group's commits, ascending; none of a group that is not known."""
        number = self._numbers.get(group)
        if number is None:
            return []
        order, first = self._order
        found: list[int] = order[first[number] : first[number + 1]].tolist()
        return found

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {name: number for number, name in enumerate(self._rows.group_names)}

    @cached_property
    def _order(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """The commits in the order of their groups, and where each group's begin there."""
        order = np.argsort(self._rows.group, kind="stable")
        return order, np.searchsorted(self._rows.group[order], np.arange(len(self._rows.group_names) + 1))
