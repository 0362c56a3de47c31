"""The agent that a job starts: what it is given, and how soon it is started again."""

import importlib.util
import os
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from streaming.common.settings import Settings
from streaming.errors import AgentError
from streaming.spark.client.address_lookup import ClientFiles
from streaming.spark.job.child import ChildAgent, environment
from streaming.terminal.configuration import load
from tests.builders import batch, log_dir, partition
from tests.faults.consuming import Consumer
from tests.processes import until


@pytest.mark.parametrize(
    "settings",
    [
        Settings(),
        Settings(redact_ids=True, read_rate=1 << 20, producers_limit=7),
        Settings(server_properties=(Path("/a"), Path("/b")), broker_config={"log.retention.ms": "60000"}),
    ],
    ids=["defaults", "others", "limits"],
)
def test_the_job_s_agent_reads_the_settings_of_its_job(settings: Settings) -> None:
    assert load(None, environment(settings), {}) == settings


def test_the_job_s_agent_gets_no_setting_that_is_not_its_own_from_the_environment_of_its_job(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEGTAIL_JOURNAL", "/elsewhere")
    monkeypatch.setenv("LANG", "C.UTF-8")
    found = environment(Settings())
    assert ("SEGTAIL_JOURNAL" in found, found["LANG"]) == (False, "C.UTF-8")


def test_one_that_ended_often_long_ago_is_started_again_at_once(tmp_path: Path) -> None:
    child = ChildAgent((log_dir(tmp_path).path,), tmp_path / "agent", tmp_path / "address", tmp_path / "token", dict(os.environ))
    child.start()
    now = time.monotonic() + 1.0
    try:
        for ends in range(6):  # the sixth waits for ten seconds
            kill(child)
            child.keep_alive(now)
            assert child.restarts == ends + 1
            now += 10.0
            child.keep_alive(now)
            assert child._process is not None
            assert child._process.poll() is None
        now += 100.0
        before = child._process
        kill(child)
        child.keep_alive(now)
        assert child._process is not before
    finally:
        child.stop()


def test_a_new_directory_is_private_and_no_warning(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    directory = tmp_path / "checkpoint" / "agent"
    directory.parent.mkdir()
    child = ChildAgent((log_dir(tmp_path).path,), directory, directory / "address", directory / "token", dict(os.environ))
    child.start()
    child.stop()
    assert directory.stat().st_mode & 0o077 == 0
    assert "other users may enter" not in capfd.readouterr().err


def test_a_job_with_more_than_a_thousand_open_files_starts_its_agent(tmp_path: Path) -> None:
    """`select.select` takes no descriptor above 1,023."""
    child = ChildAgent((log_dir(tmp_path).path,), tmp_path / "agent", tmp_path / "address", tmp_path / "token", dict(os.environ))
    with ExitStack() as files:
        while files.enter_context(Path(os.devnull).open("rb")).fileno() < 1_100:
            pass
        try:
            child.start()
            assert (tmp_path / "address").read_text()
        finally:
            child.stop()


def test_it_leaves_pandas_alone_though_it_is_there(tmp_path: Path) -> None:
    """pyarrow would import it at the first array, for nothing: a quarter of the memory of an agent."""
    assert importlib.util.find_spec("pandas") is not None
    disk = log_dir(tmp_path)
    log = partition(disk, "orders")
    log.append(batch(3))
    child = ChildAgent((disk.path,), tmp_path / "agent", tmp_path / "address", tmp_path / "token", dict(os.environ))
    child.start()
    try:
        consumer = Consumer((tmp_path / "address").read_text(), files=ClientFiles(token_file=tmp_path / "token"))
        until("arrays were made", lambda: consumer.bytes() == {("orders", 0): log.active.size}, saw=consumer.bytes)
        consumer.close()
        assert child._process is not None
        mapped = Path(f"/proc/{child._process.pid}/maps").read_text()
    finally:
        child.stop()
    assert ("/pyarrow/" in mapped, "/pandas/" in mapped) == (True, False)


def kill(child: ChildAgent) -> None:
    assert child._process is not None
    child._process.kill()
    child._process.wait()


def test_one_whose_address_cannot_be_written_is_met_as_soon_as_it_can(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    address = tmp_path / "address"
    child = ChildAgent((log_dir(tmp_path).path,), tmp_path / "agent", address, tmp_path / "token", dict(os.environ))
    child.start()
    try:
        before = address.read_text()
        address.unlink()
        address.mkdir()
        kill(child)
        child.keep_alive(time.monotonic() + 1)
        until("the refusal", lambda: child.keep_alive(time.monotonic()) or "tried again" in caplog.text)
        for _ in range(3):
            child.keep_alive(time.monotonic())
        assert caplog.text.count("tried again") == 1
        assert list(tmp_path.glob("address*")) == [address]
        address.rmdir()
        child.keep_alive(time.monotonic())
        assert address.read_text() != before
        assert child.restarts == 1
    finally:
        child.stop()


def test_one_that_the_system_cannot_start_now_is_started_later(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    child = ChildAgent((log_dir(tmp_path).path,), tmp_path / "agent", tmp_path / "address", tmp_path / "token", dict(os.environ))
    child.start()
    try:
        command, child._command = child._command, ["/no/such/program"]
        now = time.monotonic() + 1
        kill(child)
        for _ in range(3):
            child.keep_alive(now)
        assert caplog.text.count("tried again") == 1
        child._command = command
        child.keep_alive(now)
        assert child._process is not None
        assert child._process.poll() is None
    finally:
        child.stop()


def test_one_that_cannot_be_started_at_all_is_an_error_with_its_reason(tmp_path: Path) -> None:
    (tmp_path / "address").mkdir()
    child = ChildAgent((log_dir(tmp_path).path,), tmp_path / "agent", tmp_path / "address", tmp_path / "token", dict(os.environ))
    try:
        with pytest.raises(AgentError, match=r"cannot be started: .*Is a directory"):
            child.start()
    finally:
        child.stop()
