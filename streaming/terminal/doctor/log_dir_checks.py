"""Checks of log dirs: whether their brokers run, what this user may read, limits of the system for so many logs, and the clock."""

import grp
import os
import pwd
import resource
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from streaming.broker.agent.permissions import UnreadablePath, find_unreadable, unreadable_file
from streaming.broker.agent.process_watch import ProcessWatch
from streaming.broker.disk.log_dir_search import unsearched_words
from streaming.broker.disk.logdirs import LogDir, LogDirs, list_partitions
from streaming.broker.protocol.status_messages import ProcessStatus
from streaming.common.units import format_age, format_count, format_list, format_name, format_time
from streaming.kafka.formats import names
from streaming.kafka.formats.names import METADATA_TOPIC, OFFSET_CHECKPOINTS
from streaming.rules.broker_process import LockState, ProcessState
from streaming.terminal.doctor.diagnosis import Diagnosis, Outcome, Setup, quoted

_SPARE = 512
"""Descriptors for all that is no log: sockets, files that are read for a moment."""

_PERMISSIONS = "permissions"

_METADATA_COST = (
    "leaders, replicas and the limits of topics are not known from this broker, so transactions of producers that no coordinator has are "
    "`unknown` instead of hanging, and limits of retention are assumed. Kafka writes these files for its own user alone"
)
_PRODUCERS_COST = "transactions that were open before the first segment that is read may be missed"

_BROKERS = "brokers"
_MOST_NAMED = 5

_COPIED_S = 60.0
"""A file whose status has changed so long after its content was not put there by a broker."""

_CLOCKS = "clocks"
_AHEAD_SECONDS = 60.0

_WRITTEN = (names.RECOVERY_POINT_CHECKPOINT, names.HIGH_WATERMARK_CHECKPOINT)
"""Files that a broker replaces all the time."""


def check_limits(setup: Setup) -> Iterator[Diagnosis]:
    """Compare the limits with the logs that are there."""
    if setup.log_dirs is None:
        what = f"{setup.no_log_dirs}; an agent holds a file open for each log"
        yield Diagnosis(check="open files", state=Outcome.NOT_APPLICABLE, what=what)
        return
    yield _descriptors(sum(_logs(log_dir) for log_dir in setup.log_dirs.available))


def _descriptors(logs: int) -> Diagnosis:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    have = "any number of" if hard == resource.RLIM_INFINITY else f"{hard:,}"
    what = f"{have} files may be open (the hard limit), and an agent holds one for each of {format_count(logs, 'log')}"
    needed = logs + _SPARE
    if hard == resource.RLIM_INFINITY or hard >= needed:
        return Diagnosis(check="open files", state=Outcome.FINE, what=what)
    higher = 1 << (2 * needed - 1).bit_length()
    return Diagnosis(
        check="open files",
        state=Outcome.FAULT,
        what=f"{what}: logs beyond it are not read. For a service, LimitNOFILE={higher} in the unit of a service does the same",
        command=f"sudo prlimit --pid $$ --nofile={higher}:{higher}",
    )


def _logs(log_dir: LogDir) -> int:
    try:
        return len(list_partitions(log_dir, lambda _: ""))
    except OSError:
        return 0  # the check of permissions reports it


def check_permissions(setup: Setup) -> Iterator[Diagnosis]:
    """Ask the system about each file; nothing is opened.

    Finds what this user may not read in the log dirs, and what is not known because of it.
    """
    if setup.log_dirs is None:
        yield Diagnosis(check=_PERMISSIONS, state=Outcome.NOT_APPLICABLE, what=setup.no_log_dirs)
        return
    if setup.log_dirs.unsearched:
        yield Diagnosis(check=_PERMISSIONS, state=Outcome.UNKNOWN, what=unsearched_words(setup.log_dirs.unsearched))
    for path, reason in setup.log_dirs.unavailable.items():
        yield Diagnosis(check=_PERMISSIONS, state=Outcome.FAULT, what=reason, command=_as_owner(path, path))
    for log_dir in setup.log_dirs.available:
        yield from _of(log_dir)


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


def _of(log_dir: LogDir) -> Iterator[Diagnosis]:
    try:
        found = [*find_unreadable([log_dir]), *_unreadable_snapshots(log_dir.path)]
    except OSError as error:
        yield Diagnosis(check=_PERMISSIONS, state=Outcome.UNKNOWN, what=f"{log_dir.path} cannot be listed: {error}")
        return
    if not found:
        yield Diagnosis(check=_PERMISSIONS, state=Outcome.FINE, what=f"everything in {log_dir.path} can be read")
    by_cost: dict[tuple[str, str], list[UnreadablePath]] = {}
    for each in found:
        metadata = each.path.suffix == ".checkpoint" and each.path.parent.name == f"{METADATA_TOPIC}-0"
        by_cost.setdefault((_METADATA_COST if metadata else each.cost, each.why), []).append(each)
    for (cost, why), files in by_cost.items():
        first = files[0].path
        more = f" and {format_count(len(files) - 1, 'other')}" if len(files) > 1 else ""
        yield Diagnosis(
            check=_PERMISSIONS,
            state=Outcome.WARNING if cost in (_METADATA_COST, _PRODUCERS_COST) else Outcome.FAULT,
            what=f"{format_name(str(first), 300)}{more} {_spelled(why, files)}: {cost}",
            command=_mends(first, log_dir.path) if files[0].may_not else "",
        )


