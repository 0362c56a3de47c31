"""The digests of what makes a recording: of its module, and of everything below tests/ that it imports."""

import ast
import hashlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).parents[2]
_DIGITS = 16

PARTS: Mapping[str, tuple[str, ...]] = {
    "tests.broker.install": (),  # where the jars come from: which they are, the version says
    "tests.broker.kafka": ("_SMALL", "_properties"),  # how a broker is configured; not how its process is started, ended and waited for
    "tests.broker.kafka_tools": (),  # how a tool is started: which one is asked what stands where it is asked
    "tests.limits": (),  # how long is waited for what hangs
    "tests.recorded.making": (),  # what carries the answers from there to the archive
}
"""Modules of which only some definitions count, so that a change of the rest asks for no new recording."""


def digests(module: str, root: Path = ROOT) -> dict[str, str]:
    """Of the module and its closure, as they are on disk, by the names of the files."""
    return {name: hashlib.sha256(content).hexdigest()[:_DIGITS] for name, content in sorted(closure(module, root).items()) if content}


def closure(module: str, root: Path = ROOT) -> dict[str, bytes]:
    """What counts of each file, by its name."""
    found: dict[str, bytes] = {}
    waiting = [module]
    while waiting:
        name = waiting.pop()
        path = _path(name, root)
        key = path.relative_to(root).as_posix() if path else ""
        if path is None or key in found:
            continue
        source = path.read_text(encoding="utf-8")
        if name in PARTS:
            found[key] = b"\n".join(_parts(source, PARTS[name], key))
            continue
        tree = list(ast.walk(ast.parse(source)))
        found[key] = _placeless(source, tree)
        waiting += _imports(tree)
        if any(isinstance(node, ast.Constant) and node.value == "java" for node in tree):
            found.update({each.relative_to(root).as_posix(): each.read_bytes() for each in path.parent.glob("java/*.java")})
    return found


def _placeless(source: str, tree: list[ast.AST]) -> bytes:
    """The text without the modules of the product that its names come from: where a thing is declared changes nothing that is recorded."""
    lines, names = source.splitlines(), list[str]()
    for node in tree:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("streaming"):
            names += [each.asname or each.name for each in node.names]
            for number in range(node.lineno - 1, node.end_lineno or node.lineno):
                lines[number] = ""
    return "\n".join([*filter(None, lines), *sorted(names)]).encode()


def _path(module: str, root: Path) -> Path | None:
    """The file of a module below tests/; None for any other name."""
    path = root.joinpath(*module.split(".")).with_suffix(".py")
    return path if module.startswith("tests.") and path.exists() else None


def _parts(source: str, names: tuple[str, ...], file: str) -> Iterator[bytes]:
    """The text of these definitions."""
    nodes = {name: node for node in ast.walk(ast.parse(source)) for name in _defined(node)}
    for name in names:
        if name not in nodes:
            raise LookupError(f"{file} has no {name} any more: correct PARTS in {Path(__file__).relative_to(ROOT)}")
        yield (ast.get_source_segment(source, nodes[name]) or "").encode()


def _defined(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.FunctionDef):
        yield node.name
    elif isinstance(node, ast.Assign):
        yield from (target.id for target in node.targets if isinstance(target, ast.Name))


def _imports(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Names that may be modules: what a file imports, and from where."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
