"""Values that are made from files, and made anew when they change."""

from collections.abc import Callable
from pathlib import Path

import pytest

from streaming.common.reloading import PATIENCE_SECONDS, Reloading, read_secret
from streaming.errors import UsageError


def number(
    path: Path, weaker: Callable[[int, int], str] = lambda before, after: "", monotonic: Callable[[], float] = lambda: 0.0
) -> Reloading[int]:
    def make() -> tuple[int, list[Path]]:
        text = read_secret(path, "--number").decode()
        if not text.isdigit():
            raise UsageError(f"{path} holds no number")
        return int(text), [path]

    return Reloading(make, weaker, f"--number {path}", monotonic)


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


def test_what_cannot_be_used_yet_is_a_warning_and_an_error_if_it_stays_so(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path, times = tmp_path / "number", [0.0]
    path.write_text("1")
    value = number(path, monotonic=lambda: times[0])
    replace(path, "many")
    assert (value.get(), value.get(), value.failures) == (1, 1, 0)
    times[0] = PATIENCE_SECONDS - 1
    path.unlink()
    assert (value.get(), value.get(), value.failures) == (1, 1, 0)
    times[0] = PATIENCE_SECONDS
    assert (value.get(), value.get(), value.failures) == (1, 1, 1)
    assert [record.levelname for record in caplog.records] == ["WARNING", "WARNING", "ERROR"]
    replace(path, "none")
    assert (value.get(), value.failures) == (1, 2)
    replace(path, "3")
    assert (value.get(), value.failures) == (3, 2)
    replace(path, "many")
    assert (value.get(), value.failures, caplog.records[-1].levelname) == (3, 2, "WARNING")


def test_what_would_be_weaker_is_not_taken(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "number"
    path.write_text("5")
    value = number(path, lambda before, after: "a part" if after < before else "")
    replace(path, "4")
    assert (value.get(), value.get(), value.failures) == (5, 5, 0)
    error = f"--number {path}: the change would turn off a part: put it back, or restart to turn it off"
    assert [(record.levelname, vars(record)["error"]) for record in caplog.records] == [("WARNING", error)]
    replace(path, "6")
    assert value.get() == 6


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
