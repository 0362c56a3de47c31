"""A job with an archive of its JVM's classes, and with one that is of no use."""

import shutil
from pathlib import Path

import pytest

from tests import jvm_archive
from tests.builders import batch, log_dir, partition
from tests.commands import into
from tests.processes import segtail, until
from tests.tools import missing

pytestmark = pytest.mark.spark


@pytest.fixture
def archive() -> Path:
    """That of the tests, which `segtail warm-up` has made for this machine; others may be beside it."""
    directory = jvm_archive.found()
    if directory is None:
        missing("no archive of Spark's classes could be made here")
    (folder,) = directory.glob("classes-*")
    return folder


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    made = log_dir(tmp_path)
    partition(made, "orders").append(batch(3))
    return made.path


def test_a_job_starts_from_the_archive(archive: Path, disk: Path, tmp_path: Path) -> None:
    with segtail("run", "--log-dirs", disk, "--checkpoint", tmp_path / "c", "--listen", "127.0.0.1:0", stated=tmp_path / "said") as started:
        until("it serves", lambda: started.url)
        jvm = started.jvm
        assert jvm
        assert str(archive / "classes.jsa") in Path(f"/proc/{jvm.pid}/maps").read_text()


def test_one_that_is_cut_off_is_not_used_and_nothing_is_printed_of_it(archive: Path, disk: Path, tmp_path: Path) -> None:
    folder = tmp_path / "archives" / archive.name
    shutil.copytree(archive, folder, ignore=shutil.ignore_patterns("*.jsa"))
    with (archive / "classes.jsa").open("rb") as whole:
        (folder / "classes.jsa").write_bytes(whole.read(1 << 20))
    out, arguments = tmp_path / "page.prom", ("--log-dirs", disk, "--checkpoint", tmp_path / "c", "--from", "earliest", "--once")
    given = ("--set", f"class_archives={folder.parent}")
    with segtail("run", *arguments, *given, stated=tmp_path / "said", before=into(out)) as started:
        assert started.wait() == 0, started.stated
    assert 'topic="orders"' in out.read_text()
    assert not [line for line in started.stated.splitlines() if "logger=spark" in line or "archive" in line.replace(str(folder.parent), "")]


def test_a_directory_that_cannot_be_written_is_named_at_once(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with segtail("warm-up", "--class-archives", tmp_path / "file", stated=tmp_path / "said") as started:
        assert started.wait() == 2
    (line,) = started.stated.splitlines()
    assert line.startswith("segtail: error: there is no place for an archive of Spark's classes")
    assert line.endswith("name one with --class-archives DIR")
