"""The man pages: all commands and options, and nothing that roff does not understand."""

import subprocess
from pathlib import Path

import click
import pytest

from install.manpage import check, escape, pages, write
from streaming.terminal.cli.app import COMMANDS, segtail
from tests.tables import each_row
from tests.tools import require_tool

PAGES = pages()
DOCS = Path(__file__).parents[2] / "docs" / "man"


def rendered(roff: str) -> subprocess.CompletedProcess[str]:
    """The page as text, and on stderr what groff has to say about it."""
    command = [require_tool("groff"), "-man", "-ww", "-Kutf8", "-Tutf8", "-P-cbou", "-rLL=1000n"]
    return subprocess.run(command, input=roff, capture_output=True, text=True, check=True)


def test_the_pages_of_the_wheel_are_made_from_the_commands() -> None:
    assert {file.name: file.read_text(encoding="utf-8") for file in DOCS.iterdir()} == PAGES, "make man"


def test_each_command_has_a_page_which_the_first_one_names() -> None:
    assert PAGES.keys() == {"segtail.1", *(f"segtail-{name}.1" for name in COMMANDS)}
    assert [name for name in COMMANDS if f"\\fBsegtail\\-{escape(name)}\\fP(1)" not in PAGES["segtail.1"]] == []


def test_what_is_not_current_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "segtail-gone.1").touch()
    assert (write(tmp_path), check(tmp_path)) == (0, 0)
    (tmp_path / "segtail-disk.1").write_text("")
    (tmp_path / "segtail-gone.1").touch()
    assert check(tmp_path) == 1
    assert capsys.readouterr().err == f"segtail-disk.1, segtail-gone.1 of {tmp_path} not current: make man\n"


@pytest.mark.programs
def test_groff_understands_all_of_it() -> None:
    assert {name: rendered(text).stderr for name, text in PAGES.items()} == dict.fromkeys(PAGES, "")


@pytest.mark.programs
def test_groff_would_complain() -> None:
    assert rendered(PAGES["segtail.1"] + ".UNKNOWN x\n").stderr != ""


@pytest.mark.programs
@each_row("name", COMMANDS)
def test_every_option_is_there_as_it_is_typed(name: str) -> None:
    root = click.Context(segtail)
    command = segtail.get_command(root, name)
    assert command is not None
    options = [each for each in command.params if isinstance(each, click.Option) and not each.hidden]
    section = rendered(PAGES[f"segtail-{name}.1"]).stdout
    assert [each.opts for each in options if each.opts[-1] not in section] == []


@pytest.mark.programs
@each_row("text", [".so /etc/passwd", "'br", "a\\fBb", "--a-b", "`x`", "~^", "1…2"])
def test_text_is_shown_as_it_is(text: str) -> None:
    assert text in rendered(f".TH A 1\n.PP\n{escape(text)}\n").stdout
