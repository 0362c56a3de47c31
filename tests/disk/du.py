"""What the program `du` says of a folder, against what is found of it."""

import subprocess
from pathlib import Path

from streaming.broker.disk.dir_usage import DirUsage


def du(path: Path, *options: str) -> int:
    done = subprocess.run(["du", "-s", *options, str(path)], capture_output=True, text=True, check=True)
    return int(done.stdout.split("\t")[0])


def check(usage: DirUsage) -> None:
    assert usage.apparent.sum() == du(usage.path, "-b")
    assert usage.taken.sum() == du(usage.path, "-B1")
