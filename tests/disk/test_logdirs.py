"""What lies in a log dir, and log dirs that are none."""

import shutil
from dataclasses import replace
from pathlib import Path
from uuid import UUID

import pytest

from streaming.broker.disk.logdirs import list_partitions, load_offset_checkpoint, open_log_dirs, partitions_by_name, read_topic_id
from streaming.errors import LogDirError
from streaming.kafka.formats.names import DirState
from streaming.simulator.segment_writer import uuid_text
from tests.builders import CLUSTER_ID, delete, log_dir, partition
from tests.tools import nobody


def test_whose_a_log_dir_is(tmp_path: Path) -> None:
    disk = log_dir(tmp_path, broker=7)
    (found,) = open_log_dirs([disk.path])
    assert (found.path, found.broker, found.cluster_id) == (disk.path, 7, CLUSTER_ID)
    assert found.directory_id == uuid_text(disk.directory_id)


def test_a_new_log_dir_without_a_partition_is_valid(tmp_path: Path) -> None:
    (found,) = open_log_dirs([log_dir(tmp_path).path])
    assert list_partitions(found) == ()


def test_the_log_dirs_of_several_brokers_of_one_cluster(tmp_path: Path) -> None:
    disks = [log_dir(tmp_path, "d0", broker=1), log_dir(tmp_path, "d1", broker=2)]
    assert [found.broker for found in open_log_dirs([disk.path for disk in disks])] == [1, 2]


def test_log_dirs_of_two_clusters_are_refused_and_both_are_named(tmp_path: Path) -> None:
    first, second = log_dir(tmp_path, "d0"), log_dir(tmp_path, "d1", cluster_id="EBESExQVFhcYGRobHB0eHw")
    with pytest.raises(LogDirError) as refused:
        open_log_dirs([first.path, second.path])
    for named in (str(first.path), CLUSTER_ID, str(second.path), "EBESExQVFhcYGRobHB0eHw"):
        assert named in str(refused.value)


def test_a_log_dir_of_before_2_4_stands_beside_others_but_brings_no_two_clusters_together(tmp_path: Path) -> None:
    old, disk, other = log_dir(tmp_path, "d0"), log_dir(tmp_path, "d1"), log_dir(tmp_path, "d2", cluster_id="EBESExQVFhcYGRobHB0eHw")
    (old.path / "meta.properties").write_text("version=0\nbroker.id=1\n")
    assert [open_log_dirs(paths).cluster_id for paths in ([old.path], [old.path, disk.path])] == ["", CLUSTER_ID]
    with pytest.raises(LogDirError, match="log dirs of two clusters"):
        open_log_dirs([disk.path, old.path, other.path])


def test_the_cluster_is_known_once_its_broker_is_of_2_4(tmp_path: Path) -> None:
    disk = log_dir(tmp_path)
    meta = disk.path / "meta.properties"
    new = meta.read_text()
    meta.write_text("version=0\nbroker.id=1\n")
    dirs = open_log_dirs([disk.path])
    meta.write_text(new)
    dirs.check()
    assert (dirs.cluster_id, len(dirs.available)) == (CLUSTER_ID, 1)


