"""A value that is made from files, and made again when they change: certificates, tokens and passwords are replaced without a restart."""

import logging
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Generic, TypeVar

from streaming.errors import UsageError

log = logging.getLogger(__name__)

PATIENCE_SECONDS = 60.0
"""So long the files that belong together, as a certificate and its key, may be of different times."""

_Value = TypeVar("_Value")

Signature = tuple[tuple[int, int, int] | None, ...]


class Reloading(Generic[_Value]):
    """A value that is made from files, and made again when they change. Thread-safe.
    If a change cannot be used, for example because a certificate's key is not written yet, the value stays as it was. That is a warning,
    and tried again with the next change. After `PATIENCE_SECONDS` it is an error, which is counted in ``failures``. So is a change that
    would turn a protection off: a file that is written in place is empty for a moment, and then half there.

    Args:
        make: returns the value and the files that it was made from.
        monotonic: seconds of a monotonic clock.
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
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._make = make
        self._weaker = weaker
        self._name = name
        self._lock = threading.Lock()
        self.failures = 0
        """The number of changes that could not be used, and to which none came that could."""
        self._monotonic = monotonic
        self._unusable_since: float | None = None
        self._waits = False  # for a change that can be used, or for an error
        self._value, files = make()
        self._files = tuple(files)
        self._signature = _signature(self._files)

    def get(self) -> _Value:
        """The value for the current files; costs a ``stat`` for each of them."""
        with self._lock:
            signature = _signature(self._files)
            if signature != self._signature or (self._waits and self._is_overdue()):
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
            if self._unusable_since is None:
                self._unusable_since = self._monotonic()
            self._waits = not self._is_overdue()
            self.failures += not self._waits
            level = logging.WARNING if self._waits else logging.ERROR
            log.log(level, "changed files cannot be used: the previous ones stay in use", extra={"error": str(error)})
            return
        self._unusable_since, self._waits = None, False
        self._value = value
        if files != self._files:
            self._files, self._signature = files, _signature(files)
        log.info("changed files are in use", extra={"files": ",".join(map(str, self._files))})

    def _is_overdue(self) -> bool:
        return self._unusable_since is not None and self._monotonic() - self._unusable_since >= PATIENCE_SECONDS


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
