"""Tries changes of one line: pytest collects once, and each change is made and tested in a fork of that process.

A first fork sees which tests reach the changed functions; these run first, then the others of their files. A change outside of functions,
or of what runs while modules are imported, is tested in a fork that has imported nothing of this checkout yet.
"""

import ast
import builtins
import gc
import importlib.abc
import importlib.machinery
import importlib.util
import json
import os
import resource
import select
import signal
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import pytest
from _pytest.main import Session, pytest_runtestloop

from tests.mutations.mutant import ROOT, Mutant

STARTING_NOTHING = "not first and not spark and not programs and not live and not image"
_LEAST_PATIENCE_S = 60
_PATIENCE = 10
_MEMORY = 16 << 30
"""A change may make a loop that never ends, and takes memory until then."""


@dataclass(frozen=True, slots=True)
class Result:
    """``found`` names the test that fails for the change; "" where none does."""

    mutant: Mutant
    found: str
    seconds: float


class BrokenTestsError(Exception):
    """Tests fail without any change, so that a failure shows nothing."""


def tried(mutants: Sequence[Mutant], tests: Sequence[str], root: Path = ROOT) -> Iterator[Result]:
    """What became of each change, in no order. Raises BrokenTestsError."""
    answers: dict[int, str] = {}
    began = time.monotonic()
    for answer in _in_fork(lambda write: _collected(mutants, tests, root, write), float("inf")):
        if answer.get("broken"):
            raise BrokenTestsError(answer["broken"])
        if answer["found"] is not None:
            answers[answer["number"]] = answer["found"]
            yield Result(mutants[answer["number"]], answer["found"], answer["seconds"])
    patience = max(_LEAST_PATIENCE_S, _PATIENCE * (time.monotonic() - began) / max(len(mutants), 1))
    for number, mutant in enumerate(mutants):
        if number not in answers:
            began = time.monotonic()
            (found,) = [*_in_fork(lambda write, mutant=mutant: _imported(mutant, tests, root, write), patience)] or ["no end"]
            yield Result(mutant, found, time.monotonic() - began)