def _unreadable_snapshots(path: Path) -> Iterator[UnreadablePath]:
    """Producer snapshots, which `find_unreadable` leaves out: without them a log is read all the same."""
    for file in path.glob("*/*.snapshot"):
        yield from unreadable_file(file, _PRODUCERS_COST)


def _spelled(why: str, files: list[UnreadablePath]) -> str:
    if files[0].may_not:
        return f"{why} by user {_name(os.geteuid())}"
    return f"{why}: Kafka has not made {'it' if len(files) == 1 else 'them'} so"


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


def _group(gid: int) -> str:
    try:
        return grp.getgrgid(gid).gr_name
    except KeyError:
        return str(gid)


def check_brokers(setup: Setup) -> Iterator[Diagnosis]:
    """Ask the lock of each log dir once.

    Finds whether the brokers of the log dirs run, by the locks that they hold, and why that cannot be known.
    """
    if setup.log_dirs is None:
        return
    watch = ProcessWatch(setup.log_dirs, lambda: round(setup.now * 1000))
    watch.refresh()
    for broker in setup.log_dirs.brokers:
        process = watch.status_of(broker)
        if process is not None:
            yield from _Broker(broker, process, setup.now, setup.log_dirs, watch).findings()


@dataclass(frozen=True, slots=True)
class _Broker:
    broker: int
    process: ProcessStatus
    now: float
    log_dirs: LogDirs
    watch: ProcessWatch

    def findings(self) -> Iterator[Diagnosis]:
        if self.process.state == ProcessState.UP:
            names = format_list([str(each.path) for each in self._dirs(LockState.LOCKED)], _MOST_NAMED)
            yield self._says(Outcome.FINE, f"broker {self.broker} runs: it holds the lock of {names}")
            for each in self._dirs(LockState.FREE):
                what = (
                    f"broker {self.broker} runs, and does not hold the lock of {each.path}: it has given the log dir up, or has another one"
                )
                yield self._says(Outcome.WARNING, what)
        elif self.process.state == ProcessState.UNKNOWN:
            unusable = [str(each.path) for each in self.log_dirs if each.broker == self.broker and each.path in self.log_dirs.unavailable]
            why = f"{format_list(unusable, _MOST_NAMED)} cannot be used" if unusable else self.process.why  # another check has the reason
            yield self._says(Outcome.UNKNOWN, f"whether broker {self.broker} runs is not known: {why}")
        else:
            yield self._of_nobody()

    def _of_nobody(self) -> Diagnosis:
        last = self.process.last_ms
        since = f", as of the last write {format_time(last)} ({format_age(self.now - last / 1000)})" if last >= 0 else ""
        came_ms = _came_ms([each.path for each in self.log_dirs if each.broker == self.broker])
        if came_ms is None:
            what = f"broker {self.broker} does not run, or its log dirs are a copy{since}: nobody holds their locks"
            return self._says(Outcome.WARNING, what)
        what = (
            f"the log dirs of broker {self.broker} are a copy{since}, it seems: nobody holds their locks, and files came there, or got "
            f"another owner or mode, at {format_time(came_ms)}"
        )
        return self._says(Outcome.NOT_APPLICABLE, what)

    def _dirs(self, state: LockState) -> list[LogDir]:
        return [each for each in self.log_dirs if each.broker == self.broker and self.watch.lock_of(each) is state]

    @staticmethod
    def _says(state: Outcome, what: str) -> Diagnosis:
        return Diagnosis(check=_BROKERS, state=state, what=what)


def _came_ms(log_dirs: Iterable[Path]) -> int | None:
    """When the files that a broker writes all the time came there as a copy with their dates, Unix milliseconds; None if they did not.

    A broker writes such a file beside it and renames it into its place at once: its status changes then, and no more.
    """
    changed = []
    for path in (log_dir / name for log_dir in log_dirs for name in OFFSET_CHECKPOINTS):
        try:
            stat = path.stat()
        except OSError:
            continue
        if stat.st_ctime - stat.st_mtime < _COPIED_S:
            return None
        changed.append(stat.st_ctime_ns // 1_000_000)
    return min(changed, default=None)


def check_clocks(setup: Setup) -> Iterator[Diagnosis]:
    """Look at the times of files that the broker writes again and again."""
    if setup.log_dirs is None:
        return
    ahead = False
    for log_dir in setup.log_dirs.available:
        for path in (log_dir.path / name for name in _WRITTEN):
            try:
                written = path.stat().st_mtime
            except OSError:
                continue  # not written yet; what may not be read, another check reports
            if written > setup.now + _AHEAD_SECONDS:
                ahead = True
                yield Diagnosis(
                    check=_CLOCKS,
                    state=Outcome.WARNING,
                    what=f"{path} was written {format_age(setup.now - written)} by this clock: it was set back, or the broker has another",
                    command="timedatectl status",
                )
    if not ahead:
        yield Diagnosis(check=_CLOCKS, state=Outcome.FINE, what="no file of a broker is dated in the future")
