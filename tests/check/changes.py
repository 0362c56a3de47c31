"""Which files differ from main, by git: committed, not committed yet, and not added yet."""

import subprocess
from collections.abc import Sequence
from pathlib import Path

MAINS = ("origin/main", "main")
"""Where a branch begins; the first that there is."""


class NoGitError(Exception):
    """There is nothing to compare with; the message says why."""


def since_main(root: Path, base: str = "") -> tuple[str, ...]:
    """Paths of the changed files under ``root``, sorted; ``base`` names another commit than where the branch left main.

    Files that were deleted are among them.
    """
    start = base or _fork(root)
    changed = _git(root, "diff", "--name-only", "--no-renames", "-z", start, "--")
    added = _git(root, "ls-files", "--others", "--exclude-standard", "-z")
    return tuple(sorted({*changed, *added}))


def _fork(root: Path) -> str:
    for main in MAINS:
        try:
            (found,) = _git(root, "merge-base", "HEAD", main)
        except NoGitError:
            continue
        return found.strip()
    raise NoGitError(f"git knows none of {', '.join(MAINS)} here")


def _git(root: Path, *arguments: str) -> Sequence[str]:
    try:
        done = subprocess.run(["git", "-C", root, *arguments], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise NoGitError("there is no git") from None
    if done.returncode:
        raise NoGitError(done.stderr.strip())
    return [part for part in done.stdout.split("\0") if part]
