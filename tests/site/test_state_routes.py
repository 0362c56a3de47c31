"""The API about the state over real connections: what it answers, what it refuses, and to whom."""

import gzip
import http.client
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeVar

import pytest

from streaming.broker.protocol.disk_json import DISK_PATH, DiskAnswer
from streaming.broker.protocol.group_json import GROUPS_PATH
from streaming.broker.protocol.json_message import Message
from streaming.broker.protocol.listing_json import (
    BROKERS_PATH,
    PARTITIONS_PATH,
    RETENTION_PATH,
    TOPICS_PATH,
    TRANSACTIONS_PATH,
    BrokerPage,
    PartitionDetail,
    PartitionPage,
    RetentionPage,
    TopicDetail,
    TopicPage,
    TransactionPage,
    path_of_partition,
    path_of_topic,
)
from streaming.broker.protocol.status_json import (
    COST_PATH,
    PROBLEMS_PATH,
    STATUS_PATH,
    Cost,
    ProblemPage,
    Status,
)
from streaming.cluster.view.family import Export
from streaming.cluster.view.observer import AgentStatus
from streaming.common.web.messages import SECURED
from streaming.errors import UsageError
from streaming.pages.site.exporter import Exporter
from streaming.pages.site.state_routes import JSON_TYPE
from streaming.terminal.cli.lists import ListRequest, ListSource
from tests.limits import SECONDS
from tests.view.rows import log, new_observer, new_table, states

M = TypeVar("M", bound=Message)

PATHS: dict[str, type[Message]] = {
    STATUS_PATH: Status,
    PROBLEMS_PATH: ProblemPage,
    PARTITIONS_PATH: PartitionPage,
    TRANSACTIONS_PATH: TransactionPage,
    RETENTION_PATH: RetentionPage,
    COST_PATH: Cost,
    DISK_PATH: DiskAnswer,
    path_of_partition("orders", 3): PartitionDetail,
    TOPICS_PATH: TopicPage,
    path_of_topic("orders"): TopicDetail,
    BROKERS_PATH: BrokerPage,
}
ODD = 'a/b"<script>\n\u202e%2F'


@dataclass
class Served:
    exporter: Exporter
    now: float = 1_700_000_000.0

    def ask(self, path: str, method: str = "GET", **headers: str) -> tuple[int, http.client.HTTPMessage, bytes]:
        connection = http.client.HTTPConnection(*self.exporter.address, timeout=SECONDS)
        try:
            connection.request(method, path, headers={name.replace("_", "-"): value for name, value in headers.items()})
            response = connection.getresponse()
            return response.status, response.headers, response.read()
        finally:
            connection.close()

    def get(self, path: str, kind: type[M]) -> M:
        status, headers, body = self.ask(path)
        assert (status, headers["Content-Type"]) == (200, JSON_TYPE), body
        return kind.decode(body)


@pytest.fixture
def job() -> Iterator[Served]:
    rows = [log(partition=number, appended_bytes=number, log_end_offset=10 * number) for number in range(120)]
    table = new_table(*rows, log(ODD), log("secret", corrupt_batches=1), export=Export(exclude=re.compile("secret")))
    table.set_agents(["a1"])
    table.set_whole()
    observer = new_observer()
    observer.know([AgentStatus(name="a1", up=True, brokers=(1,), cluster_id="c"), AgentStatus(name="a2", up=False, brokers=(2,))])
    exporter = Exporter("127.0.0.1", 0, table=table, observer=observer, clock=lambda: served.now, healthy=lambda: True)
    served = Served(exporter)
    exporter.start()
    yield served
    exporter.close()


@pytest.mark.parametrize("path", PATHS)
def test_every_path_answers_with_its_message_and_is_secured(job: Served, path: str) -> None:
    status, headers, body = job.ask(path)
    assert status == 200
    PATHS[path].decode(body)
    assert {name: headers[name] for name in SECURED} == SECURED
    assert not [name for name in headers if name.lower().startswith("access-control")]


