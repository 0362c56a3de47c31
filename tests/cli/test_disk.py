"""``segtail disk`` as people run it: on log dirs that brokers left, and on such as a test needs."""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.builders import NOW, batch, log_dir, partition
from tests.commands import retention_rows, run_command
from tests.frozen import FROZEN, dirs, properties
from tests.frozen import case as case
from tests.scratch import scratch
from tests.tools import needs_root, nobody

HOUR, DAY = 3_600_000, 86_400_000


def segtail_disk(*arguments: object) -> subprocess.CompletedProcess[str]:
    # the limit counts only where there is no metadata log
    return run_command("disk", *arguments, "--set", "topic_config={.*: {retention.ms: 604800000}}", environ={"NO_COLOR": "1"})


def reported(*arguments: object, status: int = 0) -> dict[str, Any]:
    done = segtail_disk(*arguments, "--json")
    assert done.returncode == status, (done.stdout, done.stderr)
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


@pytest.mark.parametrize("case", ["overdue", "deletions"], indirect=True)
def test_what_is_freed_is_what_segtail_retention_says_and_the_sum_is_that_of_du(case: Path, request: pytest.FixtureRequest) -> None:
    name = request.node.callspec.params["case"]
    here = ("--server-properties", properties(case), "--at", FROZEN[name])
    kept = retention_rows("--log-dirs", dirs(case), *here)
    answer = reported(case, *here, "--by", "partition")
    frees = {(row["topic"], row["partition"], row["broker"]): row["frees_now"] for row in answer["rows"]}
    compared = Counter[bool]()
    for (topic, number), row in kept.items():
        if row["retention_reclaimable_bytes"] is not None:
            assert frees[topic, number, row["broker"]] == row["retention_reclaimable_bytes"], topic
            compared[row["retention_reclaimable_bytes"] > 0] += 1
    assert compared[True] >= (3 if name == "overdue" else 0)
    assert compared.total() >= 3
    for each in answer["log_dirs"]:
        done = subprocess.run(["du", "-s", "-B1", each["log_dir"]], capture_output=True, text=True, check=True)
        assert each["taken"] == int(done.stdout.split("\t")[0]) == sum(kind["taken"] for kind in each["kinds"])


def test_log_dirs_without_any_segment_are_shown_with_all_others(tmp_path: Path) -> None:
    empty = log_dir(tmp_path, "empty")
    empty.release()
    grows = _grows(tmp_path)
    answer = reported(empty.path, "--at", NOW)
    assert [(each["replicas"], each["outlook"], each["up"]) for each in answer["log_dirs"]] == [(0, "never", True)]
    assert [each["replicas"] for each in reported(empty.path, grows, "--at", NOW)["log_dirs"]] == [0, 1]


def _grows(tmp_path: Path, hours: int = 48) -> Path:
    """A topic to which 100 KiB were appended every hour up to `NOW`, a segment each."""
    disk = log_dir(tmp_path)
    log = partition(disk, "orders")
    for hour in range(hours, -1, -1):
        log.append(*(batch(1, value_bytes=10_240, timestamp=NOW - hour * HOUR) for _ in range(10)))
        if hour:
            log.roll()
    disk.write_high_watermarks()
    return disk.path


def test_a_disk_that_is_full_soon_is_found_and_stated_first(tmp_path: Path) -> None:
    path = _grows(tmp_path)
    done = segtail_disk(path, "--at", NOW, "--free", "1MiB")
    assert done.returncode == 3
    first, *_ = done.stdout.splitlines()
    assert first.startswith(f"{path} is full in 10h")
    assert "What the next check frees" in done.stdout
    assert reported(path, "--at", NOW, "--free", "1GiB")["log_dirs"][0]["outlook"] == "never"  # 7 days of it are 17 MiB
    assert reported(path, "--at", NOW, "--free", "1MiB", "--full-within", "9h")["log_dirs"][0]["outlook"] == "full"


def test_growth_a_day_and_the_sum_over_log_dirs_of_one_file_system(tmp_path: Path) -> None:
    paths = [_grows(tmp_path / name) for name in "ab"]
    alone = reported(paths[0], "--at", NOW, "--free", "8MiB")["log_dirs"][0]
    together = reported(tmp_path, "--at", NOW, "--free", "8MiB")["log_dirs"]
    assert alone["growth_day"] == pytest.approx(24 * 102_400, rel=0.02)
    assert [each["file_system"] for each in together] == [0, 0]
    for each in together:
        assert each["full_ms"] - NOW == pytest.approx((alone["full_ms"] - NOW) / 2, rel=0.01)


