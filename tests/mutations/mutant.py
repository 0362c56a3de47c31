"""Changes of one line: those of the table, and those that are made of a module's syntax tree and drawn by a seed."""

import ast
import random
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
TABLE = Path(__file__).with_name("table.tsv")

_SWAPPED = {
    **{ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq},
    **{ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.And: ast.Or, ast.Or: ast.And},
    **{ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv, ast.FloorDiv: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd},
}
_NAMES = {"min": "max", "max": "min", "any": "all", "all": "any", "minimum": "maximum", "maximum": "minimum", "<<": ">>"}
_NO_BEHAVIOUR = {"debug", "info", "warning", "error", "exception", "log", "append_note", "NewType", "TypeVar", "cast"}


class StaleError(Exception):
    """The line that a change names is not in its file, or is there more than once."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """A module, ``file`` by its path below the checkout, with one line changed.

    ``function`` is the qualified name of the outermost function around the change, "" where it is in none; ``tests`` are the files that
    are to find it.
    """

    file: str
    line: int
    before: str
    after: str
    source: str
    function: str
    tests: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.before} => {self.after}"


def read_table(text: str | None = None, root: Path = ROOT) -> list[Mutant]:
    """The table: tab-separated file, before, after, tests and why, and ``above >> before`` for a line that its module has more than once.

    Raises:
        StaleError: a line is not there exactly once, or a change leaves the module as it was.
    """
    lines = (TABLE.read_text(encoding="utf-8") if text is None else text).splitlines()
    return [_of_row(line, root) for line in lines if line and not line.startswith("#")]


def _of_row(row: str, root: Path) -> Mutant:
    file, before, after, tests, why = (part.strip() for part in row.split("\t"))
    above, _, before = before.rpartition(" >> ")
    source = (root / file).read_text(encoding="utf-8")
    found = list(_wrapped(f"{above} {before}".strip()).finditer(source)) if above else []
    found = found or list(_wrapped(before).finditer(source))
    if len(found) != 1:
        raise StaleError(f"{file} has {len(found)} lines {before!r}")
    begin, end = found[0].span()
    if above:
        begin = [each for each in _wrapped(before).finditer(source) if begin <= each.start() and each.end() == end][-1].start()
    end = _closed(source, begin, end, before)
    changed = source[:begin] + after + source[end:]
    if not why or ast.dump(ast.parse(changed)) == ast.dump(ast.parse(source)):
        raise StaleError(f"{file}: {before!r} has no reason, or stays as it is")
    line = source[:begin].count("\n") + 1
    return Mutant(file, line, before, after, changed, _function_at(ast.parse(source), line), tuple(tests.split()))


def _wrapped(line: str) -> re.Pattern[str]:
    """Finds a line also where the formatter has made several of it: with brackets around, and a comma behind the last item."""
    words = re.findall(r"\w+|[^\w\s]", line)
    return re.compile(r"(?<!\w)" + r"[\s(]*?,?[\s)]*?".join(map(re.escape, words)) + r"(?!\w)")


def _closed(source: str, begin: int, end: int, line: str) -> int:
    """The end behind the brackets that the formatter has put around."""
    more = source[begin:end].count("(") - source[begin:end].count(")") - line.count("(") + line.count(")")
    for _ in range(more):
        end = source.index(")", end) + 1
    return end


def drawn(paths: Iterable[str], count: int, seed: int, root: Path = ROOT) -> list[Mutant]:
    """``count`` changes of the modules below these folders or files, the same ones for the same seed."""
    files = sorted({file for path in paths for file in ((root / path).rglob("*.py") if (root / path).is_dir() else [root / path])})
    pool = [mutant for file in files for mutant in generated(file.relative_to(root).as_posix(), file.read_text(encoding="utf-8"))]
    random.Random(seed).shuffle(pool)
    return pool[:count]


def generated(file: str, source: str) -> Iterator[Mutant]:
    """Every change of a module that the operators below make within one line of a function."""
    tree, lines = ast.parse(source), source.split("\n")
    for function, node in _in_functions(tree):
        if node.lineno != node.end_lineno:
            continue
        old = lines[node.lineno - 1].encode()
        part = old[node.col_offset : node.end_col_offset].decode()
        for new in _changes(node):
            if new == part:
                continue
            line = (old[: node.col_offset] + new.encode() + old[node.end_col_offset :]).decode()
            changed = "\n".join([*lines[: node.lineno - 1], line, *lines[node.lineno :]])
            try:
                if ast.dump(ast.parse(changed)) != ast.dump(tree):
                    yield Mutant(file, node.lineno, part, new, changed, function)
            except SyntaxError:  # an unparsed part that needs brackets where it stands
                continue


def _in_functions(tree: ast.AST, inside: Sequence[str] = ()) -> Iterator[tuple[str, ast.expr | ast.stmt]]:
    """The nodes of bodies of functions with the outermost function's name; no annotations, messages of errors or lines of a log."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ClassDef):
            yield from _in_functions(node, (*inside, node.name))
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            name = ".".join([*inside, node.name])
            for statement in node.body:
                yield from ((name, each) for each in _behaviour(statement))


