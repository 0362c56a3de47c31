"""What the tests need from this machine, what of it is missing, how to get it, and which tests it skips: `python -m tests.check.skipped`.

No test runs for that. How many are skipped, each with its reason, stands at the end of every run of the tests.
"""

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from streaming.common import java
from streaming.errors import JavaError
from tests.broker.install import BROKER_VERSION, KAFKA_VERSION, cache_dir
from tests.check.nearest import Tree, naming, reaching, read
from tests.image.containers import IMAGE
from tests.tools import TO_GET, find_tool

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class Need:
    """Something outside Python. ``where``: the tests that are skipped without it."""

    name: str
    here: bool
    to_get: str
    where: Sequence[str]


def needs(tree: Tree) -> list[Need]:
    """Everything that tests may need."""
    programs = [Need(name, find_tool(name) is not None, how, _files(name, tree)) for name, how in TO_GET.items()]
    jars = all((cache_dir() / f"kafka-{version}" / "libs").is_dir() for version in (KAFKA_VERSION, BROKER_VERSION))
    return [
        *programs,
        Need("java", _has_java(), "make setup", ["the marks spark and broker"]),
        Need("jars of Kafka", jars, "the first test with a broker fetches them", ["the mark broker"]),
        Need("container image", _has_image(), "make image", ["the mark image"]),
        Need("root", os.geteuid() == 0, "sudo; unshare does for some", _files("unshare", tree)),
    ]


def _has_java() -> bool:
    try:
        java.find(os.environ, cache_dir() / "java")
    except JavaError:
        return False
    return True


def _has_image() -> bool:
    podman = find_tool("podman")
    return podman is not None and subprocess.run([podman, "image", "exists", IMAGE], check=False, capture_output=True).returncode == 0


def _files(program: str, tree: Tree) -> list[str]:
    """Test files that name a program and can look for it, by themselves or by what they import."""
    able = reaching("tests.tools", tree, steps=2)
    return [name.replace(".", "/") + ".py" for name in naming(program, tree) if name in able and name != "tests.check.test_skipped"]


def report(found: Sequence[Need]) -> str:
    """A line for each need, and below those that are missing the tests that they skip."""
    lines = []
    for need in found:
        lines.append(f"{'here   ' if need.here else 'MISSING'}  {need.name:25}{'' if need.here else need.to_get}".rstrip())
        if not need.here:
            lines += [f"         skips tests of {place}" for place in need.where]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.stdout.write(report(needs(read(ROOT))))
