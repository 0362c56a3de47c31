"""Finds the server.properties of brokers with these log dirs, by the command lines of processes; and who holds a log dir's lock."""

from __future__ import annotations

import fcntl
import logging
import os
import struct
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from streaming.broker.disk.logdirs import LogDir
from streaming.broker.disk.opening import PROPERTIES_BYTES, Calling, is_short, open_file, read_small, written_ms
from streaming.common.units import format_name
from streaming.errors import FormatError
from streaming.kafka.formats.names import BROKER_LOCK, CLEAN_SHUTDOWN, METADATA_TOPIC, OFFSET_CHECKPOINTS
from streaming.kafka.formats.properties import ServerProperties, parse_properties, parse_server_properties
from streaming.rules.broker_process import DirLock, LockState
from streaming.rules.config_values import Configs, ValueSource, broker_configs

log = logging.getLogger(__name__)

PROC = Path("/proc")

LOOKED_SECONDS = 60.0
"""Processes are looked at again after so long."""

_MOST_PROCESSES = 50_000
_COMMAND_BYTES = 1 << 20  # a class path may be long
_MAIN = b"kafka.Kafka"
_OVERRIDE = b"--override"
_ROOT_USER = 0

_FLOCK = struct.Struct("@hhqqi4x")  # struct flock of <fcntl.h>: type, whence, start, length (0: to the end), process
_NAME_LENGTH = 300
_ASKED = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class BrokerProcess:
    """A process that says that it is a broker. ``file``: as it was given; ``directory``: of the process in ``/proc``."""

    directory: Path
    user: int
    file: str
    overrides: tuple[str, ...]


def running_log_dirs() -> RunningLogDirs:
    """The log.dirs of the brokers that run on this machine, by their server.properties. Those that cannot be seen are left out."""
    found: dict[Path, None] = {}
    refused = list[str]()
    try:
        processes = list(broker_processes(PROC))
    except OSError:  # no such directory on this system
        return RunningLogDirs(())
    for process in processes:
        try:
            _, every = _properties_of(process)
        except (OSError, FormatError) as error:
            refused.append(f"{process.file} of a broker that runs here cannot be read: {getattr(error, 'strerror', None) or error}")
            continue
        paths = [*_named_dirs(every), *filter(None, [every.get("metadata.log.dir", "").strip()])]
        found |= dict.fromkeys(here for each in paths if _is_owner(process, here := _reached(process, each)))
    return RunningLogDirs(tuple(found), tuple(refused))


@dataclass(frozen=True, slots=True)
class RunningLogDirs:
    """``paths``: the log dirs of brokers that run here, as this process reaches them. ``refused``: what is not known of others, and why."""

    paths: tuple[Path, ...]
    refused: tuple[str, ...] = ()


def broker_processes(proc: Path) -> Iterator[BrokerProcess]:
    """Those that can be looked at; the others are another user's on a machine that hides them."""
    for directory in process_directories(proc):
        try:
            with (directory / "cmdline").open("rb") as file:
                command = file.read(_COMMAND_BYTES).split(b"\0")
            user = directory.stat().st_uid
        except OSError:  # it has ended, or is hidden
            continue
        if _MAIN in command[:-1]:
            arguments = [os.fsdecode(each) for each in command[command.index(_MAIN) + 1 :] if each]
            overrides = [value for name, value in pairwise(arguments) if os.fsencode(name) == _OVERRIDE]
            if arguments:
                yield BrokerProcess(directory, user, arguments[0], tuple(overrides))


def process_directories(proc: Path) -> list[Path]:
    """The directories of processes. Raises OSError if there is no such file system."""
    with os.scandir(proc) as entries:
        return [proc / entry.name for entry in entries if entry.name.isdecimal()][:_MOST_PROCESSES]


def _properties_of(process: BrokerProcess) -> tuple[ServerProperties, Mapping[str, str]]:
    """What the process was started with, in two forms: what segtail may read, and everything."""
    if process.file.startswith("/"):
        try:
            text = read_small(process.directory / "root" / process.file[1:], PROPERTIES_BYTES, follows=True)
        except PermissionError:  # the root of another user's process; mostly it is this one
            text = read_small(process.file, PROPERTIES_BYTES, follows=True)
    else:
        text = read_small(process.directory / "cwd" / process.file, PROPERTIES_BYTES, follows=True)
    data = b"\n".join([text, *(each.encode("latin-1", "replace") for each in process.overrides)])
    return parse_server_properties(data), dict(parse_properties(data))


