"""Hints from watchdog that something was created, renamed or removed below a log dir: where to look again, never what happened."""

import logging
import threading
from collections.abc import Callable, Iterable
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
from watchdog.observers.api import BaseObserver

from streaming.disk.logdirs import LogDir
from streaming.kafka.names import parse_partition_dir

log = logging.getLogger(__name__)

# every append is a modification: asked for those, watchdog loses events under load
_STRUCTURAL: list[type[FileSystemEvent]] = [
    DirCreatedEvent,
    DirDeletedEvent,
    DirMovedEvent,
    FileCreatedEvent,
    FileDeletedEvent,
    FileMovedEvent,
]


class Structure(FileSystemEventHandler):
    """Collects the partition directories in which something happened; a change directly in a log dir is a hint at the log dir."""

    def __init__(self, log_dirs: Iterable[LogDir], wake: Callable[[], None]) -> None:
        self._roots = {str(log_dir.path): log_dir.path for log_dir in log_dirs}
        self._wake = wake
        self._lock = threading.Lock()
        self._hints: set[Path] = set()
        self._observer: BaseObserver | None = None

    def start(self) -> None:
        """Begin to watch. What cannot be watched is found by the paced surveys alone, and the log says so."""
        try:
            self._observer = Observer()
            self._observer.start()
        except OSError as error:
            log.warning("changes are found once a minute only: is fs.inotify.max_user_instances too low?", extra={"error": str(error)})
            return
        for path in self._roots:
            try:
                self._observer.schedule(self, path, recursive=True, event_filter=_STRUCTURAL)
            except OSError as error:
                log.warning(
                    "changes here are found once a minute only: is fs.inotify.max_user_watches too low?",
                    extra={"path": path, "error": str(error)},
                )

    def stop(self) -> None:
        """Stop watching."""
        if self._observer is not None:
            self._observer.stop()
            self._observer.join()

    def on_any_event(self, event: FileSystemEvent) -> None:
        """Called by watchdog's thread."""
        for raw in (event.src_path, event.dest_path):
            if raw:
                self.hint(Path(str(raw)))

    def hint(self, path: Path) -> None:
        """Something happened at ``path``."""
        for parent in path.parents:
            if str(parent) in self._roots:
                below = path.relative_to(parent).parts
                if parse_partition_dir(below[0]) is None:
                    return  # a checkpoint at the root is replaced every 5 seconds: no change of structure
                with self._lock:
                    self._hints.add(parent if len(below) == 1 else parent / below[0])
                self._wake()
                return

    def take(self) -> set[Path]:
        """The hints since the last call."""
        with self._lock:
            hints, self._hints = self._hints, set()
        return hints
