"""Takes archives apart that lie in tests/data: files and folders below one folder, and nothing outside of it."""

import tarfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath


def unpack(tar: tarfile.TarFile, directory: Path) -> None:
    """Puts everything below a folder.

    Raises:
        tarfile.TarError: it is damaged, or a member might lead out of the folder.
    """
    tar.extraction_filter = lambda member, _: member  # those of Python 3.11.4 would do as well, but not every 3.11 has them
    tar.extractall(directory, _harmless(tar))


def _harmless(tar: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
    for member in tar:
        where = PurePosixPath(member.name)
        if not (member.isfile() or member.isdir()) or where.is_absolute() or ".." in where.parts:
            raise tarfile.ExtractError(f"{member.name} may lead out of the folder")
        yield member