def test_a_relative_path_is_made_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = log_dir(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert open_log_dirs([Path("d0")])[0].path == disk.path


def test_the_same_log_dir_under_two_names_is_refused(tmp_path: Path) -> None:
    disk = log_dir(tmp_path)
    (tmp_path / "link").symlink_to(disk.path)
    with pytest.raises(LogDirError, match="given twice"):
        open_log_dirs([disk.path, tmp_path / "link"])


def make_missing(path: Path) -> None:
    shutil.rmtree(path)


def make_a_file(path: Path) -> None:
    shutil.rmtree(path)
    path.touch()


def make_foreign(path: Path) -> None:
    (path / "meta.properties").unlink()


def make_damaged(path: Path) -> None:
    (path / "meta.properties").write_text("version=1\n")


def make_unreadable(path: Path) -> None:
    (path / "meta.properties").unlink()
    (path / "meta.properties").mkdir()


@pytest.mark.parametrize(
    ("make", "what"),
    [
        (make_missing, "does not exist"),
        (make_a_file, "is not a directory"),
        (make_foreign, r"has no meta\.properties"),
        (make_damaged, "is not valid"),
        (make_unreadable, "cannot be read"),
    ],
)
def test_what_is_no_log_dir_is_named_with_what_is_wrong(tmp_path: Path, make: object, what: str) -> None:
    disk = log_dir(tmp_path)
    disk.release()
    make(disk.path)  # type: ignore[operator]
    with pytest.raises(LogDirError, match=what) as refused:
        open_log_dirs([disk.path])
    assert str(disk.path) in str(refused.value)


def test_a_log_dir_that_may_not_be_read_says_as_whom_to_run(tmp_path: Path) -> None:
    disk = log_dir(tmp_path)
    disk.path.chmod(0)
    try:
        with nobody(), pytest.raises(LogDirError, match="run as the broker's user"):
            open_log_dirs([disk.path])
    finally:
        disk.path.chmod(0o755)


def test_no_log_dir_at_all() -> None:
    with pytest.raises(LogDirError, match="--log-dirs"):
        open_log_dirs([])


def test_partitions_are_reported_by_the_names_of_their_directories(tmp_path: Path) -> None:
    disk = log_dir(tmp_path)
    partition(disk, "with.dots-and-dashes-7", 3, topic_id=5)
    partition(disk, "__consumer_offsets", 12, topic_id=6)
    partition(disk, "older", topic_id=None)
    partition(disk, "moving", topic_id=7, name=f"moving-0.{1:032x}-future")
    partition(disk, "stray", topic_id=8, name=f"stray-0.{2:032x}-stray")
    delete(disk, partition(disk, "gone", topic_id=9))
    (disk.path / "lost+found").mkdir()
    (disk.path / "remote-log-index-cache").mkdir()
    (disk.path / "notes-1").touch()
    (disk.path / ".kafka_cleanshutdown").touch()
    (found,) = open_log_dirs([disk.path])
    listed = {(one.topic, one.partition): one for one in list_partitions(found)}
    assert {key: one.state for key, one in listed.items()} == {
        ("with.dots-and-dashes-7", 3): DirState.LIVE,
        ("__consumer_offsets", 12): DirState.LIVE,
        ("older", 0): DirState.LIVE,
        ("moving", 0): DirState.FUTURE,
        ("stray", 0): DirState.STRAY,
        ("gone", 0): DirState.DELETE,
    }
    live = listed["with.dots-and-dashes-7", 3]
    assert (live.log_dir, live.path, live.topic_id) == (found, disk.path / "with.dots-and-dashes-7-3", "AAAAAAAAAAAAAAAAAAAABQ")
    assert listed["older", 0].topic_id == ""


def test_a_directory_whose_topic_id_cannot_be_read_is_passed_over_and_reported(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    disk = log_dir(tmp_path)
    log = partition(disk, "t")
    (log.directory / "partition.metadata").write_text("version: 9\n")
    assert list_partitions(open_log_dirs([disk.path])[0]) == ()
    assert read_topic_id(log.directory) is None
    assert "partition.metadata cannot be read" in caplog.text


def test_a_log_dir_that_went_away_is_an_error(tmp_path: Path) -> None:
    disk = log_dir(tmp_path)
    (found,) = open_log_dirs([disk.path])
    shutil.rmtree(disk.path)
    with pytest.raises(FileNotFoundError):
        list_partitions(found)


def test_what_is_listed_again_is_the_same_object_as_long_as_it_is_the_same_directory(tmp_path: Path) -> None:
    disk = log_dir(tmp_path)
    log, other = partition(disk, "t"), partition(disk, "u", topic_id=2)
    (found,) = open_log_dirs([disk.path])
    before = partitions_by_name(found, read_topic_id)
    assert all(each is before[name] for name, each in partitions_by_name(found, read_topic_id, before).items())
    (log.directory / "partition.metadata").write_text(f"version: 0\ntopic_id: {uuid_text(UUID(int=7))}\n")
    delete(disk, other)
    now = partitions_by_name(found, read_topic_id, before)
    assert now == {each.path.name: each for each in list_partitions(found)}
    assert now["t-0"].topic_id == uuid_text(UUID(int=7))
    assert {each.state for each in now.values()} == {DirState.LIVE, DirState.DELETE}
    new = replace(found, directory_id=uuid_text(UUID(int=8)))
    assert {each.log_dir for each in partitions_by_name(new, read_topic_id, now).values()} == {new}
    log.directory.rename(tmp_path / "gone")
    (disk.path / "t-0").touch()
    assert "t-0" not in partitions_by_name(found, read_topic_id, now)


def test_offset_checkpoints_at_the_root(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    disk = log_dir(tmp_path)
    (found,) = open_log_dirs([disk.path])
    disk.write_checkpoint("log-start-offset-checkpoint", [("a.b", 1, 44)])
    assert load_offset_checkpoint(found, "log-start-offset-checkpoint").offsets == {("a.b", 1): 44}
    assert load_offset_checkpoint(found, "cleaner-offset-checkpoint").offsets == {}
    (disk.path / "recovery-point-offset-checkpoint").unlink()
    assert load_offset_checkpoint(found, "recovery-point-offset-checkpoint").offsets == {}
    assert caplog.text == ""
    for damaged in ("0\n7\n", "1\n0\n", "0\n1\na.b 1\n"):  # cut off, of a later version, without its offset
        (disk.path / "cleaner-offset-checkpoint").write_text(damaged)
        assert load_offset_checkpoint(found, "cleaner-offset-checkpoint").offsets is None
    assert "checkpoint cannot be read" in caplog.text
