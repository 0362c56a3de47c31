"""Reads from the kernel which directories inotify watches, and how many it may watch.

See ``proc(5)``, "inotify" below ``/proc/pid/fdinfo``, and ``inotify(7)``. Watchdog does not report which watches it could not add.
"""

import os
import re
from dataclasses import dataclass
from pathlib import Path

_DESCRIPTORS = Path("/proc/self/fd")
_WATCH = re.compile(rb"^inotify wd:\w+ ino:(\w+)", re.MULTILINE)

_LIMITS = {
    "instances": ("fs.inotify.max_user_instances", "user.max_inotify_instances"),
    "watches": ("fs.inotify.max_user_watches", "user.max_inotify_watches"),
}


@dataclass(frozen=True, slots=True)
class Limit:
    """A bound on what one user may have, and the name of its sysctl."""

    sysctl: str
    value: int

    def __str__(self) -> str:
        return f"{self.sysctl} = {self.value}"


def limit(what: str) -> Limit | None:
    """The effective bound on ``instances`` or ``watches``: a user namespace may have its own lower bound. None if it is not known."""
    found = []
    for sysctl in _LIMITS[what]:
        try:
            found.append(Limit(sysctl, int(Path("/proc/sys", *sysctl.split(".")).read_text())))
        except (OSError, ValueError):
            continue  # no such sysctl on this kernel
    return min(found, key=lambda each: each.value, default=None)


def instances() -> set[int]:
    """The descriptors of this process that are inotify instances; none if the kernel does not list them."""
    found: set[int] = set()
    try:
        descriptors = list(_DESCRIPTORS.iterdir())
    except OSError:
        return found
    for descriptor in descriptors:
        try:
            target = os.readlink(descriptor)  # noqa: PTH115  # no file: its target is no path
        except OSError:
            continue  # closed since the listing
        if target == "anon_inode:inotify":
            found.add(int(descriptor.name))
    return found


def watched(descriptors: set[int]) -> set[int]:
    """The inodes that these instances watch; none for a closed instance, or if the kernel does not list them."""
    found: set[int] = set()
    for descriptor in descriptors:
        try:
            text = Path(f"/proc/self/fdinfo/{descriptor}").read_bytes()
        except OSError:
            continue
        found.update(int(inode, 16) for inode in _WATCH.findall(text))
    return found
