"""A command of `segtail` in the test's own process: streams and exit status as of a process, without the second that one takes to start."""

import logging
import os
import sys
from collections.abc import Mapping
from subprocess import CompletedProcess

import pytest
from click.testing import CliRunner

from streaming.terminal.cli import app


def run_command(*arguments: object, environ: Mapping[str, str] | None = None) -> CompletedProcess[str]:
    """Run it in an environment without options but those of ``environ``, with no terminal. No command that follows signals or forks."""
    given = list(map(str, arguments))
    clean = {name: None for name in os.environ if name.startswith("SEGTAIL_") or name == "COLUMNS"}
    root = logging.getLogger()
    before, level = root.handlers[:], root.level
    root.handlers.clear()  # the command puts its own there, and would close those of pytest
    try:
        with CliRunner().isolation(env=clean | dict(environ or {})) as (out, err, _), pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "argv", ["segtail", *given])
            with pytest.raises(SystemExit) as ended:
                app.run()
            sys.stdout.flush()
            sys.stderr.flush()
            return CompletedProcess(
                given, int(ended.value.code or 0), out.getvalue().decode(errors="backslashreplace"), err.getvalue().decode()
            )
    finally:
        logging.captureWarnings(False)
        root.handlers[:] = before
        root.setLevel(level)
