"""What git says was changed, and which tests `make check` takes first."""

import subprocess
from pathlib import Path

import pytest

from tests.check.nearest import FAR, NoGitError, Tree, nearest, read, since_main
from tests.tools import require_tool

TREE = Tree(
    importers={
        "streaming.kafka.formats.wire": ["streaming.kafka.formats.records", "tests.formats.test_varint"],
        "streaming.kafka.formats.records": ["streaming.broker.disk.reader", "tests.formats.test_records", "tests.builders"],
        "streaming.broker.disk.reader": ["tests.disk.test_reader"],
        "tests.builders": ["tests.disk.test_reader", "tests.dump.test_text"],
        "tests.alerts.conftest": [],
        "tests.alerts.test_rules": [],
        "tests.disk.test_reader": [],
        "tests.dump.test_text": [],
        "tests.formats.test_beside": [],
        "tests.formats.test_records": [],
        "tests.formats.test_varint": [],
        "tests.test_words": [],
    },
    words={
        "tests.alerts.test_rules": {"conf", "alerts"},
        "tests.dump.test_text": {"docs", "dump.md"},
        "tests.disk.test_reader": {"docs"},
        "tests.builders": {"Makefile"},
    },
)
WHOLE = "tests.test_words"


def test_first_what_imports_it_or_lies_beside_it_then_by_steps() -> None:
    assert nearest(["streaming/kafka/formats/wire.py"], TREE) == [
        "tests.formats.test_varint",
        "tests.formats.test_records",
        WHOLE,
        "tests.formats.test_beside",
        "tests.disk.test_reader",
        "tests.dump.test_text",
    ]


def test_of_those_that_are_as_near_the_room_of_the_change_comes_first() -> None:
    tests = ["tests.agent.test_service", "tests.rules.test_fold"]
    tree = Tree(importers={"streaming.rules.fold": tests, tests[0]: [], tests[1]: []}, words={})
    assert nearest(["streaming/rules/fold.py"], tree) == tests[::-1]


def test_a_changed_test_comes_before_what_a_changed_helper_reaches() -> None:
    assert nearest(["tests/disk/test_reader.py"], TREE) == ["tests.disk.test_reader", WHOLE]
    assert nearest(["tests/builders.py"], TREE) == ["tests.disk.test_reader", "tests.dump.test_text", WHOLE]


def test_a_conftest_reaches_the_tests_of_its_folder() -> None:
    assert nearest(["tests/alerts/conftest.py"], TREE) == ["tests.alerts.test_rules", WHOLE]
    assert set(nearest(["tests/conftest.py"], TREE)) == set(TREE.tests())


def test_a_file_that_is_no_python_belongs_to_those_that_name_it_and_then_to_those_that_name_its_folder() -> None:
    assert nearest(["docs/dump.md"], TREE) == ["tests.dump.test_text", "tests.disk.test_reader", WHOLE]
    assert nearest(["conf/alerts/AgentDown.yaml"], TREE) == ["tests.alerts.test_rules", WHOLE]
    assert nearest(["Makefile"], TREE) == ["tests.disk.test_reader", "tests.dump.test_text", WHOLE]


def test_a_module_that_was_deleted_leaves_what_lies_beside_it() -> None:
    assert nearest(["streaming/kafka/formats/gone.py"], TREE) == [
        WHOLE,
        "tests.formats.test_beside",
        "tests.formats.test_records",
        "tests.formats.test_varint",
    ]


def test_nothing_changed_is_nothing_to_test() -> None:
    assert nearest([], TREE) == []


def test_what_takes_more_steps_than_that_is_left_out() -> None:
    names = [f"streaming.far.m{step}" for step in range(FAR)]
    chain = dict(zip(names, [[name] for name in names[1:]] + [["tests.x.test_far"]], strict=True))
    tree = Tree(importers=chain | {"tests.x.test_far": []}, words={})
    assert nearest(["streaming/far/m0.py"], tree) == []
    assert nearest(["streaming/far/m1.py"], tree) == ["tests.x.test_far"]


def test_this_tree_is_known_as_it_is() -> None:
    tree = read(Path(__file__).parents[2])
    assert nearest(["tests/check/test_nearest.py"], tree)[0] == "tests.check.test_nearest"
    assert nearest(["tests/check/nearest.py"], tree)[0] == "tests.check.test_nearest"
    assert nearest(["docs/dashboards/tables.py"], tree)[0].startswith("tests.dashboards.test_")
    assert "tests.test_reliability" in nearest(["docs/reliability.md"], tree)[:5]


def git(root: Path, *arguments: str) -> None:
    identity = ("-c", "user.name=nobody", "-c", "user.email=nobody@invalid", "-c", "commit.gpgsign=false")
    subprocess.run([require_tool("git"), "-C", root, *identity, *arguments], check=True, capture_output=True)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    git(tmp_path, "init", "--initial-branch=main")
    for name in ("kept", "changed", "deleted", "moved", "committed"):
        (tmp_path / name).write_text(name * 20)
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-m", "main")
    git(tmp_path, "switch", "-c", "branch")
    return tmp_path


def test_committed_changed_added_moved_and_deleted_files_since_the_branch_left_main(root: Path) -> None:
    (root / "committed").write_text("anew")
    git(root, "commit", "-a", "-m", "on the branch")
    (root / "changed").write_text("anew")
    (root / "deleted").unlink()
    git(root, "mv", "moved", "there")
    (root / "new file").touch()
    assert since_main(root) == ("changed", "committed", "deleted", "moved", "new file", "there")
    assert since_main(root, "HEAD") == ("changed", "deleted", "moved", "new file", "there")


def test_what_main_has_that_the_branch_has_not_is_no_change(root: Path) -> None:
    git(root, "switch", "main")
    (root / "kept").write_text("anew")
    git(root, "commit", "-a", "-m", "on main")
    git(root, "switch", "branch")
    assert since_main(root) == ()


def test_where_the_clone_has_the_main_of_its_origin_that_counts(root: Path) -> None:
    git(root, "update-ref", "refs/remotes/origin/main", "main")
    git(root, "switch", "main")
    (root / "kept").write_text("anew")
    git(root, "commit", "-a", "-m", "not pushed yet")
    assert since_main(root) == ("kept",)


@pytest.mark.parametrize("base", ["", "gone"])
def test_without_a_place_to_compare_with_it_says_so(tmp_path: Path, base: str) -> None:
    with pytest.raises(NoGitError):
        since_main(tmp_path, base)
