import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from streaming.errors import CheckpointError
from streaming.spark.job import checkpoint
from streaming.spark.job.checkpoint import Checkpoint
from tests.disk.descriptors import descriptors

CLUSTER = "AAECAwQFBgcICQoLDA0ODw"


def made(path: Path, shards: int = 64) -> Checkpoint:
    return Checkpoint(path, CLUSTER, shards)


def test_a_job_stays_who_it_is(tmp_path: Path) -> None:
    first = made(tmp_path)
    first.close()
    again = made(tmp_path, shards=16)
    assert again.identity == first.identity
    assert again.identity.state_shards == 64  # fixed when it was made
    again.close()


@pytest.mark.parametrize(("logs", "shards"), [(0, 4), (5_000, 4), (5_001, 16), (20_000, 16), (20_001, 64), (1_000_000, 64)])
def test_shards_are_chosen_by_twice_the_logs_that_are_there(tmp_path: Path, logs: int, shards: int) -> None:
    first = Checkpoint(tmp_path, CLUSTER, "auto", lambda: logs)
    first.close()
    again = Checkpoint(tmp_path, CLUSTER, "auto", lambda: 1_000_000 - logs)
    again.close()
    assert (first.identity.state_shards, again.identity) == (shards, first.identity)


def test_a_number_that_the_checkpoint_does_not_have_is_reported(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    made(tmp_path, shards=64).close()
    Checkpoint(tmp_path, CLUSTER, "auto").close()
    assert not caplog.messages  # chosen for it or not: a checkpoint that is there keeps its shards
    made(tmp_path, shards=16).close()
    assert caplog.messages == ["state_shards is fixed by the checkpoint"]


def test_two_checkpoints_are_two_jobs(tmp_path: Path) -> None:
    one, two = made(tmp_path / "one"), made(tmp_path / "two")
    assert one.identity.job_id != two.identity.job_id
    one.close()
    two.close()


def test_one_holder(tmp_path: Path) -> None:
    held = made(tmp_path)
    with pytest.raises(CheckpointError, match=f"{tmp_path} is in use by another job: stop it, or name another with --checkpoint DIR"):
        made(tmp_path)
    held.close()
    made(tmp_path).close()


def test_jvm_of_a_killed_job_still_holds_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoint, "JVM_WAIT_SECONDS", 0.0)
    killed = made(tmp_path)
    wait = [sys.executable, "-c", "import sys; sys.stdin.read()"]
    with subprocess.Popen(wait, stdin=subprocess.PIPE, pass_fds=(killed.spark_lock_fd,)) as jvm:
        killed.close()
        with pytest.raises(CheckpointError, match="in use"):
            made(tmp_path)
        assert jvm.stdin is not None
        jvm.stdin.close()
        jvm.wait()
        made(tmp_path).close()


def test_refused_checkpoint_is_let_go_of(tmp_path: Path) -> None:
    made(tmp_path).close()
    with pytest.raises(CheckpointError, match=f"belongs to cluster {CLUSTER}, the log dirs or agents to other: name another"):
        Checkpoint(tmp_path, "other", 64)
    assert descriptors(os.fspath(tmp_path)) == []


def test_a_cluster_that_was_not_known_is_known_from_the_first_id_on(tmp_path: Path) -> None:
    for given, known in (("", ""), (CLUSTER, CLUSTER), ("", CLUSTER)):
        opened = Checkpoint(tmp_path, given, 64)
        opened.close()
        assert opened.identity.cluster_id == known
    with pytest.raises(CheckpointError, match=f"belongs to cluster {CLUSTER}"):
        Checkpoint(tmp_path, "other", 64)


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"version": 1}', "null", "7"])
def test_identity_that_is_not_valid(tmp_path: Path, content: str) -> None:
    (tmp_path / "job.json").write_text(content)
    with pytest.raises(CheckpointError, match=r"job\.json is not valid .*: restore it, or delete the directory to begin anew"):
        made(tmp_path)


@pytest.mark.parametrize("version", [1, 3])
def test_identity_of_another_version(tmp_path: Path, version: int) -> None:
    made(tmp_path).close()
    path = tmp_path / "job.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"version": version}))
    with pytest.raises(CheckpointError, match=f"is of version {version}, this segtail reads 2: .*name another with --checkpoint DIR"):
        made(tmp_path)


def test_state_without_identity(tmp_path: Path) -> None:
    (tmp_path / "spark" / "offsets").mkdir(parents=True)
    (tmp_path / "spark" / "offsets" / "0").touch()
    with pytest.raises(CheckpointError, match=r"has lost its job\.json: restore it, or delete the directory to begin anew"):
        made(tmp_path)


def test_last_micro_batch_that_was_planned(tmp_path: Path) -> None:
    held = made(tmp_path)
    assert (held.planned, held.resumed) == (-1, False)
    offsets = held.spark / "offsets"
    offsets.mkdir(parents=True)
    for name in ("9", "10", ".11.crc", "11.tmp"):
        (offsets / name).touch()
    assert (held.planned, held.resumed) == (10, True)
    held.close()
