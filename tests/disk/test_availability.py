"""Log dirs that cannot be used for a while, come back, or are others by then."""

import shutil
from pathlib import Path
from uuid import UUID

import pytest

from streaming.broker.disk.availability import UNKNOWN_BROKER, LogDirs, open_log_dirs
from streaming.broker.disk.opening import calls_of_this_thread
from streaming.errors import LogDirError
from streaming.simulator.log import LogDir
from streaming.simulator.segment_writer import uuid_text
from tests.builders import CLUSTER_ID, log_dir

OTHER_CLUSTER = "EBESExQVFhcYGRobHB0eHw"


def empty(path: Path) -> Path:
    """A mount point with nothing mounted."""
    path.mkdir()
    return path


def reasons(log_dirs: LogDirs) -> dict[str, str]:
    return {path.name: reason for path, reason in log_dirs.unavailable.items()}


def test_one_that_cannot_be_used_does_not_keep_the_others_from_being_opened(tmp_path: Path) -> None:
    good = log_dir(tmp_path, "d0", broker=7)
    dirs = open_log_dirs([good.path, empty(tmp_path / "d1"), tmp_path / "d2"])
    assert [(each.path.name, each.broker, each.cluster_id) for each in dirs] == [(f"d{n}", 7, CLUSTER_ID) for n in range(3)]
    assert [each.path for each in dirs.available] == [good.path]
    assert "has no meta.properties" in reasons(dirs)["d1"]
    assert "does not exist" in reasons(dirs)["d2"]
    assert dirs.brokers == [7]


def test_whose_one_is_that_was_never_readable_is_not_known_beside_those_of_two_brokers(tmp_path: Path) -> None:
    disks = [log_dir(tmp_path, f"d{broker}", broker=broker) for broker in (1, 2)]
    dirs = open_log_dirs([*(disk.path for disk in disks), empty(tmp_path / "d3")])
    assert [each.broker for each in dirs] == [1, 2, UNKNOWN_BROKER]
    assert dirs.brokers == [1, 2]
    assert [each.path.name for each in dirs.known] == ["d1", "d2"]
    (tmp_path / "d3").rmdir()
    log_dir(tmp_path, "d3", broker=2)
    dirs.check()
    assert [each.broker for each in dirs] == [1, 2, 2]


def test_where_none_can_be_used_every_one_is_named(tmp_path: Path) -> None:
    with pytest.raises(LogDirError, match=r"d0 is not a Kafka log dir.*d1 does not exist"):
        open_log_dirs([empty(tmp_path / "d0"), tmp_path / "d1"])


def test_the_log_dirs_in_a_directory_that_is_none_are_named(tmp_path: Path) -> None:
    (empty(tmp_path / "kafka") / "lost+found").mkdir()
    one = log_dir(tmp_path / "kafka", "d0").path
    with pytest.raises(LogDirError, match=rf"kafka is not a Kafka log dir: it has no meta.properties; name the log dir in it: {one}$"):
        open_log_dirs([tmp_path / "kafka"])
    two = log_dir(tmp_path / "kafka", "d 1").path
    with pytest.raises(LogDirError, match=rf'name the log dirs in it: "{two}",{one}$'):
        open_log_dirs([tmp_path / "kafka"])


def test_a_partition_s_directory_leads_to_the_log_dir_that_holds_it(tmp_path: Path) -> None:
    disk = log_dir(tmp_path, "d0")
    inner = empty(disk.path / "pay-0")
    hint = rf"pay-0 is not a Kafka log dir: it is the directory of partition 0 of topic pay; its log dir is {disk.path}$"
    with pytest.raises(LogDirError, match=hint):
        open_log_dirs([inner])
    with pytest.raises(LogDirError, match=r"it has no meta\.properties; name a broker's log.dirs"):
        open_log_dirs([empty(tmp_path / "pay-0")])


def test_two_log_dirs_with_a_blank_between_them_are_two(tmp_path: Path) -> None:
    both = [log_dir(tmp_path, name).path for name in ("d0", "d1")]
    hint = "d0 .*d1 does not exist: for several log dirs write a comma between them, or the option once for each$"
    with pytest.raises(LogDirError, match=hint):
        open_log_dirs([Path(f"{both[0]} {both[1]}")])
    with pytest.raises(LogDirError, match=r"does not exist: name a broker's log\.dirs"):
        open_log_dirs([Path(f"{both[0]} {both[1]}x")])


