"""A view that is printed once: as a table, as labelled lines, as JSON; and its exit status."""

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from click.testing import CliRunner, Result

from streaming.broker.protocol.listing_json import TransactionPage
from streaming.broker.protocol.status_json import Consequence, JobStart
from streaming.errors import UsageError
from streaming.terminal.cli.app import segtail
from streaming.terminal.top.questions import VIEWS
from tests.tables import each_row
from tests.top.fake_job import COMMAND, NOW_MS, FakeJob, partition, problem, serving, status, troubled


@pytest.fixture
def job() -> FakeJob:
    return troubled()


@pytest.fixture
def url(job: FakeJob) -> Iterator[str]:
    with serving(job) as found:
        yield found


def run(url: str, *options: str) -> Result:
    """The command off a terminal."""
    return CliRunner().invoke(segtail, ["top", "--job", url, *options], standalone_mode=False)


@each_row(
    ("values", "ending"),
    [
        ({}, 0),
        ({"severity": "info", "info": 1}, 0),
        ({"severity": "warning", "warning": 1}, 3),
        ({"severity": "critical", "critical": 1}, 3),
        ({"doubts": ["the log dir /b cannot be read"]}, 4),
        ({"ready": False}, 4),
        ({"not_current": "No agent answers: a1"}, 4),
        ({"severity": "critical", "critical": 1, "doubts": ["the log dir /b cannot be read"]}, 3),
    ],
)
def test_the_exit_status_says_how_everything_is(values: dict[str, Any], ending: int) -> None:
    with serving(FakeJob(status(**values))) as url:
        assert run(url, "--once").return_value == ending


def test_off_a_terminal_each_row_is_a_line_with_its_labels(url: str) -> None:
    out = run(url).stdout.splitlines()
    assert out[:3] == [
        "verdict: 1 transaction hangs: orders-7 is held for 3 h 12 min",
        "freshness: the newest is 0.8 s old; 3 of 3 brokers",
        "problems: 2",
    ]
    assert out[3:7] == [
        "problem: critical: orders-7 is held up by a transaction that nobody will end",
        "  since: 3h 12m ago",
        "  holds back: 1,204 offsets cannot be read with read_committed",
        f"  command: {COMMAND}",
    ]
    assert [line.partition(":")[0] for line in out[7:]] == ["problem", "  since", "  holds back", "  command"]


def test_what_follows_from_a_problem_has_lines_of_its_own_and_what_is_left_out_is_said(job: FakeJob, url: str) -> None:
    follows = [Consequence(severity="warning", text=f"group {each} waits") for each in "ab"]
    job.problems = [replace(job.problems[0], consequences=follows, more_consequences=7, command="", no_command="it is late")]
    assert run(url).stdout.splitlines()[6:] == [
        "  follows: warning: group a waits",
        "  follows: warning: group b waits",
        "  follows: and 7 more",
        "  no command: it is late",
    ]


def test_while_the_job_starts_no_list_is_said_to_be_empty(job: FakeJob, url: str) -> None:
    job.status = status(ready=False, start=JobStart(step="reading", what="Reading the disks: 41 %"))
    job.problems = []
    assert "problems: none known yet" in run(url).stdout


def test_what_should_be_gone_by_its_own_times_is_due_now(job: FakeJob, url: str) -> None:
    job.problems = [replace(job.problems[0], deadline_ms=at) for at in (1, 4_000_000_000_000)]
    first, second = (line for line in run(url).stdout.splitlines() if line.startswith("  due: "))
    assert first == "  due: now"
    assert second.startswith("  due: in ")


def test_labelled_lines_of_other_views_have_no_picture_and_nothing_that_is_not_known(url: str) -> None:
    out = run(url, "--view", "partitions", "--limit", "2").stdout.splitlines()
    assert out[2] == "partitions: 2 of 300"
    assert out[3] == "partition: orders-299, bytes/s 292.0 KiB, records/s 299, size 1.0 MiB, broker 1, end offset 2990"
    assert run(url, "--view", "retention", "--plain").stdout.splitlines()[3].startswith("retention: orders-7, size 5.0 GiB, next deletion ")


def test_a_table_may_be_asked_for_off_a_terminal(url: str) -> None:
    out = run(url, "--format", "table", "--view", "partitions", "--limit", "3", "--filter", "orders").stdout.splitlines()
    assert out[3].split()[:2] == ["Partition", "Verdict"]
    assert [line.split()[0] for line in out[4:7]] == ["orders-299", "orders-298", "orders-297"]
    assert out[7] == "and 297 more: --limit shows them"


