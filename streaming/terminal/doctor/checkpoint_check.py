"""Finds whether a job can go on with this checkpoint: its identity, its cluster, its holder, Spark's last plan."""

import json
from collections.abc import Iterator
from pathlib import Path

from streaming.kafka.formats.properties import known_clusters
from streaming.spark.job.checkpoint import VERSION, JobIdentity, is_whole, newest
from streaming.terminal.doctor.diagnosis import Diagnosis, Outcome, Setup, quoted
from streaming.terminal.doctor.locks import holder_of

_CHECK = "checkpoint"


def check(setup: Setup) -> Iterator[Diagnosis]:
    """Read the checkpoint without taking its lock or repairing it."""
    directory = setup.settings.checkpoint.absolute()
    try:
        if not directory.exists() or not any(directory.iterdir()):
            yield Diagnosis(check=_CHECK, state=Outcome.NOT_APPLICABLE, what=f"there is no checkpoint in {directory} yet")
            return
        yield from _identity(directory, setup)
        yield from _plans(directory)
    except PermissionError as error:
        yield Diagnosis(
            check=_CHECK,
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
            yield Diagnosis(check=_CHECK, state=Outcome.FAULT, what=what, command=anew)
        return
    except (ValueError, TypeError) as error:
        what = f"{path} is damaged ({error}): restore it, or put the directory aside to begin anew"
        yield Diagnosis(check=_CHECK, state=Outcome.FAULT, what=what, command=anew)
        return
    if identity.version != VERSION:
        what = f"{directory} is of version {identity.version}, this segtail reads {VERSION}: use the segtail that wrote it"
        yield Diagnosis(check=_CHECK, state=Outcome.FAULT, what=what, command=anew)
        return
    cluster = setup.log_dirs.cluster_id if setup.log_dirs is not None else ""
    if len(known_clusters((cluster, identity.cluster_id))) > 1:
        yield Diagnosis(
            check=_CHECK,
            state=Outcome.FAULT,
            what=f"{directory} belongs to cluster {identity.cluster_id}, the log dirs to {cluster}: a job needs another checkpoint",
            command=f"segtail run --checkpoint {quoted(f'{directory}-{cluster}')} ...",
        )
        return
    of = f"cluster {identity.cluster_id}" if identity.cluster_id else "a cluster whose id is not known"
    yield Diagnosis(check=_CHECK, state=Outcome.FINE, what=f"{directory} belongs to {of}, and can be read")


def _plans(directory: Path) -> Iterator[Diagnosis]:
    spark = directory / "spark"
    commit, plan = newest(spark / "commits"), newest(spark / "offsets")
    if plan is not None and not is_whole(plan):
        if commit is not None and int(commit.name) >= int(plan.name):
            yield Diagnosis(
                check=_CHECK,
                state=Outcome.FAULT,
                what=f"{plan} is damaged, so the position of the job is lost: restore the checkpoint, or put it aside to begin anew",
                command=f"mv {quoted(directory)} {quoted(f'{directory}.damaged')}",
            )
            return
        yield Diagnosis(check=_CHECK, state=Outcome.WARNING, what=f"{plan} is cut off: the next start plans the micro-batch anew")
    elif commit is not None and not is_whole(commit):
        yield Diagnosis(check=_CHECK, state=Outcome.WARNING, what=f"{commit} is cut off: the next start runs the micro-batch once more")


def _holder(directory: Path) -> Diagnosis:
    holders = [holder_of(directory / name) for name in ("job.lock", "spark.lock")]
    if None in holders:
        return Diagnosis(check=_CHECK, state=Outcome.UNKNOWN, what=f"the kernel does not tell whether a job holds {directory}")
    held = next((each for each in holders if each), 0)
    if not held:
        return Diagnosis(check=_CHECK, state=Outcome.FINE, what=f"no job holds {directory}")
    who = f"process {held}" if held else "a process of another container"
    return Diagnosis(check=_CHECK, state=Outcome.FINE, what=f"{who} holds {directory}: a job runs with it, and a second one cannot")
