"""A command of `segtail` in the test's own process: streams and exit status as of a process, without the second that one takes to start."""

import json
import logging
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
from click.testing import CliRunner

from streaming.broker.disk import broker_processes
from streaming.terminal.cli import app, source


def run_command(*arguments: object, environ: Mapping[str, str] | None = None, proc: Path | None = None) -> CompletedProcess[str]:
    """Run it in an environment without options but those of ``environ``, with no terminal. No command that follows signals or forks.

    Args:
        proc: where it sees the brokers that run; then it may see a job that runs here, too. Without it sees none of both.
    """
    given = list(map(str, arguments))
    clean = {name: None for name in os.environ if name.startswith("SEGTAIL_") or name == "COLUMNS"}
    root = logging.getLogger()
    before, level = root.handlers[:], root.level
    root.handlers.clear()  # the command puts its own there, and would close those of pytest
    try:
        with CliRunner().isolation(env=clean | dict(environ or {})) as (out, err, _), pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "argv", ["segtail", *given])
            patch.setattr(broker_processes, "PROC", proc or Path("/nowhere"))
            if proc is None:
                patch.setattr(source, "is_job", lambda _: False)
            with pytest.raises(SystemExit) as ended:
                app.run()
            sys.stdout.flush()
            sys.stderr.flush()
            return CompletedProcess(
                given, int(ended.value.code or 0), out.getvalue().decode(errors="backslashreplace"), err.getvalue().decode()
            )
    finally:
        logging.captureWarnings(False)
        logging.getLogger("streaming").setLevel(logging.NOTSET)
        root.handlers[:] = before
        root.setLevel(level)


Rows = dict[tuple[str, int], dict[str, Any]]


def segtail_retention(*arguments: object, environ: Mapping[str, str] | None = None) -> CompletedProcess[str]:
    return run_command("retention", *arguments, environ=environ)


def retention_rows(*arguments: object, environ: Mapping[str, str] | None = None) -> Rows:
    done = segtail_retention(*arguments, "--format", "json", environ=environ)
    assert (done.returncode in (0, 3, 4), done.stderr) == (True, "")
    return {(row["topic"], row["partition"]): row for row in json.loads(done.stdout)["rows"]}


def into(path: Path) -> tuple[str, ...]:
    """What a command is run by whose standard output becomes a file."""
    return "sh", "-c", 'exec "$@" > "$0"', str(path)
