"""What costs a scan of a closed segment to know again: its largest timestamp, and its ladder. Anybody may delete it at any moment.

It is one file that only grows: a header, then records of a kind, the key of a segment, and a value with its checksum. It is read once, when
it is opened; what follows a record that is not whole or not right is cut off. What was forgotten or replaced takes room until the file is
written from scratch. Whatever goes wrong with it, only time is lost: the agent says so once, and goes on without it.
"""

import fcntl
import logging
import os
import struct
import threading
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import BinaryIO

from streaming.broker.disk.segment_files import SegmentKey

log = logging.getLogger(__name__)

FILE_NAME = "scans"

_HEADER = b"segtail scans 1\n"
_RECORD = struct.Struct("<B5qII")  # kind, the fields of a `SegmentKey`, length of the value, and a CRC of all of these and the value
_KEYED = struct.Struct("<B5q")
_TIME = struct.Struct("<q")
_TIME_KIND, _LADDER_KIND, _GONE_KIND = 1, 2, 3

MOST_VALUE = 16 << 20
"""No value is longer."""

_SPARE_BYTES = 4 << 20
"""The file is written from scratch once more than half of it, and more than this, is of no use."""


class ScanCache:
    """The file that keeps largest timestamps and ladders of closed segments over restarts. Thread-safe.

    Args:
        directory: where the file is; None: nothing is kept.
    """

    def __init__(self, directory: Path | None) -> None:
        self._lock = threading.Lock()
        self._times: dict[SegmentKey, int] = {}
        self._ladders: dict[SegmentKey, tuple[int, int]] = {}  # where in the file, and how long
        self._path = None if directory is None else directory / FILE_NAME
        self._file: BinaryIO | None = None
        self._spare = 0
        if self._path is not None:
            try:
                self._path.parent.mkdir(parents=True, exist_ok=True)
                self._open(self._path)
            except OSError as error:
                self._give_up(error)

    def times(self) -> dict[SegmentKey, int]:
        """The largest timestamp of each segment that was scanned, Unix milliseconds, -1 none."""
        with self._lock:
            return self._times.copy()

    def keep_times(self, times: Iterable[tuple[SegmentKey, int]], gone: Iterable[SegmentKey]) -> None:
        """Keep the results of further scans, and forget segments that do not exist any more."""
        with self._lock:
            if self._file is not None:
                found = dict(times)
                self._times |= found
                self._write([(_TIME_KIND, key, _TIME.pack(time)) for key, time in found.items()], gone)

    def laddered(self) -> set[SegmentKey]:
        """The segments whose ladders are kept."""
        with self._lock:
            return set(self._ladders)

    def ladder(self, key: SegmentKey) -> bytes | None:
        """The packed ladder of a segment, None if it is not kept."""
        with self._lock:
            if self._file is None or key not in self._ladders:
                return None
            at, length = self._ladders[key]
            try:
                return os.pread(self._file.fileno(), length, at)
            except OSError as error:
                self._give_up(error)
                return None

    def keep_ladders(self, ladders: Mapping[SegmentKey, bytes], gone: Iterable[SegmentKey] = ()) -> None:
        """Keep the ladders of closed segments, and forget segments that do not exist any more."""
        with self._lock:
            if self._file is not None:
                self._write([(_LADDER_KIND, key, ladder) for key, ladder in ladders.items() if len(ladder) <= MOST_VALUE], gone)

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            if self._file is not None:
                self._file.close()
                self._file = None

    # --- the file

    def _open(self, path: Path) -> None:
        """Open the file, and read what it has. Raises OSError."""
        file = path.open("a+b", buffering=0)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            file.close()
            raise OSError(f"another agent uses it ({error})") from error
        self._file = file
        size = os.fstat(file.fileno()).st_size
        end = self._read(path) if size else 0
        if end < size:
            extra = {"path": str(path), "position": end, "bytes": size - end}
            log.warning("kept scans are damaged: what follows is scanned again", extra=extra)
            file.truncate(end)
        if end == 0:
            file.write(_HEADER)

    def _read(self, path: Path) -> int:
        """Read all records; returns up to where they are right."""
        with path.open("rb") as file:
            if file.read(len(_HEADER)) != _HEADER:
                return 0
            at = len(_HEADER)
            while len(head := file.read(_RECORD.size)) == _RECORD.size:
                kind, *fields, length, crc = _RECORD.unpack(head)
                value = file.read(length) if length <= MOST_VALUE else b""
                if (
                    len(value) < length
                    or _crc(kind, SegmentKey(*fields), value) != crc
                    or kind not in (_TIME_KIND, _LADDER_KIND, _GONE_KIND)
                ):
                    return at
                if kind == _TIME_KIND and length != _TIME.size:
                    return at
                self._apply(kind, SegmentKey(*fields), value, at + _RECORD.size)
                at += _RECORD.size + length
        return at

    def _apply(self, kind: int, key: SegmentKey, value: bytes, at: int) -> None:
        if kind == _TIME_KIND:
            self._spare += _RECORD.size + _TIME.size if key in self._times else 0
            (self._times[key],) = _TIME.unpack(value)
        elif kind == _LADDER_KIND:
            self._spare += self._ladders[key][1] if key in self._ladders else 0
            self._ladders[key] = at, len(value)
        else:
            _, length = self._ladders.pop(key, (0, 0))
            self._spare += 2 * _RECORD.size + length + (_TIME.size if self._times.pop(key, None) is not None else 0)

    def _write(self, records: list[tuple[int, SegmentKey, bytes]], gone: Iterable[SegmentKey]) -> None:
        """Append records, and forget segments."""
        assert self._file is not None
        assert self._path is not None
        forgotten = [(_GONE_KIND, key, b"") for key in gone if key in self._times or key in self._ladders]
        try:
            at = os.fstat(self._file.fileno()).st_size
            packed = bytearray()
            for kind, key, value in [*records, *forgotten]:
                packed += _RECORD.pack(kind, *key, len(value), _crc(kind, key, value))
                self._apply(kind, key, value, at + len(packed))
                packed += value
            written = self._file.write(packed) if packed else 0
            if written != len(packed):
                raise OSError("it was written in part: is its disk full?")
            if self._spare > _SPARE_BYTES and 2 * self._spare > at:
                self._write_anew(self._path)
        except OSError as error:
            self._give_up(error)

    def _write_anew(self, path: Path) -> None:
        """Write the file without what is of no use. Raises OSError."""
        assert self._file is not None
        new = path.with_suffix(".new")
        with new.open("wb") as file:
            file.write(_HEADER)
            for key, time in self._times.items():
                value = _TIME.pack(time)
                file.write(_RECORD.pack(_TIME_KIND, *key, len(value), _crc(_TIME_KIND, key, value)) + value)
            for key, (at, length) in self._ladders.items():
                value = os.pread(self._file.fileno(), length, at)
                file.write(_RECORD.pack(_LADDER_KIND, *key, len(value), _crc(_LADDER_KIND, key, value)) + value)
        new.replace(path)
        self._file.close()
        self._times, self._ladders, self._spare = {}, {}, 0
        self._open(path)

    def _give_up(self, error: OSError) -> None:
        log.warning("scans are not kept: they are repeated after a restart", extra={"path": str(self._path), "error": str(error)})
        if self._file is not None:
            self._file.close()
            self._file = None
        self._times, self._ladders = {}, {}


def _crc(kind: int, key: SegmentKey, value: bytes) -> int:
    return zlib.crc32(value, zlib.crc32(_KEYED.pack(kind, *key)))
