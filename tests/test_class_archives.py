"""What an archive of classes does to the start of a JVM, and what happens where there is none: nothing."""

import sys
from pathlib import Path

import pytest

from tests import class_archives
from tests.broker import class_archive


@pytest.fixture
def java(tmp_path: Path) -> str:
    """A Java that makes an archive of whatever it is given, and starts with any that is there."""
    program = tmp_path / "java"
    program.write_text(
        '#!/bin/sh\nfor word; do case "$word" in -XX:SharedArchiveFile=*) archive="${word#*=}";; -Xshare:dump) made=yes;; esac; done\n'
        '[ -z "$archive" ] || if [ "$made" ]; then echo "$@" > "$archive"; else [ -s "$archive" ]; fi\n'
    )
    program.chmod(0o755)
    return str(program)


@pytest.fixture
def jar(tmp_path: Path) -> str:
    path = tmp_path / "kafka.jar"
    path.write_bytes(b"jar")
    return str(path)


def program(tmp_path: Path, text: str) -> list[str]:
    """A command that notes that it was called, and then does this in Python with the folder of the archive and the one that goes."""
    begins = "import pathlib, sys; place, scratch = map(pathlib.Path, sys.argv[1:])"
    notes = f"open({str(tmp_path / 'calls')!r}, 'a').write('once\\n')"
    return [sys.executable, "-c", f"{begins}; {notes}\n{text}"]


def test_an_archive_is_made_once_and_nothing_else_is_left_of_it(tmp_path: Path, java: str) -> None:
    place = tmp_path / "archives" / "job"
    made = program(tmp_path, "(place / 'kept.jar').touch(); (scratch / 'gone').touch(); (scratch / 'classes.jsa').write_text('classes')")
    for _ in range(2):
        class_archives.make(place, java, made)
    archive = class_archives.found(place)
    assert archive
    assert archive.read_text() == "classes"
    assert {path.name for path in place.iterdir()} == {archive.name, "kept.jar", "lock"}
    assert (tmp_path / "calls").read_text() == "once\n"


@pytest.mark.parametrize(
    ("text", "stated"),
    [
        ("raise AssertionError('no broker')", "AssertionError: no broker"),
        ("print('CDS: classes are not mine', file=sys.stderr)", "classes are not mine"),
        ("(scratch / 'classes.jsa').touch()", "-version"),
    ],
    ids=["it fails", "it leaves none", "one that was cut off"],
)
def test_one_that_cannot_be_made_is_not_tried_again_and_fails_nobody(tmp_path: Path, java: str, text: str, stated: str) -> None:
    place = tmp_path / "archives" / "job"
    for _ in range(2):
        class_archives.make(place, java, program(tmp_path, text))
    assert class_archives.found(place) is None
    assert stated in (place / "failed").read_text()
    assert (tmp_path / "calls").read_text() == "once\n"


def test_whoever_comes_while_one_is_made_goes_on_without(tmp_path: Path, java: str) -> None:
    place = tmp_path / "archives" / "job"
    comes = f"import sys; sys.path.insert(0, {str(Path(__file__).parents[1])!r}); from tests import class_archives\n"
    comes += f"class_archives.make(place, {java!r}, ['false'])\nassert not list(place.glob('failed'))\n"
    class_archives.make(place, java, program(tmp_path, f"{comes}(scratch / 'classes.jsa').write_text('classes')"))
    assert class_archives.found(place)


def test_jvms_write_what_they_load_while_one_is_made_and_start_from_it_afterwards(tmp_path: Path, java: str, jar: str) -> None:
    assert class_archive.options(java, jar, tmp_path / "archives") == ()
    place = class_archive.place(java, jar, tmp_path / "archives")
    place.mkdir(parents=True)
    with class_archive.recording(tmp_path / "lists", jar) as lists:
        assert class_archive.options(java, f"{jar}:other.jar", tmp_path / "archives") == ()  # of another version
        for name in ("First", "Second"):
            (option,) = class_archive.options(java, jar, tmp_path / "archives")
            Path(option.removeprefix("-XX:DumpLoadedClassList=")).write_text(f"# comment\n{name}\nShared\n")
    class_archive.dump(java, jar, lists, place / class_archives.ARCHIVE)
    assert (lists / "together").read_text() == "First\nShared\nSecond"
    given, *_ = class_archive.options(java, jar, tmp_path / "archives")
    assert given == f"-XX:SharedArchiveFile={place / class_archives.ARCHIVE}"
    assert f"-cp {jar}" in (place / class_archives.ARCHIVE).read_text()


def test_other_jars_need_another_archive(tmp_path: Path, java: str, jar: str) -> None:
    other = tmp_path / "other.jar"
    other.write_bytes(b"another")
    places = [class_archive.place(java, path, tmp_path / "archives") for path in (jar, f"{jar}:{other}", jar)]
    assert places[0] == places[2] != places[1]
