"""promtool and amtool on the rules of conf/: the cases of each alert as they stand, or others in their place."""

import json
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from tests.tools import require_tool

TESTS = Path(__file__).parent / "rules"


def run(program: str, *arguments: object, cwd: Path | None = None) -> str:
    """What one prints that finds nothing wrong."""
    done = subprocess.run([require_tool(program), *map(str, arguments)], capture_output=True, text=True, cwd=cwd, check=False)
    assert done.returncode == 0, "\n".join(line for line in (done.stdout + done.stderr).splitlines() if "SUCCESS" not in line and line)
    return done.stdout


def answers(document: Mapping[str, Any], directory: Path) -> str:
    """What promtool prints of a document that asks for what cannot be, to be told what there is."""
    (directory / "tests.json").write_text(json.dumps(document))
    command = [require_tool("promtool"), "test", "rules", "tests.json"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=directory, check=False)
    return done.stdout + done.stderr


def cases_of(alert: str) -> dict[str, Any]:
    """The tests of an alert, all values as they are written: ``0x60`` is no number for promtool."""
    read: dict[str, Any] = yaml.load((TESTS / f"{alert}.yaml").read_text(), yaml.BaseLoader)
    return read


def passes(cases: Mapping[str, Sequence[Mapping[str, Any]]], directory: Path) -> None:
    """promtool finds that each alert, by its name, does in these cases what they expect."""
    for alert, tests in cases.items():
        document = cases_of(alert)
        rules = [str((TESTS / each).resolve()) for each in document["rule_files"]]
        (directory / f"{alert}.yaml").write_text(yaml.safe_dump(document | {"rule_files": rules, "tests": list(tests)}))
    run("promtool", "test", "rules", *(f"{alert}.yaml" for alert in cases), cwd=directory)