@pytest.mark.parametrize("path", [*PATHS, f"{PARTITIONS_PATH}/orders/999", "/api/v1/nothing", f"{PROBLEMS_PATH}?limit=x", GROUPS_PATH, "/"])
def test_head_has_the_headers_of_get_and_other_methods_are_refused(job: Served, path: str) -> None:
    (got, headers, body), (head, same, none) = job.ask(path), job.ask(path, "HEAD")
    assert (head, none) == (got, b"")
    assert int(headers["Content-Length"]) == len(body)
    assert {name: same[name] for name in SECURED} == {name: headers[name] for name in SECURED}
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
    for method in ("POST", "PUT", "DELETE", "OPTIONS"):
        assert job.ask(path, method)[0] == 405


def test_of_what_a_starting_job_may_still_find_nobody_says_that_it_is_not_there() -> None:
    table = new_table(log(partition=1))
    exporter = Exporter("127.0.0.1", 0, table=table, observer=new_observer(), clock=lambda: 1_700_000_000.0, healthy=lambda: True)
    served = Served(exporter)
    exporter.start()
    try:
        for path in ("partitions/orders/7", "topics/clicks"):
            for root in ("/", "/api/v1/"):
                status, _, body = served.ask(f"{root}{path}")
                assert (status, b"the job is starting, and has not read everything yet" in body) == (503, True), path
        assert served.ask("/api/v1/partitions/orders/1")[0] == 200
    finally:
        exporter.close()


def test_pages_hold_what_is_asked_for(job: Served) -> None:
    page = job.get(f"{PARTITIONS_PATH}?sort=log_end_offset&limit=3&filter=ORDERS&offset=1", PartitionPage)
    assert [row.partition for row in page.rows] == [118, 117, 116]
    assert (page.total, page.matched, page.offset, page.sort, page.order) == (121, 120, 1, "log_end_offset", "desc")
    assert [row.broker for row in job.get(f"{RETENTION_PATH}?limit=2", RetentionPage).rows] == [1, 1]


def test_the_status_begins_with_the_verdict(job: Served) -> None:
    status = job.get(STATUS_PATH, Status)
    assert status.verdict.startswith("1 critical problem in 121 partitions of 2 brokers. segtail's agent a2 does not answer")
    assert (status.critical, status.severity, status.cluster_id) == (1, "critical", "c")
    assert [(each.name, each.up) for each in status.agents] == [("a2", False), ("a1", True)]
    problems = job.get(f"{PROBLEMS_PATH}?severity=critical", ProblemPage)
    assert [(each.kind, each.agent, each.runbook) for each in problems.rows] == [("agent_down", "a2", "AgentDown")]
    assert job.get(f"{PROBLEMS_PATH}?filter=nothing+like+it", ProblemPage).matched == 0


def test_a_partition_is_found_whatever_the_name_of_its_topic(job: Served) -> None:
    detail = job.get(path_of_partition(ODD, 0), PartitionDetail)
    assert detail.row.topic == ODD
    assert [each.broker for each in detail.replicas] == [1]
    assert job.get(f"{PARTITIONS_PATH}?filter=%22%3Cscript%3E", PartitionPage).rows[0].topic == ODD


