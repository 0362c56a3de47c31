"""The lists of segments of a shard's logs. They are a separate value of the state, read and written only when a list changes.

Layout: a byte with the version, then an Arrow IPC stream with a row for every log whose segments are known.
"""

from collections.abc import Callable

import pyarrow as pa

from streaming.common.log_key import KEY_COLUMNS, LogKey, key_arrays
from streaming.errors import CheckpointError

_VERSION = 1
_SCHEMA = pa.schema([*KEY_COLUMNS, ("segments", pa.binary())])


def check_version(what: str, version: int, read: int) -> None:
    """Refuse a part of the state that another version has written.

    Raises:
        CheckpointError: it is of another version.
    """
    if version != read:
        raise CheckpointError(
            f"the checkpoint's {what}: version {version}, this segtail reads {read}: use the segtail that wrote it, "
            "or name another checkpoint to begin anew"
        )


class SegmentLists:
    """The known segments of each log by its key: packed `streaming.common.rows.SEGMENTS`.

    Args:
        value: returns an earlier result of `value`, None if there is none yet. It is called at most once, and only if a list is needed.
    """

    def __init__(self, value: Callable[[], bytes | None]) -> None:
        self._value = value
        self._lists: dict[LogKey, bytes] | None = None
        self.changed = False
        """Whether the value has changed and has to be stored."""

    @property
    def is_open(self) -> bool:
        """Whether the lists were read. Until then no log's list is known, and none can change."""
        return self._lists is not None

    def open(self) -> dict[LogKey, bytes]:
        """Read the lists, unless that was done already.

        Raises:
            CheckpointError: they were written by another version.
        """
        if self._lists is None:
            self._lists = _opened(self._value())
        return self._lists

    def put(self, key: LogKey, segments: bytes | None) -> None:
        """Replace the list of a log; None: it has none."""
        lists = self.open()
        if lists.get(key) == segments:
            return
        self.changed = True
        if segments is None:
            del lists[key]
        else:
            lists[key] = segments

    def value(self) -> bytes:
        """The value to store."""
        lists = self.open()
        arrays = [*key_arrays(lists), pa.array(lists.values(), pa.binary())]
        sink = pa.BufferOutputStream()
        sink.write(bytes([_VERSION]))
        with pa.ipc.new_stream(sink, _SCHEMA) as writer:
            writer.write_table(pa.Table.from_arrays(arrays, schema=_SCHEMA))
        return bytes(memoryview(sink.getvalue()))


def _opened(value: bytes | None) -> dict[LogKey, bytes]:
    if value is None:
        return {}
    check_version("lists of segments", value[0], _VERSION)
    table = pa.ipc.open_stream(pa.py_buffer(value)[1:]).read_all()
    *keys, lists = (table[name].to_pylist() for name in _SCHEMA.names)
    return dict(zip(map(LogKey, *keys), lists, strict=True))
