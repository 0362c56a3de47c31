"""The table of mutations is one of the present code, and replaying it says what became of each."""

import ast
from collections import Counter
from pathlib import Path

import pytest

from tests.mutations.__main__ import main, replay
from tests.mutations.changed_copy import FAST, StaleError, mutated
from tests.mutations.table import MUTATIONS, Mutation

TREE = Path(__file__).parents[2]


def change(before: str, after: str, name: str = "change", *, under: str = "") -> Mutation:
    return Mutation(name=name, file="streaming/room.py", before=before, after=after, under=under, why="", tests=("tests/test_room.py",))


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A tree with one module, of which only the first function is tested."""
    for path, text in {
        "streaming/__init__.py": "",
        "streaming/room.py": "def less(a, b):\n    return a < b\n\n\ndef more(a, b):\n    return a > b\n",
        "tests/test_room.py": "from streaming.room import less\n\n\ndef test_less():\n"
        "    print('ERROR    as a log has it')\n    assert less(1, 2)\n    assert not less(2, 2)\n",
        "pytest.ini": "[pytest]\n",
    }.items():
        (tmp_path / "tree" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "tree" / path).write_text(text)
    return tmp_path / "tree"


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_its_line_is_there_once_and_the_module_compiles_with_the_other_one(mutation: Mutation) -> None:
    source = (TREE / mutation.file).read_text()
    changed = mutated(source, mutation)
    assert sum(one != other for one, other in zip(source.split("\n"), changed.split("\n"), strict=True)) == 1
    assert ast.dump(ast.parse(changed)) != ast.dump(ast.parse(source))


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_it_says_why_it_matters_and_names_tests_that_are_there(mutation: Mutation) -> None:
    assert mutation.why
    assert mutation.tests
    assert all((TREE / path).is_file() for path in mutation.tests)


def test_no_two_mutations_have_the_same_name_or_the_same_change() -> None:
    for counted in (Counter(each.name for each in MUTATIONS), Counter((each.file, each.before, each.after) for each in MUTATIONS)):
        assert [each for each, count in counted.items() if count > 1] == []


def test_a_fast_test_is_one_that_make_fast_has() -> None:
    assert f"\nSTARTING_NOTHING := {FAST}\n" in (TREE / "Makefile").read_text()


def test_every_room_has_one() -> None:
    package = TREE / "streaming"
    rooms = {path.parent for path in package.rglob("*.py") if path.name != "__init__.py"} - {package} | {package / "common" / "settings.py"}
    broken = {TREE / each.file for each in MUTATIONS}
    assert {room for room in rooms if not any(file.is_relative_to(room) for file in broken)} == set()


@pytest.mark.parametrize("before", ["return 1", "return a"])
def test_a_line_that_is_not_there_once_is_stale(before: str) -> None:
    with pytest.raises(StaleError, match=r"room\.py has [02] lines"):
        mutated("def f(a):\n    if a:\n        return a\n    return a\n", change(before, "return 2"))


def test_a_line_that_is_there_twice_is_named_by_the_one_above_it() -> None:
    source = "def f(a):\n    if a:\n        return a\n    return a\n"
    assert mutated(source, change("return a", "return 2", under="if a:")).split("\n")[2:4] == ["        return 2", "    return a"]


def test_what_no_test_holds_has_survived_and_the_tree_stays_as_it_is(tree: Path) -> None:
    before, stated = (tree / "streaming/room.py").read_text(), list[str]()
    survivor, killed = change("return a > b", "return a >= b", "survivor"), change("return a < b", "return a <= b", "killed")
    assert replay([killed, survivor], tree, stated.append) == 1
    assert [line.split()[0] for line in stated[:2]] == ["killed", "survivor"]
    assert stated[0].endswith("tests/test_room.py::test_less")
    assert stated[1].endswith("SURVIVED")
    assert stated[2] == "1 of 2 changes fail a test"
    assert (tree / "streaming/room.py").read_text() == before
    assert replay([killed], tree, stated.append) == 0


def test_a_stale_line_is_no_success(tree: Path) -> None:
    stated = list[str]()
    assert replay([change("return a + b", "return a - b")], tree, stated.append) == 1
    assert "STALE: streaming/room.py has 0 lines 'return a + b'" in stated[0]


def test_where_tests_fail_without_any_change_nothing_is_tried(tree: Path) -> None:
    (tree / "tests/test_room.py").write_text("def test_broken():\n    assert False\n")
    stated = list[str]()
    assert replay([change("return a < b", "return a <= b")], tree, stated.append) == 2
    assert stated[-1] == "without any change tests/test_room.py::test_broken fails"


def test_a_name_that_no_mutation_has_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["nothing"]) == 2
    assert capsys.readouterr().err == "no mutation is called nothing\n"
