"""What each feature costs: ``python -m docs.generators.prices FILE`` writes docs/internals/prices.md anew.

``python -m docs.generators.prices --modules`` prints which modules the numbers are made of.
"""

import re
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import click
import grimp
import yaml

from streaming.terminal.cli.app import COMMANDS, segtail

ROOT = Path(__file__).parents[2]
PACKAGE = "streaming"


@dataclass(frozen=True, slots=True)
class Feature:
    """A row. Each text is a list of names with spaces between them."""

    name: str
    asked_by: str = ""
    doors: str = ""  # modules and rooms: what only they need is the price
    tests: str = ""  # files and folders below tests/
    documents: str = ""  # files below docs/; behind a # the heading of a part, with _ for each space
    files: str = ""  # files and folders that are no modules


def read_features() -> list[Feature]:
    """The rows, as features.yaml has them."""
    table = yaml.safe_load(Path(__file__).with_name("features.yaml").read_text(encoding="utf-8"))
    return [Feature(name, **texts) for name, texts in table.items()]


def _module_of(command: str) -> str:
    found = segtail.get_command(click.Context(segtail), command)
    assert found is not None
    return str(found.callback.__module__).removeprefix(f"{PACKAGE}.")


ENTRIES = ("terminal.cli.__main__", *map(_module_of, COMMANDS), "spark.source.datasource", "spark.job.worker_daemon")
"""Where the product begins: the commands, Spark's data source, and Spark's Python workers."""

CORE = "core"
SHARED = "shared by features"
_TEXTS = {".py", ".yaml", ".html", ".js", ".css", ".java", ".tsx", ".cjs", ".tpl", ".spec", ".service", ""}

_HEAD = """# What each feature costs

<!-- Made by docs/generators/prices.py, which counts, and features.yaml beside it, which says who asks; `make docs` writes it. -->

The *lines* of a feature are those of the modules that no command reaches without the feature's own. What several features need, and the
core does not, is one row. The *core* is what is left without all features: with the Prometheus page, it is that of
[architecture.md](architecture.md#rooms-and-who-may-call-whom).
*Other lines* are templates, scripts, alerts, charts. Numbers have two digits. What nobody asks for is the next to go.

`python -m docs.generators.prices --modules` prints the modules of each row.

| feature | lines | other lines | lines of tests | words | who asks for it |
|---|---|---|---|---|---|
"""


def read_imports() -> Mapping[str, Collection[str]]:
    """What each module needs when it is imported or used: the modules that it imports anywhere, and the rooms that it lies in."""
    graph = grimp.build_graph(PACKAGE, cache_dir=None)
    return {each: graph.find_modules_directly_imported_by(each) | ({each.rpartition(".")[0]} - {""}) for each in graph.modules}


def reached(needs: Mapping[str, Collection[str]], starts: Iterable[str], without: Collection[str] = ()) -> set[str]:
    """The modules that are needed from these on, if there were no others behind those that are left out."""
    waiting = [each for each in starts if each not in without]
    found = set(waiting)
    while waiting:
        new = set(needs[waiting.pop()]) - found - set(without)
        found |= new
        waiting += new
    return found


def modules_of(needs: Mapping[str, Collection[str]], features: Iterable[Feature], entries: Iterable[str]) -> dict[str, set[str]]:
    """The modules of each feature, of the core, and of what features share. Raises ValueError for a door that is no module."""
    starts = [f"{PACKAGE}.{entry}" for entry in entries]
    doors = {feature.name: set(_doors(needs, feature)) for feature in features}
    everything = reached(needs, starts)
    owned = closest({name: everything - reached(needs, starts, its) for name, its in doors.items()})
    core = reached(needs, starts, set().union(*doors.values()))
    return {CORE: core, **owned, SHARED: everything - core - set().union(*owned.values())}


def _doors(needs: Iterable[str], feature: Feature) -> Iterator[str]:
    for door in feature.doors.split():
        found = [each for each in needs if f"{each}.".startswith(f"{PACKAGE}.{door}.")]
        if not found:
            raise ValueError(f"features.yaml: {feature.name}: there is no module {door}")
        yield from found


