"""The checkpoint: everything that a job keeps, in one directory with one holder; and its repair after a loss of power."""

from __future__ import annotations

import contextlib
import fcntl
import json
import logging
import os
import re
import time
import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Literal

from streaming.broker.disk.availability import LogDir
from streaming.broker.disk.logdirs import list_partitions
from streaming.broker.protocol.status_messages import Status
from streaming.common import whole_files
from streaming.common.option_types import AUTO
from streaming.common.whole_files import write_whole
from streaming.errors import CheckpointError
from streaming.kafka.formats.properties import known_clusters

log = logging.getLogger(__name__)

_VERSION = re.compile(r"v\d+")

_NONE = "-"
"""The line for a source that has no offset."""

_ROOM = 2
"""A cluster grows, but the number of shards does not: it is chosen for so many times the logs that are there at first."""

_SHARDS = ((10_000, 4), (40_000, 16))
_MOST = 64

VERSION = 2
"""The version of what a job keeps."""

JVM_WAIT_SECONDS = 60.0
"""How long to wait for the JVM of a killed job: it ends when it notices that the job is gone."""

_JVM_POLL_SECONDS = 0.1


class Checkpoint:
    """A checkpoint that is held by this process until `close`."""

    def __init__(self, directory: Path, cluster_id: str, state_shards: int | Literal["auto"], logs: Callable[[], int] = lambda: 0) -> None:
        """Open a checkpoint or make one.

        Args:
            state_shards: for a new checkpoint; "auto" chooses by the number of logs.
            logs: returns the number of logs; called only for a new checkpoint with "auto".

        Raises:
            CheckpointError: it belongs to another cluster, is held by another job, or cannot be written, understood or repaired.
        """
        self.directory = directory.absolute()
        self.new = not (self.directory / "job.json").exists()
        """Whether it was created just now."""
        with contextlib.ExitStack() as held:
            try:
                whole_files.make(self.directory)
                self._hold(self.directory / "job.lock", 0.0, held)
                self.spark_lock_fd = self._hold(self.directory / "spark.lock", JVM_WAIT_SECONDS, held)
            except OSError as error:
                raise CheckpointError(
                    f"checkpoint {self.directory} cannot be written: {error}; name another with --checkpoint DIR"
                ) from error
            self.identity = self._identify(cluster_id, state_shards, logs)
            repair(self.spark)
            self._held = held.pop_all()

    def _hold(self, path: Path, seconds: float, held: contextlib.ExitStack) -> int:
        """Lock a file, and wait at most ``seconds`` for that. Only a child that gets the descriptor explicitly inherits it."""
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        held.callback(os.close, fd)
        deadline = time.monotonic() + seconds
        while True:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return fd
            except BlockingIOError as error:
                if time.monotonic() >= deadline:
                    raise CheckpointError(
                        f"checkpoint {self.directory} is in use by another job: stop it, or name another with --checkpoint DIR"
                    ) from error
                time.sleep(_JVM_POLL_SECONDS)

    def _identify(self, cluster_id: str, state_shards: int | Literal["auto"], logs: Callable[[], int]) -> JobIdentity:
        path = self.directory / "job.json"
        try:
            identity = JobIdentity(**json.loads(path.read_text()))
        except FileNotFoundError:
            if self.resumed:
                raise CheckpointError(
                    f"checkpoint {self.directory} has lost its job.json: restore it, or delete the directory to begin anew"
                ) from None
            shards = shards_for(logs()) if state_shards == AUTO else state_shards
            return self._make(path, JobIdentity(VERSION, str(uuid.uuid4()), cluster_id, shards))
        except (ValueError, TypeError) as error:
            raise CheckpointError(f"{path} is not valid ({error}): restore it, or delete the directory to begin anew") from error
        if identity.version != VERSION:
            raise CheckpointError(
                f"checkpoint {self.directory} is of version {identity.version}, this segtail reads {VERSION}: "
                "use the segtail that wrote it, or name another with --checkpoint DIR"
            )
        if len(known_clusters((identity.cluster_id, cluster_id))) > 1:
            raise CheckpointError(
                f"checkpoint {self.directory} belongs to cluster {identity.cluster_id}, the log dirs or agents to {cluster_id}: "
                "name another with --checkpoint DIR"
            )
        if state_shards not in (AUTO, identity.state_shards):
            log.warning("state_shards is fixed by the checkpoint", extra={"checkpoint": identity.state_shards, "setting": state_shards})
        if cluster_id and not identity.cluster_id:  # its brokers were of before 2.4, and are no more
            return self._make(path, replace(identity, cluster_id=cluster_id))
        return identity

    @staticmethod
    def _make(path: Path, identity: JobIdentity) -> JobIdentity:
        write_whole(path, json.dumps(asdict(identity)).encode())
        return identity

    @property
    def spark(self) -> Path:
        """Spark's own checkpoint."""
        return self.directory / "spark"

    @property
    def agent(self) -> Path:
        """What the job's own agent may keep, and how it is reached."""
        return self.directory / "agent"

    @property
    def address_file(self) -> Path:
        """The file with the address on which the job's own agent listens."""
        return self.agent / "address"

    @property
    def agent_token_file(self) -> Path:
        """The file with the token of the job's own agent."""
        return self.agent / "token"

    @property
    def checks(self) -> Path:
        """The file in which the source stores when it checked for work."""
        return self.directory / "checks"

    @property
    def counted(self) -> Path:
        """The file in which the job says what it has counted."""
        return self.directory / "counted"

    @property
    def schedule(self) -> Path:
        """The file that defines when the source checks for work."""
        return self.directory / "schedule"

    @property
    def history(self) -> Path:
        """The file with what the job has seen."""
        return self.directory / "history"

    @property
    def planned(self) -> int:
        """The last micro-batch that was planned with it, which may have to be run again; -1 if none ever was."""
        with contextlib.suppress(FileNotFoundError):
            return max((int(entry.name) for entry in (self.spark / "offsets").iterdir() if entry.name.isdigit()), default=-1)
        return -1

    @property
    def resumed(self) -> bool:
        """Whether a micro-batch was ever planned with it."""
        return self.planned >= 0

    def close(self) -> None:
        """Release it. Another job can hold it as soon as Spark's JVM has released it too."""
        self._held.close()


