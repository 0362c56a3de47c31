"""``segtail doctor``: look for what keeps segtail from working here, and say what mends it."""

import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from streaming import __version__
from streaming.common.settings import Settings
from streaming.common.units import format_count
from streaming.errors import UsageError
from streaming.terminal.cli.options import log_once, with_paths, with_settings
from streaming.terminal.cli.output_options import width_of, with_form
from streaming.terminal.cli.printing import ShellCommand, echo_lines, sentence_table
from streaming.terminal.cli.source import FOUND, NOT_KNOWN, NOTHING_FOUND, job_of

if TYPE_CHECKING:  # the checks import pyarrow: not for --help
    from streaming.broker.protocol.status_json import DoctorPage
    from streaming.terminal.doctor.diagnosis import Diagnosis


_EPILOG = (
    "Exit status: 0 nothing is wrong, 3 something is, 4 nothing is but not everything could be checked, 1 failed, 2 not possible as asked."
)


@click.command("doctor", epilog=_EPILOG)
@with_paths
@with_settings(
    "log_dirs",
    "agents",
    "agent_ca",
    "agent_cert",
    "agent_key",
    "agent_token_file",
    "checkpoint",
    "listen",
    "web_config",
    "tls_cert",
    "tls_key",
)
@click.option("--job", metavar="URL", help="Ask the job with this address, http://HOST:PORT, too.")
@click.option(
    "--bundle", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Write what a maintainer needs into this tar.gz."
)
@with_form
def command(settings: Settings, job: str | None, bundle: Path | None, form: str) -> int:
    """Look for what keeps segtail from working here, and say which command mends it.

    It checks Java, Python and PySpark, the limits of the system, the rights to read the log dirs, clocks, the space for the checkpoint, the
    checkpoint itself, certificates, agents, and the address of the metrics; with --job also what a running job says of itself. It takes
    the options of `segtail run` and `segtail agent`, or their file by --config, and changes nothing.

    --bundle writes an archive for the people who help: versions, the configuration, these findings, what the job says of itself, its
    metrics, and the last lines of the units' log. Tokens, passwords and keys are masked; names of hosts, topics and groups are in it.
    """
    from streaming.terminal.doctor.examination import examine

    log_once()
    job, now = job_of(settings, job), time.time()
    found = examine(settings, os.environ, now, given=settings.model_fields_set, job=job or "")
    if job is not None:
        known = tuple(each.what for each in found if each.state == "fault")
        found = (*found, *(each for each in _of_job(job) if each.state != "fault" or not each.what.endswith(known)))
    width = width_of(form)
    if form == "json":
        click.echo(_page(found, now).encode_readable())
    else:
        echo_lines(_lines(found, width), width)
    if bundle is not None:
        from streaming.terminal.cli.bundle import write_bundle

        files = write_bundle(bundle, settings, job or "", _lines(found, None))
        click.echo(
            f"segtail: {bundle} has {', '.join(files)}; read it before you send it: names of hosts, topics and groups are in it", err=True
        )
    states = {str(each.state) for each in found}
    if states & {"fault", "warning"}:
        return FOUND
    return NOT_KNOWN if "unknown" in states else NOTHING_FOUND


def _of_job(job: str) -> "Iterator[Diagnosis]":
    from streaming.broker.protocol.status_json import STATUS_PATH, Status
    from streaming.terminal.cli import job_answers
    from streaming.terminal.doctor.connection_checks import of_job
    from streaming.terminal.doctor.diagnosis import Diagnosis, Outcome

    try:
        status = job_answers.ask(job, STATUS_PATH, Status)
    except UsageError as error:
        yield Diagnosis(check="job", state=Outcome.FAULT, what=str(error))
        return
    if status is None:
        yield Diagnosis(
            check="job", state=Outcome.UNKNOWN, what=f"the job at {job_answers.shown(job)} is of an earlier version: it has no status"
        )
        return
    yield from of_job(job_answers.shown(job), status)


def _page(diagnoses: "Sequence[Diagnosis]", now: float) -> "DoctorPage":
    """The same as JSON has it; a doubt is what is not known."""
    from streaming.broker.protocol.status_json import DiagnosisRow, DoctorPage

    faults, warnings, unknown = _counted(diagnoses)
    return DoctorPage(
        at_ms=round(now * 1000),
        version=__version__,
        doubts=[f"{each.check}: {each.what}" for each in diagnoses if each.state == "unknown"],
        faults=faults,
        warnings=warnings,
        unknown=unknown,
        rows=[DiagnosisRow(check=each.check, state=str(each.state), what=each.what, command=each.command) for each in diagnoses],
    )


def _counted(diagnoses: "Sequence[Diagnosis]") -> tuple[int, int, int]:
    """How many faults and warnings there are, and how much is not known."""
    faults, warnings, unknown = (sum(each.state == state for each in diagnoses) for state in ("fault", "warning", "unknown"))
    return faults, warnings, unknown


def _lines(diagnoses: "Sequence[Diagnosis]", width: int | None) -> Iterator[str]:
    """A line for each diagnosis, the commands that mend something, and a sum."""
    yield from sentence_table([("state", "check", "what"), *((str(each.state), each.check, each.what) for each in diagnoses)], width)
    yield ""
    mending = [each for each in diagnoses if each.command]
    for each in mending:
        line = f"{each.check}: {each.command}"
        if width is None or len(line) <= width:
            yield line
        else:
            yield from (f"{each.check}:", ShellCommand(f"  {each.command}"))
    if mending:
        yield ""
    faults, warnings, unknown = _counted(diagnoses)
    yield f"{format_count(faults, 'fault')}, {format_count(warnings, 'warning')}, {unknown} not known"
