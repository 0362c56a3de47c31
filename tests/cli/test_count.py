"""``segtail count`` as people run it: a process with its exit status, its output and its complaints."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from streaming.simulator.log import LogDir
from tests.builders import abort, batch, commit, log_dir, partition
from tests.commands import run_command
from tests.frozen import unpack
from tests.scratch import scratch

ROOT = Path(__file__).parents[2]


def segtail_count(log_dirs: tuple[Path, ...], *arguments: str) -> subprocess.CompletedProcess[str]:
    return run_command("count", "--log-dirs", ",".join(map(str, log_dirs)), *arguments)


def rows(log_dirs: tuple[Path, ...], *arguments: str) -> dict[tuple[str, int], dict[str, int]]:
    done = segtail_count(log_dirs, "--by", "partition", "--format", "json", *arguments)
    assert done.returncode == 0, done.stderr
    return {(row["topic"], row["partition"]): row for row in json.loads(done.stdout)["rows"]}


def note_high_watermarks(disk: LogDir, **offsets: int) -> None:
    lines = [f"{topic} 0 {offset}" for topic, offset in offsets.items()]
    (disk.path / "replication-offset-checkpoint").write_text("\n".join(["0", str(len(lines)), *lines, ""]))


@pytest.mark.parametrize("name", ["transactions_v2", "upgraded", "kafka_3_9"])
def test_every_offset_of_a_real_log_is_a_record_or_a_marker(tmp_path: Path, name: str) -> None:
    cluster = unpack(name, tmp_path)
    found = rows(cluster.log_dirs)
    markers = {of: int(commits) + int(aborts) for _, of, _, _, commits, aborts, _ in cluster.of("replica")}
    plain = [row for row in cluster.of("offsets") if not row[0].startswith("__")]
    assert plain
    for topic, number, high_watermark, stable in plain:
        row = found[topic, int(number)]
        assert (row["next_offset"], row["last_stable_offset"]) == (int(high_watermark), int(stable))
        assert row["control"] == markers[f"{topic}-{number}"]
        assert row["data"] + row["control"] == int(high_watermark) - row["first_offset"]


def test_the_table_has_a_line_a_topic(tmp_path: Path) -> None:
    cluster = unpack("transactions_v2", tmp_path)
    done = segtail_count(cluster.log_dirs, "pay", "ghost")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "Topic  Partitions  Data  Aborted  Control  Readable",
        "ghost           4    87        0        1         5",
        "pay             2   548       84       40       406",
        "",
        "635 data records in 6 partitions, 84 of them aborted, and 41 control records",
        "140 wait for open transactions (see `segtail transactions`): ghost-0, ghost-1, ghost-2, ghost-3, pay-0 and 1 more",
    ]
    sums = json.loads(segtail_count(cluster.log_dirs, "pay", "ghost", "--json").stdout)["rows"]
    assert {name: value for name, value in sums[1].items() if value is not None and value is not False} == {
        "topic": "pay",
        "partitions": 2,
        "data": 548,
        "aborted": 84,
        "control": 40,
        "readable": 406,
        "waiting": 58,
        "unreplicated": 0,
        "remote_offsets": 0,
    }


def test_between_the_log_start_and_the_high_watermark(tmp_path: Path) -> None:
    disk = log_dir(tmp_path)
    log = partition(disk, "orders")
    log.append(batch(10), batch(4, producer=7, transactional=True), abort(7))
    log.roll()
    log.append(batch(5, producer=7, transactional=True), commit(7), batch(9))
    log.delete_records(3)
    note_high_watermarks(disk, orders=25)
    done = segtail_count((disk.path,), "--by", "partition")
    assert done.returncode == 4  # nothing shows which partitions there are
    assert done.stdout.splitlines() == [
        "Partition  Broker  From  To  Data  Aborted  Control  Readable",
        "orders-0        1     3  25    20        4        2        16",
        "",
        "20 data records in 1 partition, 4 of them aborted, and 2 control records",
        "5 after the high watermark are not counted, because consumers may not read them yet, as far as can be told here: orders-0",
        "- no metadata log can be read here, so nothing shows how many partitions there are; run as the broker's user, or name the log dir "
        "that has __cluster_metadata-0 too",
    ]


def test_partitions_that_the_metadata_log_knows_and_that_are_not_here_are_named(tmp_path: Path) -> None:
    cluster = unpack("transactions_v2", tmp_path)
    for directory in [found for path in cluster.log_dirs for found in (*path.glob("ghost-[12]"), *path.glob("pay-*"))]:
        shutil.rmtree(directory)
    stated = "that the metadata log knows are not here, and not counted: "
    done = segtail_count(cluster.log_dirs, "ghost", "pay")
    assert (done.returncode, done.stderr) == (4, "")
    assert f"- 4 partitions {stated}ghost-1, ghost-2, pay-0, pay-1; name the log dirs of the brokers" in done.stdout
    with_json = segtail_count(cluster.log_dirs, "--format", "json")
    assert with_json.returncode == 4
    assert f"segtail: 4 partitions {stated}ghost-1" in with_json.stderr
    assert segtail_count(cluster.log_dirs, "ghost", "nothing").returncode == 2


def test_a_topic_that_is_not_there_is_refused(tmp_path: Path) -> None:
    disk = log_dir(tmp_path)
    partition(disk, "orders").append(batch(1))
    done = segtail_count((disk.path,), "orders", "order")
    assert done.returncode == 2
    assert "no partition of order lies in these log dirs" in done.stderr


def test_damage_is_reported_and_nothing_is_counted_across_it(tmp_path: Path) -> None:
    disk = log_dir(tmp_path)
    log = partition(disk, "orders")
    log.append(batch(2), batch(3))
    first = log.active.path("log")
    log.roll()
    log.append(batch(4))
    log.roll()
    log.append(batch(1))
    sound = partition(disk, "payments", topic_id=2)
    sound.append(batch(6))
    note_high_watermarks(disk, orders=10, payments=6)
    data = bytearray(first.read_bytes())
    position = log.segments[0].positions[1]
    data[position + 16] = 77
    first.write_bytes(data)
    done = segtail_count((disk.path,))
    assert done.returncode == 4
    assert [line.split() for line in done.stdout.splitlines()[1:3]] == [["orders", "1", *"----"], ["payments", "1", "6", "0", "0", "6"]]
    assert f"- orders-0 of broker 1 is not counted: {first}: bad magic byte" in done.stdout
    assert f"at position {position}" in done.stdout
    with_json = segtail_count((disk.path,), "--format", "json")
    assert json.loads(with_json.stdout)["rows"][0]["data"] is None
    assert "orders-0 of broker 1 is not counted" in with_json.stderr


def test_a_log_whose_first_bytes_are_damaged_has_no_counts_and_is_named_once(tmp_path: Path) -> None:
    disk = log_dir(tmp_path)
    log = partition(disk, "orders")
    log.append(batch(2), batch(3))
    note_high_watermarks(disk, orders=5)
    data = bytearray(log.active.path("log").read_bytes())
    data[16] = 77
    log.active.path("log").write_bytes(data)
    done = segtail_count((disk.path,))
    assert done.returncode == 4
    assert done.stdout.splitlines()[1].split() == ["orders", "1", *"----"]
    (reported,) = (line for line in done.stdout.splitlines() if "orders-0" in line)
    assert reported.startswith(f"- orders-0 of broker 1 is not counted: {log.active.path('log')}: bad magic byte")


@pytest.fixture
def reachable() -> Iterator[Path]:
    """A folder that another user can reach, which one of pytest's is not."""
    with scratch() as directory:
        Path(directory).chmod(0o755)
        yield Path(directory)


