"""Finds log dirs in a directory: those with a ``meta.properties``."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from streaming.errors import LogDirError
from streaming.kafka.formats.names import META_PROPERTIES

_DEEPEST = 3
"""How many levels below a given path are searched; log dirs are not searched themselves."""


def find_log_dirs(paths: Iterable[Path]) -> list[Path]:
    """The log dirs at or below some paths. A path that is none and holds none is returned as it is, so that opening it says why.

    So is a directory right below a path that cannot be read; what cannot be read further down is left out.

    Raises:
        LogDirError: a path cannot be searched.
    """
    found: dict[Path, Path] = {}
    for path in paths:
        below = list(_below(path, _DEEPEST)) if path.is_dir() else []
        for each in sorted(below or [path], key=lambda each: (each.is_symlink(), each)):
            found.setdefault(each.resolve(), each)  # a link to a log dir that is found anyway is no second one
    return list(found.values())


def _below(path: Path, levels: int) -> Iterator[Path]:
    try:
        if (path / META_PROPERTIES).exists():
            yield path
            return
        if not levels:
            return
        with os.scandir(path) as entries:
            inner = sorted(Path(entry.path) for entry in entries if entry.is_dir(follow_symlinks=levels == _DEEPEST))
    except PermissionError as error:
        if levels == _DEEPEST - 1 and path.name != "lost+found":
            yield path  # it may be a log dir: whoever opens it learns that it cannot be read
        if levels < _DEEPEST:
            return
        raise LogDirError(f"{path} cannot be read: run as the broker's user, or as one of its group with read access") from error
    for each in inner:
        yield from _below(each, levels - 1)
