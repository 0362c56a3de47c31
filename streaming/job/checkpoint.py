"""The checkpoint: everything that a job keeps, in one directory with one holder.

``job.json`` says whose it is; ``spark/`` holds Spark's offsets and state; ``agent/`` the journal of the job's own agent and its address; ``java/`` a
wrapper where the Java comes from PyPI.
"""

import contextlib
import fcntl
import json
import logging
import os
import uuid
from dataclasses import asdict, dataclass
from pathlib import Path

from streaming.errors import CheckpointError

log = logging.getLogger(__name__)

_VERSION = 1


@dataclass(frozen=True, slots=True)
class Identity:
    """Who the job is, for as long as its checkpoint lives. ``state_shards`` cannot change: a log's shard is part of the state."""

    version: int
    job_id: str
    cluster_id: str
    state_shards: int


class Checkpoint:
    """A checkpoint that is held by this process until `close`."""

    def __init__(self, directory: Path, cluster_id: str, state_shards: int) -> None:
        """Open a checkpoint or make one.

        Raises:
            CheckpointError: it belongs to another cluster, is held by another job, or cannot be written or understood.
        """
        self.directory = directory.absolute()
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            self._lock_fd = self._hold(self.directory / "job.lock")
        except OSError as error:
            raise CheckpointError(f"checkpoint {self.directory} cannot be written: {error}; name another with --checkpoint DIR") from error
        try:
            self.identity = self._identify(cluster_id, state_shards)
        except BaseException:
            os.close(self._lock_fd)
            raise

    def _hold(self, path: Path) -> int:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(fd)
            raise CheckpointError(
                f"checkpoint {self.directory} is in use by another job: stop it, or name another with --checkpoint DIR"
            ) from error
        return fd

    def _identify(self, cluster_id: str, state_shards: int) -> Identity:
        path = self.directory / "job.json"
        try:
            identity = Identity(**json.loads(path.read_text()))
        except FileNotFoundError:
            if self.resumed:
                raise CheckpointError(
                    f"checkpoint {self.directory} has lost its job.json: restore it, or delete the directory to begin anew"
                ) from None
            return self._make(path, Identity(_VERSION, str(uuid.uuid4()), cluster_id, state_shards))
        except (ValueError, TypeError) as error:
            raise CheckpointError(f"{path} is not valid ({error}): restore it, or delete the directory to begin anew") from error
        if identity.version != _VERSION:
            raise CheckpointError(f"checkpoint {self.directory} is of version {identity.version}, this segtail reads {_VERSION}")
        if identity.cluster_id != cluster_id:
            raise CheckpointError(
                f"checkpoint {self.directory} belongs to cluster {identity.cluster_id}, the log dirs to {cluster_id}: "
                "name another with --checkpoint DIR"
            )
        if identity.state_shards != state_shards:
            log.warning("state_shards is fixed by the checkpoint", extra={"checkpoint": identity.state_shards, "setting": state_shards})
        return identity

    @staticmethod
    def _make(path: Path, identity: Identity) -> Identity:
        temporary = path.with_suffix(".tmp")
        with temporary.open("w") as file:
            json.dump(asdict(identity), file)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        return identity

    @property
    def spark(self) -> Path:
        """Spark's own checkpoint."""
        return self.directory / "spark"

    @property
    def agent(self) -> Path:
        """The journal of the job's own agent."""
        return self.directory / "agent"

    @property
    def address_file(self) -> Path:
        """Where the job's own agent says at which address it listens."""
        return self.agent / "address"

    @property
    def java(self) -> Path:
        """Room for a wrapper around a Java that comes from PyPI."""
        return self.directory / "java"

    @property
    def resumed(self) -> bool:
        """Whether a micro-batch was ever planned with it."""
        with contextlib.suppress(FileNotFoundError):
            return any(entry.name.isdigit() for entry in (self.spark / "offsets").iterdir())
        return False

    def close(self) -> None:
        """Let another job have it."""
        os.close(self._lock_fd)
