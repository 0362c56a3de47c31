"""The Dockerfile, without building it."""

import os
import re
import subprocess
import tomllib
from pathlib import Path

from tests.install.built import pins
from tests.tables import each_row
from tests.tools import require_tool

ROOT = Path(__file__).resolve().parents[2]
DOCKERFILE = ROOT / "Dockerfile"


def lint(dockerfile: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([require_tool("hadolint"), "-"], input=dockerfile, capture_output=True, text=True)


def test_hadolint_has_nothing_to_say() -> None:
    done = lint(DOCKERFILE.read_text())

    assert done.returncode == 0, done.stdout


def test_hadolint_would_say_something() -> None:
    assert lint(DOCKERFILE.read_text() + "RUN cd /tmp && apt-get install nano\n").returncode != 0


def test_everything_that_pip_fetches_has_a_hash() -> None:
    installs = re.findall(r"pip install (?:[^&\\\n]|\\\n)*", DOCKERFILE.read_text())
    assert len(installs) == 5
    assert [each for each in installs if not ("--require-hashes" in each or "--no-deps --no-index" in each)] == []
    assert re.findall(r"--requirement (\S+)", "\n".join(installs)) == [
        "requirements-run.txt",
        "requirements-build.txt",
        "requirements-agent.txt",
    ]


def test_the_wheel_is_built_by_what_the_project_is_built_and_checked_with() -> None:
    build, whole = pins(ROOT / "requirements-build.txt"), pins(ROOT / "requirements.txt")
    backend = {name(each) for each in tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"]}
    assert build.items() <= whole.items(), "make lock"
    assert {"build", *backend} <= set(build), "make lock"


@each_row("base", ["debian:bookworm-slim", "debian", "example.com/debian@sha256:0", "example.com/localhost/debian:12"])
def test_a_base_that_may_be_another_tomorrow_is_refused(base: str) -> None:
    done = subprocess.run([ROOT / ".ci" / "image"], env=os.environ | {"BASE": base}, capture_output=True, text=True)
    assert (done.returncode, done.stderr.startswith(f"BASE={base}: a tag may name another image")) == (2, True)


def test_there_is_no_base_by_default() -> None:
    assert "\nARG BASE\n" in DOCKERFILE.read_text()


def test_the_locks_of_image_and_package_are_that_of_the_project_without_what_they_do_not_need() -> None:
    whole, run, agent = (pins(ROOT / name) for name in ("requirements.txt", "requirements-run.txt", "requirements-agent.txt"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    tools = {name(each) for each in project["dependency-groups"]["dev"]}
    base = {name(each) for each in project["project"]["dependencies"]}
    spark = {name(each) for each in project["project"]["optional-dependencies"]["spark"]}

    assert agent.items() <= run.items() <= whole.items(), "make lock"
    assert base <= set(agent), "make lock"
    assert spark <= set(run), "make lock"
    assert not spark & set(agent)
    assert not tools & set(run)


def name(requirement: str) -> str:
    found = re.match(r"[A-Za-z0-9-]+", requirement)
    assert found is not None
    return found[0].lower()
