"""The descriptors that this process holds, as the kernel lists them."""

import os
from contextlib import suppress
from pathlib import Path


def descriptors(*parts: str) -> list[int]:
    """The flags (as of open(2)) of every descriptor whose path contains all of ``parts``: "(deleted)" does, if its file is unlinked."""
    found = []
    for entry in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):  # the one that lists the others
            path = os.readlink(entry)  # noqa: PTH115 - a deleted file's name is no path any more
            if all(part in path for part in parts):
                lines = Path(f"/proc/self/fdinfo/{entry.name}").read_text().splitlines()
                found.append(int(next(line for line in lines if line.startswith("flags")).split()[1], 8))
    return found
