"""Where commands about what is so now get their answer: from log dirs, or from a running job."""

from collections.abc import Callable
from typing import Concatenate, ParamSpec, TypeVar

import click

from streaming.common.settings import Settings
from streaming.errors import UsageError
from streaming.terminal.cli.options import given, with_settings
from streaming.terminal.cli.output_options import with_form

P = ParamSpec("P")
R = TypeVar("R")

NOTHING_FOUND, FOUND, NOT_KNOWN = 0, 3, 4
"""Exit status."""

EXIT_STATUS = "Exit status: 0 nothing found, 3 something found, 4 not known, 1 failed, 2 not possible as asked."


def with_source(*of_log_dirs: str) -> Callable[[Callable[Concatenate[Settings, P], R]], Callable[P, R]]:
    """Pass a command the settings, ``job`` (an address, or None for log dirs) and ``form``, as `with_settings` and `with_form` do.

    Args:
        of_log_dirs: settings besides ``log_dirs`` that are options of the command, and that only an answer from log dirs needs.
    """
    names = ("log_dirs", *of_log_dirs)

    def decorate(command: Callable[Concatenate[Settings, P], R]) -> Callable[P, R]:
        job = click.option("--job", metavar="URL", help="Ask the job with this address, http://HOST:PORT, instead of reading log dirs.")
        return with_settings(*names)(with_form(job(command)))

    return decorate


def check_source(settings: Settings, job: str | None, *of_log_dirs: str, at: int | None = None) -> None:
    """Check that there is exactly one source.

    Args:
        of_log_dirs: as for `with_source`.
        at: the value of ``--at`` of a command that a job answers as of now.

    Raises:
        UsageError: there is neither a job nor a log dir, or an option of log dirs besides a job.
    """
    if job is not None and (idle := given("log_dirs", *of_log_dirs)):
        raise UsageError(f"{', '.join(idle)} cannot be given with --job: the job answers by its own settings")
    if job is not None and at is not None:
        raise UsageError("--at cannot be given with --job: a job says what is so now")
    if job is None and not settings.log_dirs:
        raise UsageError("give --log-dirs, or --job to ask a running job")
