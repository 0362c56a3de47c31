"""What Kafka's cleaner leaves in a directory between its renames, one rename after the other (`Cleaner`, `LocalLog.replaceSegments`)."""

import os
from collections.abc import Callable, Container, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

import pytest

from streaming.simulator.log import PartitionLog

_KINDS = ("log", "index", "timeindex")


class Swap:
    """Some closed segments of a log become one, with those of their batches whose base offsets are in ``keep``. Made from its files alone.

    Each of `steps` is one of the moments that a reader may meet; `upto` makes the first of them so.
    """

    def __init__(self, log: PartitionLog, count: int, keep: Container[int], first: int = 0) -> None:
        self._directory = log.directory
        segments = log.segments[first : first + count]
        self._old = [segment.base_offset for segment in segments]
        self._content = b"".join(
            segment.path("log").read_bytes()[position : position + entry.size]
            for segment in segments
            for entry, position in zip(segment.entries, segment.positions, strict=True)
            if entry.base_offset in keep
        )
        self.steps: list[Callable[[], None]] = [self._half, self._whole, self._swapped, *map(self._deleting, self._old), self._live]

    def upto(self, number: int) -> None:
        """Make the first steps."""
        for step in self.steps[:number]:
            step()

    def _path(self, base_offset: int, kind: str, stage: str = "") -> Path:
        return self._directory / f"{base_offset:020}.{kind}{stage}"

    def _half(self) -> None:
        self._path(self._old[0], "log", ".cleaned").write_bytes(self._content[: len(self._content) // 2])
        for kind in _KINDS[1:]:
            self._path(self._old[0], kind, ".cleaned").touch()

    def _whole(self) -> None:
        self._path(self._old[0], "log", ".cleaned").write_bytes(self._content)

    def _swapped(self) -> None:
        self._rename(self._old[0], ".cleaned", ".swap")

    def _deleting(self, base_offset: int) -> Callable[[], None]:
        return lambda: self._rename(base_offset, "", ".deleted")

    def _live(self) -> None:
        self._rename(self._old[0], ".swap", "")

    def _rename(self, base_offset: int, before: str, after: str) -> None:
        for kind in _KINDS:
            if (path := self._path(base_offset, kind, before)).exists():
                path.rename(self._path(base_offset, kind, after))


@contextmanager
def listing_passes(monkeypatch: pytest.MonkeyPatch, act: Callable[[], None]) -> Iterator[None]:
    """Something happens to the directory after the first listing of it has passed all names, and before it looks at the files."""
    real, acts = os.scandir, [act]

    class Entries:
        def __init__(self, path: Path) -> None:
            self._entries = real(path)

        def __enter__(self) -> Self:
            return self

        def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
            self._entries.close()

        def __iter__(self) -> Iterator["os.DirEntry[str]"]:
            passed = list(self._entries)
            if acts and any(entry.name.endswith(".log.swap") for entry in passed):
                acts.pop()()
            return iter(passed)

    with monkeypatch.context() as patch:
        patch.setattr(os, "scandir", Entries)
        yield
    assert not acts, "the directory was listed"
