"""Where commands about what is so now get their answer: from log dirs, or from a running job."""

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

import click

from streaming.common.settings import Settings
from streaming.common.units import Address
from streaming.errors import NotYetError, UsageError
from streaming.terminal.cli.options import given, log_once, with_settings
from streaming.terminal.cli.output_options import with_form

_SECONDS = 1.0
_ANY_HOST = ("0.0.0.0", "::")

P = ParamSpec("P")
R = TypeVar("R")

NOTHING_FOUND, FOUND, NOT_KNOWN = 0, 3, 4
"""Exit status."""

EXIT_STATUS = (
    "Exit status: 0 nothing found, 3 something found, 4 nothing found but not everything could be read, 1 failed, 2 not possible as asked. "
    "What is found counts more: 3 where something could not be read, too."
)


def with_source(
    *of_log_dirs: str, files: tuple[str, ...] = ("at", "tried", "free")
) -> Callable[[Callable[Concatenate[Settings, P], R]], Callable[P, R]]:
    """Pass a command the settings, ``job`` (an address, or None for log dirs) and ``form``, as `with_settings` and `with_form` do.

    The job is that of ``--job``, else that of the settings.

    Args:
        of_log_dirs: settings besides ``log_dirs`` that are options of the command, and that only an answer from log dirs needs.
        files: likewise of what the command gets: where one of them is given, no job is looked for.

    Where there is neither a job nor a log dir, they are looked for on this machine (`nearby`).
    """
    names = ("log_dirs", *of_log_dirs)

    def decorate(command: Callable[Concatenate[Settings, P], R]) -> Callable[P, R]:
        @wraps(command)
        def run(settings: Settings, /, *args: P.args, **kwargs: P.kwargs) -> R:
            log_once()
            kwargs["job"] = job_of(settings, kwargs["job"])
            if kwargs["job"] is None and not settings.log_dirs:
                of_files = bool(given(*of_log_dirs)) or any(kwargs.get(each) not in (None, (), False) for each in files)
                settings, kwargs["job"] = nearby(settings, of_files=of_files)
            return command(settings, *args, **kwargs)

        job = click.option("--job", metavar="URL", help="Ask the job with this address, http://HOST:PORT, instead of reading log dirs.")
        return with_settings(*names)(with_form(job(run)))

    return decorate


def job_of(settings: Settings, named: Any) -> str | None:
    """The address of the job to ask: the one that is ``named``, else that of the settings unless log dirs are named; None for log dirs."""
    if isinstance(named, str):
        return named
    return None if given("log_dirs") else settings.job or None


def nearby(settings: Settings, *, of_files: bool) -> tuple[Settings, str | None]:
    """The settings with the log dirs that are to be read, or the address of the job that is to be asked. It says on stderr which.

    Args:
        of_files: what is asked only log dirs can answer.

    Raises:
        UsageError: there is neither here.
    """
    from streaming.broker.disk.broker_processes import running_log_dirs

    url = f"http://{Address('127.0.0.1', settings.listen.port) if settings.listen.host in _ANY_HOST else settings.listen}"
    if not of_files and is_job(url):
        click.echo(f"segtail: neither --job nor --log-dirs is given: the job at {url} is asked", err=True)
        return settings, url
    found = running_log_dirs()
    if found.paths:
        named = ",".join(map(str, found.paths))
        click.echo(f"segtail: no --log-dirs is given: those of the brokers that run here are read, {named}", err=True)
        return settings.model_copy(update={"log_dirs": found.paths}), None
    refused = f" ({'; '.join(found.refused)})" if found.refused else ""
    job = "" if of_files else f"; or --job http://HOST:PORT to ask a running job, for none answers at {url}"
    raise UsageError(f"give --log-dirs, or a PATH with log dirs, for no broker runs here whose log.dirs could be found{refused}{job}")


def is_job(url: str) -> bool:
    """Whether a job is there, also one that is starting."""
    from streaming.broker.protocol.status_json import STATUS_PATH, Status
    from streaming.terminal.cli.job_answers import ask

    try:
        return ask(url, STATUS_PATH, Status, seconds=_SECONDS) is not None
    except NotYetError:
        return True
    except UsageError:
        return False


def check_source(job: str | None, *of_log_dirs: str, at: int | None = None) -> None:
    """Check that there are no two sources.

    Args:
        of_log_dirs: as for `with_source`.
        at: the value of ``--at`` of a command that a job answers as of now.

    Raises:
        UsageError: an option of log dirs is given besides a job.
    """
    if job is not None and (idle := given("log_dirs", *of_log_dirs)):
        raise UsageError(f"{', '.join(idle)} cannot be given with --job: the job answers by its own settings")
    if job is not None and at is not None:
        raise UsageError("--at cannot be given with --job: a job says what is so now")
