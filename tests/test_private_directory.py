"""A directory for one user, new or there before."""

import logging
import os
from pathlib import Path

import pytest

from streaming.common.whole_files import make
from tests.tables import each_row


@each_row("umask", [0o000, 0o022, 0o277])
def test_a_new_one_is_for_its_user_whatever_the_umask(umask: int, tmp_path: Path) -> None:
    made = tmp_path / oct(umask)
    before = os.umask(umask)
    try:
        make(made)
    finally:
        os.umask(before)
    assert made.stat().st_mode & 0o077 == 0


def test_one_that_is_there_keeps_its_mode_and_others_are_named_if_they_may_enter_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for mode in (0o700, 0o750, 0o705):
        there = tmp_path / oct(mode)
        there.mkdir()
        there.chmod(mode)
        caplog.clear()
        with caplog.at_level(logging.WARNING):
            make(there)
        assert (there.stat().st_mode & 0o777, len(caplog.records)) == (mode, 0 if mode == 0o700 else 1)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory to another user: run the tests as root")
def test_the_directory_of_a_volume_is_not_this_users_to_mend(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    tmp_path.chmod(0o777)
    os.chown(tmp_path, 65534, 65534)
    make(tmp_path)
    assert caplog.records == []


def test_a_file_is_no_directory(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(FileExistsError):
        make(tmp_path / "file")