def _named_dirs(properties: Mapping[str, str]) -> list[str]:
    named = properties.get("log.dirs") or properties.get("log.dir") or ""
    return [each.strip() for each in named.split(",") if each.strip()]


def _is_owner(process: BrokerProcess, log_dir: Path) -> bool:
    """Whether the process may write there, so that it is its broker. True if the log dir's owner may not be read: opening it says why."""
    try:
        return process.user in (_ROOT_USER, log_dir.stat().st_uid)
    except PermissionError:
        return True
    except OSError:
        return False


def _reached(process: BrokerProcess, path: str) -> Path:
    """A path of a process as it is reached from here: in a container it may be another directory."""
    if path.startswith("/") and _is_same_path(process, path):
        return Path(path)
    return process.directory / ("root" if path.startswith("/") else "cwd") / path.lstrip("/")


def _is_same_path(process: BrokerProcess, path: str) -> bool:
    try:
        return (process.directory / "root" / path.lstrip("/")).samefile(path)
    except PermissionError:  # of another user's process; mostly the paths are the same
        return True
    except OSError:
        return False


class RunningBrokers:
    """The settings that running brokers were started with. What was found once counts while its broker is down. Only one thread uses it.

    Args:
        proc: where processes are shown, `PROC` if not given.
        given: whether the settings of a broker are known by options, so that what is not found of it is no matter.
    """

    def __init__(
        self,
        proc: Path | None = None,
        monotonic: Callable[[], float] = time.monotonic,
        given: Callable[[int], bool] = lambda _: False,
    ) -> None:
        self._proc, self._monotonic, self._given = proc or PROC, monotonic, given
        self._looked: dict[int, float] = {}
        self._found: dict[int, Configs] = {}
        self._logged: set[tuple[int, str]] = set()

    def configs(self, broker: int, log_dirs: Iterable[LogDir]) -> Configs | None:
        """What the ``server.properties`` of a broker sets; None if none was found so far."""
        now = self._monotonic()
        if now - self._looked.get(broker, -LOOKED_SECONDS) >= LOOKED_SECONDS:
            self._looked[broker] = now
            found = self._look(broker, log_dirs)
            if found is not None and found != self._found.get(broker):
                self._found[broker] = found
        return self._found.get(broker)

    def _look(self, broker: int, log_dirs: Iterable[LogDir]) -> Configs | None:
        try:
            processes = list(broker_processes(self._proc))
        except OSError:  # no such directory on this system
            return None
        dirs, refused = list(log_dirs), []
        for process in processes:
            if not (owned := [log_dir for log_dir in dirs if _may_own(process, log_dir)]):
                continue
            try:
                properties, every = _properties_of(process)
            except OSError as error:
                refused.append(f"{process.file}: {error.strerror}")
                continue
            except FormatError as error:
                refused.append(f"{process.file}: {error}")
                continue
            is_named = _names_one(process, every, owned)
            if is_named and properties.node_id == broker:
                return broker_configs(properties.configs, ValueSource.STATIC)
            if is_named or properties.node_id == broker:
                refused.append(f"{process.file}: node {properties.node_id}, {'these' if is_named else 'other'} log dirs")
        if broker not in self._found and not self._given(broker):
            self._log_once(broker, refused)
        return None

    def _log_once(self, broker: int, refused: Iterable[str]) -> None:
        """Say which files were not used. Which of them is the broker's is not known: one that cannot be read may be that of any broker."""
        new = [each for each in refused if (broker, each) not in self._logged]
        if new:
            self._logged.update((broker, each) for each in new)
            log.warning(
                "no server.properties of the brokers that run here is known to be of this one, so none is used: give it by "
                "--server-properties, or let segtail's user read it",
                extra={"broker": broker, "not_used": "; ".join(new)},
            )


def _may_own(process: BrokerProcess, log_dir: LogDir) -> bool:
    """Whether the process may be the log dir's broker, by its user."""
    try:
        return process.user in (_ROOT_USER, log_dir.path.stat().st_uid)
    except OSError:  # the log dir is gone: that is no matter of the process
        return False


