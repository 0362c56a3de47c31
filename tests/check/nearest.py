"""The test files that a change since main may break, the nearest first: by imports, the folder they share, the files that they name."""

import ast
import re
import subprocess
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

OWN = ("streaming", "tests", "docs", "helm")
"""The folders whose Python is read."""

FAR = 4
"""So many steps of import from a change a test is left to the whole suite, unless it shares the change's folder."""

WHOLE = 2
"""So near tests of the whole tree are to every change."""


MAINS = ("origin/main", "main")
"""Where a branch begins; the first that there is."""


@dataclass(frozen=True, slots=True)
class Tree:
    """What is known of the checkout: who imports a module, and which words the strings of a file under tests/ hold."""

    importers: Mapping[str, Collection[str]]
    words: Mapping[str, Collection[str]]

    def tests(self) -> list[str]:
        """Modules that hold tests."""
        return sorted(name for name in self.importers if _is_test(name))


def read(root: Path) -> Tree:
    """The tree as it is on disk.

    import-linter's grimp reads imports as well, but ``tests`` has no ``__init__.py``: where two checkouts are on the path, as a worktree
    and the one that is installed, it mixes their files.
    """
    imported, words = dict[str, set[str]](), dict[str, frozenset[str]]()
    for path in (path for top in OWN for path in (root / top).rglob("*.py")):
        name, nodes = _module(path.relative_to(root).as_posix()), list(ast.walk(ast.parse(path.read_bytes())))
        imported[name] = set(imports(nodes))
        if name.startswith("tests."):
            words[name] = _words(nodes)
    importers: dict[str, set[str]] = {name: set() for name in imported}
    for name, others in imported.items():
        for other in others & importers.keys():
            importers[other].add(name)
    return Tree(importers, words)


def nearest(changed: Iterable[str], tree: Tree) -> list[str]:
    """Test modules from the nearest to the farthest.

    The changed tests come first, then those that import what was changed or stand beside it, then those that reach it by more steps; of
    those that are as near, the room of a change comes first.
    Tests of the whole tree, at the top of tests/, belong to every change: each name and each import is under their rules, so they come
    before the many that only share the change's folder.
    """
    changed = tuple(changed)
    steps = _steps({name: step for path in changed for name, step in _origins(path, tree).items()}, tree)
    rooms = {room for path in changed if (room := _room(path))}
    found: list[tuple[bool, int, bool, str]] = []
    for name in tree.tests():
        whole = name.count(".") == 1
        own = name.split(".")[1] in rooms
        beside = whole or own
        step = steps.get(name, FAR)
        if whole:
            step = min(step, WHOLE)
        if changed and (beside or step < FAR):
            found.append((not beside and step > 1, step, not own, name))
    return [name for *_, name in sorted(found)]


def _origins(path: str, tree: Tree) -> dict[str, int]:
    """Where the search begins: the module itself, or those that name the file in a string."""
    if path.endswith(".py") and path.split("/")[0] in OWN:
        name = _module(path)
        if PurePosixPath(path).name != "conftest.py":
            return {name: 0}
        folder = name.removesuffix("conftest")
        return {other: 1 for other in tree.importers if other.startswith(folder)}
    top, *rest = path.split("/")
    return {name: 0 if not rest or {*rest} & {*words} else 1 for name, words in tree.words.items() if top in words}


def _steps(origins: Mapping[str, int], tree: Tree) -> dict[str, int]:
    """How many steps of import lead from a module to the nearest origin."""
    steps = dict(origins)
    front = sorted(origins, key=steps.__getitem__)
    while front:
        name = front.pop(0)
        for importer in tree.importers.get(name, ()):
            if importer not in steps or steps[name] + 1 < steps[importer]:
                steps[importer] = steps[name] + 1
                front.append(importer)
    return steps


def _room(path: str) -> str:
    """The room of streaming/, or the folder under tests/ and the like, that a file is in; or nothing."""
    top, *rest = path.split("/")
    return rest[-2 if top == "streaming" else 0] if top in OWN and len(rest) > 1 else ""


def _module(path: str) -> str:
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def _is_test(name: str) -> bool:
    return name.startswith("tests.") and name.rpartition(".")[2].startswith("test_")


def imports(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Names that may be modules: what a file imports, and from where."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _words(nodes: Iterable[ast.AST]) -> frozenset[str]:
    """The strings that may be parts of a path."""
    strings = (node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str))
    return frozenset(part for text in strings for part in text.split("/") if re.fullmatch(r"[\w.-]+", part))


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
