"""Which archive of Spark's classes a job takes, and what is left where one cannot be made."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from streaming.common.settings import Settings
from streaming.errors import UsageError
from streaming.spark.job import archive_making, local_files
from streaming.spark.job.archive_making import ArchiveError, write
from streaming.spark.job.class_archive import CLASS_PATH, JAVA_OPTIONS, ClassArchive, found, place

MAKES = 'for word; do case "$word" in -XX:SharedArchiveFile=*) made="${word#*=}";; esac; done; [ "$1" != -Xshare:dump ] || '


@pytest.fixture
def java_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Java beside a Spark; neither runs."""
    spark = tmp_path / "spark"
    for file in ("spark/bin/spark-submit", "spark/jars/a.jar", "spark/jars/b.jar", "java/lib/server/libjvm.so", "java/lib/modules"):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(file)
    monkeypatch.setenv("SPARK_HOME", str(spark))
    return tmp_path / "java"


@pytest.fixture
def made(java_home: Path, tmp_path: Path) -> ClassArchive:
    archive = place(tmp_path / "archives", java_home)
    archive.folder.mkdir(parents=True)
    archive.jar.write_bytes(b"jar")
    archive.classes.write_bytes(b"classes")
    archive.size.write_text("7")
    for path in (archive.folder, archive.jar, archive.classes):
        path.chmod(path.stat().st_mode & ~0o022)
    return archive


def java(tmp_path: Path, script: str) -> Path:
    """A Java that does this with the archive it is given."""
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return program


def test_another_java_or_other_jars_have_another_archive_and_the_same_ones_have_the_same(java_home: Path, tmp_path: Path) -> None:
    before = place(tmp_path, java_home)
    assert place(tmp_path, java_home) == before
    for changed in ("java/lib/server/libjvm.so", "java/lib/modules", "spark/jars/b.jar"):
        (tmp_path / changed).write_text("another one")
        after = place(tmp_path, java_home)
        assert after != before, changed
        before = after
    os.utime(tmp_path / "spark/jars/a.jar", (0, 0))
    assert place(tmp_path, java_home) != before


