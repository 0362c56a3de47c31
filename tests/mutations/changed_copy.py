"""A copy of the tree in which one line at a time is changed. The tree itself stays as it is."""

import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.mutations.table import Mutation

_LEFT_OUT = shutil.ignore_patterns(
    ".git", ".venv", ".hypothesis", ".mypy_cache", ".pytest_cache", ".ruff_cache", "build", "checkpoints", "dist", "node_modules"
)

_PATIENCE_S = 1_800
"""What takes longer hangs because of the change."""

_SUMMARY = "= short test summary info ="

FAST = "not spark and not programs and not live and not image"
"""Those that `make fast` has."""


class StaleError(Exception):
    """The line that a mutation changes is not in its file, or is there more than once."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What pytest found. ``killer``: the test that failed, or what else shows that something is wrong; "" if all tests passed."""

    passed: bool
    killer: str
    output: str


def mutated(source: str, mutation: Mutation) -> str:
    """The source of a module with the mutation's line changed.

    Raises:
        StaleError: the line is not there exactly once.
    """
    lines = source.split("\n")
    found = [
        number
        for number, line in enumerate(lines)
        if line.strip() == mutation.before and (not mutation.under or lines[number - 1].strip() == mutation.under)
    ]
    if len(found) != 1:
        raise StaleError(f"{mutation.file} has {len(found)} lines {mutation.before!r}")
    indent = lines[found[0]].partition(mutation.before)[0]
    lines[found[0]] = indent + mutation.after
    return "\n".join(lines)


class ChangedCopy:
    """A copy of a tree that has ``streaming`` and ``tests``, and pytest in it."""

    def __init__(self, tree: Path, directory: Path) -> None:
        self._root = directory / "tree"
        shutil.copytree(tree, self._root, ignore=_LEFT_OUT, symlinks=True)
        found = self._run("-c", "import streaming; print(streaming.__file__)").stdout.strip()
        if Path(found) != self._root / "streaming" / "__init__.py":
            raise RuntimeError(f"tests in {self._root} would run the code of {found}")

    @contextmanager
    def changed(self, mutation: Mutation) -> Iterator[None]:
        """Has the mutation's line changed. Raises StaleError."""
        path = self._root / mutation.file
        before = path.read_text()
        self._write(path, mutated(before, mutation))
        try:
            yield
        finally:
            self._write(path, before)

    def test(self, files: tuple[str, ...]) -> Outcome:
        """Runs the fast tests of some files up to the first that fails.

        Raises:
            RuntimeError: pytest did not get as far as a test that passes or fails.
        """
        try:
            ended = self._run("-m", "pytest", "-x", "-q", "--tb=short", "-rfE", "-p", "no:cacheprovider", "-m", FAST, "--", *files)
        except subprocess.TimeoutExpired:
            return Outcome(False, f"no end within {_PATIENCE_S} s", "")
        if ended.returncode == 0:
            return Outcome(True, "", ended.stdout)
        summary = ended.stdout.rpartition(_SUMMARY)[2]  # lines of a log begin with ERROR, too
        words = [line.split() for line in summary.splitlines() if line.startswith(("FAILED ", "ERROR "))]
        if ended.returncode not in (1, 2) or not words:
            raise RuntimeError(f"pytest ended with {ended.returncode}:\n{ended.stdout[-2000:]}{ended.stderr[-2000:]}")
        return Outcome(False, words[0][1], ended.stdout)

    @staticmethod
    def _write(path: Path, source: str) -> None:
        """Writes a module, and drops what Python compiled of it: two sources of one second and one length look the same to it."""
        path.write_text(source)
        Path(importlib.util.cache_from_source(str(path))).unlink(missing_ok=True)

    def _run(self, *words: str) -> subprocess.CompletedProcess[str]:
        command, environment = [sys.executable, *words], self._environment()
        return subprocess.run(command, cwd=self._root, env=environment, capture_output=True, text=True, check=False, timeout=_PATIENCE_S)

    def _environment(self) -> Mapping[str, str]:
        """What is imported comes from the copy in all processes, not from the tree that is installed."""
        return {**os.environ, "PYTHONPATH": str(self._root), "PYTEST_ADDOPTS": ""}
