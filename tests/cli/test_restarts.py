"""The verdicts about restarts on every face of a job: command, API, hook, list of brokers and metric."""

import json
from collections.abc import Iterator
from http import HTTPStatus
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from streaming.broker.protocol.listing_json import BROKERS_PATH, BrokerPage
from streaming.broker.protocol.restart_json import REASONS, RESTART_PATH, RestartPage
from streaming.pages.site.exporter import Exporter
from tests.commands import run_command
from tests.exposition.reading import page, samples
from tests.view.rows import new_observer
from tests.worlds.problems import NOW_MS
from tests.worlds.restarts import BROKERS, cluster, replicas

ROWS = (replicas("t", BROKERS, least=2), replicas("alone", (2,), of=(2,), leader=2))
WITHOUT = {"away": (3,)}


class Job:
    """A job that watches a cluster."""

    def __init__(self, **more: Any) -> None:
        self.table, agents = cluster(*ROWS, **more)
        self.table.set_agents([each.name for each in agents])
        self.table.set_whole()
        self.observer = new_observer()
        self.observer.know(agents)
        self._exporter = Exporter(
            "127.0.0.1", 0, table=self.table, observer=self.observer, clock=lambda: NOW_MS / 1000, healthy=lambda: True
        )
        self._exporter.start()
        self.url = "http://{}:{}".format(*self._exporter.address)

    def close(self) -> None:
        self._exporter.close()

    def get(self, path: str) -> tuple[int, bytes]:
        try:
            with urlopen(f"{self.url}{path}") as answer:
                return answer.status, answer.read()
        except HTTPError as error:
            with error:
                return error.code, error.read()


@pytest.fixture
def job() -> Iterator[Job]:
    made = Job()
    yield made
    made.close()


@pytest.fixture
def half_seen() -> Iterator[Job]:
    made = Job(**WITHOUT)
    yield made
    made.close()


OFFLINE = "1 partition would be offline, with a single replica: alone-0"


def test_the_command_says_verdict_reasons_and_costs_and_ends_with_its_status(job: Job) -> None:
    safe = run_command("restart-check", "1", "--job", job.url)
    assert (safe.returncode, safe.stdout.splitlines()) == (
        0,
        [
            "Broker 1 may be restarted now: nothing goes offline, no producer is refused, and nothing is lost.",
            "It costs:",
            "- Another broker leads 1 partition: t-0",
        ],
    )
    unsafe = run_command("restart-check", "--job", job.url, "2")
    assert (unsafe.returncode, unsafe.stdout.splitlines()) == (3, ["Broker 2 must not be restarted now:", f"- {OFFLINE}"])


def test_all_brokers_have_the_worst_status_and_an_order(job: Job) -> None:
    every = run_command("restart-check", "--all", "--job", job.url)
    assert (every.returncode, every.stdout.splitlines()) == (
        3,
        [
            "1. Broker 1",
            "2. Broker 3",
            f"Broker 2 must not be restarted now: {OFFLINE}",
            "Restart broker 1 now, then wait until this check says the same of the next one.",
        ],
    )
    page = json.loads(run_command("restart-check", "--job", job.url, "--json").stdout)
    assert {row["broker"]: row["verdict"] for row in page["rows"]} == {1: "safe", 2: "unsafe", 3: "safe"}
    assert page["rows"][1]["reasons"] == [{"code": "single_replica", "what": OFFLINE, "count": 1, "partitions": ["alone-0"]}]


def test_a_loop_over_topics_with_one_replica_ends_where_that_is_accepted(job: Job) -> None:
    done = run_command("restart-check", "2", "--accept", "single_replica", "--job", job.url)
    assert (done.returncode, done.stdout.splitlines()) == (
        0,
        ["Broker 2 may be restarted now, as far as it is accepted.", "It costs:", f"- {OFFLINE}"],
    )
    assert job.get("/-/restart/2?accept=single_replica") == (200, f"safe\nit costs: {OFFLINE[0].lower()}{OFFLINE[1:]}\n".encode())
    assert job.get("/-/restart/2?broker=1")[0] == 409
    ordered = run_command("restart-check", "--all", "--accept", "single_replica", "--job", job.url)
    assert (ordered.returncode, ordered.stdout.splitlines()[:3]) == (0, ["1. Broker 1", "2. Broker 2", "3. Broker 3"])