AS_ANOTHER_USER = """
import json, os, sys
import streaming.terminal.cli.count, streaming.broker.disk.logdirs, streaming.terminal.offline.record_counts, streaming.common.progress_line
from tests.commands import run_command
if os.geteuid() == 0:
    os.setgid(65534); os.setuid(65534)
done = [run_command("count", *arguments) for arguments in json.loads(sys.argv[1])]
print(json.dumps([(each.returncode, each.stdout) for each in done]))
"""


def counts_with_closed(log_dirs: tuple[Path, ...], closed: Path, *asked: tuple[str, ...]) -> list[tuple[int, str]]:
    """In a process that is not root's, to which every directory is open: exit status and output of each."""
    closed.chmod(0)
    try:
        given = json.dumps([("--log-dirs", ",".join(map(str, log_dirs)), *arguments) for arguments in asked])
        done = subprocess.run(
            [sys.executable, "-c", AS_ANOTHER_USER, given],
            capture_output=True,
            text=True,
            check=True,
            env=os.environ | {"HOME": "/"},
            cwd=ROOT,
        )
    finally:
        closed.chmod(0o755)
    return [(status, output) for status, output in json.loads(done.stdout)]


def test_a_directory_that_may_not_be_read_has_a_line_and_a_sentence_and_is_not_stated_to_be_elsewhere(reachable: Path) -> None:
    cluster = unpack("transactions_v2", reachable)
    for path in reachable.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)
    (closed,) = (path / "pay-0" for path in cluster.log_dirs if (path / "pay-0").is_dir())
    both, by_partition, other = counts_with_closed(
        cluster.log_dirs, closed, ("pay", "ship"), ("--by", "partition", "--json", "pay", "ship"), ("ship",)
    )
    assert both[0] == 4
    assert [line.split() for line in both[1].splitlines()[1:3]] == [["pay", "2", *"----"], ["ship", "1", "102", "26", "20", "74"]]
    reported = [line for line in both[1].splitlines() if line.startswith("- ")]
    assert len(reported) == 1
    assert reported[0].startswith(f"- pay-0 of broker 1 is not counted: {closed}: partition.metadata: ")
    assert reported[0].endswith("Run as the broker's user, or as one of its group with read access")
    row, _, _ = json.loads(by_partition[1])["rows"]
    assert (row["partition"], row["first_offset"], row["data"]) == (0, None, None)
    assert (other[0], [line for line in other[1].splitlines() if line.startswith("- ")]) == (0, [])


