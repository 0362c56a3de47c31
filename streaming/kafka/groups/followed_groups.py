"""Which groups a replay follows: as many as the limit allows, first come first served; the others are counted.

A group that was left out stays so until its log is read from the beginning again, for commits of it are missing by then.
"""

import threading
from array import array

MOST_REMEMBERED = 100_000
"""So many groups that were left out are distinguished; if there are more, no further group is followed."""


class GroupLimit:
    """The number of groups that all replays of a process may follow together, on any threads."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.used = 0
        self._lock = threading.Lock()

    @property
    def reached(self) -> bool:
        """Whether there is no room for another group."""
        return self.used >= self.most

    def beside(self, groups: int) -> "GroupLimit":
        """The limit of a replay that may take the room that another one has by now for so many groups."""
        return GroupLimit(self.most - self.used + groups)

    def enter(self, groups: int = 1) -> None:
        """Take the room of so many groups."""
        with self._lock:
            self.used += groups

    def leave(self, groups: int = 1) -> None:
        """Give back the room of so many groups."""
        with self._lock:
            self.used -= groups


class FollowedGroups:
    """The groups of one replay by small numbers. A group takes room as long as it has something that is held for it."""

    def __init__(self, limit: GroupLimit) -> None:
        self.names: list[str] = []
        self._limit = limit
        self._numbers: dict[str, int] = {}
        self._held = array("i")
        self._left_out: set[int] = set()

    @property
    def omitted(self) -> int:
        """How many groups were left out, at most `MOST_REMEMBERED`."""
        return len(self._left_out)

    def find(self, name: str) -> int:
        """The number of a group that was followed before, -1 if it was not."""
        return self._numbers.get(name, -1)

    def follow(self, name: str) -> int:
        """The number of a group for which something will be held, -1 if it is left out."""
        number = self._numbers.get(name, -1)
        if number >= 0 and self._held[number]:
            return number
        if hash(name) in self._left_out or len(self._left_out) >= MOST_REMEMBERED:
            return -1
        if self._limit.reached:
            self._left_out.add(hash(name))
            return -1
        if number < 0:
            number = self._numbers[name] = len(self.names)
            self.names.append(name)
            self._held.append(0)
        return number

    def hold(self, number: int) -> None:
        """One more thing is held for the group that `follow` has just returned."""
        if not self._held[number]:
            self._limit.enter()
        self._held[number] += 1

    def let_go(self, number: int) -> None:
        """One thing less is held for it."""
        self._held[number] -= 1
        if not self._held[number]:
            self._limit.leave()

    def deleted(self, name: str) -> None:
        """A group's own record was deleted: if it was left out, it no longer counts."""
        self._left_out.discard(hash(name))

    def compact(self) -> dict[int, int]:
        """Give new numbers to the groups for which something is held, and none to the others; by the numbers of before."""
        numbers = [number for number, held in enumerate(self._held) if held]
        self.names = [self.names[number] for number in numbers]
        self._numbers = {name: number for number, name in enumerate(self.names)}
        self._held = array("i", [self._held[number] for number in numbers])
        return {before: number for number, before in enumerate(numbers)}

    @property
    def followed(self) -> int:
        """How many groups take room."""
        return sum(held > 0 for held in self._held)

    def replace(self, others: "FollowedGroups") -> None:
        """Take the room that the others give back."""
        others.close()
        self._limit = others._limit
        self._limit.enter(self.followed)

    def close(self) -> None:
        """Give back the room that they take."""
        self._limit.leave(self.followed)