def test_what_is_not_known_is_said_and_has_a_status_of_its_own(half_seen: Job) -> None:
    done = run_command("restart-check", "1", "--job", half_seen.url)
    assert (done.returncode, done.stdout.splitlines()[:2]) == (
        4,
        ["Whether broker 1 may be restarted now is not known:", "- The log dirs of broker 3 are not seen"],
    )
    assert half_seen.get("/-/restart/1") == (
        503,
        b"unknown: the log dirs of broker 3 are not seen\nit costs: another broker leads 1 partition: t-0\n",
    )
    assert restart_safe(half_seen) == {("2", "single_replica"): 0.0}


def test_of_one_that_may_be_started_the_line_ends_with_its_verdict() -> None:
    job = Job(down=(3,))
    try:
        lines = run_command("restart-check", "--all", "--job", job.url).stdout.splitlines()
    finally:
        job.close()
    assert "Broker 3 is not running, and may be started now." in lines


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("9",), "there is no broker '9': registered are 1, 2, 3"),
        (("9" * 5_000,), "there is no broker '9999"),
        (("1", "2"), "one BROKER can be given, and not 1, 2: without any all are checked"),
        (("--all", "1"), "--all is about all brokers, and 1 about one: give one of them"),
        (("--accept", "offlin"), "'offlin' is not one of"),
        (("nowhere",), "there is no log dir nowhere here"),
    ],
)
def test_what_cannot_be_asked_is_refused(job: Job, words: tuple[str, ...], why: str) -> None:
    done = run_command("restart-check", *words, "--job", job.url)
    assert done.returncode == 2
    assert why in done.stderr


@pytest.mark.parametrize(
    ("path", "status", "text"),
    [
        ("1", HTTPStatus.OK, "safe\nit costs: another broker leads 1 partition: t-0"),
        ("2", HTTPStatus.CONFLICT, f"unsafe: {OFFLINE}"),
        ("9", HTTPStatus.NOT_FOUND, "there is no broker '9': registered are 1, 2, 3"),
        ("x", HTTPStatus.NOT_FOUND, "no such broker: the path is /-/restart/BROKER"),
        ("1?accept=x", HTTPStatus.BAD_REQUEST, f"there is no reason 'x' to accept; there are {', '.join(REASONS)}"),
        ("9?accept=x", HTTPStatus.BAD_REQUEST, f"there is no reason 'x' to accept; there are {', '.join(REASONS)}"),
        ("1?acept=offline", HTTPStatus.BAD_REQUEST, "'acept' is no parameter here; there are broker, accept"),
        ("", HTTPStatus.NOT_FOUND, "no such broker: the path is /-/restart/BROKER"),
    ],
)
def test_a_hook_gets_a_status_and_a_sentence(job: Job, path: str, status: HTTPStatus, text: str) -> None:
    assert job.get(f"/-/restart/{path}") == (status, f"{text}\n".encode())


def test_api_list_and_metric_say_the_same(job: Job) -> None:
    found = RestartPage.decode(job.get(f"{RESTART_PATH}?broker=2")[1])
    assert [(row.broker, row.verdict) for row in found.rows] == [(2, "unsafe")]
    assert job.get(f"{RESTART_PATH}?broker=9")[0] == 400
    rows = BrokerPage.decode(job.get(BROKERS_PATH)[1]).rows
    assert {row.broker: (row.restart, row.restart_reason) for row in rows} == {
        1: ("safe", ""),
        2: ("unsafe", "single_replica"),
        3: ("safe", ""),
    }
    assert restart_safe(job) == {("1", ""): 1.0, ("2", "single_replica"): 0.0, ("3", ""): 1.0}


def restart_safe(job: Job) -> dict[tuple[str, str], float]:
    found = samples(page(job.table, job.observer, now=NOW_MS / 1000))
    return {
        (dict(labels)["broker"], dict(labels)["reason"]): value
        for (name, labels), value in found.items()
        if name == "segtail_broker_restart_safe"
    }
