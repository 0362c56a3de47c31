"""Log dirs as people find them: of old brokers, copied, cut short, checked out. Every command on each of them: one lack has one status.

What is made here was found in public repositories with whole log dirs. Kafka 4.3.1 completes the swap, and drops it beside a `.cleaned`.
"""

import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from streaming.simulator.batch_writer import Batch
from streaming.simulator.coordinators import offset_commit_record
from tests.builders import batch, log_dir, partition
from tests.commands import run_command
from tests.tables import each_row

DAYS_AGO = int(time.time()) - 3 * 86_400
POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:" + 64 * "0" + "\nsize 207\n"
COMMANDS = {
    "count": ("count", "--by", "partition"),
    "transactions": ("transactions",),
    "groups": ("groups",),
    "why": ("why", "--group", "g"),
    "history": ("groups", "--history", "--group", "g"),
    "disk": ("disk",),
    "retention": ("retention",),
    "top": ("top", "--once"),
    "dump": ("dump", "--verify", "--summary"),
}
OLD = "4 0 3 3 0 4 4 3 0"
"""The statuses of these for a log dir of before KRaft with all that its broker left. No leader is known, which neither the verdict of a
group nor an open transaction needs; 3: what is known needs attention, and that comes before what is not.
"""


def made(path: Path) -> Path:
    """That of a broker of 2.4 to 2.7, three days after it was stopped in an orderly way. It has 4 records in orders-0, 1 of them read."""
    disk = log_dir(path, "kafka")
    orders, offsets, _ = (partition(disk, topic, topic_id=None) for topic in ("orders", "__consumer_offsets", "empty"))
    orders.append(*(batch(timestamp=1000 * DAYS_AGO, keys=[key]) for key in (b"a", b"b", b"a")))
    orders.roll()
    orders.append(batch(timestamp=1000 * DAYS_AGO, keys=[b"b"]))
    offsets.append(Batch(records=(offset_commit_record("g", "orders", 0, 1, 1000 * DAYS_AGO),)))
    disk.write_high_watermarks()
    disk.write_log_starts()
    disk.write_recovery_points(clean=True)
    disk.release()
    (disk.path / "meta.properties").write_text("#\nversion=0\nbroker.id=1\ncluster.id=AAECAwQFBgcICQoLDA0ODw\n")
    (disk.path / ".kafka_cleanshutdown").touch()
    return disk.path


def segment(path: Path, base: int, kind: str = "log") -> Path:
    return path / "orders-0" / f"{base:020}.{kind}"


def without_cluster(path: Path) -> None:
    (path / "meta.properties").write_text("#\nversion=0\nbroker.id=1\n")


def without_dot_files(path: Path) -> None:
    for name in (".lock", ".kafka_cleanshutdown"):
        (path / name).unlink()


def of_windows(path: Path) -> None:
    for file in (path / "meta.properties", *path.rglob("*-checkpoint")):
        file.write_bytes(file.read_bytes().replace(b"\n", b"\r\n"))


def swapped(path: Path) -> None:
    content = segment(path, 0).read_bytes()
    one = len(content) // 3
    segment(path, 0, "log.swap").write_bytes(content[:one] + content[2 * one :])


def half_cleaned(path: Path) -> None:
    swapped(path)
    segment(path, 0, "timeindex.cleaned").touch()


def pointing(base: int, path: Path) -> None:
    segment(path, base).write_text(POINTER)


def torn(path: Path) -> None:
    segment(path, 3).write_bytes(segment(path, 3).read_bytes()[:-20])


def as_it_was(_: Path) -> None:
    """Nothing is changed."""


def unmarked(path: Path) -> None:
    (path / "replication-offset-checkpoint").write_text("0\n0\n")


ROWS = {
    "of 2.4 to 2.7": (as_it_was, OLD, "4", ""),
    "of 0.11 to 2.3": (without_cluster, OLD, "4", ""),
    "copied without dot files": (without_dot_files, OLD, "4", ""),
    "with line ends of Windows": (of_windows, OLD, "4", ""),
    "a compaction that a crash stopped between its renames": (swapped, OLD, "3", ""),
    "before its renames": (half_cleaned, OLD, "4", ""),
    "a checkpoint that names no log": (unmarked, "4 0 4 4 0 4 4 3 0", "4", "counted to the end of the log, because the high watermark"),
    "a closed segment that Git LFS has": (partial(pointing, 0), "4 0 4 3 0 4 4 3 1", "-", "a pointer of Git LFS"),
    "an active one": (partial(pointing, 3), "4 4 3 3 0 4 4 3 1", "-", "a pointer of Git LFS"),
    "its last segment is gone": (lambda path: segment(path, 3).unlink(), "4 4 3 3 0 4 4 3 0", "3", "below the high watermark of its own"),
    "half a batch": (torn, "4 4 3 3 0 4 4 3 1", "3", "no whole batch"),
    "no log dir": (lambda path: (path / "meta.properties").unlink(), "2 2 2 2 2 2 2 2 0", "", "it has no meta.properties"),
}


@each_row(("change", "statuses", "records", "text"), [pytest.param(*row, id=name) for name, row in ROWS.items()])
def test_every_command_reads_what_is_there_and_says_what_is_not(
    tmp_path_factory: pytest.TempPathFactory, change: Callable[[Path], None], statuses: str, records: str, text: str
) -> None:
    path = made(tmp_path_factory.mktemp("found"))
    change(path)
    for each in (path, *path.rglob("*")):
        os.utime(each, (DAYS_AGO, DAYS_AGO))
    done = {name: run_command(command, f"{path}/", *rest) for name, (command, *rest) in COMMANDS.items()}
    assert " ".join(str(each.returncode) for each in done.values()) == statuses
    rows = [line.split() for line in done["count"].stdout.splitlines()]
    assert [row[4] for row in rows if row and row[0] == "orders-0"] == records.split()
    assert text in done["count"].stdout + done["count"].stderr


def test_a_copy_that_was_made_a_second_ago_has_all_partitions(tmp_path: Path) -> None:
    done = run_command("count", "--by", "partition", f"{made(tmp_path)}/")
    assert [line.split()[0] for line in done.stdout.splitlines()[1:4]] == ["__consumer_offsets-0", "empty-0", "orders-0"]
    assert "no segment of it can be read" not in done.stdout + done.stderr
