"""`make record` makes the worlds that are asked for, says so, and leaves what is there when a world cannot be made."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner, Result

from tests.broker.install import UnavailableError
from tests.recorded import __main__ as command
from tests.recorded.archive import unpack
from tests.recorded.making import Making
from tests.recorded.recordings import Replayed, archive, provenance

Make = Callable[[Making], None]


def fish(making: Making) -> None:
    (making.directory / "scratch").touch()
    making.answer("said", "three trouts\n", by="an angler")
    making.answer("counted", {"trout": making.version}, by="a scale")


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """Runs the command where there are two worlds, a pond and a lake, which are made without Kafka."""

    def run(*worlds: str, make: Make = fish) -> Result:
        monkeypatch.setattr(command, "DATA", tmp_path)
        monkeypatch.setattr(command, "WORLDS", {"pond": ("9.9.9", "8.8.8"), "lake": ("9.9.9",)})
        monkeypatch.setattr(command, "class_path", lambda version: "")
        monkeypatch.setattr(command, "import_module", lambda name: SimpleNamespace(make=make))
        monkeypatch.setattr(command, "digests", lambda name: {name: "0123456789abcdef"})
        return CliRunner().invoke(command.record, worlds)

    return run


def test_all_of_them_where_none_is_named(run: Callable[..., Result], tmp_path: Path) -> None:
    done = run()
    assert (done.exit_code, done.stderr) == (0, "")
    names = ["pond-9.9.9", "pond-8.8.8", "lake-9.9.9"]
    assert {path.name for path in tmp_path.iterdir()} == {f"{name}.{suffix}" for name in names for suffix in ("tar.zst", "json")}
    lines = done.stdout.splitlines()
    assert lines[0].startswith("pond: starts Kafka 9.9.9, ")
    assert lines[1].startswith("pond: pond-9.9.9.tar.zst, 0 kB, after ")
    assert lines[-1].startswith("All recordings together take 0.0 MB.")


def test_one_that_is_named_with_its_answers_and_who_gave_them(run: Callable[..., Result], tmp_path: Path) -> None:
    assert run("lake").exit_code == 0
    reported = provenance("lake", "9.9.9", tmp_path)
    assert (reported.script, reported.asked) == (
        {"tests.recorded.worlds.lake": "0123456789abcdef"},
        ["said: an angler", "counted: a scale"],
    )
    unpack(archive("lake", "9.9.9", tmp_path), tmp_path / "out")
    replayed = Replayed(tmp_path / "out", "9.9.9")
    assert (replayed.text("said"), replayed.json("counted")) == ("three trouts\n", {"trout": "9.9.9"})
    assert {path.name for path in tmp_path.iterdir()} == {"lake-9.9.9.tar.zst", "lake-9.9.9.json", "out"}


def test_a_world_that_is_none(run: Callable[..., Result], tmp_path: Path) -> None:
    done = run("lake", "puddle")
    assert done.exit_code == 2
    assert "there is no world puddle; there are pond, lake" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_script_that_fails_leaves_the_recording_that_was_there(run: Callable[..., Result], tmp_path: Path) -> None:
    assert run("lake").exit_code == 0
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}

    def drought(making: Making) -> None:
        fish(making)
        raise AssertionError("there is no water")

    assert str(run("lake", make=drought).exception) == "there is no water"
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_without_the_jars_it_says_why(run: Callable[..., Result], tmp_path: Path) -> None:
    def refuse(making: Making) -> None:
        raise UnavailableError("no network")

    done = run("lake", make=refuse)
    assert (done.exit_code, done.stderr) == (1, "Error: lake cannot be recorded: no network\n")
    assert list(tmp_path.iterdir()) == []
