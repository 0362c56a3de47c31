"""What a shell completes, asked in a real bash."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from streaming.terminal.cli.app import COMMANDS
from tests.commands import run_command
from tests.processes import SEGTAIL
from tests.tools import require_tool


def completed(*words: str, folder: Path) -> list[str]:
    """What bash offers for the last of these words."""
    script = folder / "segtail.bash"
    with script.open("w") as file:
        subprocess.run([str(SEGTAIL), "completion", "bash"], stdout=file, check=True)
    line = " ".join(map(shlex.quote, words))
    ask = (
        f"source {script}; COMP_WORDS=({line}); COMP_CWORD={len(words) - 1}; _segtail_completion segtail; printf '%s\\n' ${{COMPREPLY[@]}}"
    )
    environ = {**os.environ, "PATH": f"{SEGTAIL.parent}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run([require_tool("bash"), "--norc", "-c", ask], capture_output=True, text=True, check=True, env=environ)
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["segtail", ""], list(COMMANDS)),
        (["segtail", "re"], [name for name in COMMANDS if name.startswith("re")]),
        (["segtail", "--v"], ["--version"]),
        (["segtail", "dump", "--summ"], ["--summary"]),
        (["segtail", "dump", "--format", "p"], ["parquet"]),
        (["segtail", "completion", ""], ["bash", "zsh", "fish"]),
    ],
    ids=" ".join,
)
def test_bash_completes_commands_options_and_their_values(words: list[str], offered: list[str], tmp_path: Path) -> None:
    assert completed(*words, folder=tmp_path) == offered


@pytest.mark.parametrize(("shell", "line"), [("zsh", "#compdef segtail"), ("fish", "complete --no-files --command segtail ")])
def test_the_other_shells_get_a_script_of_their_own(shell: str, line: str) -> None:
    done = run_command("completion", shell)
    assert line in done.stdout
    assert "_SEGTAIL_COMPLETE" in done.stdout


def test_a_shell_without_a_script_is_refused() -> None:
    done = run_command("completion", "tcsh")
    assert done.returncode == 2
    assert "bash" in done.stderr


def test_names_of_commands_are_completed_without_importing_them() -> None:
    code = (
        "import sys, click\n"
        "from streaming.terminal.cli.app import COMMANDS, segtail\n"
        "found = [each.value for each in segtail.shell_complete(click.Context(segtail), 'd')]\n"
        "print(found, [name for name in COMMANDS if f'streaming.terminal.cli.{name}' in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == f"{[name for name in COMMANDS if name.startswith('d')]} []\n"