def test_the_letters_that_sort_are_no_capitals_where_no_key_is_read(url: str) -> None:
    heads = run(url, "--format", "table", "--view", "partitions").stdout.splitlines()[3]
    assert "Records/s" in heads
    assert "rEcords/s" not in heads


def test_json_has_the_fields_of_the_job_s_messages(url: str) -> None:
    found = json.loads(run(url, "--json", "--view", "transactions").stdout)
    assert (found["at_ms"], found["sort"], found["matched"], found["rows"][0]["command"]) == (NOW_MS, "start_ms", 1, COMMAND)
    assert TransactionPage.decode(json.dumps(found).encode()).rows == troubled().transactions


@pytest.mark.parametrize("view", VIEWS)
def test_json_has_the_same_fields_for_every_view(url: str, view: str) -> None:
    found = json.loads(run(url, "--json", "--view", str(view)).stdout)
    assert {"at_ms", "version", "doubts", "total", "matched", "offset", "rows"} <= found.keys()


def test_what_is_not_current_begins_with_that(job: FakeJob, url: str) -> None:
    job.status = replace(job.status, not_current="No agent answers: a1")
    assert run(url).stdout.startswith("not current: No agent answers: a1\nverdict: 1 transaction hangs: ")
    assert run(url, "--format", "table").stdout.startswith("not current: No agent answers: a1\nlast known: 1 transaction hangs: ")


def test_what_is_not_known_is_printed(job: FakeJob, url: str) -> None:
    job.status = replace(job.status, doubts=["the log dir /b cannot be read"])
    assert "not known: the log dir /b cannot be read" in run(url, "--plain").stdout
    job.problems = []
    assert run(url, "--format", "table").stdout.count("not known: the log dir /b cannot be read") == 1
    assert "No problems, as far as is known." in run(url, "--format", "table").stdout


def test_names_are_escaped_in_every_form_of_text() -> None:
    job = FakeJob(status(), problems=[problem(what="x\x1b[2J\u202e")], partitions=[partition(0, "a\x1b[31m")])
    with serving(job) as url:
        for options in (["--plain"], ["--format", "table"]):
            for view in ("problems", "partitions"):
                out = run(url, *options, "--view", view).stdout
                assert "\x1b" not in out
                assert "\u202e" not in out


@pytest.mark.parametrize(("code", "text"), [(503, "503 Service Unavailable: starting"), (500, "500"), (404, "it is no job")])
def test_a_job_that_cannot_answer_is_an_error_with_its_reason(url: str, job: FakeJob, code: int, text: str) -> None:
    job.error = code
    done = subprocess.run(
        [sys.executable, "-m", "streaming.terminal.cli", "top", "--job", url], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert text in done.stderr


def test_a_job_that_is_not_there_is_an_error() -> None:
    with serving(troubled()) as url:
        pass
    done = subprocess.run(
        [sys.executable, "-m", "streaming.terminal.cli", "top", "--job", url], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert "cannot be asked: Connection refused" in done.stderr


def test_no_spark_and_no_pandas_is_imported(url: str) -> None:
    code = (
        "import sys\n"
        "from streaming.terminal.cli.app import segtail\n"
        "segtail.main(sys.argv[1:], standalone_mode=False)\n"
        "heavy = {'pyspark', 'py4j', 'pandas', 'watchdog'} & {name.partition('.')[0] for name in sys.modules}\n"
        "sys.exit(f'imported {sorted(heavy)}' if heavy else 0)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, "top", "--job", url], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def used(job: FakeJob) -> None:
    """Groups that are used in each way that is tried here."""
    job.groups = [replace(job.groups[0], group=f"of-{use}", use=use) for use in ("in_use", "abandoned", "throw_away")]


def test_groups_are_chosen_by_who_uses_them_as_segtail_groups_does(job: FakeJob, url: str) -> None:
    used(job)
    out = run(url, "--use", "abandoned,throw_away").stdout.splitlines()
    assert out[2] == "groups: 2"
    assert sorted(line.partition(",")[0] for line in out[3:]) == ["group: of-abandoned", "group: of-throw_away"]
    assert json.loads(run(url, "--view", "groups", "--use", "in_use", "--json").stdout)["matched"] == 1
    table = run(url, "--use", "unknown", "--format", "table").stdout
    assert "Nothing of 3 is unknown" in table


def test_other_lists_have_no_use_to_choose_by(url: str) -> None:
    refused = run(url, "--view", "partitions", "--use", "in_use").exception
    assert isinstance(refused, UsageError)
    assert "--use chooses groups" in str(refused)