def closest(claims: Mapping[str, set[str]]) -> dict[str, set[str]]:
    """Each thing goes to the smallest of those that claim it: what is a part's is no longer the whole's."""
    owned: dict[str, set[str]] = {}
    taken: set[str] = set()
    for name in sorted(claims, key=lambda each: len(claims[each])):
        owned[name] = claims[name] - taken
        taken |= owned[name]
    return owned


def _files(base: Path, names: str) -> set[str]:
    """The texts that have one of these names, or lie below it. Raises ValueError for a name that none has."""
    found: set[str] = set()
    for name in names.split():
        paths = [path for top in base.glob(name) for path in ([top] if top.is_file() else top.rglob("*"))]
        texts = {str(path) for path in paths if path.suffix in _TEXTS and path.is_file()}
        if not texts:
            raise ValueError(f"features.yaml: there is nothing in {base} with the name {name}")
        found |= texts
    return found


def _parts(base: Path, names: str) -> dict[str, int]:
    """The words of each part of documents, by its file and heading. Raises ValueError for a name that none has."""
    found: dict[str, int] = {}
    for name in names.split():
        path, _, heading = name.partition("#")
        documents = [base / path] if (base / path).is_file() else sorted((base / path).rglob("*.md"))
        parts = [(each, part) for each in documents for part in re.split(r"^## ", each.read_text(encoding="utf-8"), flags=re.MULTILINE)]
        words = {f"{each}#{part.splitlines()[0]}": len(part.split()) for each, part in parts if part}
        chosen = {key: count for key, count in words.items() if not heading or key.endswith(f"#{heading.replace('_', ' ')}")}
        if not chosen:
            raise ValueError(f"features.yaml: there is nothing in {base} with the name {name}")
        found |= chosen
    return found


def _lines(paths: Iterable[str]) -> int:
    return sum(len(Path(path).read_bytes().splitlines()) for path in paths)


def _path(module: str) -> str:
    path = ROOT / module.replace(".", "/")
    return str(path / "__init__.py" if path.is_dir() else path.with_suffix(".py"))


def count(features: Sequence[Feature]) -> dict[str, tuple[int, ...]]:
    """Of each row the lines of its modules, its other lines, those of its tests, and its words."""
    modules = modules_of(read_imports(), features, ENTRIES)
    words = _parts(ROOT, "docs README.md")
    tests = closest({each.name: _files(ROOT / "tests", each.tests) for each in features})
    documents = closest({each.name: set(_parts(ROOT / "docs", each.documents)) for each in features})
    tests[CORE] = _files(ROOT, "tests") - set().union(*tests.values())
    documents[CORE] = words.keys() - set().union(*documents.values())
    others = {each.name: _files(ROOT, each.files) for each in features}
    return {
        name: (
            _lines(map(_path, owned)),
            *(_lines(each.get(name, ())) for each in (others, tests)),
            sum(map(words.__getitem__, documents.get(name, ()))),
        )
        for name, owned in modules.items()
    }


def write_prices(before: str, features: Iterable[Feature], counted: Mapping[str, Sequence[int]]) -> str:
    """The document. A number of the one before stays until it is a tenth wrong."""
    known = {cells[1].strip(): cells[2:6] for cells in (line.split("|") for line in before.splitlines()) if len(cells) == 8}
    asked = {each.name: each.asked_by or "**nobody**" for each in features}
    rows = [(name, list(map(_near, numbers, known.get(name, [""] * len(numbers))))) for name, numbers in counted.items()]
    return _HEAD + "".join(
        f"| {name} | {' | '.join(f'{number:,}' if number else '' for number in numbers)} | {asked.get(name, '')} |\n"
        for name, numbers in sorted(rows, key=lambda row: -row[1][0])
    )


def _near(number: int, cell: str) -> int:
    """What the cell has, if that is right to a tenth; else the number with two digits."""
    before = cell.strip().replace(",", "")
    return int(before) if before.isdigit() and abs(number - int(before)) * 10 <= number else int(float(f"{number:.1e}"))


if __name__ == "__main__":
    if sys.argv[1] == "--modules":
        for row, members in modules_of(read_imports(), read_features(), ENTRIES).items():
            sys.stdout.write(f"{row}: {' '.join(sorted(members))}\n")
    else:
        table = read_features()
        sys.stdout.write(write_prices(Path(sys.argv[1]).read_text(encoding="utf-8"), table, count(table)))
