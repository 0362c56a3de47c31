"""The beginning of ``segtail.pyz``: unpacks the file once into a folder that is the user's alone, and runs the command from there.

Compiled libraries cannot be loaded out of an archive. Whatever Python is at hand runs this, so it is written for an old one, too.
"""

import compileall
import fcntl
import json
import os
import platform
import shutil
import stat
import sys
import tempfile
import zipfile
from pathlib import Path

UNPACKED = "SEGTAIL_UNPACKED"
"""An environment variable: where to unpack."""

LOCK = "segtail.lock"
"""The file of a copy that each process holds, shared, which runs from there: who holds it alone may remove the copy."""


def folders() -> "list[Path]":
    """Where it may be unpacked, the first choice first."""
    if os.environ.get(UNPACKED):
        return [Path(os.environ[UNPACKED])]
    temporary = Path(tempfile.gettempdir()) / f"segtail-{os.geteuid()}"
    try:
        cache = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser()
    except RuntimeError:  # a user without a name, as in a container, has no home
        return [temporary]
    return [cache / "segtail", temporary]


def unpacked(archive: zipfile.ZipFile, folder: Path, digest: str) -> Path:
    """The packages, unpacked below a folder if they are not there, for as long as this process runs. A new copy replaces unused others.

    Raises:
        OSError: it cannot be written, or others could put code into it.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o022:
        raise PermissionError(0, "others may write there", str(folder))
    if os.statvfs(str(folder)).f_flag & os.ST_NOEXEC:
        raise PermissionError(0, "mounted with noexec, so no library can be loaded from there", str(folder))
    target = folder / digest
    while not _hold(target):
        holder = os.open(str(folder), os.O_RDONLY)
        try:
            fcntl.flock(holder, fcntl.LOCK_EX)
            if not (target / LOCK).exists():
                _unpack(archive, folder / "part", target)
                for other in folder.iterdir():
                    if other != target:
                        _remove(other, folder / "part")
        finally:
            os.close(holder)
    return target / "site"


def _hold(copy: Path) -> bool:
    """Whether it is there; then it stays until this process ends, or the command in its place."""
    try:
        held = os.open(str(copy / LOCK), os.O_RDONLY)
    except FileNotFoundError:
        return False
    fcntl.flock(held, fcntl.LOCK_SH)
    if os.fstat(held).st_nlink == 0:  # who held it has removed the copy
        os.close(held)
        return False
    os.set_inheritable(held, True)
    return True


def _remove(copy: Path, scratch: Path) -> None:
    """Only for the holder of the folder's lock. What is no copy stays, and so does one that is used: the next build comes by again."""
    try:
        held = os.open(str(copy / LOCK), os.O_RDWR)
    except OSError:
        return
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        copy.rename(scratch)
        shutil.rmtree(str(scratch), ignore_errors=True)
    except OSError:
        return
    finally:
        os.close(held)


def _unpack(archive: zipfile.ZipFile, scratch: Path, target: Path) -> None:
    """Only for the holder of the lock: what is there was left by one that was killed."""
    shutil.rmtree(str(scratch), ignore_errors=True)
    try:
        archive.extractall(str(scratch), [name for name in archive.namelist() if name.startswith("site/")])
        # here and not by the command as it imports them, which would then need 10 MB more, in a pod's memory
        compileall.compile_dir(str(scratch), ddir=str(target), quiet=2)
        (scratch / LOCK).touch()
        scratch.rename(target)
    except OSError:
        shutil.rmtree(str(scratch), ignore_errors=True)
        raise


def main() -> str:
    """Run the command in place of this process. Returns why it cannot."""
    with zipfile.ZipFile(sys.argv[0]) as archive:
        built = json.loads(archive.read("built.json").decode())
        python = "{}.{}".format(*sys.version_info)
        if (python, platform.machine(), sys.platform) != (built["python"], built["machine"], "linux"):
            wanted = f"Python {built['python']} on linux {built['machine']}"
            return f"this file is for {wanted}, and this is Python {python} on {sys.platform} {platform.machine()}"
        refused = []
        for folder in folders():
            try:
                site = unpacked(archive, folder, built["digest"])
            except OSError as error:
                refused.append(f"{folder}: {error.strerror or error}")
            else:
                # without PATH an interpreter does not know where it lies
                run = [sys.executable or str(Path("/proc/self/exe").readlink()), "-m", "streaming.terminal.cli", *sys.argv[1:]]
                alone = {"PYTHONPATH": str(site), "PYTHONSAFEPATH": "1", "PYTHONNOUSERSITE": "1"}  # no code from where it is run
                others = {name: value for name, value in os.environ.items() if name != UNPACKED}  # which is no setting of segtail's
                os.execve(run[0], run, dict(others, **alone))
    return f"there is no place to unpack 240 MB ({'; '.join(refused)}): name one by {UNPACKED}=DIR"


if __name__ == "__main__":
    sys.stderr.write(f"segtail: error: {main()}\n")
    sys.exit(2)
