"""A folder comes out of its archive as it went in, and nothing else comes out."""

import io
import os
import tarfile
from pathlib import Path

import pytest
import zstandard

from tests.recorded.archive import DamagedError, packing, unpack

_SIZE = 10 << 20
_MTIME_NS = 1_700_000_000_123_000_000


@pytest.fixture
def log_dir(tmp_path: Path) -> Path:
    """One with a preallocated index, a segment that ends in a zero, and an empty file."""
    made = tmp_path / "kafka" / "n1" / "d0"
    (made / "t-0").mkdir(parents=True)
    for name, content in (("0.index", b"\0\0\0\7\0\0\0\1"), ("0.log", b"batch\0"), ("0.txnindex", b"")):
        (made / "t-0" / name).write_bytes(content)
    os.truncate(made / "t-0" / "0.index", _SIZE)
    for path in made.rglob("*"):
        os.utime(path, ns=(_MTIME_NS, _MTIME_NS))
    return made


def packed(log_dir: Path, path: Path) -> Path:
    with packing(path) as packer:
        packer.folder(log_dir, "disk/n1/d0")
    return path


def test_contents_sizes_and_times_are_kept_and_what_was_preallocated_takes_no_room(log_dir: Path, tmp_path: Path) -> None:
    archive = packed(log_dir, tmp_path / "a.tar.zst")
    unpack(archive, tmp_path / "out")
    found = tmp_path / "out" / "disk" / "n1" / "d0"
    assert {path.relative_to(found) for path in found.rglob("*")} == {path.relative_to(log_dir) for path in log_dir.rglob("*")}
    for path in (path for path in log_dir.rglob("*") if path.is_file()):
        assert (found / path.relative_to(log_dir)).read_bytes() == path.read_bytes()
    assert {round(path.stat().st_mtime, 3) for path in found.rglob("*")} == {round(_MTIME_NS / 1e9, 3)}
    assert (found / "t-0" / "0.index").stat().st_blocks * 512 < _SIZE / 100
    assert archive.stat().st_size < 1000


def test_a_configuration_names_the_folder_that_it_is_in(log_dir: Path, tmp_path: Path) -> None:
    here = log_dir.parents[1]
    (log_dir.parent / "server.properties").write_text(f"log.dirs={log_dir}\nnode.id=1\n")
    with packing(tmp_path / "a.tar.zst") as packer:
        packer.configuration(log_dir.parent / "server.properties", "disk/n1/server.properties", here)
    assert str(here).encode() not in zstandard.ZstdDecompressor().stream_reader((tmp_path / "a.tar.zst").read_bytes()).read()
    unpack(tmp_path / "a.tar.zst", tmp_path / "out")
    reported = (tmp_path / "out" / "disk" / "n1" / "server.properties").read_text()
    assert reported == f"log.dirs={tmp_path / 'out' / 'disk' / 'n1' / 'd0'}\nnode.id=1\n"


def test_who_recorded_it_is_not_in_it(log_dir: Path, tmp_path: Path) -> None:
    content = zstandard.ZstdDecompressor().stream_reader(packed(log_dir, tmp_path / "a.tar.zst").read_bytes()).read()
    with tarfile.open(fileobj=io.BytesIO(content)) as tar:
        assert {(member.uid, member.gid, member.uname, member.gname) for member in tar} == {(0, 0, "", "")}


def test_an_archive_that_could_not_be_written_leaves_the_old_one(log_dir: Path, tmp_path: Path) -> None:
    archive = packed(log_dir, tmp_path / "a.tar.zst")
    before = archive.read_bytes()
    with pytest.raises(FileNotFoundError), packing(archive) as packer:
        packer.folder(log_dir / "gone", "disk")
    assert archive.read_bytes() == before
    assert [path.name for path in tmp_path.glob("a.tar*")] == ["a.tar.zst"]


@pytest.mark.parametrize("name", ["../outside", "/tmp/outside", "disk/../../outside"])
def test_names_that_lead_out_of_the_folder_are_refused(name: str, tmp_path: Path) -> None:
    with packing(tmp_path / "a.tar.zst") as packer:
        packer.bytes(b"", name, 0)
    with pytest.raises(DamagedError, match=r"a\.tar\.zst cannot be unpacked: .*outside may lead out"):
        unpack(tmp_path / "a.tar.zst", tmp_path / "below" / "out")
    assert not list(tmp_path.rglob("outside"))


def test_a_link_to_elsewhere_is_refused(tmp_path: Path) -> None:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as tar:
        member = tarfile.TarInfo("disk/link")
        member.type, member.linkname = tarfile.SYMTYPE, "../../../etc"
        tar.addfile(member)
    (tmp_path / "a.tar.zst").write_bytes(zstandard.compress(content.getvalue()))
    with pytest.raises(DamagedError, match="cannot be unpacked"):
        unpack(tmp_path / "a.tar.zst", tmp_path / "out")


@pytest.mark.parametrize("damage", [lambda content: b"", lambda content: content[: len(content) // 2], lambda content: b"PK" + content])
def test_a_damaged_archive_is_named(damage, log_dir: Path, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    archive = packed(log_dir, tmp_path / "a.tar.zst")
    archive.write_bytes(damage(archive.read_bytes()))
    with pytest.raises(DamagedError, match=r"a\.tar\.zst cannot be unpacked"):
        unpack(archive, tmp_path / "out")
