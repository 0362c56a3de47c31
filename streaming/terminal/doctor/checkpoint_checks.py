"""Checks of what a job keeps: space for the checkpoint, the checkpoint itself, and who holds it."""

import json
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from streaming.common.units import format_size
from streaming.kafka.formats.properties import known_clusters
from streaming.spark.job.checkpoint import VERSION as CHECKPOINT_VERSION
from streaming.spark.job.checkpoint import JobIdentity, is_whole, newest
from streaming.terminal.doctor.diagnosis import Diagnosis, Outcome, Setup, quoted

_LOCKS = Path("/proc/locks")
_LINE = re.compile(r"^\d+: FLOCK +\S+ +\S+ +(-?\d+) ([0-9a-f]+):([0-9a-f]+):(\d+) ", re.MULTILINE)

_SPACE = "space"
_LEAST = 64 << 20

_CHECKPOINT = "checkpoint"


def check_checkpoint(setup: Setup) -> Iterator[Diagnosis]:
    """Read the checkpoint without taking its lock or repairing it.

    Finds whether a job can go on with this checkpoint: its identity, its cluster, its holder, Spark's last plan.
    """
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


def _read(path: Path) -> JobIdentity:
    return JobIdentity(**json.loads(path.read_text()))


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


def holder_of(path: Path, locks: Path = _LOCKS) -> int | None:
    """The id of the process that holds a file's lock, 0 if no process does, -1 if it is of another container.

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


def check_space(setup: Setup) -> Iterator[Diagnosis]:
    """Look at the file system of the checkpoint, or of the directory in which it would be made."""
    checkpoint = setup.settings.checkpoint.absolute()
    if not (
        setup.is_of_job or "checkpoint" in setup.given or os.path.lexists(checkpoint)
    ):  # the default of a job does not matter where no job runs
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
    free = shutil.disk_usage(place).free
    what = f"{format_size(free)} are free for the checkpoint {checkpoint}"
    if free < _LEAST:
        yield Diagnosis(
            check=_SPACE,
            state=Outcome.FAULT,
            what=what,
            command=f"segtail run --checkpoint {quoted(_elsewhere(place))} ...",
        )
        return
    yield Diagnosis(check=_SPACE, state=Outcome.FINE, what=what)


def _elsewhere(place: Path) -> Path:
    """The example of a directory on another disk."""
    return Path("/var/lib/segtail") if not place.is_relative_to("/var/lib/segtail") else Path("/srv/segtail")
