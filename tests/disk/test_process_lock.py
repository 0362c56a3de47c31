"""The lock of a log dir, asked as it is while other processes, or this one, hold it."""

import errno
import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest

from streaming.broker.disk import opening
from streaming.broker.disk.broker_processes import ask_lock, last_write_ms
from streaming.broker.disk.opening import calls_of_this_thread
from streaming.rules.broker_process import LockState
from tests.builders import log_dir
from tests.disk.machine import holder
from tests.scratch import scratch


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    (tmp_path / ".lock").touch()
    return tmp_path


def test_the_lock_of_another_process_is_seen_until_that_is_killed(directory: Path) -> None:
    path = directory / ".lock"
    assert ask_lock(directory).state is LockState.FREE
    with holder(path) as process:
        found = ask_lock(directory)
        assert (found.state, found.file) == (LockState.LOCKED, (path.stat().st_dev, path.stat().st_ino))
        process.kill()
        process.wait()
        assert ask_lock(directory).state is LockState.FREE


def test_a_lock_that_nobody_holds_says_whether_the_metadata_log_is_there(directory: Path) -> None:
    found = [ask_lock(directory).keeps_metadata]
    (directory / "__cluster_metadata-0").mkdir()
    found.append(ask_lock(directory).keeps_metadata)
    with holder(directory / ".lock"):
        found.append(ask_lock(directory).keeps_metadata)
    (directory / ".lock").unlink()
    found.append(ask_lock(directory).keeps_metadata)
    assert found == [False, True, False, True]


def test_in_memory_it_is_the_same() -> None:
    with scratch() as name:
        directory = Path(name)
        (directory / ".lock").touch()
        with holder(directory / ".lock"):
            assert ask_lock(directory).state is LockState.LOCKED
        assert ask_lock(directory).state is LockState.FREE


def test_to_ask_takes_no_lock(directory: Path) -> None:
    """Another process locks the file between any two answers, and while the file is open here."""
    fd = opening.open_file(directory / ".lock")
    try:
        ask_lock(directory)
        with holder(directory / ".lock"):
            assert ask_lock(directory).state is LockState.LOCKED
    finally:
        os.close(fd)


def test_the_simulated_broker_of_the_same_process_keeps_its_lock(tmp_path: Path) -> None:
    """A POSIX lock of this process would be unseen by F_GETLK, and end when the file is closed."""
    disk = log_dir(tmp_path)
    assert [ask_lock(disk.path).state for _ in range(3)] == [LockState.LOCKED] * 3
    disk.release()
    assert ask_lock(disk.path).state is LockState.FREE


def test_one_that_is_missing_was_deleted_in_an_orderly_end_or_says_nothing(tmp_path: Path) -> None:
    found = ask_lock(tmp_path)
    assert (found.state, found.why) == (LockState.MISSING, f"{tmp_path}/.lock does not exist")
    (tmp_path / ".kafka_cleanshutdown").touch()
    assert ask_lock(tmp_path).state is LockState.DELETED
    (tmp_path / ".lock").touch()
    assert ask_lock(tmp_path).state is LockState.FREE


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (Path.mkdir, "cannot be asked: no regular file"),
        (os.mkfifo, "cannot be asked: no regular file"),
        (lambda path: path.symlink_to("/etc/hostname"), "cannot be asked: Too many levels of symbolic links"),
    ],
)
def test_what_is_no_file_is_not_asked(make: object, why: str, tmp_path: Path) -> None:
    """A link could lead to a file of segtail's own, whose locks would end when it is closed."""
    assert callable(make)
    make(tmp_path / ".lock")
    found = ask_lock(tmp_path)
    assert found.state is LockState.UNKNOWN
    assert why in found.why


def test_a_read_lock_is_no_brokers(directory: Path) -> None:
    with holder(directory / ".lock", fcntl.LOCK_EX):
        pass
    reads = "import fcntl, sys; file = open(sys.argv[1]); fcntl.lockf(file, fcntl.LOCK_SH); print(1, flush=True); sys.stdin.read()"
    process = subprocess.Popen([sys.executable, "-c", reads, str(directory / ".lock")], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        assert process.stdout.readline()
        found = ask_lock(directory)
        assert (found.state, found.why) == (LockState.UNKNOWN, f"{directory}/.lock is held by a program that is no broker")
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize(
    ("number", "why"), [(errno.EACCES, "may not be read"), (errno.EIO, "cannot be asked"), (errno.ENOLCK, "cannot be asked")]
)
def test_an_error_is_an_answer_with_its_reason(number: int, why: str, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> int:
        raise OSError(number, os.strerror(number), str(directory / ".lock"))

    monkeypatch.setattr(opening, "_open", refuse)
    found = ask_lock(directory)
    assert found.state is LockState.UNKNOWN
    assert why in found.why


def test_a_reason_is_short_and_plain(tmp_path: Path) -> None:
    why = ask_lock(tmp_path / f"\x1b]0;x\x07{'y' * 200}" / ("z" * 200)).why
    assert len(why) <= 400
    assert why.isprintable()


def test_without_a_descriptor_there_is_no_answer(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> int:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr(opening, "_open", refuse)
    with pytest.raises(OSError, match="Too many open files"):
        ask_lock(directory)


def test_a_call_that_does_not_return_is_seen_from_outside(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The agent leaves a log dir alone in which the path of a call stays (`streaming.broker.agent.parts`)."""
    seen: list[object] = []
    asks = fcntl.fcntl
    monkeypatch.setattr(fcntl, "fcntl", lambda *arguments: (seen.append(calls_of_this_thread().path), asks(*arguments))[1])
    ask_lock(directory)
    assert seen == [directory / ".lock"]


def test_the_last_write_is_that_of_any_file_that_a_broker_writes_all_the_time_or_at_its_end(tmp_path: Path) -> None:
    assert last_write_ms(tmp_path) == -1
    metadata = tmp_path / "__cluster_metadata-0"
    metadata.mkdir()
    places = [tmp_path / "recovery-point-offset-checkpoint", tmp_path / "replication-offset-checkpoint", metadata / f"{0:020}.log"]
    for seconds, path in enumerate((*places, tmp_path / ".kafka_cleanshutdown"), start=100):
        path.touch()
        os.utime(path, (seconds, seconds))
        assert last_write_ms(tmp_path) == seconds * 1000
