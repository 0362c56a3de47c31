"""Whole commands on a log dir in which anything may be damaged: each ends, in words, and what it could know is in its exit status.

``python -m tests.fuzz.commands DIRECTORY SEED`` damages one and runs them all, in a process of its own with a bound on its memory.
"""

import os
import random
import shutil
import socket
import struct
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from streaming.kafka.formats.compression import compress
from streaming.kafka.formats.layout import CHECKED_FROM, HEADER_BYTES, crc32c
from streaming.simulator.batch_writer import Codec
from tests.commands import run_command
from tests.fuzz.mutation import mutated
from tests.fuzz.whole_agent import WHOLE, template

MEMORY_BYTES = 500 << 20
"""What a process may hold that runs all of them; without damage it is a third of that."""

STATUSES = frozenset({0, 1, 2, 3, 4})
_ROOT = Path(__file__).parents[2]
_HOLE_BYTES = 256 << 20
_BOMB_BYTES = 64 << 20


@dataclass(frozen=True)
class Damage:
    """What was done to a file. ``hidden``: a reader that checks everything may still find nothing wrong."""

    path: Path
    how: str
    hidden: bool


def damage(disk: Path, chance: random.Random) -> list[Damage]:
    """Damage some files of a log dir, but for the topic `WHOLE` and what makes the directory a log dir."""
    files = sorted(path for path in disk.rglob("*") if path.is_file() and not path.parent.name.startswith(WHOLE))
    files = [path for path in files if path.name not in ("meta.properties", ".lock")]
    found = []
    for path in files:
        if chance.random() < 0.25:
            how, change, hidden = chance.choice(_CHANGES)
            if how == "bytes":
                path.write_bytes(mutated(path.read_bytes(), chance.choice(files).read_bytes()[: 64 << 10], chance))
            else:
                with suppress(OSError):
                    change(path, chance)
            found.append(Damage(path, how, hidden))
            files = [each for each in files if each.is_file() and each.stat().st_size < _HOLE_BYTES]
    return found


def _replaced(by: Callable[[Path], object]) -> Callable[[Path, random.Random], None]:
    def change(path: Path, _: random.Random) -> None:
        path.unlink()
        by(path)

    return change


def _socket(path: Path) -> None:
    here = os.open(path.parent, os.O_PATH)
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(f"/proc/self/fd/{here}/{path.name}")  # the path itself may be too long for one
    finally:
        os.close(here)


def _sparse_tail(path: Path, _: random.Random) -> None:
    os.truncate(path, path.stat().st_size + _HOLE_BYTES)


def _hole(path: Path, _: random.Random) -> None:
    os.truncate(path, 0)
    os.truncate(path, _HOLE_BYTES)


def _header(path: Path, chance: random.Random) -> None:
    """Other counts, lengths, times and codecs in a batch, whose CRC is right again."""
    data = bytearray(path.read_bytes())
    batch = _some_batch(data, chance)
    if path.suffix != ".log" or batch is None:
        return
    at, size = batch
    layout, where = chance.choice([(">h", 21), (">i", 23), (">q", 27), (">q", 35), (">q", 43), (">h", 51), (">i", 53), (">i", 57)])
    bits = 8 * struct.calcsize(layout)
    struct.pack_into(layout, data, at + where, chance.choice([0, 1, -1, 2 ** (bits - 1) - 1, -(2 ** (bits - 1)), 1000]))
    _sign(data, at, size)
    path.write_bytes(data)


def _bomb(path: Path, chance: random.Random) -> None:
    """The records of a batch are zeros without end, with a right CRC."""
    data = bytearray(path.read_bytes())
    batch = _some_batch(data, chance)
    if path.suffix != ".log" or batch is None:
        return
    at, size = batch
    codec = chance.choice([codec for codec in Codec if codec is not Codec.NONE])
    head, payload = data[at : at + HEADER_BYTES], compress(codec, bytes(_BOMB_BYTES))
    struct.pack_into(">i", head, 8, HEADER_BYTES - 12 + len(payload))
    struct.pack_into(">h", head, 21, struct.unpack_from(">h", head, 21)[0] & ~7 | int(codec))
    struct.pack_into(">i", head, 57, chance.choice([1, 2, 1_000_000, 2**31 - 1]))
    data[at : at + size] = head + payload
    _sign(data, at, HEADER_BYTES + len(payload))
    path.write_bytes(data)


