"""Where log dirs are found, and what could not be searched."""

from pathlib import Path

import pytest

from streaming.broker.disk.log_dir_search import FoundLogDirs, find_log_dirs, open_below
from streaming.errors import LogDirError
from tests.builders import log_dir


def test_log_dirs_are_found_below_a_directory_and_not_inside_each_other(tmp_path: Path) -> None:
    data = tmp_path / "data"
    one, two = log_dir(data, "d0"), log_dir(data / "deep", "d1")
    (one.path / "inner").mkdir()
    (one.path / "inner" / "meta.properties").touch()
    (data / "a-link").symlink_to(one.path)
    assert find_log_dirs([data]) == FoundLogDirs((one.path, two.path), (data,))
    assert find_log_dirs([one.path, data]) == FoundLogDirs((one.path, two.path), (data,))
    assert find_log_dirs([one.path]) == FoundLogDirs((one.path,))
    assert find_log_dirs([tmp_path / "nothing"]) == FoundLogDirs((tmp_path / "nothing",))


def refuse(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    """Let the system refuse a look into directories of these names, whoever runs the tests."""
    real = Path.stat

    def stat(path: Path, **more: bool) -> object:
        if path.parent.name in names:
            raise PermissionError(13, "Permission denied")
        return real(path, **more)

    monkeypatch.setattr(Path, "stat", stat)


def test_what_may_not_be_searched_is_kept_at_every_level_but_what_a_file_system_has_for_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = tmp_path / "data"
    one, two = log_dir(data / "disk1", "kafka"), log_dir(data / "disk2", "shut")
    for other in ("lost+found", "disk1/lost+found", "deep/deeper/shut"):
        (data / other).mkdir(parents=True)
    refuse(monkeypatch, "shut", "lost+found")
    unsearched = (data / "deep" / "deeper" / "shut", two.path)
    assert find_log_dirs([data]) == FoundLogDirs((one.path,), (data,), unsearched)
    opened = open_below([data])
    assert ([each.path for each in opened], opened.searched, opened.unsearched) == ([one.path], True, unsearched)
    with pytest.raises(LogDirError, match=r"no log dir is found below .*disk2: .*shut cannot be read, and log dirs may be there"):
        open_below([data / "disk2"])


def test_a_path_that_may_not_be_read_itself_is_opened_so_that_this_shows_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = log_dir(tmp_path, "d0"), log_dir(tmp_path, "shut")
    refuse(monkeypatch, "shut")
    assert find_log_dirs([one.path, two.path]) == FoundLogDirs((one.path, two.path))


@pytest.mark.parametrize("name", ["x" * 300, f"{'x' * 300}*"])
def test_a_path_that_cannot_even_be_looked_at_is_opened_so_that_this_shows_why(name: str, tmp_path: Path) -> None:
    assert find_log_dirs([tmp_path / name]) == FoundLogDirs((tmp_path / name,))
    with pytest.raises(LogDirError, match=r"cannot be read: .*File name too long"):
        open_below([tmp_path / name])