def _in_fork(work: Callable[[Callable[[object], object]], None], patience_s: float) -> Iterator[Any]:
    """What a fork writes, until it ends or the patience does; whatever it started in its group ends with it."""
    out, into = os.pipe()
    pid = os.fork()
    if not pid:
        os.setsid()
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        try:
            work(lambda value: os.writev(into, [json.dumps(value).encode(), b"\n"]))
        finally:
            os._exit(0)
    os.close(into)
    until, rest = time.monotonic() + patience_s, b""
    while select.select([out], [], [], None if patience_s == float("inf") else max(until - time.monotonic(), 0))[0]:
        if not (read := os.read(out, 1 << 16)):
            break
        *lines, rest = (rest + read).split(b"\n")
        yield from map(json.loads, lines)
    os.close(out)
    with suppress(ProcessLookupError):  # it has ended, and left nobody
        os.killpg(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def _pytest(tests: Sequence[str], plugin: object) -> None:
    with tempfile.TemporaryDirectory(prefix="mutations-") as scratch:
        flags = ["-q", "-p", "no:cacheprovider", f"--basetemp={scratch}/tests", "-m", STARTING_NOTHING]
        pytest.main([*flags, *tests], plugins=[plugin])


def _imported(mutant: Mutant, tests: Sequence[str], root: Path, write: Callable[[object], object]) -> None:
    """Tests a change of a module that is imported only now."""
    path = str(root / mutant.file)

    class Changed(importlib.machinery.SourceFileLoader):
        def get_code(self, fullname: str) -> CodeType:
            return compile(mutant.source, path, "exec")

    class Finder(importlib.abc.MetaPathFinder):
        def find_spec(
            self, name: str, where: Sequence[str] | None, target: ModuleType | None = None
        ) -> importlib.machinery.ModuleSpec | None:
            spec = importlib.machinery.PathFinder.find_spec(name, where, target)
            if spec is not None and spec.origin == path:
                spec.loader = Changed(name, path)
                return spec
            return None

    sys.meta_path.insert(0, Finder())
    _limit()
    plugin = _First()
    _pytest(["-x", *(mutant.tests or tests)], plugin)
    write(plugin.found)


class _First:
    """Remembers the first test that fails, and what could not even be collected."""

    def __init__(self) -> None:
        self.found = ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.found = self.found or report.nodeid

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.found = self.found or report.nodeid


def _collected(mutants: Sequence[Mutant], tests: Sequence[str], root: Path, write: Callable[[object], object]) -> None:
    """Collects, then tests in forks what can be changed in a process that has imported everything."""
    files = sorted({file for mutant in mutants for file in mutant.tests} | set(tests))
    plugin = _Loop(mutants, root, write)
    _pytest(files, plugin)
    if plugin.found:
        write({"broken": plugin.found})


class _Loop(_First):
    def __init__(self, mutants: Sequence[Mutant], root: Path, write: Callable[[object], object]) -> None:
        super().__init__()
        self._mutants, self._root, self._write = mutants, root, write

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: Session) -> bool:
        if session.testsfailed:
            self.found = self.found or "the collection"
            return True
        began = time.monotonic()
        reached: Mapping[str, Iterable[str]] = {}
        for answer in _in_fork(lambda write: self._reaching(session, write), float("inf")):
            if broken := answer.get("broken"):
                self.found = broken
                return True
            reached = answer
        patience = max(_LEAST_PATIENCE_S, _PATIENCE * (time.monotonic() - began))
        for number, mutant in enumerate(self._mutants):
            began = time.monotonic()
            chosen = self._chosen(session.items, mutant, set(reached.get(_key(mutant), ())))
            found = None
            if chosen:
                (found,) = [*_in_fork(lambda write, m=mutant, c=chosen: self._changed(session, m, c, write), patience)] or ["no end"]
            self._write({"number": number, "found": found, "seconds": time.monotonic() - began})
        return True

    @staticmethod
    def _chosen(items: Sequence[pytest.Item], mutant: Mutant, reached: set[str]) -> list[pytest.Item]:
        files = {name.partition("::")[0] for name in reached}
        near = [item for item in items if item.nodeid.partition("::")[0] in files]
        if mutant.tests:
            near = [item for item in near if item.nodeid.startswith(mutant.tests)]
        return sorted(near, key=lambda item: item.nodeid not in reached)

    def _reaching(self, session: Session, write: Callable[[object], object]) -> None:
        """Which tests call each changed function; what fails without a change."""
        reached = defaultdict[str, set[str]](set)
        builtins.mutations_note_reached = lambda key: reached[key].add(os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" ")[0])  # type: ignore[attr-defined]
        for mutant in {_key(mutant): mutant for mutant in self._mutants if mutant.function}.values():
            source = (self._root / mutant.file).read_text(encoding="utf-8")
            _replace(self._root, mutant, _code(_watched(source, _key(mutant), mutant.function), self._root / mutant.file))
        _run(session, session.items)
        write({"broken": self.found} if self.found else {key: sorted(tests) for key, tests in reached.items()})

    def _changed(self, session: Session, mutant: Mutant, items: list[pytest.Item], write: Callable[[object], object]) -> None:
        _limit()
        if not _replace(self._root, mutant, _code(ast.parse(mutant.source), self._root / mutant.file)):
            write(None)
            return
        session.config.option.maxfail = 1
        _run(session, items)
        write(self.found)


def _run(session: Session, items: list[pytest.Item]) -> None:
    session.items = items
    with suppress(Session.Failed, Session.Interrupted):  # the first failure is the answer
        pytest_runtestloop(session)


def _key(mutant: Mutant) -> str:
    return f"{mutant.file}:{mutant.function}"


def _limit() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))


def _watched(source: str, key: str, function: str) -> ast.Module:
    """A module whose function says that it was reached."""
    tree = ast.parse(source)

    def visit(node: ast.AST, inside: str) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.ClassDef):
                visit(child, f"{inside}{child.name}.")
            elif isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef) and f"{inside}{child.name}" == function:
                child.body.insert(0, ast.parse(f"mutations_note_reached({key!r})").body[0])

    visit(tree, "")
    return ast.fix_missing_locations(tree)


def _code(tree: ast.Module, path: Path) -> CodeType:
    return compile(tree, str(path), "exec")


def _replace(root: Path, mutant: Mutant, module: CodeType) -> bool:
    """Gives the functions of this name their new code, wherever somebody holds them; whether that is possible."""
    path, new = str(root / mutant.file), {(code.co_qualname, code.co_firstlineno): code for code in _codes(module)}
    done = False
    for held in [each for each in gc.get_objects() if isinstance(each, FunctionType)]:
        old = held.__code__
        if old.co_filename == path and old.co_qualname == mutant.function:
            code = new.get((old.co_qualname, old.co_firstlineno))
            if code is None or code.co_freevars != old.co_freevars:
                return False
            held.__code__, done = code, True
    return done


def _codes(code: CodeType) -> Iterator[CodeType]:
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield each
            yield from _codes(each)