def _some_batch(data: bytearray, chance: random.Random) -> tuple[int, int] | None:
    """Position and size of one of the first batches of magic 2."""
    found, at = [], 0
    while at + HEADER_BYTES <= len(data) and data[at + 16] == 2 and len(found) < 20:
        size = 12 + struct.unpack_from(">i", data, at + 8)[0]
        if size < HEADER_BYTES or at + size > len(data):
            break
        found.append((at, size))
        at += size
    return chance.choice(found) if found else None


def _sign(data: bytearray, at: int, size: int) -> None:
    struct.pack_into(">I", data, at + 17, crc32c(bytes(data[at + CHECKED_FROM : at + size])))


_CHANGES: tuple[tuple[str, Callable[[Path, random.Random], None], bool], ...] = (
    ("bytes", lambda _path, _chance: None, True),
    ("bytes", lambda _path, _chance: None, True),
    ("pipe", _replaced(os.mkfifo), False),
    ("directory", _replaced(Path.mkdir), False),
    ("socket", _replaced(_socket), False),
    ("nowhere", _replaced(lambda path: path.symlink_to("nowhere")), False),
    ("emptied", lambda path, _: os.truncate(path, 0), True),
    ("loop", _replaced(lambda path: path.symlink_to(path.name)), False),
    ("device", _replaced(lambda path: path.symlink_to("/dev/zero")), False),
    ("sparse tail", _sparse_tail, True),
    ("hole", _hole, True),
    ("header", _header, True),
    ("header", _header, True),
    ("bomb", _bomb, True),
)


def commands(disk: Path) -> list[tuple[object, ...]]:
    """Each command that reads log dirs."""
    where = ("--log-dirs", disk)
    return [
        ("dump", disk),
        ("dump", "--records", disk),
        ("dump", "--verify", disk),
        ("dump", "--summary", disk),
        ("dump", "--format", "arrow", "--records", disk),
        ("count", *where),
        ("count", "--by", "partition", "--json", *where),
        ("groups", *where),
        ("disk", *where),
        ("retention", *where),
        ("transactions", *where),
        ("doctor", *where),
        ("why", "g", *where),
        ("top", "--once", *where),
    ]


def run(directory: Path, seed: int) -> None:
    """One damaged log dir, all commands.

    Raises:
        AssertionError: one ended with a traceback, with a status that is none, or with 0 although it could know better.
    """
    chance = random.Random(seed)
    disk = directory / "d0"
    shutil.copytree(template(), disk)
    done = damage(disk, chance)
    for command in commands(disk):
        ended = run_command(*command)
        reported = f"seed {seed}: {' '.join(map(str, command))}: {ended.returncode}\n{ended.stderr[-3000:]}"
        assert "Traceback" not in ended.stderr, reported
        assert ended.returncode in STATUSES, reported
        if command[0] == "dump" and any(not one.hidden for one in done):
            assert ended.returncode != 0, reported
    _check_whole(disk)


def _check_whole(disk: Path) -> None:
    """What nothing was done to has the answer that it has without damage beside it."""
    before, after = (run_command("dump", "--records", "--verify", root / f"{WHOLE}-0") for root in (template(), disk))
    assert (after.returncode, after.stdout.replace(str(disk), "")) == (0, before.stdout.replace(str(template()), ""))


def in_own_process(directory: Path, seed: int, seconds: float) -> None:
    """The same in a process of its own. Raises AssertionError, also if it holds too much, and `subprocess.TimeoutExpired`."""
    code = (sys.executable, "-m", "tests.fuzz.commands", str(directory), str(seed))
    done = subprocess.run(code, cwd=_ROOT, capture_output=True, text=True, timeout=seconds, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def _most_held() -> int:
    """The most memory that this process has held, in bytes; `getrusage` would have that of the process which started it, too."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM"))


def main() -> None:
    """Run them, and hold the memory of this process against the bound."""
    directory, seed = Path(sys.argv[1]), int(sys.argv[2])
    run(directory, seed)
    held = _most_held()
    assert held < MEMORY_BYTES, f"seed {seed}: {held >> 20} MiB"


if __name__ == "__main__":
    main()
