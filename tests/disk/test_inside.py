"""Our own files stay out of Kafka's log dirs."""

from pathlib import Path

import pytest

from streaming.broker.disk.logdirs import open_log_dirs, refuse_inside
from streaming.errors import LogDirError
from tests.builders import log_dir


def test_a_place_in_a_log_dir_is_refused_however_it_is_spelt(tmp_path: Path) -> None:
    log_dir(tmp_path, name="d0")
    (tmp_path / "link").symlink_to(tmp_path / "d0")
    dirs = open_log_dirs([tmp_path / "d0"])
    for inside in (tmp_path / "d0", tmp_path / "d0" / "ck", tmp_path / "link" / "ck", tmp_path / "x" / ".." / "d0" / "ck"):
        with pytest.raises(LogDirError, match=r"--checkpoint .* lies in the log dir .*d0"):
            refuse_inside(inside, dirs, "--checkpoint")


def test_a_place_beside_a_log_dir_is_fine(tmp_path: Path) -> None:
    log_dir(tmp_path, name="d0")
    dirs = open_log_dirs([tmp_path / "d0"])
    refuse_inside(tmp_path / "d0-checkpoint", dirs, "--checkpoint")
    refuse_inside(tmp_path, dirs, "--checkpoint")
