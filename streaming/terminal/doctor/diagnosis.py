"""The subject of a check, and its result."""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from streaming.broker.disk.availability import LogDirs
from streaming.common.settings import Settings

_OF_JOBS = frozenset({"agents", "spark_checkpoint", "master", "spark"})
"""Settings that only a job has a use for."""


class Outcome(StrEnum):
    """Whether something is as it should be."""

    FINE = "fine"
    WARNING = "warning"
    FAULT = "fault"
    UNKNOWN = "unknown"
    NOT_APPLICABLE = "not applicable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """One result of a check: a sentence, and the command that mends it, "" if there is none."""

    check: str
    state: Outcome
    what: str
    command: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """The subject of a check: the settings of a job or an agent, and where it would run."""

    settings: Settings
    environ: Mapping[str, str]
    now: float  # Unix seconds
    log_dirs: LogDirs | None  # those of the settings as far as they can be used, None if there are none
    given: frozenset[str] = frozenset()  # the names of the settings that the user has given
    job: str = ""  # the address of a job that is asked, too, "" if there is none
    no_log_dirs: str = "no log dir is given"  # why there are none

    @property
    def is_of_job(self) -> bool:
        """Whether the user has given the settings of a job."""
        return not self.given.isdisjoint(_OF_JOBS)


def quoted(path: Path | str) -> str:
    """A path as an argument of a shell's command, which is never an option."""
    return shlex.quote(str(path))