def test_replicas_are_counted_as_kafka_log_dirs_does_without_that_of_the_metadata_log() -> None:
    path = Path(__file__).parents[1] / "data" / "log_dirs" / "overdue" / "n1" / "d0"
    assert (path / "__cluster_metadata-0").is_dir()
    assert [each["replicas"] for each in reported(path)["log_dirs"]] == [3]
    assert [each["replicas"] for each in reported(path, "--by", "dir")["rows"]] == [3]


def test_a_policy_that_is_assumed_is_marked_and_the_mark_is_explained(tmp_path: Path) -> None:
    path = Path(__file__).parents[1] / "data" / "log_dirs" / "overdue" / "n1" / "d0"
    out = segtail_disk(path).stdout
    assert " delete?\n" in out
    assert "\nassumed: lag-size-A: the broker's server.properties or" in out
    known = tmp_path / "server.properties"
    known.write_text("node.id=1\nlog.retention.hours=9\nlog.cleanup.policy=delete\nlog.retention.bytes=1048576\n")
    assert "?" not in segtail_disk(path, "--server-properties", known).stdout


def test_what_if_says_what_would_be_free_and_when_it_would_be_full_then(tmp_path: Path) -> None:
    path = _grows(tmp_path)
    answer = reported(path, "--at", NOW + 1, "--free", "1MiB", "--what-if", "orders:retention.ms=10h", "--what-if", "segment.ms=1h")
    assert answer["in_force"][0]["outlook"] == "full"
    assert answer["log_dirs"][0]["outlook"] == "never"
    assert answer["in_force"][0]["frees_now"] == 0
    segments = sorted(path.glob("orders-0/*.log"))
    assert answer["log_dirs"][0]["frees_now"] == sum(segment.stat().st_size for segment in segments[:39])
    by_size = reported(path, "--at", NOW, "--free", "1MiB", "--what-if", "retention.bytes=600KiB")
    assert by_size["log_dirs"][0]["frees_now"] == sum(segment.stat().st_size for segment in segments[:-6])
    shown = segtail_disk(path, "--at", NOW, "--free", "1MiB", "--what-if", "ord*:retention.ms=10h", "--what-if", "segment.ms=1h")
    assert "as it is configured: full in 10h" in shown.stdout
    assert "with ord*:retention.ms=10h, segment.ms=1h: not full within a year" in shown.stdout


def test_a_shorter_segment_time_lets_the_active_segment_go_earlier(tmp_path: Path) -> None:
    path = _grows(tmp_path, 24)
    longer, shorter = (
        reported(path, "--at", NOW, "--what-if", "retention.ms=2h", "--what-if", f"segment.ms={each}")["log_dirs"][0]["frees_day"]
        for each in ("7d", "1h")
    )
    assert shorter > longer - 24 * 102_400
    assert longer != shorter


@pytest.mark.parametrize(
    "tried", ["retention.ms", "retention.ms=soon", "retention.bytes=1d", "cleanup.policy=delete", "nowhere:retention.ms=1d", "segment.ms=0"]
)
def test_a_what_if_that_cannot_be_tried_is_refused_with_a_sentence(tmp_path: Path, tried: str) -> None:
    done = segtail_disk(_grows(tmp_path, 1), "--what-if", tried)
    assert (done.returncode, done.stdout) == (2, "")
    assert "--what-if" in done.stderr


def test_a_stray_is_found_and_what_to_do_is_stated(tmp_path: Path) -> None:
    path = _grows(tmp_path)
    stray = path / f"old-0.{0:032x}-stray"
    stray.mkdir()
    (stray / f"{0:020}.log").write_bytes(b"x" * 100_000)
    done = segtail_disk(path, "--at", NOW, "--free", "1GiB")
    assert done.returncode == 3
    assert done.stdout.startswith("stray_unknown: ")
    assert "Until it is known, do not delete them." in done.stdout
    assert reported(path, "--at", NOW, "--free", "1GiB", status=3)["leftovers"][0]["path"] == str(stray)


def test_a_deleted_file_that_a_process_holds_open_takes_space_and_says_whose_it_is(tmp_path: Path) -> None:
    path = _grows(tmp_path)
    deleted = path / "orders-0" / f"{0:020}.log.deleted"
    deleted.write_bytes(b"x" * 100_000)
    with deleted.open("rb") as file, subprocess.Popen(["cat"], stdin=subprocess.PIPE, pass_fds=[file.fileno()]) as holder:
        deleted.unlink()
        (found,) = reported(path, "--at", NOW, "--free", "1GiB", status=3)["leftovers"]
        first = segtail_disk(path, "--at", NOW, "--free", "1GiB").stdout.splitlines()[0]
        holder.communicate()
    assert (found["path"], found["kind"], found["taken"] >= 100_000) == (f"/proc/{holder.pid}/fd (cat)", "deleted_open", True)
    assert first.endswith(f'of deleted files of log dirs that a process holds open: "/proc/{holder.pid}/fd (cat)"')
    assert reported(path, "--at", NOW, "--free", "1GiB")["leftovers"] == []


