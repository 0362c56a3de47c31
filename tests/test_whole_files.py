"""A file that is written whole is the old one or the new one."""

import os
import stat
from pathlib import Path
from threading import Thread

import pytest

from streaming.common.whole_files import write_whole


def test_no_other_user_reads_a_file_unless_that_is_wanted(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        write_whole(tmp_path / "own", b"one")
        write_whole(tmp_path / "shared", b"one", mode=0o666)
    finally:
        os.umask(before)
    assert [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("own", "shared")] == [0o600, 0o644]


def test_the_new_content_is_there_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_whole(path, b"one")
    write_whole(path, b"other")
    assert path.read_bytes() == b"other"
    assert [each.name for each in tmp_path.iterdir()] == ["file"]


def test_what_need_not_last_is_written_whole_too_and_waits_for_no_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[int] = []
    monkeypatch.setattr(os, "fsync", waited.append)
    path = tmp_path / "file"
    write_whole(path, b"one", lasting=False)
    write_whole(path, b"other", lasting=False)
    assert (path.read_bytes(), waited) == (b"other", [])
    assert [each.name for each in tmp_path.iterdir()] == ["file"]
    write_whole(path, b"last")
    assert len(waited) == 2  # of the file, and of its directory


def test_what_cannot_be_made_to_last_leaves_the_old_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    write_whole(path, b"old")

    def failed(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", failed)
    with pytest.raises(OSError, match="No space left"):
        write_whole(path, b"new")
    assert path.read_bytes() == b"old"
    assert [each.name for each in tmp_path.iterdir()] == ["file"]


def test_a_reader_finds_one_content_or_the_next_never_a_part(tmp_path: Path) -> None:
    path = tmp_path / "file"
    contents = [bytes([digit]) * 300_000 for digit in b"01"]
    write_whole(path, contents[0])

    def write() -> None:
        for number in range(60):
            write_whole(path, contents[number % 2])

    writer = Thread(target=write)
    writer.start()
    while writer.is_alive():
        assert path.read_bytes() in contents
    writer.join()