def test_one_that_does_not_exist_is_given_twice(tmp_path: Path) -> None:
    with pytest.raises(LogDirError, match="given twice"):
        open_log_dirs([log_dir(tmp_path).path, tmp_path / "away", tmp_path / "away"])


def test_one_comes_back_when_it_is_there_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    good, path = log_dir(tmp_path, "d0"), empty(tmp_path / "d1")
    dirs = open_log_dirs([good.path, path])
    before = dirs.version
    dirs.check()
    dirs.log_changes()
    dirs.log_changes()
    assert dirs.version == before
    path.rmdir()
    back = log_dir(tmp_path, "d1")
    dirs.check()
    assert dirs.version != before
    assert dirs.available[1].directory_id == uuid_text(back.directory_id)
    dirs.log_changes()
    assert [record.message for record in caplog.records] == ["log dir cannot be read", "log dir can be read again"]


@pytest.mark.parametrize(
    ("broker", "cluster_id", "what"), [(1, OTHER_CLUSTER, f"belongs to cluster {OTHER_CLUSTER}"), (2, CLUSTER_ID, "belongs to node 2")]
)
def test_one_that_turns_out_to_be_another_brokers_is_refused(tmp_path: Path, broker: int, cluster_id: str, what: str) -> None:
    good, path = log_dir(tmp_path, "d0"), tmp_path / "d1"
    dirs = open_log_dirs([good.path, path])
    log_dir(tmp_path, "d1", broker=broker, cluster_id=cluster_id)
    dirs.check()
    assert what in reasons(dirs)["d1"]
    assert [each.path for each in dirs.available] == [good.path]


def test_one_that_comes_as_the_same_directory_as_another_is_refused(tmp_path: Path) -> None:
    good, path = log_dir(tmp_path, "d0"), tmp_path / "d1"
    dirs = open_log_dirs([good.path, path])
    path.symlink_to(good.path)
    dirs.check()
    assert "given twice" in reasons(dirs)["d1"]


def damage(path: Path) -> None:
    (path / "meta.properties").write_text("version=1\n")


def unmount(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))
    path.mkdir()


def remove(path: Path) -> None:
    shutil.rmtree(path)


@pytest.mark.parametrize("do", [damage, unmount, remove])
def test_one_that_does_not_say_any_more_whose_it_is_is_unavailable_and_keeps_its_identity(tmp_path: Path, do: object) -> None:
    disks = [log_dir(tmp_path, "d0"), log_dir(tmp_path, "d1", broker=2)]
    dirs = open_log_dirs([disk.path for disk in disks])
    do(disks[1].path)  # type: ignore[operator]
    dirs.check()
    assert list(reasons(dirs)) == ["d1"]
    assert (dirs[1].broker, dirs[1].directory_id) == (2, uuid_text(disks[1].directory_id))


def test_a_new_disk_in_the_place_of_the_old_one_is_taken_over(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    disk = log_dir(tmp_path)
    dirs = open_log_dirs([disk.path])
    before = dirs.version
    disk.release()
    shutil.rmtree(disk.path)
    LogDir(disk.path, 1, CLUSTER_ID, UUID(int=99))
    dirs.check()
    assert dirs.version != before
    assert (dirs.available[0].directory_id, dirs.unavailable) == (uuid_text(UUID(int=99)), {})
    assert [record.message for record in caplog.records] == ["log dir was replaced by another"]


def test_no_call_is_made_into_one_that_is_barred_until_that_is_over(tmp_path: Path) -> None:
    disks = [log_dir(tmp_path, "d0"), log_dir(tmp_path, "d1")]
    dirs = open_log_dirs([disk.path for disk in disks], barred={disks[1].path: "it hangs"})
    assert (reasons(dirs), dirs.barred) == ({"d1": "it hangs"}, {disks[1].path: "it hangs"})
    dirs.bar(disks[0].path, "it hangs too")
    before = calls_of_this_thread().count
    dirs.check()
    assert calls_of_this_thread().count == before
    assert reasons(dirs) == {"d0": "it hangs too", "d1": "it hangs"}
    dirs.unbar(disks[0].path)
    dirs.unbar(disks[1].path)
    assert reasons(dirs) == {"d0": "it hangs too", "d1": "it hangs"}
    dirs.check()
    assert (dirs.unavailable, dirs.barred) == ({}, {})
