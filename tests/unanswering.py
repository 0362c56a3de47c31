"""A file that does not answer: to open it waits, as a call into a dead disk does, until `Unanswering.answer`.

No file of an ordinary file system does that. So the one place that opens Kafka's files waits for the writer of a pipe first, which lies
elsewhere; what is opened then is the file as it is.
"""

import os
from collections.abc import Callable
from contextlib import suppress
from os import PathLike
from pathlib import Path

import pytest

from streaming.broker.disk import opening

ROOT = Path(__file__).parents[1]


class Unanswering:
    """One file of this process, and of those that are started with `code`."""

    def __init__(self, file: Path, gate: Path) -> None:
        self.file = file
        self._gate = gate
        os.mkfifo(gate)

    def hold(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """From now on the file does not answer in this process."""
        monkeypatch.setattr(opening, "_open", _waiting(self.file, self._gate))

    @property
    def code(self) -> str:
        """What a process runs first, so that the file does not answer there."""
        held = f"hold({str(self.file)!r}, {str(self._gate)!r})"
        return f"import sys; sys.path.insert(0, {str(ROOT)!r}); from tests.unanswering import hold; {held}"

    def answer(self) -> None:
        """The call that waits comes back, and later ones do not wait."""
        fd = os.open(self._gate, os.O_RDWR)  # waits for nobody
        self._gate.unlink()
        os.close(fd)


def hold(file: str, gate: str) -> None:
    """From now on a file does not answer in this process."""
    opening._open = _waiting(Path(file), Path(gate))


def _waiting(file: Path, gate: Path) -> Callable[[str | PathLike[str], int], int]:
    def opened(path: str | PathLike[str], flags: int) -> int:
        if Path(path) == file:
            with suppress(FileNotFoundError):  # it answers by now
                os.close(os.open(gate, os.O_RDONLY))
        return os.open(path, flags)

    return opened
