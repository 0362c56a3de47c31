"""Commands about lists beside the exporter of a job, over HTTP: they print what the job answers."""

import json
import time
from collections.abc import Iterator
from dataclasses import replace
from urllib.request import urlopen

import pytest
from click.testing import CliRunner, Result

from streaming.common.units import format_name
from streaming.pages.site.exporter import Exporter
from streaming.terminal.cli.app import segtail
from tests.serving import answering
from tests.view.rows import log, new_table, untold_table
from tests.worlds.hosts import agent, broker, log_dir, observer

NAMES = ("orders", "orders-audit", "sp ace", "a&topic=b")


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    logs = [log(topic=name, partition=number, appended_bytes=5, end_offset=7, log_dir="/d0") for name in NAMES for number in range(300)]
    observing = observer(agent("a1", broker(), log_dirs=(log_dir(),)))
    table = new_table(*logs)
    table.set_agents([])
    table.set_whole()
    exporter = Exporter("127.0.0.1", 0, table=table, observer=observing, clock=time.time, healthy=lambda: True)
    exporter.start()
    yield exporter.url.removesuffix("/metrics")
    exporter.close()


def run(url: str, name: str, *options: str) -> Result:
    return CliRunner().invoke(segtail, [name, "--job", url, *options], standalone_mode=False)


def printed(url: str, name: str, *options: str) -> dict[str, object]:
    done = run(url, name, "--json", *options)
    assert done.exception is None, done.exception
    page: dict[str, object] = json.loads(done.stdout)
    return page


def without_time(page: dict[str, object]) -> dict[str, object]:
    return {name: value for name, value in page.items() if name != "at_ms"}


@pytest.mark.parametrize("name", ["transactions", "retention", "count"])
def test_json_is_the_answer_of_the_job(url: str, name: str) -> None:
    with urlopen(f"{url}/api/v1/{name}?limit=1000") as response:
        answer = json.loads(response.read())
    found = printed(url, name)
    assert found.keys() == answer.keys()
    assert without_time(found) | {"rows": []} == without_time(answer) | {"rows": []}


@pytest.mark.parametrize(
    ("options", "count"),
    [
        ((), 1200),  # of two answers
        (("orders",), 300),
        (("--topic", "orders"), 300),
        (("orders", "--topic", "sp ace", "--topic", "orders"), 600),
        (("a&topic=b",), 300),
        (("--filter", "ORDERS"), 600),
        (("orders-audit", "--filter", "-29"), 11),
    ],
)
@pytest.mark.parametrize("name", ["retention", "count"])
def test_topics_and_filters_mean_the_same_in_every_command(url: str, name: str, options: tuple[str, ...], count: int) -> None:
    by = ("--by", "partition") if name == "count" else ()
    page = printed(url, name, *by, *options)
    rows = page["rows"]
    assert isinstance(rows, list)
    assert (len(rows), page["matched"], page["total"]) == (count, count, 1200)
    assert len({(row["topic"], row["partition"]) for row in rows}) == count


@pytest.fixture
def starting() -> Iterator[str]:
    """A job that has counted nothing yet; its agent has answered."""
    observing = observer(agent("a1", broker(), log_dirs=(log_dir(),)))
    exporter = Exporter("127.0.0.1", 0, table=untold_table(), observer=observing, clock=time.time, healthy=lambda: True)
    exporter.start()
    yield exporter.url.removesuffix("/metrics")
    exporter.close()


@pytest.mark.parametrize("name", ["transactions", "retention", "count", "disk"])
def test_while_a_job_starts_no_command_finds_that_nothing_is_wrong(starting: str, name: str) -> None:
    done = run(starting, name)
    assert done.return_value == 4, done.output
    assert "the job is starting" in done.output
    doubts = printed(starting, name)["doubts"]
    assert isinstance(doubts, list)
    assert any("the job is starting" in each for each in doubts)


