"""What is missing on a machine is reported with what brings it, and with the tests that need it."""

import ast
from pathlib import Path

import pytest

from tests.check.nearest import read
from tests.check.skipped import ROOT, Need, needs, report
from tests.tools import TO_GET, require_tool


def test_what_is_missing_comes_with_what_brings_it_and_what_it_skips() -> None:
    found = [
        Need("promtool", False, "apt-get install prometheus", ["tests/alerts/test_rules.py"]),
        Need("git", True, "apt-get install git", ["tests/check/test_changes.py"]),
    ]
    assert report(found) == (
        "MISSING  promtool                 apt-get install prometheus\n         skips tests of tests/alerts/test_rules.py\nhere     git\n"
    )


def test_every_program_is_named_by_some_test_and_found_or_not_as_it_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "promtool").touch(mode=0o755)
    found = {need.name: need for need in needs(read(ROOT))}
    assert [need.name for need in found.values() if not need.where] == []
    assert (found["promtool"].here, found["podman"].here, found["container image"].here) == (True, False, False)
    assert "tests/dashboards/test_on_prometheus.py" in found["promtool"].where


def test_a_program_that_a_test_asks_for_by_its_name_is_in_the_table() -> None:
    asked = {
        call.args[0].value
        for path in (ROOT / "tests").rglob("*.py")
        if "require_tool(" in path.read_text(encoding="utf-8")
        for call in ast.walk(ast.parse(path.read_bytes()))
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "require_tool"
        if isinstance(call.args[0], ast.Constant) and path != Path(__file__)
    }
    assert asked <= TO_GET.keys()


def test_a_test_without_its_program_is_skipped_with_what_brings_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match=r"podman is neither .* \(apt-get install podman"):
        require_tool("podman")
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="podman"):
        require_tool("podman")
