"""Repairs Spark's plans and commits in a checkpoint after a loss of power: the newest ones may be cut off or empty.

Spark writes ``offsets/N`` before micro-batch N and ``commits/N`` after it, with a version in the first line and JSON in the others
(`HDFSMetadataLog`). It refuses to start if a file is cut off, and does not always report which one.
"""

import json
import logging
import re
from pathlib import Path

from streaming.errors import CheckpointError

log = logging.getLogger(__name__)

_VERSION = re.compile(r"v\d+")
_NONE = "-"
"""The line for a source that has no offset."""


def repair(spark: Path) -> None:
    """Repair what can be repaired without changing a number; if nothing is damaged, nothing is done.

    A damaged commit is removed: its micro-batch is run again by the same plan, and absolute values stay what they are. A damaged plan is
    removed if it was the last one and is not committed: agents can still send all of it again, because they got no commit for it.

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
        _remove(plan, "the micro-batch is planned anew")


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
