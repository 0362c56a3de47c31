"""What a job before has kept of things that come again one by one: each is given to its first reader, within an hour."""

from collections.abc import Iterable, Mapping
from typing import Generic, TypeVar

RECALLED_MS = 3_600_000
"""What a job before has kept is held for so long against what is read: agents may be away when a job starts."""

_Key = TypeVar("_Key")
_Kept = TypeVar("_Kept")


class Recalled(Generic[_Key, _Kept]):
    """Gives out once what a job before has kept. Only one thread uses it, but `left` may be asked from any."""

    def __init__(self, kept: Mapping[_Key, _Kept] | None = None) -> None:
        self._kept = dict(kept or {})
        self._until_ms: int | None = None  # from when they were first held against something

    def __bool__(self) -> bool:
        return bool(self._kept)

    def take(self, there: Iterable[_Key], now_ms: int) -> dict[_Key, _Kept]:
        """What was kept of those that are there; each is given once."""
        self._until_ms = now_ms + RECALLED_MS if self._until_ms is None else self._until_ms
        found = {key: self._kept.pop(key) for key in there if key in self._kept}
        if now_ms > self._until_ms:
            self._kept.clear()
        return found

    @property
    def left(self) -> dict[_Key, _Kept]:
        """What was not given out yet."""
        return self._kept.copy()
