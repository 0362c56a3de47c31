"""Checks of what a job keeps: space for the checkpoint, the checkpoint itself, its journal, and who holds them."""

import json
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from streaming.broker.journal.database import VERSION as JOURNAL_VERSION
from streaming.common.units import format_size
from streaming.kafka.formats.properties import known_clusters
from streaming.spark.job.checkpoint import VERSION as CHECKPOINT_VERSION
from streaming.spark.job.checkpoint import JobIdentity, is_whole, newest
from streaming.terminal.doctor.diagnosis import Diagnosis, Outcome, Setup, quoted

_LOCKS = Path("/proc/locks")
_LINE = re.compile(r"^\d+: FLOCK +\S+ +\S+ +(-?\d+) ([0-9a-f]+):([0-9a-f]+):(\d+) ", re.MULTILINE)


def holder_of(path: Path, locks: Path = _LOCKS) -> int | None:
    """The id of the process that holds a file's lock, 0 if nobody does, -1 if it is of another container.

    None if the kernel does not show it.
    """
    try:
        found = path.stat()
    except FileNotFoundError:
        return 0
    except OSError:
        return None
    try:
        text = locks.read_text()
    except OSError:
        return None
    for pid, major, minor, inode in _LINE.findall(text):
        device = os.makedev(int(major, 16), int(minor, 16))
        if int(inode) == found.st_ino and device == found.st_dev:
            return int(pid) if int(pid) > 0 else -1
    return 0


_SPACE = "space"
_LEAST = 64 << 20


def check_space(setup: Setup) -> Iterator[Diagnosis]:
    """Look at the file system of the checkpoint, or of the directory in which it would be made."""
    checkpoint = setup.settings.checkpoint.absolute()
    if not (
        setup.is_of_job or "checkpoint" in setup.given or os.path.lexists(checkpoint)
    ):  # what is only the default of a job that nobody runs here is no matter
        yield Diagnosis(check=_SPACE, state=Outcome.NOT_APPLICABLE, what="these are not the settings of a job: give its --checkpoint")
        return
    place = next(each for each in (checkpoint, *checkpoint.parents) if os.path.isdir(each))  # noqa: PTH112  # also where it may not look
    if not os.access(place, os.W_OK | os.X_OK):
        yield Diagnosis(
            check=_SPACE,
            state=Outcome.FAULT,
            what=f"{place} may not be written to, and the checkpoint {checkpoint} is there",
            command=f"sudo install -d -o {os.geteuid()} {quoted(checkpoint)}",
        )
        return
    free, most = shutil.disk_usage(place).free, setup.settings.journal_max_bytes
    what = f"{format_size(free)} are free for the checkpoint {checkpoint}, and its journal takes up to {format_size(most)}"
    if free < most:
        yield Diagnosis(
            check=_SPACE,
            state=Outcome.FAULT if free < _LEAST else Outcome.WARNING,
            what=what,
            command=f"segtail run --checkpoint {quoted(_elsewhere(place))} ...",
        )
        return
    yield Diagnosis(check=_SPACE, state=Outcome.FINE, what=what)


def _elsewhere(place: Path) -> Path:
    """The example of a directory on another disk."""
    return Path("/var/lib/segtail") if not place.is_relative_to("/var/lib/segtail") else Path("/srv/segtail")


# --- finds whether a job can go on with this checkpoint: its identity, its cluster, its holder, Spark's last plan.


_CHECKPOINT = "checkpoint"


def check_checkpoint(setup: Setup) -> Iterator[Diagnosis]:
    """Read the checkpoint without taking its lock or repairing it."""
    directory = setup.settings.checkpoint.absolute()
    try:
        if not directory.exists() or not any(directory.iterdir()):
            yield Diagnosis(check=_CHECKPOINT, state=Outcome.NOT_APPLICABLE, what=f"there is no checkpoint in {directory} yet")
            return
        yield from _identity(directory, setup)
        yield from _plans(directory)
    except PermissionError as error:
        yield Diagnosis(
            check=_CHECKPOINT,
            state=Outcome.FAULT,
            what=f"{error.filename} may not be read",
            command=f'sudo chown -R "$(id -u)" {quoted(directory)}',
        )
        return
    yield _holder(directory)


def job_id_of(directory: Path) -> str:
    """The id of the checkpoint's job, "" if there is none that can be read."""
    try:
        return _read(directory / "job.json").job_id
    except (OSError, ValueError, TypeError):
        return ""


def _read(path: Path) -> JobIdentity:
    return JobIdentity(**json.loads(path.read_text()))


def _identity(directory: Path, setup: Setup) -> Iterator[Diagnosis]:
    path, anew = directory / "job.json", f"mv {quoted(directory)} {quoted(f'{directory}.damaged')}"
    try:
        identity = _read(path)
    except FileNotFoundError:
        if newest(directory / "spark" / "offsets") is not None:
            what = f"{directory} has lost its job.json: restore it, or put the directory aside to begin anew"
            yield Diagnosis(check=_CHECKPOINT, state=Outcome.FAULT, what=what, command=anew)
        return
    except (ValueError, TypeError) as error:
        what = f"{path} is damaged ({error}): restore it, or put the directory aside to begin anew"
        yield Diagnosis(check=_CHECKPOINT, state=Outcome.FAULT, what=what, command=anew)
        return
    if identity.version != CHECKPOINT_VERSION:
        what = f"{directory} is of version {identity.version}, this segtail reads {CHECKPOINT_VERSION}: use the segtail that wrote it"
        yield Diagnosis(check=_CHECKPOINT, state=Outcome.FAULT, what=what, command=anew)
        return
    cluster = setup.log_dirs.cluster_id if setup.log_dirs is not None else ""
    if len(known_clusters((cluster, identity.cluster_id))) > 1:
        yield Diagnosis(
            check=_CHECKPOINT,
            state=Outcome.FAULT,
            what=f"{directory} belongs to cluster {identity.cluster_id}, the log dirs to {cluster}: a job needs another checkpoint",
            command=f"segtail run --checkpoint {quoted(f'{directory}-{cluster}')} ...",
        )
        return
    of = f"cluster {identity.cluster_id}" if identity.cluster_id else "a cluster whose id is not known"
    yield Diagnosis(check=_CHECKPOINT, state=Outcome.FINE, what=f"{directory} belongs to {of}, and can be read")


