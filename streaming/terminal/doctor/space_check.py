"""Finds whether there is space for the checkpoint and the journal in it."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from streaming.common.formatting import format_size
from streaming.terminal.doctor.diagnosis import Diagnosis, Outcome, Setup, quoted

_CHECK = "space"
_LEAST = 64 << 20


def check(setup: Setup) -> Iterator[Diagnosis]:
    """Look at the file system of the checkpoint, or of the directory in which it would be made."""
    checkpoint = setup.settings.checkpoint.absolute()
    if not (
        setup.is_of_job or "checkpoint" in setup.given or os.path.lexists(checkpoint)
    ):  # what is only the default of a job that nobody runs here is no matter
        yield Diagnosis(check=_CHECK, state=Outcome.NOT_APPLICABLE, what="these are not the settings of a job: give its --checkpoint")
        return
    place = next(each for each in (checkpoint, *checkpoint.parents) if os.path.isdir(each))  # noqa: PTH112  # also where it may not look
    if not os.access(place, os.W_OK | os.X_OK):
        yield Diagnosis(
            check=_CHECK,
            state=Outcome.FAULT,
            what=f"{place} may not be written to, and the checkpoint {checkpoint} is there",
            command=f"sudo install -d -o {os.geteuid()} {quoted(checkpoint)}",
        )
        return
    free, most = shutil.disk_usage(place).free, setup.settings.journal_max_bytes
    what = f"{format_size(free)} are free for the checkpoint {checkpoint}, and its journal takes up to {format_size(most)}"
    if free < most:
        yield Diagnosis(
            check=_CHECK,
            state=Outcome.FAULT if free < _LEAST else Outcome.WARNING,
            what=what,
            command=f"segtail run --checkpoint {quoted(_elsewhere(place))} ...",
        )
        return
    yield Diagnosis(check=_CHECK, state=Outcome.FINE, what=what)


def _elsewhere(place: Path) -> Path:
    """The example of a directory on another disk."""
    return Path("/var/lib/segtail") if not place.is_relative_to("/var/lib/segtail") else Path("/srv/segtail")
