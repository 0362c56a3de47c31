"""Writes a session in a terminal as a moving SVG: a transaction that hangs is found, then explained. ``python -m tests.pictures.session``.

The commands run over the log dirs of which documents show outputs. rich draws all lines. A style sheet shows them one after the other, so
that no script runs where the picture is read, and all of them are there where nothing moves.
"""

import argparse
import io
import re
import shlex
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

from tests.commands import run_command
from tests.docs.running import Sandbox, sandbox
from tests.docs.world import NOW
from tests.pictures.screen import COLOURS

OUT = Path(__file__).resolve().parents[2] / "docs" / "pictures" / "session.svg"
WIDTH = 112
READ = "--log-dirs /var/lib/kafka/data-1,/var/lib/kafka/data-2"
SESSION = (f"segtail transactions {READ}", f"segtail why billing {READ}")
PAUSES = (0.0, 1.5, 9.0, 10.5)
"""Seconds until each command and its output are there."""

WHOLE = 24
"""Seconds until it begins anew."""

_FONTS = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)
_LINE = re.compile(r'(<(?:text|rect)[^>]*clip-path="url\(#session-line-(\d+)\)")')
_STYLE = """.s{step} {{ animation: s{step} {whole}s step-end infinite }}
@keyframes s{step} {{ 0% {{ opacity: 0 }} {shown:.1f}% {{ opacity: 1 }} }}
"""


def main() -> int:
    """Write it."""
    parser = argparse.ArgumentParser(prog="python -m tests.pictures.session", description=__doc__)
    parser.add_argument("--out", type=Path, default=OUT, help="the file (%(default)s)")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        given.out.write_text(session_svg(sandbox(Path(folder) / "world")), encoding="utf-8")
    sys.stdout.write(f"{given.out}\n")
    return 0


def session_svg(world: Sandbox) -> str:
    """The session as SVG."""
    console = Console(record=True, width=WIDTH, file=io.StringIO(), color_system="truecolor", force_terminal=True)
    parts: list[list[Text]] = []
    for command in SESSION:
        parts.append([*([Text()] if parts else []), Text.assemble(("$ ", "bold green"), (command, "bold"))])
        parts.append([_painted(line) for line in printed(world, command).splitlines()])
    step_of = [step for step, lines in enumerate(parts) for _ in lines]
    for line in (line for lines in parts for line in lines):
        console.print(line, overflow="crop", no_wrap=True, crop=True)
    drawn = _FONTS.sub("", console.export_svg(title="segtail", theme=COLOURS, unique_id="session"))
    drawn = _LINE.sub(lambda found: f'{found[1]} data-step="{step_of[int(found[2])]}"', drawn)
    drawn = re.sub(r'class="([^"]*)"([^>]*) data-step="(\d)"', r'class="\1 s\3"\2', drawn)
    style = "".join(_STYLE.format(step=step, whole=WHOLE, shown=100 * at / WHOLE) for step, at in enumerate(PAUSES) if at)
    still = "@media (prefers-reduced-motion: reduce) { text { animation: none !important } }\n"
    return drawn.replace("</style>", f"{style}{still}</style>", 1)


def printed(world: Sandbox, command: str) -> str:
    """What a command prints in a terminal of that width, at the moment of the world."""
    words = [*shlex.split(world.here(command))[1:], "--at", NOW]
    done = run_command(*words, environ={**world.environment(), "COLUMNS": str(WIDTH)})
    return world.there(done.stdout).rstrip("\n")


def _painted(line: str) -> Text:
    text = Text(line)
    text.highlight_regex(r"\bhanging\b", "bold red")
    text.highlight_regex(r"^ *kafka-\S+\.sh .*|^ +--.*", "bold cyan")
    return text


if __name__ == "__main__":
    sys.exit(main())
