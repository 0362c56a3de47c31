"""Keeps log messages off the screen while it is drawn, and prints the last of them when it is left."""

import io
import logging
import sys
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

_MOST = 200


class _Kept(io.TextIOBase):
    def __init__(self) -> None:
        self.pieces: deque[str] = deque(maxlen=_MOST)

    def write(self, text: str) -> int:
        self.pieces.append(text)
        return len(text)


@contextmanager
def held_logs() -> Iterator[None]:
    """Hold what is logged to a terminal. A log that goes elsewhere is not touched."""
    kept = _Kept()
    handlers = [each for each in logging.getLogger().handlers if isinstance(each, logging.StreamHandler) and each.stream.isatty()]
    before = [each.setStream(kept) for each in handlers]
    try:
        yield
    finally:
        for handler, stream in zip(handlers, before, strict=True):
            handler.setStream(stream)
        sys.stderr.write("".join(kept.pieces))
