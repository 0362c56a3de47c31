"""A first look at log dirs of which one does not answer."""

from pathlib import Path

import pytest

from streaming.broker.disk.availability import FirstRead, find_silent
from streaming.broker.disk.logdirs import open_log_dirs
from streaming.errors import LogDirError
from tests.builders import log_dir
from tests.unanswering import Unanswering


def test_one_that_does_not_answer_is_named_and_the_others_are_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    good, bad = log_dir(tmp_path / "good").path, log_dir(tmp_path / "bad").path
    meta = bad / "meta.properties"
    file = Unanswering(meta, tmp_path / "gate")
    file.hold(monkeypatch)
    wait = FirstRead.wait
    with monkeypatch.context() as hasty:
        hasty.setattr(FirstRead, "wait", lambda read, seconds: wait(read, 0.01 if read.path == bad else 600))
        (look,) = find_silent([good, bad])
    assert (look.path, Path(look.at)) == (bad, meta)
    found = open_log_dirs([good, bad], {look.path: "it does not answer"})
    assert [each.path for each in found.available] == [good]
    file.answer()
    look.wait(600)
    assert not look.alive
    found.unbar(bad)
    found.check()
    assert [each.path for each in found.available] == [good, bad]


def test_one_that_answers_with_an_error_is_not_silent(tmp_path: Path) -> None:
    assert find_silent([tmp_path / "absent"]) == []
    with pytest.raises(LogDirError, match="does not exist"):
        open_log_dirs([tmp_path / "absent"])
