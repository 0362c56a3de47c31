"""Documents name the tests that guard what is promised, and the modules to read: each of them has to be there."""

import ast
import re
from pathlib import Path

import pytest

from tests.tables import each_row

ROOT = Path(__file__).parents[1]
_TEST = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")
_NEVER_RUN = {"skip", "xfail"}


def _marks(path: str) -> dict[str, set[str]]:
    """The tests of a file, each with the names in its decorators."""
    functions = (node for node in ast.parse((ROOT / path).read_bytes()).body if isinstance(node, ast.FunctionDef))
    return {
        each.name: {node.attr for mark in each.decorator_list for node in ast.walk(mark) if isinstance(node, ast.Attribute)}
        for each in functions
    }


@pytest.mark.parametrize("document", ["internals/promises.md", "reliability.md"])
def test_every_test_that_is_named_is_there_and_runs(document: str) -> None:
    named = _TEST.findall((ROOT / "docs" / document).read_text())
    files = {path: _marks(path) if (ROOT / path).is_file() else {} for path, _ in named}
    assert named
    assert [f"{path}::{name}" for path, name in named if name not in files[path]] == []
    assert [f"{path}::{name}" for path, name in named if files[path][name] & _NEVER_RUN] == []


@each_row("document", ["CONTRIBUTING.md", "README.md", *(str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md"))])
def test_every_module_that_is_named_is_there(document: str) -> None:
    parts = ("streaming", "bench", "tests", "helm", "docs")
    modules = [str(path.relative_to(ROOT)) for part in parts for path in (ROOT / part).rglob("*.py")]
    named = re.findall(r"`((?:[a-z_]+/)*[a-z_]+\.py)`", (ROOT / document).read_text())
    assert [name for name in named if not any(f"/{path}".endswith(f"/{name}") for path in modules)] == []


def test_the_architecture_names_every_room() -> None:
    text = (ROOT / "docs" / "internals" / "architecture.md").read_text()
    package = ROOT / "streaming"
    rooms = {path.parent.relative_to(package) for path in package.rglob("*.py")} - {Path()}
    assert [str(room) for room in sorted(rooms) if f"`{room}/`" not in text] == []


def test_every_promise_names_a_test() -> None:
    rows = re.findall(r"^- .*$", (ROOT / "docs" / "internals" / "promises.md").read_text(), re.MULTILINE)
    assert len(rows) > 30
    assert [promise for promise in rows if not _TEST.search(promise)] == []