def _names_one(process: BrokerProcess, properties: Mapping[str, str], log_dirs: list[LogDir]) -> bool:
    """Whether one of these log dirs is among those of the process, also where that sees other paths, as in a container."""
    return any(_is_same(process, path, log_dir) for path in _named_dirs(properties) for log_dir in log_dirs)


def _is_same(process: BrokerProcess, path: str, log_dir: LogDir) -> bool:
    """Whether a path of a process is the log dir. The same path may be another directory for it: where that can be seen, it decides."""
    try:
        return (process.directory / ("root" if path.startswith("/") else "cwd") / path.lstrip("/")).samefile(log_dir.path)
    except PermissionError:  # of another user's process; mostly the paths are the same
        pass
    except OSError:
        return False
    try:
        return path.startswith("/") and Path(path).samefile(log_dir.path)
    except OSError:
        return False


def ask_lock(log_dir: Path) -> DirLock:
    """Whether a process holds the lock of a log dir. In another container's file system it is seen too, if the kernel is the same.

    Asks the kernel who holds the lock of a log dir. It takes no lock, and answers at once. A broker holds an exclusive lock on the
    whole of ``.lock`` in each log dir (`FileChannel.tryLock`, in `org.apache.kafka.server.util.FileLock`, earlier
    `kafka.utils.FileLock`): in Linux a POSIX record lock. Two traps of these locks decide how they are asked. A process does not see
    its own by ``F_GETLK``; ``F_OFD_GETLK`` asks for an open file instead, which holds nothing. And to close any descriptor of a file
    ends all locks that the process has on it: so no process that reads log dirs may hold one of these.

    Raises:
        OSError: no descriptor is free. What else is in the way is part of the answer.
    """
    path = log_dir / BROKER_LOCK
    name = format_name(str(path), _NAME_LENGTH)
    try:
        with Calling(path):
            fd = open_file(path, os.O_NOFOLLOW)
            try:
                stat = os.fstat(fd)
                kind: int = _FLOCK.unpack(fcntl.fcntl(fd, fcntl.F_OFD_GETLK, _ASKED))[0]
            finally:
                os.close(fd)
    except FileNotFoundError:
        keeps, deleted = _keeps_metadata(log_dir), was_shut_down_cleanly(log_dir)
        why = "" if deleted else f"{name} does not exist"
        return DirLock(LockState.DELETED if deleted else LockState.MISSING, why=why, keeps_metadata=keeps)
    except PermissionError:
        return DirLock(LockState.UNKNOWN, why=f"{name} may not be read")
    except OSError as error:
        if is_short(error):
            raise
        return DirLock(LockState.UNKNOWN, why=f"{name} cannot be asked: {error.strerror}")
    file = (stat.st_dev, stat.st_ino)
    if kind == fcntl.F_RDLCK:
        return DirLock(LockState.UNKNOWN, file, f"{name} is held by a program that is no broker")
    if kind == fcntl.F_UNLCK:
        return DirLock(LockState.FREE, file, keeps_metadata=_keeps_metadata(log_dir))
    return DirLock(LockState.LOCKED, file)


def _keeps_metadata(log_dir: Path) -> bool:
    return written_ms(log_dir / f"{METADATA_TOPIC}-0") >= 0


def was_shut_down_cleanly(log_dir: Path) -> bool:
    """Whether the broker's last stop was an orderly one: then it writes a file, which its next start removes (`LogManager.shutdown`)."""
    path = log_dir / CLEAN_SHUTDOWN
    try:
        with Calling(path):
            return path.exists()
    except OSError:  # the log dir as a whole is read elsewhere, and errors are reported there
        return False


def last_write_ms(log_dir: Path) -> int:
    """When a broker last wrote one of the files that it writes while nothing happens, or when it ends, Unix milliseconds; -1 for never.

    Every five seconds it writes its high watermarks if it has a replica there, and twice a second its metadata log.
    """
    written = max(written_ms(log_dir / name) for name in (*OFFSET_CHECKPOINTS, CLEAN_SHUTDOWN))
    metadata = log_dir / f"{METADATA_TOPIC}-0"
    try:
        with Calling(metadata), os.scandir(metadata) as entries:
            return max([written, *(written_ms(entry) for entry in entries if entry.name.endswith(".log"))])
    except OSError:  # it is in another log dir, or this one cannot be listed, which is reported elsewhere
        return written
