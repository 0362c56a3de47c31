"""``segtail transactions`` as people run it: a process with its exit status, its output and its complaints."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import streaming
from streaming.broker.protocol.listing_json import TransactionPage, TransactionRow
from tests.builders import NOW
from tests.commands import run_command
from tests.frozen import Frozen, unpack
from tests.processes import about_this_test
from tests.serving import answering


@pytest.fixture
def cluster(tmp_path: Path) -> Frozen:
    return unpack("transactions_v2", tmp_path)


def segtail_transactions(log_dirs: tuple[Path, ...], *arguments: str) -> subprocess.CompletedProcess[str]:
    return run_command("transactions", "--log-dirs", ",".join(map(str, log_dirs)), *arguments)


def at(cluster: Frozen, seconds: int = 0) -> tuple[str, str]:
    return "--at", str(cluster.frozen_ms + seconds * 1000)


def test_the_table_shows_what_hangs_and_how_to_end_it(cluster: Frozen) -> None:
    done = segtail_transactions(cluster.log_dirs, *at(cluster))
    assert (done.returncode, done.stderr) == (3, "")
    lines = done.stdout.splitlines()
    assert lines[0].split()[:2] == ["Partition", "Verdict"]
    assert [line.split()[0] for line in lines[1:8]] == ["ghost-1", "ghost-0", "ghost-2", "ghost-3", "pay-1", "pay-0", "ship-0"]
    assert [line.split()[1] for line in lines[1:8]] == ["hanging"] * 3 + ["unclaimed"] + ["open"] * 3
    assert "2h 25m" in lines[1]
    assert [line for line in lines if line.startswith("kafka-transactions.sh")] == [
        f"kafka-transactions.sh --bootstrap-server 127.0.0.1:21500 abort --topic ghost --partition {partition} --start-offset {offset}"
        for partition, offset in ((1, 0), (0, 0), (2, 6))
    ]
    caution = lines.index(next(line for line in lines if line.startswith("kafka-transactions.sh"))) - 1
    assert lines[caution].startswith("ghost-1, ghost-0, ghost-2: No coordinator will end it. The abort discards its records: first make ")
    assert lines[-1] == "7 open, 3 hanging"


def test_a_log_dir_that_cannot_be_read_leaves_open_what_hangs_there(cluster: Frozen, tmp_path: Path) -> None:
    topic = segtail_transactions((*cluster.log_dirs, tmp_path / "away"), *at(cluster), "--topic", "nowhere")
    counted, doubt = topic.stdout.splitlines()[-2:]
    assert (topic.returncode, counted) == (4, "0 open, 0 hanging, as far as is known here:")
    assert doubt.startswith(f"- log dir {tmp_path}/away does not exist")
    assert topic.stderr == ""
    assert segtail_transactions((*cluster.log_dirs, tmp_path / "away"), *at(cluster)).returncode == 3


def test_json_is_the_message_of_a_job(cluster: Frozen) -> None:
    done = segtail_transactions(cluster.log_dirs, *at(cluster), "--format", "json", "--topic", "ghost")
    assert done.returncode == 3
    page = json.loads(done.stdout)
    assert {name: value for name, value in page.items() if name != "rows"} == {
        "at_ms": cluster.frozen_ms,
        "version": streaming.__version__,
        "doubts": [],
        "away": [],
        "total": 4,
        "matched": 4,
        "offset": 0,
        "sort": "verdict",
        "order": "asc",
        "omitted": 0,
        "late_after_ms": None,
        "young": 0,
        "aborting": [],
    }
    found = page["rows"]
    assert found[2] == {
        "broker": 1,
        "topic": "ghost",
        "partition": 2,
        "producer_id": 9,
        "producer_epoch": 1,
        "first_offset": 6,
        "start_ms": 1795143131813 - 3,
        "last_append_ms": 1795143131813,
        "holds_offsets": 34,
        "holds_more": False,
        "transactional_id": "late",
        "coordinator_state": "CompleteCommit",
        "verdict": "hanging",
        "stuck": False,
        "no_command": None,
        "advice": "no coordinator will end it. The abort discards its records: first make sure that its producer has ended",
        "kind": "transaction_hanging",
        "severity": "critical",
        "since_ms": 1795143131813 - 3,
        "command": "kafka-transactions.sh --bootstrap-server 127.0.0.1:21500 abort --topic ghost --partition 2 --start-offset 6",
        "deadline_ms": None,
        "as_of_ms": None,
        "held_groups": None,
        "groups": [],
    }
    assert (found[0]["transactional_id"], found[0]["coordinator_state"]) == (None, None)
    assert (found[3]["verdict"], found[3]["command"]) == ("unclaimed", None)


@pytest.mark.parametrize(
    ("arguments", "status", "summary"),
    [
        (("--topic", "pay"), 0, "2 open, 0 hanging"),
        (("--topic", "pay", "--stuck-after", "100ms"), 3, "2 open, 2 of them stuck, 0 hanging"),
        (("--hanging-after", "2h"), 3, "7 open, 2 of them stuck, 1 hanging"),
        (("--hanging-after", "1d"), 3, "7 open, 3 of them stuck, 0 hanging"),
        (("--hanging-after", "1d", "--stuck-after", "1d"), 0, "7 open, 0 hanging"),
        (("--set", "hanging_after=36m", "--stuck-after", "1d"), 3, "7 open, 1 hanging"),
    ],
)
def test_the_status_is_3_if_one_is_hanging_or_stuck(cluster: Frozen, arguments: tuple[str, ...], status: int, summary: str) -> None:
    done = segtail_transactions(cluster.log_dirs, *at(cluster), *arguments)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (status, summary)


def test_what_is_to_be_done_about_one_that_is_not_hanging_is_printed_once(cluster: Frozen) -> None:
    done = segtail_transactions(cluster.log_dirs)
    lines = done.stdout.splitlines()
    where = lines.index("pay-1, pay-0, ship-0: What the coordinator has of it:")
    asks = "kafka-transactions.sh --bootstrap-server 127.0.0.1:21500 describe --transactional-id"
    assert lines[where + 1 : where + 4] == [f"{asks} open1", f"{asks} open2", ""]


def test_the_sum_has_what_is_stuck_or_overdue_too(cluster: Frozen) -> None:
    stuck = segtail_transactions(cluster.log_dirs, *at(cluster, 50), "--stuck-after", "1s")
    assert stuck.stdout.splitlines()[-1] == "7 open, 4 of them stuck, 3 hanging"
    overdue = segtail_transactions(cluster.log_dirs)
    assert overdue.stdout.splitlines()[-1] == "7 open, 3 of them overdue, 4 hanging"


def test_now_is_the_default(cluster: Frozen) -> None:
    done = segtail_transactions(cluster.log_dirs, "--format", "json")
    verdicts = {(one["topic"], one["partition"]): one["verdict"] for one in json.loads(done.stdout)["rows"]}
    assert (verdicts["ghost", 3], verdicts["pay", 0]) == ("hanging", "overdue")


def test_nothing_open_is_an_empty_answer(tmp_path: Path) -> None:
    cluster = unpack("truncated", tmp_path)
    assert json.loads(segtail_transactions(cluster.log_dirs, "--format", "json").stdout)["rows"] == []
    done = segtail_transactions(cluster.log_dirs)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "0 open, 0 hanging")


def test_what_cannot_be_reported_has_its_own_status(cluster: Frozen, tmp_path: Path) -> None:
    (tmp_path / "far" / "away").mkdir(parents=True)
    second = cluster.log_dirs[1].rename(tmp_path / "far" / "away" / "d1")
    done = segtail_transactions((second,), *at(cluster, 3600), "--stuck-after", "1d")
    assert done.returncode == 4
    assert [line for line in done.stderr.splitlines() if "the metadata log cannot be read" in line and "(broker 1; " in line]
    assert "kafka-transactions.sh" not in done.stdout
    counted, doubt = done.stdout.splitlines()[-2:]
    assert counted == "3 open; whether 3 of them hang is not known, as far as is known here:"
    assert doubt.startswith("- no metadata log can be read here")
    json_form = segtail_transactions((second,), *at(cluster, 3600), "--format", "json")
    assert doubt.removeprefix("- ") in json_form.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--topic", "typo"), "no partition of typo lies in these log dirs"),
        (("--at", "soon"), "'soon' is none of ISO 8601"),
        (("--hanging-after", "long"), "hanging_after"),
        (("--format", "xml"), "--format"),
    ],
)
def test_what_is_not_possible_as_asked(cluster: Frozen, arguments: tuple[str, ...], message: str) -> None:
    done = segtail_transactions(cluster.log_dirs, *arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stdout == ""


def test_without_log_dirs_it_says_what_to_name(tmp_path: Path) -> None:
    done = segtail_transactions((tmp_path,))
    assert done.returncode == 2
    assert "is not a Kafka log dir" in done.stderr


def test_it_imports_nothing_that_it_does_not_need_and_has_the_system_s_memory(cluster: Frozen) -> None:
    """Though all is there: what serves pages, asks jobs or reads certificates takes 15 MB of a broker's pod, a pool of Arrow's own 5 MB."""
    heavy = {"cramjam", "cryptography", "http.client", "pandas", "prometheus_client", "py4j", "pyspark", "ssl", "watchdog", "yaml"}
    code = (
        "import sys\n"
        "from streaming.terminal.cli.app import main\n"
        "try:\n"
        "    main()\n"
        "finally:\n"
        f"    print({heavy!r} & sys.modules.keys(), file=sys.stderr)\n"
        "    print(sys.modules['pyarrow'].default_memory_pool().backend_name, file=sys.stderr)\n"
    )
    dirs = ",".join(map(str, cluster.log_dirs))
    done = subprocess.run([sys.executable, "-c", code, "transactions", "--log-dirs", dirs], capture_output=True, text=True, check=False)
    assert (done.returncode, about_this_test(done.stderr)) == (3, ["set()", "system"])


def test_clients_that_abort_most_of_their_transactions_are_named_below_the_table() -> None:
    sentence = "Client abuser aborts most of its transactions: 97 % of a sample were aborted: 39 of 40 in the last 20m"
    page = TransactionPage(at_ms=NOW, total=0, matched=0, offset=0, sort="", order="asc", rows=[], aborting=[sentence])
    with answering(lambda _: (200, page.encode())) as url:
        done = run_command("transactions", "--job", url)
    assert (done.returncode, done.stdout.splitlines()) == (0, [sentence, "0 open, 0 hanging"])


def test_what_a_job_cannot_tell_yet_is_not_known_and_no_zero() -> None:
    """A job that has just begun has not read the logs of all coordinators once more."""
    row = TransactionRow(broker=1, topic="pay", partition=0, producer_id=9, verdict="unknown", start_ms=NOW - 3_600_000)
    page = TransactionPage(at_ms=NOW, total=1, matched=1, offset=0, sort="", order="asc", rows=[row])
    with answering(lambda _: (200, page.encode())) as url:
        done = run_command("transactions", "--job", url)
    counted, why = done.stdout.splitlines()[-2:]
    assert (done.returncode, counted) == (4, "1 open; whether 1 of them hangs is not known, as far as is known here:")
    assert why.startswith("- The logs of all coordinators (__transaction_state) decide that. After its start a job reads them once more")


def test_the_sum_of_a_job_is_of_those_that_are_not_listed_too() -> None:
    row = TransactionRow(broker=1, topic="pay", partition=0, producer_id=9, verdict="open", start_ms=NOW - 3_600_000)
    place = {"total": 1, "matched": 1, "offset": 0, "sort": "", "order": "asc"}
    page = TransactionPage(at_ms=NOW, **place, rows=[row], omitted=2, late_after_ms=60_000, young=4)
    with answering(lambda _: (200, page.encode())) as url:
        done = run_command("transactions", "--job", url)
    assert done.stdout.splitlines()[-3:] == [
        "2 more are only counted: late_limit is how many are listed",
        "listed are only transactions open for longer than 1m; 4 are younger",
        "7 open, 1 of them listed, 0 hanging",
    ]


@pytest.mark.parametrize("command", ["transactions", "disk", "retention"])
def test_log_dirs_are_named_by_one_option_by_several_or_by_none(command: str, cluster: Frozen) -> None:
    first, second = cluster.log_dirs
    ways = [
        ("--log-dirs", f"{first},{second}"),
        ("--log-dirs", first, "--log-dirs", second),
        (first, second),
        (f"{first},{second}",),
        ("--log-dirs", first, second),
    ]
    answers = [json.loads(run_command(command, "--json", *at(cluster), *way).stdout)["rows"] for way in ways]
    assert answers[0]
    assert all(each == answers[0] for each in answers)


def test_without_the_logs_of_all_coordinators_it_says_what_to_give(cluster: Frozen) -> None:
    """One log dir of two has the metadata log, and some of the coordinators' logs; its transactions are seconds old."""
    done = segtail_transactions(cluster.log_dirs[:1], *at(cluster, -3600))
    assert done.returncode == 4
    assert done.stdout.splitlines()[-1].startswith(
        "- 2 of 4 partitions of __transaction_state are not read to the end from a current replica: 0, 2."
    )


def test_of_one_stopped_broker_of_several_the_table_the_sum_and_the_status_say_the_same(tmp_path: Path) -> None:
    """It was copied five seconds after its checkpoint: Kafka held 25 and 2 back. What is found counts more than what is not known."""
    dirs = [path for path in unpack("replica_down", tmp_path).log_dirs if path.parent.name == "n1"]
    for path in (each for log_dir in dirs for each in log_dir.iterdir() if each.is_file()):
        os.utime(path, (1, 1))  # long ago
    done = segtail_transactions(tuple(dirs))
    first, second, _, away, counted, doubt = done.stdout.splitlines()[1:]
    assert [[*line.split()[1:3], line.split()[6]] for line in (first, second)] == [["unknown,", "stuck", "0+"]] * 2
    assert away.startswith("Broker 1 is stopped, or this is a copy")
    assert counted == "2 open, 2 of them stuck; whether 2 of them hang is not known, as far as is known here:"
    assert doubt.startswith("- 4 of 4 partitions of __transaction_state")
    assert done.returncode == 3
    page = json.loads(segtail_transactions(tuple(dirs), "--json").stdout)
    assert [(row["holds_offsets"], row["holds_more"]) for row in page["rows"]] == [(0, True)] * 2
