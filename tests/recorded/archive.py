"""A folder in one compressed file and out of it again: times are kept, and the zeros at the end of a preallocated file become a hole."""

import io
import tarfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

import zstandard

from tests import unpacking

HERE = "@HERE@"
"""What stands in a configuration for the folder that it is unpacked into."""

CONFIGURATION = "server.properties"
_LEVEL = 19
_PAGE = 4096


class DamagedError(Exception):
    """An archive that cannot be unpacked; the message names it."""


class Packer:
    """Adds files to an archive that is being written."""

    def __init__(self, tar: tarfile.TarFile) -> None:
        self._tar = tar

    def folder(self, path: Path, name: str, without: Collection[str] = ()) -> None:
        """A folder with all that is in it but files with some suffixes, in an order that is always the same."""
        self._tar.addfile(_owned_by_nobody(self._tar.gettarinfo(path, name)))
        for each in sorted(path.iterdir()):
            if each.is_dir():
                self.folder(each, f"{name}/{each.name}", without)
            elif each.suffix not in without:
                self._file(each, f"{name}/{each.name}")

    def configuration(self, path: Path, name: str, here: Path) -> None:
        """A broker's configuration; the folder in its paths goes."""
        self.bytes(path.read_text().replace(str(here), HERE).encode(), name, path.stat().st_mtime)

    def bytes(self, content: bytes, name: str, mtime: float) -> None:
        """A file that is nowhere else."""
        member = tarfile.TarInfo(name)
        member.size, member.mtime = len(content), mtime
        self._tar.addfile(member, io.BytesIO(content))

    def _file(self, path: Path, name: str) -> None:
        member = _owned_by_nobody(self._tar.gettarinfo(path, name))
        content = path.read_bytes()
        kept = len(content.rstrip(b"\0"))
        if len(content) - kept > _PAGE:
            member.pax_headers = {"GNU.sparse.size": str(len(content)), "GNU.sparse.numblocks": "1", "GNU.sparse.map": f"0,{kept}"}
            content = content[:kept]
        member.size = len(content)
        self._tar.addfile(member, io.BytesIO(content))


@contextmanager
def packing(path: Path) -> Iterator[Packer]:
    """Writes an archive, whole or not at all."""
    unfinished = path.with_name(f"{path.name}.new")
    try:
        with (
            unfinished.open("wb") as raw,
            zstandard.ZstdCompressor(level=_LEVEL).stream_writer(raw) as stream,
            tarfile.open(fileobj=stream, mode="w|", format=tarfile.PAX_FORMAT) as tar,
        ):
            yield Packer(tar)
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def unpack(archive: Path, directory: Path) -> None:
    """Puts everything below a folder, and nothing outside of it.

    Raises:
        DamagedError: it is not what was packed, or a name in it leads out of the folder.
    """
    try:
        with (
            archive.open("rb") as raw,
            zstandard.ZstdDecompressor().stream_reader(raw) as stream,
            tarfile.open(fileobj=stream, mode="r|") as tar,
        ):
            unpacking.unpack(tar, directory)
    except (tarfile.TarError, zstandard.ZstdError, EOFError) as error:
        raise DamagedError(f"{archive} cannot be unpacked: {error}") from error
    for configuration in directory.rglob(CONFIGURATION):
        configuration.write_text(configuration.read_text().replace(HERE, str(configuration.parents[1])))


def _owned_by_nobody(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """Who recorded it is nobody's business, and whoever unpacks it owns it."""
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member
