"""Decides from the locks of a broker's log dirs whether its process is there, and since when, as far as the locks show it.

A broker locks ``.lock`` in each of its log dirs before it reads anything there, and lets go of it when it gives the log dir up, or ends in
an orderly way (`kafka.log.LogManager`: `lockLogDirs`, `handleLogDirFailure`, `shutdown`). Then it deletes the file, too, and
``.kafka_cleanshutdown`` stays, which its next start deletes after it has locked the log dir. So one lock that is held shows that the
process is there, and a file that was deleted in that way shows that it is not. Locks that are free show less: they are of a broker that was
killed, of a copy, or of a broker whose locks are not seen here (a file server, another kernel). So they count if one of the same files was
seen locked before, or if nothing has been written there for a minute. So does a file that is not there: a broker of any version makes
it when it starts, and a copy without the files whose names begin with a dot lacks it.

Where the lock of some log dir cannot be asked, the one with the metadata log is enough: a node that runs writes there. Another one that is
free may have been given up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

QUIET_MS = 60_000
"""A broker that runs writes into one of its log dirs much more often, and a file server shows it by then."""

_SHUTDOWN_LOOKS = 1
"""A node lets go of its locks before it has closed its metadata log: in so many looks after that, it may still be seen to grow."""

LOCKS_NOT_SEEN = "its .lock is not held, but files there change: locks are not shared with this machine"
"""Why nothing is known of a process that is there, for it writes."""

_CHANGED = "its .lock is not held, but files there were changed within the last minute"
_NEVER_WRITTEN = "its .lock is not held, and nothing shows when a broker last wrote there"
_NO_DIR = "none of its log dirs can be asked"

PATIENCE = 10
"""How many times as long an agent waits where it has seen no process end. A broker that runs writes much more often."""


class ProcessState(StrEnum):
    """Whether a broker's process is there."""

    UP = "up"
    ENDED = "ended"  # a lock was seen held, and now none is
    FREE = "free"  # no process has the log dirs, and no process writes: a stopped broker or a copy
    UNKNOWN = "unknown"


AWAY = (ProcessState.ENDED, ProcessState.FREE)
"""No process holds the log dirs."""


@dataclass(frozen=True, slots=True)
class ProcessLook:
    """What was found out about a process, and what the next look needs of it.

    ``since_ms``: when it was first seen up, after it was seen not to be, or the first look at which it had ended, Unix milliseconds, -1
    where that is not known; ``last_ms``: its last sign of life, -1 for none: the last write, or a later answer that a lock is held.
    """

    state: ProcessState = ProcessState.UNKNOWN
    why: str = _NO_DIR
    since_ms: int = -1
    last_ms: int = -1
    held: frozenset[tuple[int, int]] = frozenset()  # the files that were locked when any was
    held_ms: int = -1  # when that was last seen
    free_ms: int = -1  # when all were first seen free since then
    written_ms: int = -1  # the last write, as of the last look at which all were free
    growths: int = 0  # in how many looks since then files had changed
    grown_ms: int = -1  # when that was last so
    released_ms: int = -1  # when a lock that was held was first seen released, none is held, and others cannot be asked


NEVER_LOOKED = ProcessLook()


def look(before: ProcessLook, locks: Sequence[DirLock], written_ms: int, now_ms: int) -> ProcessLook:
    """What a look at the locks of a broker shows, after an earlier look.

    Args:
        locks: of its log dirs.
        written_ms: the last write into any of them, read after the locks were asked, Unix milliseconds, -1 if that is not known.
    """
    held = frozenset(each.file for each in locks if each.state is LockState.LOCKED and each.file is not None)
    if held:
        since_ms = now_ms if before.free_ms >= 0 else before.since_ms if before.state is ProcessState.UP else -1
        return ProcessLook(ProcessState.UP, "", since_ms, written_ms, held, now_ms)
    states = {each.state for each in locks}
    unknown = [each.why for each in locks if each.state is LockState.UNKNOWN]
    if unknown or not locks:
        why = unknown[0] if unknown else _NO_DIR
        released_ms = now_ms if before.released_ms < 0 and _is_one_released(before.held, locks) else before.released_ms
        found = replace(before, state=ProcessState.UNKNOWN, why=why, since_ms=-1, last_ms=written_ms, released_ms=released_ms)
        keeps_metadata = any(each.keeps_metadata for each in locks)
        return _free(_grown(found, written_ms, now_ms), frozenset(), now_ms) if keeps_metadata else found
    known = _grown(before, written_ms, now_ms)
    if LockState.DELETED in states:
        return _ended(known) if known.held else _nobody(known)
    return _free(known, frozenset(each.file for each in locks if each.file is not None), now_ms)


class LockState(StrEnum):
    """What the kernel answers about the lock of a log dir."""

    LOCKED = "locked"
    FREE = "free"
    DELETED = "deleted"  # by a broker that was shut down in an orderly way, and has not started since
    MISSING = "missing"  # a copy without it, given up, never used, or deleted by hand: then a broker may run all the same
    UNKNOWN = "unknown"

    @property
    def is_held_by_nobody(self) -> bool:
        """Whether there is no lock, as far as is seen."""
        return self in (LockState.FREE, LockState.DELETED, LockState.MISSING)


