"""What a release is refused for, before anything is built, and the notes that are cut for it."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

import streaming
from install.release.listing import NOTES, listing
from install.release.notes import main, notes
from tests.install.built import ROOT
from tests.tools import require_tool

CHANGELOG = """# Changelog

Text.

## 0.2.0 (2026-12-01)

- Two: [README.md](README.md), [one host](docs/quickstart.md#one-host) and [others](https://example.org).

### Small

## 0.1.0 (unreleased)

- One.

## 0.0.9
"""


def test_the_notes_are_what_stands_below_the_heading_of_the_version_without_links_to_files_that_are_not_beside_them() -> None:
    two = "- Two: `README.md`, one host (`docs/quickstart.md`) and [others](https://example.org)."
    assert notes(CHANGELOG, "0.2.0") == (f"{two}\n\n### Small\n", "2026-12-01")
    assert notes(CHANGELOG, "0.1.0") == ("- One.\n", "unreleased")


@pytest.mark.parametrize("version", ["0.0.9", "0.2", "0.3.0", "Small"])
def test_a_version_that_nobody_described_has_no_notes(version: str) -> None:
    with pytest.raises(
        ValueError, match=rf"CHANGELOG.md has nothing of {version}: write what changed below a line '## {version} \(DATE\)'"
    ):
        notes(CHANGELOG, version)


def test_the_version_of_this_checkout_has_notes() -> None:
    text, date = notes((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), streaming.__version__)
    assert len(text) > 100
    assert date is not None


@pytest.mark.parametrize(
    ("version", "status", "error"),
    [
        ("0.2.0", 0, ""),
        ("0.1.0", 0, "release: CHANGELOG.md has no date for 0.1.0 yet: write it there before you publish\n"),
        ("0.3.0", 2, "release: CHANGELOG.md has nothing of 0.3.0: write what changed below a line '## 0.3.0 (DATE)'\n"),
    ],
)
def test_whoever_makes_the_release_is_warned(version: str, status: int, error: str, monkeypatch, capsys, tmp_path: Path) -> None:
    (tmp_path / "CHANGELOG.md").write_text(CHANGELOG)
    with (tmp_path / "CHANGELOG.md").open() as file:
        monkeypatch.setattr("sys.stdin", file)
        assert main(version) == status
    assert capsys.readouterr().err == error


def test_each_file_is_listed_with_its_size_and_how_it_is_used(tmp_path: Path) -> None:
    (tmp_path / NOTES).touch()
    (tmp_path / "segtail-0.1.0-py312-aarch64.pyz").write_bytes(bytes(2048))
    assert listing(tmp_path).endswith(
        "| `segtail-0.1.0-py312-aarch64.pyz` | 2.0 KiB | commands on log dirs for this Python (py311 is 3.11) and machine, "
        "to copy to a host: `python3 segtail-0.1.0-py312-aarch64.pyz top`; unpacks 240 MB into `~/.cache/segtail`, "
        "or where `SEGTAIL_UNPACKED` says |\n"
    )
    (tmp_path / "surprise.txt").touch()
    with pytest.raises(ValueError, match=r"surprise\.txt: write what it is for"):
        listing(tmp_path)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A clean checkout of what the script reads before it builds; `.venv` is this one's."""
    folder = tmp_path / "checkout"
    folder.mkdir()
    parts = ["install", "streaming/__init__.py", "CHANGELOG.md", ".gitignore"]
    subprocess.run(["cp", "--archive", "--parents", *parts, folder], cwd=ROOT, check=True)
    git = [require_tool("git"), "-c", "user.name=tests", "-c", "user.email=tests@localhost"]
    for command in (["init", "--quiet"], ["add", "--all"], ["commit", "--quiet", "--message", "all"]):
        subprocess.run([*git, *command], cwd=folder, check=True)
    return folder


def release(checkout: Path, **environ: str) -> tuple[int, str]:
    """The status, and what it reports, of an attempt."""
    command = [checkout / "install" / "release" / "build"]
    environment = os.environ | {"BIN": str(Path(sys.executable).parent)} | environ
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.stdout == ""
    assert not (checkout / "build" / "release").exists()
    return done.returncode, done.stderr


def test_a_tree_that_is_not_clean_is_refused(checkout: Path) -> None:
    (checkout / "CHANGELOG.md").write_text("changed")
    status, reported = release(checkout)
    assert status == 2
    assert reported == (
        "release: the tree is not clean, and nobody could tell what was built from it. Commit, or put away:\n M CHANGELOG.md\n"
    )


def test_a_version_without_notes_is_refused(checkout: Path) -> None:
    (checkout / "streaming" / "__init__.py").write_text('__version__ = "9.9.9"\n')
    subprocess.run(
        [require_tool("git"), "-c", "user.name=t", "-c", "user.email=t@localhost", "commit", "-qam", "x"], cwd=checkout, check=True
    )
    assert release(checkout) == (2, "release: CHANGELOG.md has nothing of 9.9.9: write what changed below a line '## 9.9.9 (DATE)'\n")


def test_a_tool_that_is_missing_is_named(checkout: Path, tmp_path: Path) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("bash", "git", "sed", "dirname", "mkdir", "head"):
        (tools / name).symlink_to(require_tool(name))
    status, reported = release(checkout, PATH=str(tools))
    assert (status, reported.splitlines()[-1]) == (2, "There is no dpkg-deb on the PATH (Debian: apt-get install dpkg).")


@pytest.mark.parametrize(
    ("sums", "error"),
    [
        ("{other}  notes", "release: this failed: sha256sum --check --strict SHA256SUMS\n"),
        ("{sum}  notes", "release: SHA256SUMS does not name every file\n"),
    ],
)
def test_files_that_are_not_those_of_the_sums_are_no_release(sums: str, error: str, tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("notes")
    (tmp_path / "more").write_text("more")
    digest = hashlib.sha256(b"notes").hexdigest()
    (tmp_path / "SHA256SUMS").write_text(sums.format(sum=digest, other=digest[::-1]) + "\n")
    check = [ROOT / "install" / "release" / "check", tmp_path, "0.1.0", "0" * 40]
    done = subprocess.run(check, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.endswith(error)) == (1, True), done.stderr
