"""Which file a thread is at, as another thread sees it."""

import threading
from pathlib import Path

import pytest

from streaming.broker.disk.logdirs import open_log_dirs, read_topic_id
from streaming.broker.disk.opening import Calling, ThreadCalls, calls_of_this_thread
from streaming.broker.disk.segment_files import OpenSegment, list_segments
from tests.builders import batch, log_dir, partition
from tests.limits import SECONDS
from tests.processes import until
from tests.unanswering import Unanswering


def test_a_block_within_a_block_is_at_the_inner_path_until_it_ends() -> None:
    calls = calls_of_this_thread()
    before = calls.count
    with Calling("/a"):
        with Calling("/a/b"):
            assert calls.path == "/a/b"
        assert calls.path == "/a"
    assert calls.path is None
    assert calls.count == before + 4


def test_what_fails_is_left_too() -> None:
    with pytest.raises(FileNotFoundError), Calling("/a"):
        raise FileNotFoundError
    assert calls_of_this_thread().path is None


@pytest.mark.parametrize("what", ["open", "list", "look for the log dir"])
def test_another_thread_sees_at_which_file_one_is_that_does_not_come_back(
    tmp_path: Path, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = log_dir(tmp_path / "d0")
    partition(disk, "t").append(batch(1))
    seen: list[ThreadCalls] = []
    at = {
        "open": disk.path / "t-0" / f"{0:020}.log",
        "list": disk.path / "t-0" / "partition.metadata",
        "look for the log dir": disk.path / "meta.properties",
    }[what]
    file = Unanswering(at, tmp_path / "gate")
    file.hold(monkeypatch)

    def call() -> None:
        seen.append(calls_of_this_thread())
        if what == "open":
            OpenSegment(at, 0).close()
        elif what == "list":
            read_topic_id(at.parent)
        else:
            open_log_dirs([disk.path])

    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    until("it is at the file", lambda: seen and seen[0].path is not None and Path(seen[0].path) == at, saw=lambda: seen and seen[0].path)
    file.answer()
    thread.join(SECONDS)
    assert not thread.is_alive()
    assert seen[0].path is None


def test_the_calls_of_a_segment_leave_no_path_behind(tmp_path: Path) -> None:
    disk = log_dir(tmp_path)
    partition(disk, "t").append(batch(1))
    before = calls_of_this_thread().count
    (segment,) = list_segments(disk.path / "t-0")
    file = OpenSegment(segment.path, 0)
    file.size(), file.read(0, 10), file.modified_ms(), file.unlinked(), file.indexed(None)
    file.close()
    assert calls_of_this_thread().path is None
    assert calls_of_this_thread().count >= before + 12
