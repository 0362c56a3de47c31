"""inotify on one log dir, through watchdog, by an observer of its own: one that hangs or dies leaves the other log dirs alone."""

import errno
import os
import threading
from collections.abc import Callable
from pathlib import Path

from watchdog.events import (
    DirCreatedEvent,
    DirDeletedEvent,
    DirMovedEvent,
    FileCreatedEvent,
    FileDeletedEvent,
    FileMovedEvent,
    FileSystemEvent,
    FileSystemEventHandler,
)
from watchdog.observers import Observer
from watchdog.utils import BaseThread

from streaming.watcher import inotify

# every append is a modification: asked for those, watchdog loses events under load
_STRUCTURAL: list[type[FileSystemEvent]] = [
    DirCreatedEvent,
    DirDeletedEvent,
    DirMovedEvent,
    FileCreatedEvent,
    FileDeletedEvent,
    FileMovedEvent,
]

_starting = threading.Lock()  # what comes up between two looks at this process is one observation's


class Observation(FileSystemEventHandler):
    """Watches a log dir and what lies in it.

    Args:
        path: the log dir, as the user gave it.
        heard: called by watchdog's thread with the path of what was created, moved or removed below it, relative to ``path``.

    Raises:
        OSError: inotify has no instance left, or not a single watch, or the log dir cannot be read.
    """

    def __init__(self, path: Path, heard: Callable[[Path], None]) -> None:
        # watchdog does not follow a symbolic link, and a watch on the link itself tells nothing
        self._real = Path(os.path.realpath(path))
        self._heard = heard
        with _starting:
            instances, threads = inotify.instances(), _threads()
            self._observer = Observer()
            try:
                self._observer.start()
                self._observer.schedule(self, str(self._real), recursive=True, event_filter=_STRUCTURAL)
            except OSError:
                self.stop()
                raise
            except RuntimeError as error:  # no thread can be started
                self.stop()
                raise OSError(errno.EAGAIN, str(error)) from error
            self._threads = _threads() - threads
            self._instances = self._ours(inotify.instances() - instances)

    @property
    def alive(self) -> bool:
        """Whether all of watchdog's threads are at work."""
        return all(thread.is_alive() for thread in self._threads)

    def watched(self) -> set[int]:
        """The inodes of the directories that are really watched."""
        return inotify.watched(self._instances)

    def _ours(self, new: set[int]) -> set[int]:
        """The instances that are this observation's: the new ones, unless one took the number of another that was closed meanwhile."""
        try:
            inode = self._real.stat().st_ino
        except OSError:
            return new  # gone again, which the next look sees
        if inode in inotify.watched(new):
            return new
        return {each for each in inotify.instances() if inode in inotify.watched({each})}

    def stop(self) -> threading.Thread:
        """Let go of the log dir. Returns what does so: watchdog waits for its threads, one of which may hang on a disk."""
        stopping = threading.Thread(target=self._observer.stop, daemon=True, name="stop-observer")
        stopping.start()
        return stopping

    def on_any_event(self, event: FileSystemEvent) -> None:
        """Called by watchdog's thread."""
        for raw in (event.src_path, event.dest_path):
            if raw:
                path = Path(os.fsdecode(raw))
                if path != self._real and path.is_relative_to(self._real):
                    self._heard(path.relative_to(self._real))


def _threads() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if isinstance(thread, BaseThread)}