@dataclass(frozen=True, slots=True)
class DirLock:
    """The answer about a log dir. ``file``: device and inode of ``.lock``; ``why``: the reason where the answer is not known.

    ``keeps_metadata``: no process holds the lock, and the metadata log of its node is there.
    """

    state: LockState
    file: tuple[int, int] | None = None
    why: str = ""
    keeps_metadata: bool = False


def _is_one_released(held: frozenset[tuple[int, int]], locks: Sequence[DirLock]) -> bool:
    """Whether a lock that was held is released for sure: its file is free, or was deleted in an orderly end.

    A file that was deleted is not known by its number. But if fewer are not known than were held, one of those was.
    """
    if any(each.state is LockState.FREE and each.file in held for each in locks):
        return True
    others = sum(each.state in (LockState.MISSING, LockState.UNKNOWN) for each in locks)
    return others < len(held) and any(each.state is LockState.DELETED for each in locks)


def _free(looked: ProcessLook, files: frozenset[tuple[int, int]], now_ms: int) -> ProcessLook:
    if looked.held and looked.held <= files:
        grows = looked.growths > _SHUTDOWN_LOOKS and now_ms - looked.grown_ms < QUIET_MS
        return _unknown(looked, LOCKS_NOT_SEEN) if grows else _ended(looked)
    if looked.growths:
        return _unknown(looked, LOCKS_NOT_SEEN)
    if looked.written_ms < 0:
        return _unknown(looked, _NEVER_WRITTEN)
    if now_ms - looked.written_ms < QUIET_MS:
        return _unknown(looked, _CHANGED)
    return _nobody(looked)


def _unknown(looked: ProcessLook, why: str) -> ProcessLook:
    return replace(looked, state=ProcessState.UNKNOWN, why=why, since_ms=-1, last_ms=looked.written_ms)


def _ended(looked: ProcessLook) -> ProcessLook:
    last_ms = min(looked.free_ms, max(looked.held_ms, -1 if looked.growths else looked.written_ms))
    return replace(looked, state=ProcessState.ENDED, why="", since_ms=looked.free_ms, last_ms=last_ms)


def _nobody(looked: ProcessLook) -> ProcessLook:
    return replace(looked, state=ProcessState.FREE, why="", since_ms=-1, last_ms=looked.written_ms)


def _grown(before: ProcessLook, written_ms: int, now_ms: int) -> ProcessLook:
    """What is known of the writes since all locks were free."""
    if before.free_ms < 0:
        return replace(before, free_ms=now_ms, written_ms=written_ms, growths=0, grown_ms=-1)
    if written_ms == before.written_ms:
        return before
    return replace(before, written_ms=written_ms, growths=before.growths + 1, grown_ms=now_ms)


def lets_go(looks: Sequence[ProcessLook], *, began_ms: int, after_ms: int, now_ms: int) -> bool:
    """Whether no broker has had a process for so long, as far as is seen.

    Decides when an agent lets go of the volumes of brokers that have left them. A volume that one node may write (`ReadWriteOnce`)
    stays attached to its node as long as a pod there wants it: the agent's, too, after its broker's pod has gone to another node,
    where it cannot start then. So an agent beside such a broker ends when the broker's process has, and a pod that follows the broker
    takes its place. Locks do not show whether the broker comes back in the same pod: then the next agent is there as soon. Where no
    process was seen to end, an agent is more patient: else a broker that cannot start, or whose locks are not seen, would have one
    agent after the other. Where the lock of one log dir cannot be asked, those of the others are enough. A broker that goes on after
    it has released one has given up that log dir after an I/O error, and writes to the others every few seconds. So if one was
    released, none is held, and nothing is written any more, the agent is not more patient than where the process is known to have
    ended. Should the broker run all the same, on a log dir that cannot be read either, the agent is away for the moment until the
    next one is there.

    Args:
        looks: the last one at each broker; none if it is not known whose log dirs they are.
        began_ms: when the agent started, Unix milliseconds, as ``now_ms``.
        after_ms: how long a process that was seen to end has to be away, milliseconds.
    """
    if not looks:
        return now_ms - began_ms >= PATIENCE * after_ms
    ends = [ends_ms(each, began_ms=began_ms, after_ms=after_ms) for each in looks]
    return all(each is not None and each <= now_ms for each in ends)


def ends_ms(process: ProcessLook, *, began_ms: int, after_ms: int) -> int | None:
    """From when on a broker's process keeps no agent, if nothing else is seen until then, Unix milliseconds; None while it is there."""
    match process.state:
        case ProcessState.UP:
            return None
        case ProcessState.ENDED:
            return process.since_ms + after_ms
        case _ if process.released_ms >= 0:
            return max(process.released_ms, process.last_ms) + after_ms
        case _:
            return max(began_ms, process.last_ms) + PATIENCE * after_ms
