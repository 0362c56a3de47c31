"""A first look at log dirs of which one does not answer."""

import os
from pathlib import Path

import pytest

from streaming.disk.logdirs import open_log_dirs
from streaming.disk.silence import FirstRead, find_silent
from streaming.errors import LogDirError
from tests.builders import log_dir


def test_one_that_does_not_answer_is_named_and_the_others_are_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    good, bad = log_dir(tmp_path / "good").path, log_dir(tmp_path / "bad").path
    meta = bad / "meta.properties"
    sound = meta.read_bytes()
    meta.unlink()
    os.mkfifo(meta)
    wait = FirstRead.wait
    monkeypatch.setattr(FirstRead, "wait", lambda read, seconds: wait(read, 0.01 if read.path == bad else 600))
    (look,) = find_silent([good, bad])
    monkeypatch.undo()
    assert (look.path, Path(look.at)) == (bad, meta)
    found = open_log_dirs([good, bad], {look.path: "it does not answer"})
    assert [each.path for each in found.available] == [good]
    meta.write_bytes(sound)
    look.wait(600)
    assert not look.alive
    meta.unlink()
    meta.write_bytes(sound)
    found.unbar(bad)
    found.check()
    assert [each.path for each in found.available] == [good, bad]


def test_one_that_answers_with_an_error_is_not_silent(tmp_path: Path) -> None:
    assert find_silent([tmp_path / "absent"]) == []
    with pytest.raises(LogDirError, match="does not exist"):
        open_log_dirs([tmp_path / "absent"])