def test_without_a_directory_it_is_in_the_user_s_cache(java_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert place(None, java_home).folder.parent == tmp_path / ".cache/segtail"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert place(None, java_home).folder.parent == tmp_path / "xdg/segtail"


def test_a_job_takes_the_one_that_is_there(made: ClassArchive, java_home: Path) -> None:
    assert found(made.folder.parent, java_home, {}) == made


@pytest.mark.parametrize(
    "spoilt",
    [
        lambda made: made.classes.unlink(),
        lambda made: made.jar.unlink(),
        lambda made: made.size.unlink(),
        lambda made: made.classes.write_bytes(b"class"),
        lambda made: made.classes.chmod(0o664),
        lambda made: made.jar.chmod(0o646),
        lambda made: made.folder.chmod(0o777),
    ],
    ids=["no archive", "no jar", "no size", "cut off", "archive", "jar", "folder"],
)
def test_one_that_is_not_whole_or_that_others_may_write_is_none(
    spoilt: Callable[[ClassArchive], None], made: ClassArchive, java_home: Path
) -> None:
    spoilt(made)
    assert found(made.folder.parent, java_home, {}) is None


def test_whoever_has_a_class_path_of_his_own_goes_without(made: ClassArchive, java_home: Path) -> None:
    assert found(made.folder.parent, java_home, {CLASS_PATH: "/mine.jar"}) is None


def test_a_java_of_another_shape_goes_without(made: ClassArchive, java_home: Path) -> None:
    (java_home / "lib/modules").unlink()
    assert found(made.folder.parent, java_home, {}) is None


def test_java_is_asked_to_use_it_if_it_can_and_to_say_nothing(tmp_path: Path) -> None:
    archive = ClassArchive(tmp_path / "with space")
    given = {JAVA_OPTIONS: "-Dmine=1"}
    options = archive.options(given, local=True)
    assert options == {
        CLASS_PATH: str(archive.jar),
        JAVA_OPTIONS: f'-Dmine=1 "-XX:SharedArchiveFile={archive.classes}" -Xshare:auto -Xlog:cds*=off',
        local_files.OPTION: local_files.NAME,
    }
    assert local_files.OPTION not in archive.options(given, local=False)
    assert local_files.OPTION not in archive.options({local_files.OPTION: local_files.FALLBACK}, local=True)


def test_one_is_written_whole_and_holds_its_jar_first(java_home: Path, tmp_path: Path) -> None:
    archive = place(tmp_path / "archives", java_home)
    archive.folder.mkdir(parents=True)
    write(archive, java(tmp_path, f'{MAKES} echo "$@" > "$made"'), tmp_path / "list", ["/b.jar"], b"jar")
    assert f"-cp {archive.jar}{os.pathsep}/b.jar" in archive.classes.read_text()
    assert archive.jar.read_bytes() == b"jar"
    assert {path.name for path in archive.folder.iterdir()} == {"classes.jsa", "classes.size", "local-files.jar"}
    assert found(archive.folder.parent, java_home, {}) == archive


@pytest.mark.parametrize(
    ("script", "stated"),
    [
        (f'{MAKES} {{ echo half > "$made"; echo "Unable to write to shared archive: No space left on device"; exit 1; }}', "No space left"),
        ("exit 0", "No such file"),
        (f'{MAKES} echo "$@" > "$made"; [ "$1" != -Xshare:on ] || {{ echo "it has been truncated."; exit 1; }}', "truncated"),
    ],
    ids=["a full disk", "nothing written", "one that is cut off"],
)
def test_of_one_that_cannot_be_made_nothing_is_left_and_the_one_before_stays(script: str, stated: str, tmp_path: Path) -> None:
    archive = ClassArchive(tmp_path / "archives" / "classes-1")
    for before in (None, b"whole"):
        archive.folder.mkdir(parents=True, exist_ok=True)
        if before:
            archive.jar.write_bytes(b"jar")
            archive.classes.write_bytes(before)
        with pytest.raises(ArchiveError, match=stated), archive_making._nothing_but_whole(archive):
            write(archive, java(tmp_path, script), tmp_path / "list", [], b"jar")
        assert (archive.classes.read_bytes() if archive.classes.exists() else None) == before
        assert archive.folder.exists() == bool(before)


def test_a_jvm_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ArchiveError, match="nowhere"):
        write(ClassArchive(tmp_path), tmp_path / "nowhere", tmp_path / "list", [], b"jar")


def test_a_directory_that_cannot_be_written_is_named_before_anything_starts(java_home: Path, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(UsageError, match=r"file.*--class-archives DIR"):
        archive_making._place(Settings(class_archives=file), java_home)


def test_a_configuration_on_the_class_path_is_named(tmp_path: Path) -> None:
    conf, jar = tmp_path / "conf", tmp_path / "a.jar"
    conf.mkdir()
    jar.touch()
    archive_making.refuse_directories([str(conf), str(jar), str(tmp_path / "nowhere")])
    (conf / "spark-defaults.conf").touch()
    with pytest.raises(UsageError, match=f"{conf}.*SPARK_CONF_DIR"):
        archive_making.refuse_directories([str(jar), str(conf)])


def test_such_a_configuration_is_named_before_anything_starts(java_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    conf = tmp_path / "conf"
    conf.mkdir()
    (conf / "spark-defaults.conf").touch()
    monkeypatch.setenv("SPARK_CONF_DIR", str(conf))
    with pytest.raises(UsageError, match="unset SPARK_CONF_DIR"):
        archive_making._place(Settings(class_archives=tmp_path / "archives"), java_home)
    assert not (tmp_path / "archives").exists()


def test_a_class_path_of_the_user_s_is_named_before_anything_starts(java_home: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=CLASS_PATH):
        archive_making._place(Settings(class_archives=tmp_path, spark={CLASS_PATH: "/mine.jar"}), java_home)
