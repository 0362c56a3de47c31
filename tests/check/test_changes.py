"""What git says was changed."""

import subprocess
from pathlib import Path

import pytest

from tests.check.changes import NoGitError, since_main
from tests.tools import require_tool


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
