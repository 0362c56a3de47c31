"""The Dockerfile, without building it."""

import re
import subprocess
import tomllib
from pathlib import Path

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


def pins(lock: Path) -> dict[str, str]:
    return dict(re.findall(r"(?m)^([a-z0-9-]+)==(\S+)", lock.read_text()))


def name(requirement: str) -> str:
    found = re.match(r"[A-Za-z0-9-]+", requirement)
    assert found is not None
    return found[0].lower()
