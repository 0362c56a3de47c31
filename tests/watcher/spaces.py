"""What takes a user and mount namespace of its own to see. Run in one as ``python -m tests.watcher.spaces NAME DIRECTORY``."""

import logging
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

from tests.builders import batch, log_dir, partition
from tests.watcher.watched import Watched, eventually


def few_watches(directory: Path) -> None:
    """More directories than there are watches: the rolls of all are seen, by inotify or by comparing."""
    Path("/proc/sys/user/max_inotify_watches").write_text("6")
    disk = log_dir(directory)
    logs = [partition(disk, f"t{number}", topic_id=number + 1) for number in range(12)]
    watched = Watched(disk.path)
    watched.hears(disk.path)
    watched.later(3)
    for log in logs:
        log.append(batch())
        log.roll()
    assert watched.later() >= {log.directory for log in logs}
    watched.structure.stop()


def no_watches(directory: Path) -> None:
    """Not even one for the log dir."""
    Path("/proc/sys/user/max_inotify_watches").write_text("0")
    _sees_all_by_comparing(directory)


def no_instances(directory: Path) -> None:
    """Nor an instance for it."""
    Path("/proc/sys/user/max_inotify_instances").write_text("0")
    _sees_all_by_comparing(directory)


def _sees_all_by_comparing(directory: Path) -> None:
    disk = log_dir(directory)
    watched = Watched(disk.path)
    eventually(lambda: not any(each.name == "inotify-hints" for each in threading.enumerate()))  # it has given up, and logged why
    watched.later(3)
    log = partition(disk, "new", topic_id=9)
    assert watched.later() == {disk.path}
    log.append(batch())
    watched.later(3)
    log.append(batch())
    assert watched.later() == set()
    log.roll()
    assert watched.later() == {log.directory}
    watched.structure.stop()


def remounted(directory: Path) -> None:
    """A log dir that is unmounted and mounted is watched again."""
    watched = None
    for round_ in range(2):
        subprocess.run(["mount", "-t", "tmpfs", "none", directory], check=True)
        disk = log_dir(directory, "")
        log = partition(disk, "t")
        if watched is None:
            watched = Watched(directory)
        else:
            assert watched.later() >= {directory}
        watched.hears(directory)
        new = partition(disk, "u", topic_id=2)
        watched.until(directory)
        new.append(batch())
        new.roll()
        watched.until(new.directory)
        log.close()
        new.close()
        disk.release()
        # watchdog may still be walking through the new directory
        eventually(lambda: subprocess.run(["umount", directory], check=False, capture_output=True).returncode == 0)
        assert watched.later() >= {directory}, round_
        assert watched.later() == set()
    watched.structure.stop()


if __name__ == "__main__":
    logging.basicConfig(format="%(message)s %(log_dir)s: %(error)s", level=logging.WARNING)
    spaces: dict[str, Callable[[Path], None]] = {each.__name__: each for each in (few_watches, no_watches, no_instances, remounted)}
    spaces[sys.argv[1]](Path(sys.argv[2]))
