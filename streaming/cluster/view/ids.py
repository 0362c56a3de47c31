"""Small integers for keys, so that columns can be indexed by them. A number is used again when its key is gone."""

from collections.abc import Hashable, Sequence
from typing import Generic, TypeVar

import numpy as np

from streaming.common.arrays import Longs

K = TypeVar("K", bound=Hashable)


class Ids(Generic[K]):
    """A number for every key that is in use, and how often the key is used."""

    def __init__(self) -> None:
        self._of: dict[K, int] = {}
        self._uses: list[int] = []
        self._free: list[int] = []

    def __len__(self) -> int:
        """One more than the highest number ever given."""
        return len(self._uses)

    def find(self, key: K) -> int | None:
        """The key's number, or None if it has none."""
        return self._of.get(key)

    def find_all(self, keys: Sequence[K], missing: int) -> Longs:
        """The numbers of keys; ``missing`` for those that have none."""
        of = self._of
        return np.fromiter((of.get(key, missing) for key in keys), np.int64, len(keys))

    def take(self, key: K) -> int:
        """The key's number; a free number at its first use. Every `take` needs one `release`."""
        number = self._of.get(key)
        if number is None:
            if self._free:
                number = self._free.pop()
            else:
                number = len(self._uses)
                self._uses.append(0)
            self._of[key] = number
        self._uses[number] += 1
        return number

    def release(self, key: K) -> int | None:
        """Give one use of the key's number back; the number if that was the last and it is free now, else None.

        Raises:
            KeyError: the key has no number.
        """
        number = self._of[key]
        self._uses[number] -= 1
        if self._uses[number]:
            return None
        del self._of[key]
        self._free.append(number)
        return number
