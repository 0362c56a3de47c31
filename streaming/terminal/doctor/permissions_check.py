"""Finds what this user may not read in the log dirs, and what is not known because of it."""

import grp
import os
import pwd
from collections.abc import Iterator
from pathlib import Path

from streaming.broker.agent.permissions import UnreadablePath, find_unreadable, unreadable_file
from streaming.broker.disk.availability import LogDir
from streaming.broker.disk.log_dir_search import unsearched_words
from streaming.common.formatting import format_count, format_name
from streaming.kafka.formats.names import METADATA_TOPIC
from streaming.terminal.doctor.diagnosis import Diagnosis, Outcome, Setup, quoted

_CHECK = "permissions"

_METADATA_COST = (
    "leaders, replicas and the limits of topics are not known from this broker, so transactions of producers that no coordinator has are "
    "`unknown` instead of hanging, and limits of retention are assumed. Kafka writes these files for its own user alone"
)
_PRODUCERS_COST = "transactions that were open before the first segment that is read may be missed"


def check(setup: Setup) -> Iterator[Diagnosis]:
    """Ask the system about each file; nothing is opened."""
    if setup.log_dirs is None:
        yield Diagnosis(check=_CHECK, state=Outcome.NOT_APPLICABLE, what=setup.no_log_dirs)
        return
    if setup.log_dirs.unsearched:
        yield Diagnosis(check=_CHECK, state=Outcome.UNKNOWN, what=unsearched_words(setup.log_dirs.unsearched))
    for path, reason in setup.log_dirs.unavailable.items():
        yield Diagnosis(check=_CHECK, state=Outcome.FAULT, what=reason, command=_as_owner(path, path))
    for log_dir in setup.log_dirs.available:
        yield from _of(log_dir)


def _of(log_dir: LogDir) -> Iterator[Diagnosis]:
    try:
        found = [*find_unreadable([log_dir]), *_unreadable_snapshots(log_dir.path)]
    except OSError as error:
        yield Diagnosis(check=_CHECK, state=Outcome.UNKNOWN, what=f"{log_dir.path} cannot be listed: {error}")
        return
    if not found:
        yield Diagnosis(check=_CHECK, state=Outcome.FINE, what=f"everything in {log_dir.path} can be read")
    by_cost: dict[tuple[str, str], list[UnreadablePath]] = {}
    for each in found:
        metadata = each.path.suffix == ".checkpoint" and each.path.parent.name == f"{METADATA_TOPIC}-0"
        by_cost.setdefault((_METADATA_COST if metadata else each.cost, each.why), []).append(each)
    for (cost, why), files in by_cost.items():
        first = files[0].path
        more = f" and {format_count(len(files) - 1, 'other')}" if len(files) > 1 else ""
        yield Diagnosis(
            check=_CHECK,
            state=Outcome.WARNING if cost in (_METADATA_COST, _PRODUCERS_COST) else Outcome.FAULT,
            what=f"{format_name(str(first), 300)}{more} {_spelled(why, files)}: {cost}",
            command=_mends(first, log_dir.path) if files[0].may_not else "",
        )


def _spelled(why: str, files: list[UnreadablePath]) -> str:
    if files[0].may_not:
        return f"{why} by user {_name(os.geteuid())}"
    return f"{why}: Kafka has not made {'it' if len(files) == 1 else 'them'} so"


def _unreadable_snapshots(path: Path) -> Iterator[UnreadablePath]:
    """Producer snapshots, which `find_unreadable` leaves out: without them a log is read all the same."""
    for file in path.glob("*/*.snapshot"):
        yield from unreadable_file(file, _PRODUCERS_COST)


def _mends(path: Path, log_dir: Path) -> str:
    """To become a member of the group that may read it, else to run as the broker's own user."""
    try:
        found = path.stat()
    except OSError:
        return _as_owner(path.parent, log_dir)
    needed = 0o050 if path.is_dir() else 0o040
    if found.st_mode & needed == needed:
        return f"sudo usermod -aG {quoted(_group(found.st_gid))} {quoted(_name(os.geteuid()))}"
    return _as_owner(path, log_dir)


def _as_owner(path: Path, log_dir: Path) -> str:
    """To look again as the user who owns it, or what it is in."""
    for place in (path, *path.parents):
        try:
            owner = place.stat().st_uid
            user = f"-u {quoted(_name(owner))} " if owner else ""
            return f"sudo {user}segtail doctor {quoted(log_dir)}"
        except OSError:
            continue
    return ""


def _name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"#{uid}"  # as sudo takes it


def _group(gid: int) -> str:
    try:
        return grp.getgrgid(gid).gr_name
    except KeyError:
        return str(gid)
