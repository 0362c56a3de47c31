"""What tells one build from another: the same facts name the Debian package, the RPM and the image, and what they name is in order."""

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

import streaming
from tests.install.built import ROOT, Versions, build_versions
from tests.tools import require_tool

pytestmark = pytest.mark.programs

V = streaming.__version__


@dataclass(frozen=True, slots=True)
class Checkout:
    """One with the facts alone."""

    folder: Path

    def git(self, *arguments: str, date: str = "") -> None:
        """Runs git as somebody, at a date."""
        who = ["-c", "user.name=tests", "-c", "user.email=tests@localhost"]
        environment = os.environ | ({"GIT_COMMITTER_DATE": date, "GIT_AUTHOR_DATE": date} if date else {})
        subprocess.run([require_tool("git"), *who, *arguments], cwd=self.folder, env=environment, check=True, capture_output=True)

    def commit(self, date: str) -> None:
        """Commits all that there is, or nothing."""
        self.git("add", "--all")
        self.git("commit", "--allow-empty", "--message", "one", date=date)

    def versions(self, **environ: str) -> Versions:
        """As the scripts that build find them."""
        return build_versions(self.folder, **environ)


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    subprocess.run(["cp", "--archive", "--parents", "install/facts", "streaming/__init__.py", tmp_path], cwd=ROOT, check=True)
    return Checkout(tmp_path)


RELEASED = Versions(deb=V, rpm=f"{V}-1.el9", image=V)


def test_a_build_names_its_commit_by_the_commits_own_time(checkout: Checkout) -> None:
    checkout.git("init", "--quiet")
    checkout.commit("2026-11-27T01:02:03+02:00")
    found = checkout.versions()
    assert found == checkout.versions(TZ="UTC")
    identity = found.deb.rpartition(".")[2]
    assert len(identity) == 10
    stamp = "20261126230203"
    assert found == Versions(f"{V}~git{stamp}.{identity}", f"{V}-0.{stamp}git{identity}.el9", f"{V}-git{stamp}.{identity}")


def test_a_later_commit_is_an_upgrade_and_the_release_one_of_all(checkout: Checkout) -> None:
    """By the tools that decide it on the hosts."""
    checkout.git("init", "--quiet")
    checkout.commit("2026-11-27T10:00:00+00:00")
    first = checkout.versions()
    checkout.commit("2026-11-27T10:00:01+00:00")
    second = checkout.versions()
    checkout.git("tag", f"v{V}")
    assert checkout.versions() == RELEASED
    checkout.commit("2026-11-27T10:00:02+00:00")
    assert checkout.versions() != RELEASED
    rpm = require_tool("rpm")
    for older, newer in ((first, second), (second, RELEASED)):
        assert subprocess.run([require_tool("dpkg"), "--compare-versions", older.deb, "lt", newer.deb]).returncode == 0
        compared = f"%{{lua: print(rpm.vercmp('{older.rpm}', '{newer.rpm}'))}}"
        assert subprocess.run([rpm, "--eval", compared], check=True, capture_output=True, text=True).stdout.strip() == "-1"


def test_a_tree_with_changes_that_nobody_committed_is_never_the_release(checkout: Checkout) -> None:
    checkout.git("init", "--quiet")
    checkout.commit("2026-11-27T10:00:00+00:00")
    checkout.git("tag", f"v{V}")
    (checkout.folder / "streaming" / "__init__.py").write_text(f'__version__ = "{V}"\n# mine\n')
    found = checkout.versions()
    assert found.image.endswith(".changed")
    assert found.deb.endswith(".changed")


def test_a_release_and_a_tree_without_git_have_the_version_alone(checkout: Checkout) -> None:
    assert checkout.versions(GIT_CEILING_DIRECTORIES=str(checkout.folder.parent)) == RELEASED
    checkout.git("init", "--quiet")
    checkout.commit("2026-11-27T10:00:00+00:00")
    assert checkout.versions(RELEASE="yes") == RELEASED


def test_the_image_gets_the_names_that_the_chart_and_a_push_ask_for(checkout: Checkout) -> None:
    subprocess.run(["cp", "--archive", "--parents", ".ci/image", checkout.folder], cwd=ROOT, check=True)
    checkout.git("init", "--quiet")
    checkout.commit("2026-11-27T10:00:00+00:00")
    done = subprocess.run([checkout.folder / ".ci" / "image", "--names"], check=True, capture_output=True, text=True)
    assert done.stdout.splitlines() == [f"localhost/segtail:{tag}" for tag in ("latest", V, checkout.versions().image)]