def test_what_is_young_and_on_its_way_out_is_no_problem_and_later_it_is_one(tmp_path: Path) -> None:
    path = _grows(tmp_path)
    deleted = path / "orders-0" / f"{0:020}.log.deleted"
    deleted.write_bytes(b"x" * 100)
    at = deleted.stat().st_ctime_ns // 1_000_000
    assert reported(path, "--at", at + 60_000, "--free", "1GiB")["leftovers"] == []
    later = reported(path, "--at", at + 2 * HOUR, "--free", "1GiB", status=3)["leftovers"]
    assert [(each["kind"], each["path"]) for each in later] == [("deleted", str(path / "orders-0"))]


def test_names_with_control_characters_do_not_reach_a_terminal(tmp_path: Path) -> None:
    path = _grows(tmp_path)
    evil = path / "\x1b[2Jx-0"
    evil.symlink_to(tmp_path)
    done = segtail_disk(path, "--at", NOW, "--free", "1GiB")
    assert done.returncode == 4
    assert "\x1b" not in done.stdout + done.stderr
    assert "\\u001b[2Jx-0" in done.stderr


def test_what_cannot_be_read_is_named_and_the_status_says_so(tmp_path: Path) -> None:
    path = _grows(tmp_path / "a")
    broken = tmp_path / "b" / "d1"
    broken.mkdir(parents=True)
    done = segtail_disk("--log-dirs", f"{path},{broken}", "--at", NOW, "--free", "1GiB")
    assert done.returncode == 4
    assert f"\n{broken} is not a Kafka log dir" in done.stdout
    assert (done.stdout + done.stderr).count(f"{broken} is not a Kafka log dir") == 1


def test_a_log_dir_whose_growth_nobody_knows_is_no_promise(tmp_path: Path) -> None:
    disk = log_dir(tmp_path)
    partition(disk, "new").append(batch(3))
    done = segtail_disk(disk.path, "--at", NOW + 60_000)
    assert done.returncode == 4
    assert "no log there shows yet how it grows" in done.stdout


@needs_root
def test_a_log_that_cannot_be_read_is_the_reason_why_growth_is_not_known() -> None:
    with scratch() as name:
        Path(name).chmod(0o755)
        path = _grows(Path(name))
        read = reported(path, "--at", NOW, "--free", "1GiB")["log_dirs"][0]
        assert (read["growth_unknown"], read["growth_unread"], read["recovery_logs"]) == (0, 0, 1)
        for segment in (path / "orders-0").glob("*.log"):
            segment.chmod(0)
        with nobody():
            done, answer = segtail_disk(path, "--at", NOW, "--free", "1GiB"), reported(path, "--at", NOW, "--free", "1GiB", status=4)
    assert done.returncode == 4
    assert done.stdout.startswith(f"Whether every log dir has room is not known: not all logs in {path} can be read\n")
    assert "nobody can tell when it is full: not all of its logs can be read" in done.stdout
    assert "the growth of 1 replica is not known: its log cannot be read" in done.stdout
    assert "minutes" not in done.stdout, "it is not too young"
    assert "the next start reads no log" not in done.stdout
    (unread,), (row,) = answer["log_dirs"], answer["rows"]
    assert (unread["growth_unknown"], unread["growth_unread"], unread["recovery_logs"]) == (1, 1, None)
    assert (row["growth_unknown"], row["growth_unread"]) == (1, 1)


def test_without_a_log_dir_it_says_how_it_is_called(tmp_path: Path) -> None:
    done = segtail_disk("--set", "listen=127.0.0.1:1")
    assert (done.returncode, done.stdout) == (2, "")
    assert "give --log-dirs, or a PATH" in done.stderr
    assert segtail_disk(tmp_path).returncode == 2
    assert "cannot be given with --job" in segtail_disk("--job", "http://127.0.0.1:1", "--what-if", "retention.ms=1d").stderr


@pytest.mark.parametrize(("by", "head"), [("topic", "Topic "), ("partition", "Partition "), ("dir", "Log dir "), ("kind", "Kind ")])
def test_rows_are_by_what_was_asked_for(tmp_path: Path, by: str, head: str) -> None:
    path = _grows(tmp_path)
    lines = segtail_disk(path, "--at", NOW, "--free", "1GiB", "--by", by).stdout.splitlines()
    assert any(line.startswith(head) for line in lines)
    whole = reported(path, "--at", NOW, "--free", "1GiB", "--by", by)
    if by in ("dir", "kind"):
        assert sum(row["taken"] for row in whole["rows"]) == whole["log_dirs"][0]["taken"]
    limited = reported(path, "--at", NOW, "--free", "1GiB", "--by", by, "--limit", 1)
    assert (limited["rows"], limited["total"]) == (whole["rows"][:1], whole["total"])