def repair(spark: Path) -> None:
    """Repair what can be repaired without changing a number; if nothing is damaged, nothing is done.

    A damaged commit is removed: its micro-batch is run again by the same plan, and absolute values stay what they are. A damaged plan is
    removed if it was the last one and is not committed: what is planned next follows what the states have counted.

    Args:
        spark: Spark's part of a checkpoint, which need not exist.

    Raises:
        CheckpointError: the last plan is damaged and committed, so it is not known where the next one begins.
        OSError: a file cannot be read or removed.
    """
    commit, plan = newest(spark / "commits"), newest(spark / "offsets")
    if commit is not None and not is_whole(commit):
        _remove(commit, "the micro-batch is run once more")
        commit = newest(spark / "commits")
    if plan is not None and not is_whole(plan):
        if commit is not None and int(commit.name) >= int(plan.name):
            raise CheckpointError(
                f"{plan} is damaged, so the job's position is lost: restore the checkpoint, or delete {spark.parent} to begin anew"
            )
        _remove(plan, "the micro-batch is planned again")


def newest(directory: Path) -> Path | None:
    """The file of the last micro-batch in a directory of plans or commits, None if there is none."""
    if not directory.is_dir():
        return None
    found = [path for path in directory.iterdir() if path.name.isdigit()]
    return max(found, key=lambda path: int(path.name), default=None)


def is_whole(path: Path) -> bool:
    """Whether a plan or commit is not cut off."""
    version, *lines = path.read_bytes().decode(errors="replace").splitlines() or [""]
    if not _VERSION.fullmatch(version) or not lines:
        return False
    try:
        for line in lines:
            if line != _NONE:
                json.loads(line)
    except ValueError:
        return False
    return True


def _remove(path: Path, what_follows: str) -> None:
    log.warning("a file of the checkpoint is cut off and is removed: %s", what_follows, extra={"path": str(path)})
    path.unlink()
    path.with_name(f".{path.name}.crc").unlink(missing_ok=True)


@dataclass(frozen=True, slots=True)
class JobIdentity:
    """The identity of the job, as long as its checkpoint exists. ``state_shards`` cannot change: a log's shard is part of the state.

    How many shards a new checkpoint's state has: few, because each costs time in a micro-batch; more if one would hold too many logs.
    A shard that changes is written as a whole, about 0.7 KB per log, whatever has changed in it. Whatever it holds, it also takes 1.3
    ms of a micro-batch, and Spark needs as much again. Between 1,000 and 2,500 logs per shard both costs stay small.

    ``cluster_id``: "" not known, as of brokers before 2.4.
    """

    version: int
    job_id: str
    cluster_id: str
    state_shards: int


def shards_for(logs: int) -> int:
    """The shards of a state that begins with so many logs."""
    return next((shards for most, shards in _SHARDS if _ROOM * logs <= most), _MOST)


def logs_in(log_dirs: Iterable[LogDir]) -> int:
    """How many logs are in these log dirs; a log dir that cannot be read counts as empty."""
    found = 0
    for log_dir in log_dirs:
        try:
            found += len(list_partitions(log_dir, lambda _: ""))
        except OSError as error:
            log.warning("log dir is not counted when the state's shards are chosen", extra={"log_dir": log_dir.path, "error": str(error)})
    return found


def logs_of(answers: Sequence[Status], addresses: int) -> int:
    """How many logs the agents at all ``addresses`` watch. Those that have not answered are assumed to have as many each as the others."""
    return sum(each.logs for each in answers) * max(addresses, len(answers)) // max(1, len(answers))


def cluster_of_checkpoint(directory: Path) -> str:
    """The cluster that a checkpoint belongs to, "" if there is none yet. Opening a checkpoint that is not understood reports the error."""
    try:
        return str(json.loads((directory / "job.json").read_text())["cluster_id"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""
