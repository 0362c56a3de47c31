"""The checkpoint, its holder and its space."""

import fcntl
import json
import os
import shutil
from collections import namedtuple
from pathlib import Path

import pytest

from streaming.spark.job.checkpoint import Checkpoint
from streaming.terminal.doctor import checkpoint_checks
from streaming.terminal.doctor.checkpoint_checks import holder_of
from tests.builders import CLUSTER_ID, log_dir
from tests.doctor.examined import FAULT, FINE, UNKNOWN, WARNING, examined, only

Usage = namedtuple("Usage", "total used free")


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    """A checkpoint of a job that has ended, with a plan and a commit."""
    Checkpoint(tmp_path / "checkpoint", CLUSTER_ID, 4).close()
    for name in ("offsets", "commits"):
        directory = tmp_path / "checkpoint" / "spark" / name
        directory.mkdir(parents=True)
        (directory / "7").write_text("v1\n{}")
    return tmp_path / "checkpoint"


def test_no_checkpoint_yet(tmp_path: Path) -> None:
    assert only(checkpoint_checks.check_checkpoint, checkpoint=tmp_path / "new").state == "not applicable"
    assert list(tmp_path.iterdir()) == []


def test_a_checkpoint_that_is_whole_and_free(checkpoint: Path, tmp_path: Path) -> None:
    found = examined(checkpoint_checks.check_checkpoint, log_dir(tmp_path).path, checkpoint=checkpoint)
    assert {each.state for each in found} == {FINE}
    assert [each.what for each in found] == [f"{checkpoint} belongs to cluster {CLUSTER_ID}, and can be read", f"no job holds {checkpoint}"]


def test_a_running_job_is_named(checkpoint: Path) -> None:
    held = Checkpoint(checkpoint, CLUSTER_ID, 4)
    assert examined(checkpoint_checks.check_checkpoint, checkpoint=checkpoint)[-1].what.startswith(
        f"process {os.getpid()} holds {checkpoint}"
    )
    held.close()


@pytest.mark.parametrize(
    ("name", "content", "state", "part"),
    [
        ("job.json", "{", FAULT, "job.json is damaged"),
        ("job.json", '{"version": 1}', FAULT, "job.json is damaged"),
        ("job.json", None, FAULT, "has lost its job.json"),
        ("spark/offsets/8", "v1\n{", WARNING, "is cut off: the next start plans the micro-batch anew"),
        ("spark/offsets/7", "", FAULT, "is damaged, so the position of the job is lost"),
        ("spark/commits/7", "v1", WARNING, "is cut off: the next start runs the micro-batch once more"),
    ],
)
def test_damage_is_found_and_left_as_it_is(checkpoint: Path, name: str, content: str | None, state: str, part: str) -> None:
    if content is None:
        (checkpoint / name).unlink()
    else:
        (checkpoint / name).write_text(content)
    before = {path: path.read_bytes() for path in checkpoint.rglob("*") if path.is_file()}
    (found,) = [each for each in examined(checkpoint_checks.check_checkpoint, checkpoint=checkpoint) if each.state is not FINE]
    assert found.state == state
    assert part in found.what
    assert found.command == (f"mv {checkpoint} {checkpoint}.damaged" if state == FAULT else "")
    assert {path: path.read_bytes() for path in checkpoint.rglob("*") if path.is_file()} == before


def test_another_version_and_another_cluster(checkpoint: Path, tmp_path: Path) -> None:
    disk = log_dir(tmp_path, cluster_id="another").path
    other = examined(checkpoint_checks.check_checkpoint, disk, checkpoint=checkpoint)[0]
    assert (other.state, other.command) == (FAULT, f"segtail run --checkpoint {checkpoint}-another ...")
    identity = json.loads((checkpoint / "job.json").read_text()) | {"version": 99}
    (checkpoint / "job.json").write_text(json.dumps(identity))
    later = examined(checkpoint_checks.check_checkpoint, checkpoint=checkpoint)[0]
    assert later.state is FAULT
    assert "is of version 99, this segtail reads 2" in later.what


def test_who_holds_a_lock(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    assert holder_of(path) == 0
    with path.open("w") as file:
        assert holder_of(path) == 0
        fcntl.flock(file, fcntl.LOCK_EX)
        assert holder_of(path) == os.getpid()
        (tmp_path / "locks").write_text(Path("/proc/locks").read_text().replace(f" {os.getpid()} ", " 0 "))
        assert holder_of(path, tmp_path / "locks") == -1
    assert holder_of(path) == 0
    assert holder_of(path, tmp_path / "none") is None


def test_a_kernel_that_does_not_report_locks(checkpoint: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoint_checks, "holder_of", lambda _: None)
    assert examined(checkpoint_checks.check_checkpoint, checkpoint=checkpoint)[-1].state is UNKNOWN


@pytest.mark.parametrize(("free", "state"), [((64 << 20) - 1, FAULT), (64 << 20, FINE)])
def test_space_for_the_checkpoint(tmp_path: Path, free: int, state: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(1 << 40, 0, free))
    wanted = {"checkpoint": tmp_path / "not" / "yet"}
    (found,) = examined(checkpoint_checks.check_space, given=wanted, **wanted)
    assert (found.state, bool(found.command)) == (state, state != FINE)


def test_the_space_for_a_checkpoint_that_nobody_has_named_is_no_matter_until_it_is_there(tmp_path: Path) -> None:
    assert only(checkpoint_checks.check_space, checkpoint=tmp_path / "default").state == "not applicable"
    (tmp_path / "default").mkdir()
    assert only(checkpoint_checks.check_space, checkpoint=tmp_path / "default").state != "not applicable"
