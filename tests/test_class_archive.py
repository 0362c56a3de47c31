"""What the archive of a broker's classes does to the start of a JVM, and what happens where there is none: nothing."""

import subprocess
from pathlib import Path

import pytest

from tests.broker import class_archive


@pytest.fixture
def java(tmp_path: Path) -> str:
    """A Java that makes an archive of whatever it is given, and says so."""
    program = tmp_path / "java"
    program.write_text('#!/bin/sh\nfor word; do case "$word" in *SharedArchiveFile=*) echo "$@" > "${word#*=}";; esac; done\n')
    program.chmod(0o755)
    return str(program)


@pytest.fixture
def jar(tmp_path: Path) -> str:
    path = tmp_path / "kafka.jar"
    path.write_bytes(b"jar")
    return str(path)


def test_jvms_write_what_they_load_while_one_is_made_and_start_from_it_afterwards(tmp_path: Path, java: str, jar: str) -> None:
    started: list[str] = []

    def train(_directory: Path) -> None:
        for _ in range(2):
            (option,) = class_archive.options(java, jar, tmp_path / "archives")
            Path(option.partition("=")[2]).write_text(f"# comment\nClass{len(started)}\nShared\n")
            started.append(option)

    assert class_archive.options(java, jar, tmp_path / "archives") == ()
    class_archive.make(java, jar, tmp_path / "archives", train)
    assert len(set(started)) == 2
    given, *_ = class_archive.options(java, jar, tmp_path / "archives")
    made = Path(given.removeprefix("-XX:SharedArchiveFile="))
    assert f"-cp {jar}" in made.read_text()
    assert [path.suffix for path in sorted(made.parent.iterdir())] == [".jsa", ".lock"], "nothing is left of the lists"


@pytest.mark.parametrize("error", [AssertionError("no broker"), OSError("no room"), subprocess.CalledProcessError(1, "java")])
def test_one_that_cannot_be_made_is_not_tried_again_and_fails_nobody(tmp_path: Path, java: str, jar: str, error: Exception) -> None:
    tried: list[Path] = []

    def train(directory: Path) -> None:
        tried.append(directory)
        raise error

    for _ in range(2):
        class_archive.make(java, jar, tmp_path / "archives", train)
    assert len(tried) == 1
    assert class_archive.options(java, jar, tmp_path / "archives") == ()


def test_other_jars_need_another_archive(tmp_path: Path, java: str, jar: str) -> None:
    class_archive.make(java, jar, tmp_path / "archives", lambda _: None)
    other = tmp_path / "other.jar"
    other.write_bytes(b"another")
    assert class_archive.options(java, jar, tmp_path / "archives")
    assert class_archive.options(java, f"{jar}:{other}", tmp_path / "archives") == ()
