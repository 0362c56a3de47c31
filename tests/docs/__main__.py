"""Writes into the documents what their examples print now: ``python -m tests.docs``.

An example that leaves something out (``...``) is only named, with what is printed now.
"""

import sys
import tempfile
from pathlib import Path

from tests.docs.documented import ROOT, commands
from tests.docs.running import DONE, HOLE, Sandbox, as_shown, sandbox, subcommand


def main() -> int:
    """Rewrite the examples that differ; the exit status is 1 if one failed or has to be edited by hand."""
    with tempfile.TemporaryDirectory() as directory:
        return _rewrite(sandbox(Path(directory) / "world"))


def _rewrite(world: Sandbox) -> int:
    left = 0
    for command in commands():
        if command.output is None or not subcommand(command):
            continue
        done = world.run(command)
        printed = world.there(done.stdout).strip("\n")
        if done.returncode not in DONE:
            left += 1
            sys.stderr.write(f"{command.place}: exit status {done.returncode}: {done.stderr}\n")
            continue
        if as_shown(command.output, printed):
            continue
        if HOLE in command.output:
            left += 1
            sys.stderr.write(f"{command.place}: edit this one by hand; what is printed now:\n{printed}\n")
            continue
        text = command.document.read_text(encoding="utf-8")
        shown = f"$ {command.text}\n{command.output}".rstrip("\n") + "\n"
        command.document.write_text(text.replace(shown, f"$ {command.text}\n{_trimmed(printed)}\n"), encoding="utf-8")
        sys.stderr.write(f"{command.document.relative_to(ROOT)}: {command.text}\n")
    return 1 if left else 0


def _trimmed(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.splitlines())


if __name__ == "__main__":
    sys.exit(main())
