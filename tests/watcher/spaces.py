"""What takes a user and mount namespace of its own to see. Run in one as ``python -m tests.watcher.spaces NAME DIRECTORY``."""

import logging
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from streaming.broker.watcher import structure
from streaming.simulator.log import LogDir
from tests.builders import batch, log_dir, partition
from tests.watcher.watched import Watched, eventually

FEW = 6


def few_watches(directory: Path) -> None:
    """More directories than there are watches: the rolls of all are seen, the log says what is short, and more watches are used."""
    limit = Path("/proc/sys/user/max_inotify_watches")
    limit.write_text(str(FEW))
    disk = log_dir(directory)
    logs = [partition(disk, f"t{number}", topic_id=number + 1) for number in range(12)]
    watched = Watched(disk.path)
    assert structure.limit("watches") == structure.Limit("user.max_inotify_watches", FEW)
    assert watched.structure.unwatched == 0
    watched.later(11)
    assert watched.structure.unwatched == len(logs) - FEW + 1  # one is the log dir's
    watched.later(3)
    for log in logs:
        log.append(batch())
        log.roll()
    hints: set[Path] = set()
    eventually(lambda: hints.update(watched.structure.take()) or len(hints) == FEW - 1)
    assert watched.later() | hints == {log.directory for log in logs}
    limit.write_text("1000")
    watched.later(100)
    assert watched.structure.unwatched == 0
    watched.structure.stop()


def no_instances(directory: Path) -> None:
    """Without inotify everything is seen by comparing, and inotify is used as soon as it can be."""
    limit = Path("/proc/sys/user/max_inotify_instances")
    limit.write_text("0")
    disk = log_dir(directory)
    log = partition(disk, "t")
    watched = Watched(disk.path)
    assert watched.structure.unwatched == 1
    watched.later(3)
    _sees_all_by_comparing(watched, disk)
    assert watched.structure.unwatched == 2
    limit.write_text("10")
    watched.later(100)
    assert watched.structure.unwatched == 0
    log.append(batch())
    log.roll()
    watched.until(log.directory)
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
        watched.later(3)
        log.append(batch())
        log.roll()
        watched.until(log.directory)
        new = partition(disk, "u", topic_id=2)
        watched.until(directory)
        log.close()
        new.close()
        disk.release()
        # watchdog may still be walking through the new directory
        eventually(lambda: subprocess.run(["umount", directory], check=False, capture_output=True).returncode == 0)
        assert watched.later() >= {directory}, round_
        assert watched.later() == set()
    watched.structure.stop()


def _sees_all_by_comparing(watched: Watched, disk: LogDir) -> None:
    log = partition(disk, "new", topic_id=9)
    assert watched.later() == {disk.path}
    log.append(batch())
    watched.later(3)
    log.append(batch())
    assert watched.later() == set()
    log.roll()
    assert watched.later() == {log.directory}


if __name__ == "__main__":
    logging.basicConfig(format="%(message)s %(args)s", level=logging.WARNING)
    spaces: dict[str, Callable[[Path], None]] = {each.__name__: each for each in (few_watches, no_instances, remounted)}
    spaces[sys.argv[1]](Path(sys.argv[2]))
