"""Asks a running job about disks, over HTTP."""

from streaming.broker.protocol.disk_json import DISK_PATH, DiskAnswer
from streaming.errors import UsageError
from streaming.terminal.cli import job_answers

MOST_ROWS = 1000
"""The most rows that a job answers with."""


def ask_disk(job: str, by: str, limit: int) -> DiskAnswer:
    """The log dirs that the agents of a job watch.

    Args:
        job: ``http://[USER:PASSWORD@]HOST:PORT``, or with https.
        limit: the most rows.

    Raises:
        UsageError: the job cannot be reached, refuses to answer, or answers something else.
    """
    found = job_answers.ask(job, f"{DISK_PATH}?by={by}&limit={min(limit, MOST_ROWS)}", DiskAnswer)
    if found is None:
        raise UsageError(f"{job_answers.shown(job)} does not answer about disks: it is another server, or a job of an earlier version")
    return found