def test_disk_takes_the_same_topics_and_texts(url: str) -> None:
    rows = {
        ("--topic", "orders"): {"orders"},
        ("--topic", "a&topic=b", "--topic", "sp ace"): {"a&topic=b", "sp ace"},
        ("--filter", "ORDERS"): {"orders", "orders-audit"},
        ("--topic", "orders", "--filter", "s-29"): {"orders"},
    }
    for options, topics in rows.items():
        page = printed(url, "disk", *options)
        assert {row["topic"] for row in page["rows"]} == topics  # type: ignore[attr-defined]
        assert (page["matched"], page["total"]) == (len(topics), 4)
    every = printed(url, "disk", "--by", "partition")
    assert (len(every["rows"]), every["matched"]) == (1200, 1200)  # type: ignore[arg-type]
    assert len(printed(url, "disk", "--by", "partition", "--limit", "1100")["rows"]) == 1100  # type: ignore[arg-type]
    assert "no partition of nowhere lies where that job looks" in str(run(url, "disk", "--topic", "nowhere").exception)
    assert "there are no rows of a topic" in str(run(url, "disk", "--topic", "orders", "--by", "kind").exception)


def test_a_text_that_no_partition_holds_is_no_topic_that_is_missing(url: str) -> None:
    for name in ("transactions", "retention", "count", "disk"):
        assert printed(url, name, "--topic", "orders", "--filter", "nothing")["rows"] == []


@pytest.mark.parametrize("name", ["transactions", "retention", "count"])
def test_what_the_job_does_not_have_or_does_not_do_is_refused(url: str, name: str) -> None:
    complaints = {
        ("nowhere",): "no partition of nowhere lies where that job looks",
        ("--at", "2026-01-01"): "--at cannot be given with --job",
        ("--log-dirs", "/d"): "--log-dirs cannot be given with --job",
        ("--server-properties", "/d"): "--server-properties cannot be given with --job",
    }
    for options, complaint in complaints.items():
        assert complaint in str(run(url, name, *options).exception)


@pytest.mark.parametrize("name", ["transactions", "retention", "count"])
def test_a_table_has_the_headings_of_the_list(url: str, name: str) -> None:
    heads = {"transactions": "0 open, 0 hanging", "retention": "Partition   Verdict ", "count": "Topic   Partitions "}
    assert run(url, name, "orders").stdout.startswith(heads[name])


def test_what_a_job_has_not_counted_is_named_with_the_reason_and_a_topic_that_is_missing_beside_it_is_refused(url: str) -> None:
    done = run(url, "count", "orders")
    assert done.return_value == 4
    (line,) = (line for line in done.stdout.splitlines() if line.startswith("- "))
    assert line.startswith("- 300 partitions are not counted: orders-0, orders-1, orders-2, orders-3, orders-4 and 295 more: its agent a1 ")
    assert "counted to the end" not in done.stdout
    assert line.removeprefix("- ") in printed(url, "count", "orders")["doubts"]  # type: ignore[operator]
    assert "no partition of nowhere lies where that job looks" in str(run(url, "count", "orders", "nowhere").exception)


def test_what_a_later_job_says_in_other_words_is_refused_or_not_known(url: str) -> None:
    def answer(path: str) -> tuple[int, bytes]:
        row = {"broker": 1, "verdict": "later", "running": True, "reasons": [], "costs": [], "behind": [], "doubts": []}
        restart: dict[str, object] = {"at_ms": 1, "rows": [row]}
        pages = {name: printed(url, name) | {"by": "host"} for name in ("count", "disk")} | {"restart-check": restart}
        return 200, json.dumps(pages["restart-check" if "restart" in path else "disk" if "disk" in path else "count"]).encode()

    with answering(answer) as later:
        done = run(later, "restart-check", "1")
        assert (done.return_value, "not known" in done.stdout) == (4, True)
        for name in ("count", "disk"):
            assert "its rows are by 'host', and not by " in str(run(later, name).exception)


def test_a_name_is_printed_as_one_that_does_not_turn_the_terminal_over(url: str) -> None:
    assert "no partition of " + format_name("\x1b[2J\n") + " lies where" in str(run(url, "retention", "\x1b[2J\n").exception)


def test_a_log_dir_that_no_agent_of_a_job_watches_is_a_doubt_about_disks_and_transactions() -> None:
    watches = replace(agent("a1", broker(log_dirs=["x", "y"]), log_dirs=(log_dir(),)), directories=("1:x",))
    table = new_table(log(log_dir="/d0"))
    table.set_agents(["a1"])
    table.set_whole()
    exporter = Exporter("127.0.0.1", 0, table=table, observer=observer(watches), clock=time.time, healthy=lambda: True)
    exporter.start()
    try:
        doubts = [printed(exporter.url.removesuffix("/metrics"), name)["doubts"] for name in ("disk", "transactions")]
    finally:
        exporter.close()
    assert [": 1 log dir of broker 1, which no agent has in its log_dirs" in str(some) for some in doubts] == [True, True]
