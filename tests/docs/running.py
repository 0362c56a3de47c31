"""Runs a command of a document in the world of the examples: its paths are those below the world's root, its ports are free ones."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import chdir
from dataclasses import dataclass
from pathlib import Path

import click

from streaming.terminal.cli.app import COMMANDS, segtail
from tests.certificates import TOKEN, Authority
from tests.commands import run_command
from tests.docs.documented import Command
from tests.docs.world import LOG_DIRS, NOW, ShownBroker

_PATH = re.compile(r"(?<![\w./:-])/(?=(?:etc|tmp|var)/)")
_OF_SHELLS = re.compile(r"[|&;<>()$`*?\[~!{]|(?<!\\)\n")
"""What means more to a shell than words: what holds it is given to one."""

_FREE = re.compile(r"\d+(\.\d)? [KMGT]iB of \d+(\.\d)? [KMGT]iB free")
DONE = {0, 3}
"""Exit status of a command that did what it was asked: 3 says that it has found what it looks for."""

HOLE = "..."
"""What stands in an example for what was left out."""


@dataclass(frozen=True, slots=True)
class Sandbox:
    """The world with a home directory in which certificates lie under the names that the documents use."""

    root: Path
    broker: ShownBroker  # it runs: as long as this is there, the locks of its log dirs are held

    @property
    def home(self) -> Path:
        return self.root / "home"

    def environment(self) -> dict[str, str]:
        """No setting of this machine, and a ``segtail`` that is this checkout's."""
        clean = {name: value for name, value in os.environ.items() if not name.startswith("SEGTAIL_")}
        path = os.pathsep.join([str(self.root / "bin"), str(Path(sys.executable).parent), clean["PATH"]])
        clean.pop("COLUMNS", None)
        return clean | {"HOME": str(self.home), "PATH": path}

    def here(self, text: str) -> str:
        """A command with the paths of this sandbox."""
        text = _PATH.sub(f"{self.root}/", text.replace(".venv/bin/segtail", "segtail"))
        return re.sub(r"<[\w' :-]+>", "placeholder", text)

    def there(self, output: str) -> str:
        """Output with the paths of the documents."""
        return output.replace(str(self.root), "")

    def run(self, command: Command) -> subprocess.CompletedProcess[str]:
        """Runs a command that ends by itself, at the moment at which the world stands still if it can be told that."""
        text = self.here(command.text)
        name = subcommand(command)
        if "at" in options(name) and "--at" not in command.words:
            text = text.replace(f"segtail {name}", f"segtail {name} --at {NOW}", 1)
        return self.do(text, self.root / LOG_DIRS[0] if name == "dump" else self.home)

    def do(self, text: str, directory: Path | None = None) -> subprocess.CompletedProcess[str]:
        """Runs what a shell would, in a directory (home if none is named). A command of segtail alone needs neither shell nor process."""
        directory = directory or self.home
        if text.startswith("segtail ") and not _OF_SHELLS.search(text):
            with chdir(directory):
                return run_command(
                    *shlex.split(text.replace("\\\n", " "), comments=True)[1:],
                    environ=self.environment() | ({"COLUMNS": "140"} if text.startswith("segtail top ") else {}),
                )
        return subprocess.run(
            ["bash", "-c", text],
            env=self.environment(),
            cwd=directory,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )


def sandbox(root: Path) -> Sandbox:
    """Makes the world and all that its commands need beside it."""
    made = Sandbox(root, ShownBroker(root))
    for directory in (made.home, root / "bin", root / "tmp", root / "var/lib/segtail"):
        directory.mkdir(parents=True)
    (root / "var/lib/kafka/data").symlink_to(root / LOG_DIRS[0])
    shim = root / "bin" / "segtail"
    shim.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m streaming.terminal.cli "$@"\n')
    shim.chmod(0o755)
    _credentials(made.home)
    return made


def _credentials(home: Path) -> None:
    authority = Authority(home)
    for name in ("agent", "job", "web"):
        files = authority.issue(name)
        (home / f"{name}.crt").write_bytes(files.cert.read_bytes())
    for name in ("ca.crt", "agents-ca.pem", "jobs-ca.pem", "prometheus-ca.pem"):
        (home / name).write_bytes(authority.ca.read_bytes())
    for name in ("token", "tokens"):
        (home / name).write_text(f"{TOKEN}\n")
        (home / name).chmod(0o600)


def subcommand(command: Command) -> str:
    """Which of segtail's commands it is, "" if it is none."""
    words = command.words
    return words[1] if len(words) > 1 and Path(words[0]).name == "segtail" and words[1] in COMMANDS else ""


def options(name: str) -> set[str]:
    """What a command of segtail takes: names of parameters, and the options as they are written."""
    found = segtail.get_command(click.Context(segtail), name) if name else None
    if found is None:
        return set()
    return {option for each in found.params for option in (str(each.name), *each.opts, *each.secondary_opts)} | {"--help", "-h"}


def as_shown(shown: str, printed: str) -> bool:
    """Is this what was printed? ``...`` stands for what was left out, and free space is that of any machine."""
    pattern = "".join(_patterns(_FREE.sub("# free", shown).splitlines()))
    return re.fullmatch(pattern, _FREE.sub("# free", printed).strip("\n") + "\n") is not None


def _patterns(lines: list[str]) -> Iterator[str]:
    for line in lines:
        yield r"(?:.*\n)*" if line == HOLE else ".*".join(re.escape(part) for part in line.rstrip().split(HOLE)) + r" *\n"
