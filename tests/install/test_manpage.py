"""The man page: all commands and options, and nothing that roff does not understand."""

import subprocess
from pathlib import Path

import click
import pytest

from install.manpage import escape, page
from streaming.terminal.cli.app import COMMANDS, segtail
from tests.tables import each_row
from tests.tools import require_tool

PAGE = "\n".join(page()) + "\n"


def rendered(roff: str) -> subprocess.CompletedProcess[str]:
    """The page as text, and on stderr what groff has to say about it."""
    command = [require_tool("groff"), "-man", "-ww", "-Kutf8", "-Tutf8", "-P-cbou", "-rLL=1000n"]
    return subprocess.run(command, input=roff, capture_output=True, text=True, check=True)


def test_the_page_of_the_wheel_is_made_from_the_commands() -> None:
    assert (Path(__file__).parents[2] / "docs" / "segtail.1").read_text(encoding="utf-8") == PAGE, "make man"


@pytest.mark.programs
def test_groff_understands_all_of_it() -> None:
    assert rendered(PAGE).stderr == ""


@pytest.mark.programs
def test_groff_would_complain() -> None:
    assert rendered(PAGE + ".UNKNOWN x\n").stderr != ""


@pytest.mark.programs
@each_row("name", COMMANDS)
def test_every_option_is_there_as_it_is_typed(name: str) -> None:
    root = click.Context(segtail)
    command = segtail.get_command(root, name)
    assert command is not None
    options = [each for each in command.params if isinstance(each, click.Option) and not each.hidden]
    section = rendered(PAGE).stdout.partition(f"\n   segtail {name} ")[2].partition("\n   segtail ")[0]
    assert [each.opts for each in options if each.opts[-1] not in section] == []


@pytest.mark.programs
@each_row("text", [".so /etc/passwd", "'br", "a\\fBb", "--a-b", "`x`", "~^", "1…2"])
def test_text_is_shown_as_it_is(text: str) -> None:
    assert text in rendered(f".TH A 1\n.PP\n{escape(text)}\n").stdout
