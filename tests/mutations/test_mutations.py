"""The table is one of the present code, and whether a change survives is told by the tests alone."""

from collections import Counter
from pathlib import Path

import pytest

from tests.mutations.__main__ import main
from tests.mutations.mutant import ROOT, Mutant, StaleError, drawn, generated, read_table
from tests.mutations.runner import STARTING_NOTHING, BrokenTestsError, tried

ROOM = """\
LIMIT = 3


def less(a, b):
    return a < b


def near(reached):  # a name of the runner's own may be any function's
    return reached < LIMIT


class More:
    def more(self, a, b):
        return a > b and a < LIMIT
"""
TEST = """\
from {0}.room import less, near


def test_less():
    assert less(1, 2)
    assert not less(2, 2)
    assert near(2)
"""


def test_each_line_of_the_table_is_there_once_with_a_reason_and_tests_that_are_there() -> None:
    table = read_table()
    assert [str(each) for each, times in Counter(table).items() if times > 1] == []
    assert [str(each) for each in table if not each.tests or not all((ROOT / path).is_file() for path in each.tests)] == []


def test_the_tests_that_find_a_change_are_those_that_start_nothing() -> None:
    assert f"\nSTARTING_NOTHING := {STARTING_NOTHING}\n" in (ROOT / "Makefile").read_text()


def test_a_line_that_is_not_there_once_is_stale(tmp_path: Path) -> None:
    (tmp_path / "room.py").write_text("def f(a):\n    if a:\n        return a\n    return a\n")
    for row in ("room.py\treturn a\treturn 2\tt\twhy", "room.py\treturn 1\treturn 2\tt\twhy"):
        with pytest.raises(StaleError, match=r"room\.py has [02] lines"):
            read_table(row, tmp_path)
    for row in ("room.py\tif a:\tif  a:\tt\twhy", "room.py\tif a:\tif not a:\tt\t"):
        with pytest.raises(StaleError, match="stays as it is"):
            read_table(row, tmp_path)
    (above,) = read_table("room.py\tif a: >> return a\treturn 2\tt\twhy", tmp_path)
    assert (above.line, above.function) == (3, "f")


def test_a_seed_draws_the_same_changes_of_one_line_each(tmp_path: Path) -> None:
    (tmp_path / "room.py").write_text(ROOM)
    assert [str(each) for each in drawn(["room.py"], 3, 7, tmp_path)] == [str(each) for each in drawn(["."], 3, 7, tmp_path)]
    found = [(each.before, each.after, each.function) for each in generated("room.py", ROOM)]
    assert found == [
        ("a < b", "a <= b", "less"),
        ("reached < LIMIT", "reached <= LIMIT", "near"),
        ("a > b and a < LIMIT", "a > b or a < LIMIT", "More.more"),
        ("a > b and a < LIMIT", "(a > b)", "More.more"),
        ("a > b and a < LIMIT", "(a < LIMIT)", "More.more"),
        ("a > b", "a >= b", "More.more"),
        ("a < LIMIT", "a <= LIMIT", "More.more"),
    ]


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A module of which only one function is tested, under a name that nobody else imports."""
    name = f"room_{tmp_path.name.replace('-', '_')}"
    for path, text in {
        f"{name}/__init__.py": "",
        f"{name}/room.py": ROOM,
        "test_room.py": TEST.format(name),
        "pytest.ini": "[pytest]\n",
    }.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path / name


def found(tree: Path, mutants: list[Mutant]) -> dict[str, str]:
    return {result.mutant.after: result.found for result in tried(mutants, ["test_room.py"], tree.parent)}


def test_what_no_test_holds_has_survived_and_the_file_stays_as_it_is(tree: Path) -> None:
    row = f"{tree.name}/room.py\t{{}}\t{{}}\ttest_room.py\twhy"
    changes = [("return a < b", "return a <= b"), ("return a > b and a < LIMIT", "return a >= b and a < LIMIT"), ("LIMIT = 3", "LIMIT = 4")]
    changes.append(("return reached < LIMIT", "return reached <= LIMIT"))
    mutants = [each for change in changes for each in read_table(row.format(*change), tree.parent)]
    assert found(tree, mutants) == {
        "return a <= b": "test_room.py::test_less",
        "return a >= b and a < LIMIT": "",
        "LIMIT = 4": "",
        "return reached <= LIMIT": "",
    }
    assert (tree / "room.py").read_text() == ROOM


def test_a_change_of_what_is_run_by_an_import_is_found(tree: Path) -> None:
    (tree.parent / "test_room.py").write_text(
        f"from {tree.name}.room import LIMIT, less\nIS = less(3, LIMIT)\n\n\ndef test_is():\n    assert not IS\n"
    )
    rows = ["LIMIT = 3\tLIMIT = 4", "return a < b\treturn a <= b"]
    mutants = [each for row in rows for each in read_table(f"{tree.name}/room.py\t{row}\ttest_room.py\twhy", tree.parent)]
    assert found(tree, mutants) == dict.fromkeys(["LIMIT = 4", "return a <= b"], "test_room.py::test_is")


def test_where_tests_fail_without_any_change_nothing_is_tried(tree: Path) -> None:
    (tree.parent / "test_room.py").write_text("def test_broken():\n    assert False\n")
    with pytest.raises(BrokenTestsError, match="test_broken"):
        found(tree, read_table(f"{tree.name}/room.py\treturn a < b\treturn a <= b\ttest_room.py\twhy", tree.parent))


def test_changes_to_draw_need_tests_that_find_them(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["--of", "streaming/rules"])
    assert "--of and --tests go together" in capsys.readouterr().err