def _behaviour(node: ast.AST) -> Iterator[ast.expr | ast.stmt]:
    if isinstance(node, ast.Raise | ast.Assert | ast.Import | ast.ImportFrom | ast.JoinedStr):
        return
    if isinstance(node, ast.Expr) and (isinstance(node.value, ast.Constant) or _called(node.value) in _NO_BEHAVIOUR):
        return
    if isinstance(node, ast.expr | ast.stmt):
        yield node
    skipped = {"annotation", "returns", "args", "decorator_list"} if not isinstance(node, ast.Call | ast.Lambda) else {"annotation"}
    for field, value in ast.iter_fields(node):
        if field not in skipped:
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from _behaviour(child)


def _called(node: ast.AST) -> str:
    called = node.func if isinstance(node, ast.Call) else None
    return called.attr if isinstance(called, ast.Attribute) else called.id if isinstance(called, ast.Name) else ""


def _changes(node: ast.expr | ast.stmt) -> Iterator[str]:
    match node:
        case ast.Compare(left, [op, *ops], others) if type(op) in _SWAPPED:
            yield ast.unparse(ast.Compare(left, [_SWAPPED[type(op)](), *ops], others))
        case ast.BoolOp(op, values):
            yield ast.unparse(ast.BoolOp(_SWAPPED[type(op)](), values))
            yield from (f"({ast.unparse(value)})" for value in values[:1] + values[-1:])
        case ast.BinOp(left, op, right) if type(op) in _SWAPPED and not any(isinstance(side, ast.JoinedStr) for side in (left, right)):
            yield ast.unparse(ast.BinOp(left, _SWAPPED[type(op)](), right))
        case ast.UnaryOp(ast.Not(), operand):
            yield f"({ast.unparse(operand)})"
        case ast.Constant(bool(value)):
            yield repr(not value)
        case ast.Constant(int(value)):
            yield repr(value + 1)
        case ast.IfExp(test, body, orelse):
            yield ast.unparse(ast.IfExp(test, orelse, body))
        case ast.Call(ast.Name(name) | ast.Attribute(attr=name)):
            yield from _changed_calls(node, name)
        case ast.Expr(ast.Call()) | ast.AugAssign() | ast.Continue() | ast.Break() | ast.Delete():
            yield "pass"


def _changed_calls(node: ast.Call, name: str) -> Iterator[str]:
    if name in _NAMES:
        func = ast.Name(_NAMES[name]) if isinstance(node.func, ast.Name) else ast.Attribute(node.func.value, _NAMES[name])  # type: ignore[attr-defined]
        yield ast.unparse(ast.Call(func, node.args, node.keywords))
    yield from (
        ast.unparse(ast.Call(node.func, node.args, [other for other in node.keywords if other is not each])) for each in node.keywords
    )


def _function_at(tree: ast.AST, line: int, inside: Sequence[str] = ()) -> str:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and node.lineno <= line <= (node.end_lineno or 0):
            if isinstance(node, ast.ClassDef):
                return _function_at(node, line, (*inside, node.name))
            return ".".join([*inside, node.name]) if line >= node.body[0].lineno else ""
    return ""
