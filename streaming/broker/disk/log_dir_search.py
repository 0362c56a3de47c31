"""Decides where log dirs are: at and below the paths that people name. It also tells what could not be searched there."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from glob import has_magic
from pathlib import Path

from streaming.broker.disk.availability import LogDir, LogDirs, open_log_dirs, read_identity
from streaming.broker.disk.broker_processes import running_log_dirs
from streaming.broker.disk.opening import Calling
from streaming.common.units import format_count, format_list, format_word
from streaming.errors import LogDirError
from streaming.kafka.formats.names import META_PROPERTIES, METADATA_TOPIC

_DEEPEST = 3
"""How many levels below a given path are searched; log dirs are not searched themselves."""

_OF_FILE_SYSTEM = "lost+found"
"""Only root may read it, on every disk, and no log dir is in it."""

_NAMED = 5


def open_below(paths: Iterable[Path]) -> LogDirs:
    """Open the log dirs at or below some paths, as `open_log_dirs` does those that are named. It keeps what could not be searched.

    Raises:
        LogDirError: as `open_log_dirs`; or there is none, and not all could be searched.
    """
    found = find_log_dirs(paths)
    if not found.paths and found.unsearched:
        raise LogDirError(f"no log dir is found below {', '.join(map(str, found.above))}: {unsearched_words(found.unsearched)}")
    opened = open_log_dirs(found.paths)
    opened.searched, opened.unsearched = bool(found.above), found.unsearched
    opened.beside = tuple(_metadata_beside(opened))
    return opened


def find_log_dirs(paths: Iterable[Path]) -> FoundLogDirs:
    """The log dirs at or below some paths. A link to a log dir that is found anyway is no second one."""
    found: dict[Path, Path] = {}
    above: list[Path] = []
    unsearched: dict[Path, None] = {}
    for path in _matched(paths):
        search = _Search()
        search.look(path, _DEEPEST)
        below = [each for each in search.found if each != path]
        hidden = [each for each in search.unsearched if each != path]
        above += [path] if below or hidden else []
        unsearched |= dict.fromkeys(hidden)
        for each in sorted(below, key=lambda each: (each.is_symlink(), each)) or ([] if hidden else [path]):
            found.setdefault(each.resolve(), each)
    return FoundLogDirs(tuple(found.values()), tuple(above), tuple(unsearched))


@dataclass(frozen=True, slots=True)
class FoundLogDirs:
    """``paths``: log dirs, and those that are none and hold none as they were given, so that opening them says why.

    ``above``: the given directories below which log dirs were searched for. ``unsearched``: what below them could not be looked into, so
    that more log dirs may be there.
    """

    paths: tuple[Path, ...]
    above: tuple[Path, ...] = ()
    unsearched: tuple[Path, ...] = ()


def _matched(paths: Iterable[Path]) -> Iterator[Path]:
    """The paths, and in place of a pattern such as ``/mnt/*/kafka``, if nothing has that name, what fits it."""
    for path in paths:
        pattern = has_magic(str(path)) and not os.access(path, os.F_OK)
        fitting = sorted(Path(path.anchor).glob(str(path.relative_to(path.anchor)))) if pattern else []
        yield from fitting or [path]


@dataclass(slots=True)
class _Search:
    found: list[Path] = field(default_factory=list)
    unsearched: list[Path] = field(default_factory=list)

    def look(self, path: Path, levels: int) -> None:
        try:
            inner = None if _is_log_dir(path) else _directories(path, follow=levels == _DEEPEST) if levels else []
        except OSError:
            if path.name != _OF_FILE_SYSTEM:
                self.unsearched.append(path)
            return
        if inner is None:
            self.found.append(path)
            return
        for each in inner:
            self.look(each, levels - 1)


def _is_log_dir(path: Path) -> bool:
    """Whether a broker has formatted it. Raises OSError if that cannot be seen."""
    try:
        with Calling(path):
            (path / META_PROPERTIES).stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def _directories(path: Path, *, follow: bool) -> list[Path]:
    """The directories in it, none if it is none. Raises OSError if it cannot be read."""
    try:
        with Calling(path), os.scandir(path) as entries:
            return sorted(Path(entry.path) for entry in entries if entry.is_dir(follow_symlinks=follow))
    except (FileNotFoundError, NotADirectoryError):
        return []


def unsearched_words(paths: Iterable[Path]) -> str:
    """What could not be searched, as a sentence, and what to do."""
    named = [format_word(str(each)) for each in paths]
    return (
        f"{format_list(named, _NAMED)} cannot be read, and log dirs may be there ({format_count(len(named), 'place')} not searched): "
        "run as the broker's user, or name the log dirs themselves"
    )


def _metadata_beside(opened: LogDirs) -> Iterator[LogDir]:
    """Where a broker has its metadata log, if that is in none of these log dirs: by the brokers that run here, or beside them.

    Only the one log dir with the same cluster and node id counts: of several, some are copies, and nothing shows which.
    """
    lacking = [broker for broker in opened.brokers if not any(each.zookeeper or _has_metadata(each.path) for each in opened.of(broker))]
    running = running_log_dirs().paths if lacking else ()
    for broker in lacking:
        for paths in (running, _beside(opened.of(broker))):
            found = {path.resolve(): path for path in paths if _has_metadata(path)}
            same = [
                each for each in map(_identity, found.values()) if each and (each.broker, each.cluster_id) == (broker, opened.cluster_id)
            ]
            if len(same) == 1:
                yield same[0]
            if same:
                break


def _has_metadata(path: Path) -> bool:
    try:
        return (path / f"{METADATA_TOPIC}-0").is_dir()
    except OSError:
        return False


def _beside(own: Iterable[LogDir]) -> Iterator[Path]:
    """Directories in which a broker may have other log dirs: /data/d1 beside /data/d0, /mnt/2/kafka beside /mnt/1/kafka."""
    for path in dict.fromkeys(each.path for each in own):
        try:
            yield from _directories(path.parent, follow=True)
            yield from (each / path.name for each in _directories(path.parent.parent, follow=True))
        except OSError:  # the user has not named it
            continue


def _identity(path: Path) -> LogDir | None:
    try:
        return read_identity(path)
    except LogDirError:
        return None
