"""Values that are made from files, and made anew when they change."""

from collections.abc import Callable
from pathlib import Path

import pytest

from streaming.common.reloading import Reloading, read_secret
from streaming.errors import UsageError


def number(path: Path, weaker: Callable[[int, int], str] = lambda before, after: "") -> Reloading[int]:
    def make() -> tuple[int, list[Path]]:
        text = read_secret(path, "--number").decode()
        if not text.isdigit():
            raise UsageError(f"{path} holds no number")
        return int(text), [path]

    return Reloading(make, weaker, f"--number {path}")


def replace(path: Path, text: str) -> None:
    temporary = path.with_suffix(".new")
    temporary.write_text(text)
    temporary.replace(path)


def test_a_change_is_taken_up_and_one_that_is_none_costs_nothing(tmp_path: Path) -> None:
    path = tmp_path / "number"
    path.write_text("1")
    value = number(path)
    assert (value.get(), value.get()) == (1, 1)
    replace(path, "2")
    assert value.get() == 2


def test_a_link_to_other_files_is_a_change(tmp_path: Path) -> None:
    """As Kubernetes changes the files of a secret."""
    for name, text in (("one", "1"), ("two", "2")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "number").write_text(text)
    (tmp_path / "data").symlink_to("one")
    value = number(tmp_path / "data" / "number")
    (tmp_path / "new").symlink_to("two")
    (tmp_path / "new").replace(tmp_path / "data")
    assert value.get() == 2


def test_what_cannot_be_used_leaves_what_was_there_and_is_reported_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "number"
    path.write_text("1")
    value = number(path)
    replace(path, "many")
    assert (value.get(), value.get(), value.failures) == (1, 1, 1)
    path.unlink()
    assert (value.get(), value.get(), value.failures) == (1, 1, 2)
    assert len(caplog.records) == 2
    replace(path, "3")
    assert (value.get(), value.failures) == (3, 2)


def test_what_would_be_weaker_is_not_taken(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "number"
    path.write_text("5")
    value = number(path, lambda before, after: "a part" if after < before else "")
    replace(path, "4")
    assert (value.get(), value.get(), value.failures) == (5, 5, 1)
    error = f"--number {path}: the change would turn off a part: put it back, or restart to turn it off"
    assert [(record.levelname, vars(record)["error"]) for record in caplog.records] == [("ERROR", error)]
    replace(path, "6")
    assert (value.get(), value.failures) == (6, 1)


def test_what_is_written_while_it_is_read_is_another_change(tmp_path: Path) -> None:
    path = tmp_path / "number"
    path.write_text("1")
    written = ["", "333", "22", ""]

    def make() -> tuple[str, list[Path]]:
        text = path.read_text()
        if later := written.pop():
            path.write_text(later)
        return text, [path]

    value = Reloading(make)
    replace(path, "1.5")
    assert [value.get(), value.get(), value.get()] == ["1.5", "22", "333"]


def test_at_first_it_must_be_right(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"--number .*gone cannot be read: No such file"):
        number(tmp_path / "gone")