def _plans(directory: Path) -> Iterator[Diagnosis]:
    spark = directory / "spark"
    commit, plan = newest(spark / "commits"), newest(spark / "offsets")
    if plan is not None and not is_whole(plan):
        if commit is not None and int(commit.name) >= int(plan.name):
            yield Diagnosis(
                check=_CHECKPOINT,
                state=Outcome.FAULT,
                what=f"{plan} is damaged, so the position of the job is lost: restore the checkpoint, or put it aside to begin anew",
                command=f"mv {quoted(directory)} {quoted(f'{directory}.damaged')}",
            )
            return
        yield Diagnosis(check=_CHECKPOINT, state=Outcome.WARNING, what=f"{plan} is cut off: the next start plans the micro-batch anew")
    elif commit is not None and not is_whole(commit):
        yield Diagnosis(
            check=_CHECKPOINT, state=Outcome.WARNING, what=f"{commit} is cut off: the next start runs the micro-batch once more"
        )


def _holder(directory: Path) -> Diagnosis:
    holders = [holder_of(directory / name) for name in ("job.lock", "spark.lock")]
    if None in holders:
        return Diagnosis(check=_CHECKPOINT, state=Outcome.UNKNOWN, what=f"the kernel does not tell whether a job holds {directory}")
    held = next((each for each in holders if each), 0)
    if not held:
        return Diagnosis(check=_CHECKPOINT, state=Outcome.FINE, what=f"no job holds {directory}")
    who = f"process {held}" if held else "a process of another container"
    return Diagnosis(check=_CHECKPOINT, state=Outcome.FINE, what=f"{who} holds {directory}: a job runs with it, and a second one cannot")


_JOURNAL = "journal"
_MAGIC = b"SQLite format 3\0"
_VERSION_AT = 60
"""Where SQLite keeps ``user_version`` in the first page (https://www.sqlite.org/fileformat.html, 1.3), big-endian."""

_HEADER_BYTES = 100


def check_journal(setup: Setup) -> Iterator[Diagnosis]:
    """Read the header of the file alone: SQLite itself would write beside a file that it opens."""
    directory = setup.settings.checkpoint.absolute() / "agent"
    path = directory / "journal.db"
    try:
        with path.open("rb") as file:
            header = file.read(_HEADER_BYTES)
        size = path.stat().st_size
    except FileNotFoundError:
        yield Diagnosis(check=_JOURNAL, state=Outcome.NOT_APPLICABLE, what=f"there is no journal in {directory} yet")
        return
    except PermissionError:
        command = f'sudo chown -R "$(id -u)" {quoted(directory)}'
        yield Diagnosis(check=_JOURNAL, state=Outcome.FAULT, what=f"{path} may not be read", command=command)
        return
    yield _version(path, header, size, setup.settings.journal_max_bytes)
    holder = holder_of(directory / "journal.lock")
    if holder is None:
        yield Diagnosis(check=_JOURNAL, state=Outcome.UNKNOWN, what=f"the kernel does not tell whether an agent holds {path}")
    elif holder:
        who = f"process {holder}" if holder > 0 else "a process of another container"
        yield Diagnosis(check=_JOURNAL, state=Outcome.FINE, what=f"{who} holds {path}: an agent runs with it, and a second one cannot")


def _version(path: Path, header: bytes, size: int, most: int) -> Diagnosis:
    aside = f"mv {quoted(path.parent)} {quoted(f'{path.parent}.damaged')}"
    if len(header) < _HEADER_BYTES or not header.startswith(_MAGIC):
        what = f"{path} is damaged: put its directory aside; what the job has counted stays counted once"
        return Diagnosis(check=_JOURNAL, state=Outcome.FAULT, what=what, command=aside)
    version = int.from_bytes(header[_VERSION_AT : _VERSION_AT + 4])
    if version not in (0, JOURNAL_VERSION):  # 0: its first transaction is not in the file itself yet
        needed = "use the segtail that wrote it, or put its directory aside"
        what = f"{path} is of version {version}, this segtail reads {JOURNAL_VERSION}: {needed}"
        return Diagnosis(check=_JOURNAL, state=Outcome.FAULT, what=what, command=aside)
    if size > most:
        what = f"{path} has {format_size(size)}, more than journal_max_bytes, {format_size(most)}: the next start of its agent trims it"
        return Diagnosis(check=_JOURNAL, state=Outcome.WARNING, what=what)
    return Diagnosis(
        check=_JOURNAL, state=Outcome.FINE, what=f"{path} is of version {version or JOURNAL_VERSION} and has {format_size(size)}"
    )
