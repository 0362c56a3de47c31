"""Which files a client of agents reads."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientFiles:
    """The paths of the files with the agents' CA certificates, the job's own certificate and key, and its token."""

    ca: Path | None = None
    cert: Path | None = None
    key: Path | None = None
    token_file: Path | None = None


NO_FILES = ClientFiles()