def test_topics_and_texts_choose_rows_and_leave_the_log_dirs_as_they_are(tmp_path: Path) -> None:
    paths = [log_dir(tmp_path, name) for name in ("one", "two")]
    for disk, topic, number in ((paths[0], "a", 0), (paths[0], "b", 0), (paths[0], "b", 1), (paths[1], "b", 2)):
        partition(disk, topic, number).append(batch(number + 1, value_bytes=10_240))
    here = ("--log-dirs", f"{paths[0].path},{paths[1].path}", "--at", NOW, "--free", "1GiB")
    every = reported(*here, "--by", "partition", status=0)

    def rows(*options: object) -> list[dict[str, Any]]:
        answer = reported(*here, *options, status=0)
        assert answer["log_dirs"] == every["log_dirs"]
        assert (answer["matched"], len(answer["rows"])) == (len(answer["rows"]), answer["matched"])
        found: list[dict[str, Any]] = answer["rows"]
        return found

    assert [(row["topic"], row["partition"]) for row in rows("--by", "partition", "--topic", "b")] == [("b", 2), ("b", 1), ("b", 0)]
    taken = {(row["topic"], row["partition"]): row["taken"] for row in every["rows"]}
    (only,) = rows("--filter", "B-1")
    assert (only["topic"], only["replicas"], only["taken"]) == ("b", 1, taken["b", 1])
    two, one = sorted(rows("--by", "dir", "--topic", "b"), key=lambda row: row["replicas"])
    assert (one["taken"], two["taken"]) == (taken["b", 0] + taken["b", 1], taken["b", 2])
    assert [row["log_dir"] for row in rows("--by", "dir", "--filter", "/TWO")] == [str(paths[1].path)]
    assert [row["log_dir"] for row in rows("--by", "dir", "--topic", "a")] == [str(paths[0].path)]
    assert [row["kind"] for row in rows("--by", "kind", "--filter", "segm")] == ["segment"]
    assert segtail_disk(*here, "--by", "kind", "--topic", "b").returncode == 2


def test_a_topic_that_is_not_there_is_named(tmp_path: Path) -> None:
    path = _grows(tmp_path, 1)
    metadata = Path(__file__).parents[1] / "data" / "log_dirs" / "overdue" / "n1" / "d0"
    done = segtail_disk(metadata, "--topic", "nowhere")
    assert (done.returncode, done.stderr) == (2, "segtail: error: no partition of nowhere lies in these log dirs\n")
    assert segtail_disk(path, "--at", NOW, "--topic", "orders", "--filter", "nothing").returncode in (0, 4)


def test_neither_pandas_nor_pyspark_is_imported(tmp_path: Path) -> None:
    path = _grows(tmp_path, 3)
    code = (
        "import sys; sys.modules['pandas'] = sys.modules['pyspark'] = None; sys.argv[1:] = ['disk', sys.argv[1]];"
        "from streaming.terminal.cli.app import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=False)
    assert done.returncode in (0, 4), done.stderr
    assert "orders" in done.stdout


def test_that_its_broker_was_shut_down_cleanly_needs_its_mark_and_a_lock_that_nobody_holds(tmp_path: Path) -> None:
    disk = log_dir(tmp_path)
    partition(disk, "orders")
    disk.write_high_watermarks()
    assert not reported(disk.path, status=4)["log_dirs"][0]["clean"], "it runs, and its only log is empty"
    (disk.path / ".kafka_cleanshutdown").touch()
    assert not reported(disk.path, status=4)["log_dirs"][0]["clean"], "it runs"
    disk.release()
    assert reported(disk.path, status=4)["log_dirs"][0]["clean"]
    (disk.path / ".kafka_cleanshutdown").unlink()
    assert "a start after a crash reads no log" in segtail_disk(disk.path).stdout


def test_of_a_log_that_the_checkpoint_does_not_name_nothing_is_said_to_be_freed(tmp_path: Path) -> None:
    """As `segtail retention` has it: nobody knows how far it is replicated."""
    path = _grows(tmp_path)
    hours = NOW + 30 * DAY
    assert reported(path, "--at", hours, "--free", "1GiB")["log_dirs"][0]["frees_now"] > 0
    (path / "replication-offset-checkpoint").write_text("0\n0\n")
    assert reported(path, "--at", hours, "--free", "1GiB")["log_dirs"][0]["frees_now"] == 0