@pytest.mark.parametrize(
    ("path", "status", "sentence"),
    [
        (f"{PARTITIONS_PATH}?limit=0", 400, "limit is not a whole number from 1 to 1,000"),
        (f"{TRANSACTIONS_PATH}?sort=colour", 400, "sort is not one of broker, topic"),
        (f"{RETENTION_PATH}?order=up", 400, "order is neither asc nor desc"),
        (f"{PROBLEMS_PATH}?severity=bad", 400, "severity is not one of critical, warning, info"),
        (f"{PROBLEMS_PATH}?sort=kind", 400, "'sort' is no parameter here"),
        (f"{STATUS_PATH}?severity=critical", 400, "'severity' is no parameter here; there are none"),
        (f"{COST_PATH}?limit=1", 400, "'limit' is no parameter here; there are none"),
        (f"{TOPICS_PATH}/orders?sort=kind", 400, "'sort' is no parameter here; there are none"),
        (f"{PARTITIONS_PATH}/orders/3?limit=1", 400, "'limit' is no parameter here; there are none"),
        (f"{GROUPS_PATH}/billing?limit=1", 400, "'limit' is no parameter here; there are at_ms, fetch_bytes"),
        (f"{PARTITIONS_PATH}/orders/x", 400, "the number of a partition is not a number"),
        (f"{GROUPS_PATH}/billing", 503, "nothing is known of consumer groups yet"),
        (f"{PARTITIONS_PATH}/orders/999", 404, "no such partition"),
        (f"{PARTITIONS_PATH}/%ff/0", 404, "no such partition"),
        (f"{PARTITIONS_PATH}/secret/0", 404, "no such partition"),
        (f"{PARTITIONS_PATH}/orders/0/more", 404, "no such path"),
        ("/api/v1/nothing", 404, "no such path"),
        ("/api/v1/", 404, "no such path"),
    ],
)
def test_what_cannot_be_answered_is_named(job: Served, path: str, status: int, sentence: str) -> None:
    found, headers, body = job.ask(path)
    assert (found, headers["Content-Type"]) == (status, "text/plain; charset=utf-8")
    assert body.decode().startswith(sentence)


def test_topics_that_are_not_exported_are_nowhere(job: Served) -> None:
    for path in PATHS:
        assert b"secret" not in job.ask(path)[2]


@pytest.mark.parametrize("path", [*PATHS, GROUPS_PATH, "/", "/metrics"])
def test_a_foreign_name_gets_no_answer_on_a_loopback_address(job: Served, path: str) -> None:
    status, headers, body = job.ask(path, Host="evil.example")
    assert (status, headers["X-Content-Type-Options"]) == (421, "nosniff")
    assert b"orders" not in body
    assert job.ask(path, Host="localhost:1")[0] in (200, 503)


def test_a_foreign_name_may_ask_for_health(job: Served) -> None:
    assert job.ask("/-/healthy", Host="evil.example")[0] == 200


def test_a_large_answer_is_packed_for_who_accepts_it(job: Served) -> None:
    _, headers, body = job.ask(PARTITIONS_PATH, Accept_Encoding="gzip")
    assert headers["Content-Encoding"] == "gzip"
    assert json.loads(gzip.decompress(body))["total"] == 121


def test_the_cost_is_that_of_the_last_scrape_by_metric_and_by_topic(job: Served) -> None:
    assert job.get(COST_PATH, Cost).at_ms == -1
    page = job.ask("/metrics")[2]
    cost = job.get(COST_PATH, Cost)
    assert (cost.bytes, cost.at_ms) == (len(page), 1_700_000_000_000)
    assert sum(each.bytes for each in cost.metrics) == len(page)
    assert cost.series == sum(not line.startswith(b"#") for line in page.splitlines())
    of_topics = {each.name: each for each in cost.topics}
    assert of_topics.keys() == {"orders", ODD}
    lines = [line for line in page.splitlines(keepends=True) if b'topic="orders"' in line]
    assert (of_topics["orders"].series, of_topics["orders"].bytes) == (len(lines), sum(map(len, lines)))


def test_answers_of_the_same_two_seconds_are_from_the_same_look(job: Served) -> None:
    before = job.get(PARTITIONS_PATH, PartitionPage)
    job.exporter._table.apply(states(log(partition=500)))
    assert job.get(PARTITIONS_PATH, PartitionPage).total == before.total
    job.now += 3
    assert job.get(PARTITIONS_PATH, PartitionPage).total == before.total + 1


def test_the_command_that_asks_what_fills_disks_is_answered(job: Served) -> None:
    url = job.exporter.url.removesuffix("/metrics")
    source = ListSource(ListRequest(noun="topic", names=(), text="", at=None, job=url, form="json"), None)
    answer = source.page(DISK_PATH, DiskAnswer, 5, by="topic")
    assert (answer.at_ms, answer.by, answer.log_dirs) == (1_700_000_000_000, "topic", [])
    with pytest.raises(UsageError, match="by is one of topic, partition, dir, kind"):
        source.page(DISK_PATH, DiskAnswer, by="size")
