"""Finds whether the clock of this machine was set back, so that what its broker wrote is of the future."""

from collections.abc import Iterator

from streaming.common.formatting import format_age
from streaming.kafka.formats import names
from streaming.terminal.doctor.diagnosis import Diagnosis, Outcome, Setup

_CHECK = "clocks"
_AHEAD_SECONDS = 60.0
_WRITTEN = (names.RECOVERY_POINT_CHECKPOINT, names.HIGH_WATERMARK_CHECKPOINT)
"""Files that a broker replaces all the time."""


def check(setup: Setup) -> Iterator[Diagnosis]:
    """Look at the times of files that the broker writes again and again."""
    if setup.log_dirs is None:
        return
    ahead = False
    for log_dir in setup.log_dirs.available:
        for path in (log_dir.path / name for name in _WRITTEN):
            try:
                written = path.stat().st_mtime
            except OSError:
                continue  # not written yet; what may not be read, another check reports
            if written > setup.now + _AHEAD_SECONDS:
                ahead = True
                yield Diagnosis(
                    check=_CHECK,
                    state=Outcome.WARNING,
                    what=f"{path} was written {format_age(setup.now - written)} by this clock: it was set back, or the broker has another",
                    command="timedatectl status",
                )
    if not ahead:
        yield Diagnosis(check=_CHECK, state=Outcome.FINE, what="no file of a broker is of the future")
