"""Log dirs answer what a job would: the same screens, from one reading that is kept until another one is wanted."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from streaming.broker.disk.logdirs import open_log_dirs
from streaming.common.settings import Settings
from streaming.pages.api.state import State
from streaming.pages.listings.declared_lists import LISTS
from streaming.terminal.cli.app import segtail
from streaming.terminal.offline.everything import read_everything
from streaming.terminal.top.answer_sources import DirSource
from streaming.terminal.top.questions import VIEWS, DetailAnswer, DetailQuestion, ListQuestion, Rows
from streaming.terminal.top.top_state import ScreenState, question
from streaming.terminal.top.watching import answered, pressed
from tests.docs.world import LOG_DIRS, NOW, ShownBroker
from tests.top.screens import text


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("world")
    ShownBroker(found)
    return found


class Readings:
    """Reads the log dirs, and counts how often."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.count = 0

    def read(self) -> State:
        self.count += 1
        return read_everything(open_log_dirs(tuple(self.root / each for each in LOG_DIRS)), Settings(), NOW)


@pytest.fixture(scope="module")
def readings(root: Path) -> Readings:
    return Readings(root)


@pytest.fixture(scope="module")
def source(readings: Readings) -> DirSource:
    return DirSource(readings.read)


def shown(source: DirSource, *keys: str) -> ScreenState:
    state = ScreenState(source=source.name, every=0.0, width=140, height=30)
    state = answered(state, source.ask(question(state), again=False), 0.0)
    for key in keys:
        state = pressed(state, key)
        state = answered(state, source.ask(question(state), again=False), 0.0)
    return state


def test_every_view_and_every_detail_is_there(source: DirSource) -> None:
    assert "Hanging transactions in topic payments" in text(shown(source))
    assert "sensors-0" in text(shown(source, "2"))
    assert "transfers" in text(shown(source, "3"))
    assert "head of line" in text(shown(source, "4"))
    assert "reports" in text(shown(source, "5"))
    assert "abort --topic payments --partition 0" in text(shown(source, "enter"))
    assert "segments          1\n" in text(shown(source, "enter", "enter"))
    assert ": held up by a transaction" in text(shown(source, "5", "enter"))


def test_they_are_read_once_unless_it_is_asked_for(root: Path) -> None:
    readings = Readings(root)
    source = DirSource(readings.read)
    for view in VIEWS:
        source.ask(ListQuestion(view=view), again=False)
    assert readings.count == 1
    source.ask(ListQuestion(view=VIEWS[0]), again=True)
    assert readings.count == 2


def test_what_is_not_there_is_none(source: DirSource) -> None:
    for subject in (DetailQuestion(topic="none/%2F", partition=3), DetailQuestion(group="no\x1bne")):
        content = source.ask(subject, again=False).content
        assert isinstance(content, DetailAnswer)
        assert content.detail is None


@pytest.mark.parametrize("view", VIEWS)
def test_every_column_that_has_a_letter_is_one_that_can_be_sorted_by(source: DirSource, view: str) -> None:
    for column in LISTS[view].text_columns:
        for descending in (False, True):
            if column.sort:
                rows = source.ask(
                    ListQuestion(
                        view=next(each for each in VIEWS if each == view), sort=column.name if column.sort else "", descending=descending
                    ),
                    again=False,
                )
                assert isinstance(rows.content, Rows)
                assert (rows.content.sort, rows.content.descending) == (column.name, descending)


def test_the_command_reads_log_dirs(root: Path) -> None:
    given = ["top", "--log-dirs", ",".join(str(root / each) for each in LOG_DIRS), "--at", str(NOW)]
    done = CliRunner().invoke(segtail, given, standalone_mode=False)
    assert done.return_value == 3
    assert done.stdout.splitlines()[2].startswith("problems: ")
    for wrong in ([*given, "--job", "http://h:1"], ["top", "--job", "http://h:1", "--at", str(NOW)]):
        refused = CliRunner().invoke(segtail, wrong, standalone_mode=False)
        assert getattr(refused.exception, "exit_status", 0) == 2


def test_a_log_dir_that_is_not_there_is_an_error_with_its_name(tmp_path: Path) -> None:
    done = CliRunner().invoke(segtail, ["top", "--log-dirs", str(tmp_path / "none")], standalone_mode=False)
    assert "none" in str(done.exception)
