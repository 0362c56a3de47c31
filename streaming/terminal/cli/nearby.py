"""The job, or else the brokers of this machine, for a command that is given neither a job nor a log dir."""

import click

from streaming.common.settings import Settings
from streaming.common.units import Address
from streaming.errors import NotYetError, UsageError

_SECONDS = 1.0
_ANY_HOST = ("0.0.0.0", "::")


def nearby(settings: Settings, *, of_files: bool) -> tuple[Settings, str | None]:
    """The settings with the log dirs that are to be read, or the address of the job that is to be asked. It says on stderr which.

    Args:
        of_files: what is asked only log dirs can answer.

    Raises:
        UsageError: there is neither here.
    """
    from streaming.broker.disk.broker_processes import running_log_dirs

    url = _url(settings.listen)
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


def _url(listens: Address) -> str:
    """Where a job of this machine answers with these settings, and without any at 127.0.0.1:9712."""
    return f"http://{Address('127.0.0.1', listens.port) if listens.host in _ANY_HOST else listens}"


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
