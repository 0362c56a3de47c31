"""The Dockerfile, without building it."""

import subprocess
from pathlib import Path

from tests.tools import require_tool

DOCKERFILE = Path(__file__).resolve().parents[2] / "Dockerfile"


def lint(dockerfile: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([require_tool("hadolint"), "-"], input=dockerfile, capture_output=True, text=True)


def test_hadolint_has_nothing_to_say() -> None:
    done = lint(DOCKERFILE.read_text())

    assert done.returncode == 0, done.stdout


def test_hadolint_would_say_something() -> None:
    assert lint(DOCKERFILE.read_text() + "RUN cd /tmp && apt-get install nano\n").returncode != 0