def test_an_empty_log_of_a_copy_that_was_just_made_is_counted(tmp_path: Path) -> None:
    """From before topics had ids, so that nothing tells it from one that its broker is making; but nobody looks again."""
    directory = log_dir(tmp_path)
    partition(directory, "orders", topic_id=None)
    directory.write_high_watermarks()
    done = run_command("count", directory.path, "--format", "json")
    assert [(row["topic"], row["data"]) for row in json.loads(done.stdout)["rows"]] == [("orders", 0)]
    assert "no segment of it can be read" not in done.stderr


def test_a_segment_that_is_missing_in_the_middle_is_reported_unless_the_topic_is_compacted(tmp_path: Path) -> None:
    """As ``find -mtime`` leaves it."""
    shutil.copytree(ROOT / "tests" / "data" / "log_dirs" / "deletions", tmp_path / "case")
    dirs = tuple(sorted((tmp_path / "case" / "n1").glob("d*")))
    assert "are missing between two segments" not in segtail_count(dirs).stdout, "some of its topics are compacted"
    _, gone, following, *_ = sorted((tmp_path / "case" / "n1" / "d0" / "bysize-A-0").glob("*.log"))
    gone.unlink()
    done = segtail_count(dirs, "bysize-A")
    assert done.returncode == 4
    told = f"bysize-A-0 of broker 1: offsets {int(gone.stem)} to {int(following.stem) - 1} are missing between two segments"
    assert told in done.stdout
