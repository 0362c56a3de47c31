"""inotify on one log dir, through a watchdog observer of its own: if it hangs or dies, the other log dirs are not affected."""

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

from streaming.broker.watcher import inotify

# modifications are not requested: every append is one, and watchdog would lose events under load
_STRUCTURAL: list[type[FileSystemEvent]] = [
    DirCreatedEvent,
    DirDeletedEvent,
    DirMovedEvent,
    FileCreatedEvent,
    FileDeletedEvent,
    FileMovedEvent,
]

_starting = threading.Lock()  # only one at a time: new instances and threads between its two listings are its own


class Observation(FileSystemEventHandler):
    """Watches a log dir and the directories in it.

    Args:
        path: the log dir, as the user gave it.
        heard: called by watchdog's thread with each path that was created, moved or removed below it, relative to ``path``.

    Raises:
        OSError: inotify has no instance left, or not a single watch, or the log dir cannot be read.
    """

    def __init__(self, path: Path, heard: Callable[[Path], None]) -> None:
        # watchdog does not follow a symbolic link, and a watch on the link itself reports nothing
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
        """Whether all of watchdog's threads are running."""
        return all(thread.is_alive() for thread in self._threads)

    def watched(self) -> set[int]:
        """The inodes of the directories that are really watched."""
        return inotify.watched(self._instances)

    def _ours(self, new: set[int]) -> set[int]:
        """The instances of this observation: the new ones, unless one has the number of another that was closed meanwhile."""
        try:
            inode = self._real.stat().st_ino
        except OSError:
            return new  # gone again: the next check finds that
        if inode in inotify.watched(new):
            return new
        return {each for each in inotify.instances() if inode in inotify.watched({each})}

    def stop(self) -> threading.Thread:
        """Stop watching. Returns the thread that does it: watchdog waits for its own threads, and one of them may hang on a disk."""
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
