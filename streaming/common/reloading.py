"""A value that is made from files, and made again when they change: certificates, tokens and passwords are replaced without a restart."""

import logging
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Generic, TypeVar

from streaming.errors import UsageError

log = logging.getLogger(__name__)

_Value = TypeVar("_Value")

Signature = tuple[tuple[int, int, int] | None, ...]


class Reloading(Generic[_Value]):
    """For several threads.

    If a change cannot be used, for example because a certificate's key is not written yet, the value stays as it was. This is logged once,
    counted in ``failures``, and tried again with the next change. So is a change that would turn a protection off: a file that is written
    in place is empty for a moment, and then half there.

    Args:
        make: returns the value and the files that it was made from.
        name: of the option and its file, for what is logged.
        weaker: returns what of the value before another one lacks, "" for nothing. That is not taken while the process runs.

    Raises:
        UsageError: raised by ``make``; only here, never later.
    """

    def __init__(
        self,
        make: Callable[[], tuple[_Value, Iterable[Path]]],
        weaker: Callable[[_Value, _Value], str] = lambda before, after: "",
        name: str = "",
    ) -> None:
        self._make = make
        self._weaker = weaker
        self._name = name
        self._lock = threading.Lock()
        self.failures = 0
        """The number of changes that could not be used."""
        self._value, files = make()
        self._files = tuple(files)
        self._signature = _signature(self._files)

    def get(self) -> _Value:
        """The value for the current files; costs a ``stat`` for each of them."""
        with self._lock:
            signature = _signature(self._files)
            if signature != self._signature:
                self._signature = signature  # from before they are read: what is written meanwhile is another change
                self._renew()
            return self._value

    def _renew(self) -> None:
        try:
            value, made_from = self._make()
            files = tuple(made_from)
            if lost := self._weaker(self._value, value):
                raise UsageError(f"{self._name}: the change would turn off {lost}: put it back, or restart to turn it off")
        except UsageError as error:
            self.failures += 1
            log.error("changed files cannot be used: the previous ones stay in use", extra={"error": str(error)})
            return
        self._value = value
        if files != self._files:
            self._files, self._signature = files, _signature(files)
        log.info("changed files are in use", extra={"files": ",".join(map(str, self._files))})


def _signature(files: Iterable[Path]) -> Signature:
    return tuple(_stamp(path) for path in files)


def _stamp(path: Path) -> tuple[int, int, int] | None:
    """A file that is replaced by another, or by a link to another, has another inode or another time."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ino, found.st_size


def read_secret(path: Path, option: str) -> bytes:
    """Read a file of certificates, keys or tokens.

    Raises:
        UsageError: it cannot be read. Names the option and the file, never its content.
    """
    try:
        return path.read_bytes()
    except OSError as error:
        raise UsageError(f"{option} {path} cannot be read: {error.strerror}") from error
