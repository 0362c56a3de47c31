"""The exporter over real connections."""

import gzip
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from threading import Event

import pytest

from streaming.cluster.view.observer import AgentStatus
from streaming.common.web.messages import OPENMETRICS_TYPE, TEXT_TYPE
from streaming.common.web.places import CONNECTION_SECONDS, HEAD_SECONDS, PROBES, REQUESTS, REQUESTS_PER_CLIENT, SILENT_PER_CLIENT
from streaming.errors import UsageError
from streaming.pages.site.exporter import Exporter
from tests.exposition.reading import page, samples
from tests.limits import SECONDS
from tests.site.served_job import Job, ask
from tests.view.rows import log, new_observer, new_table, recalled, states

"""For sockets of the tests: so that a server which hangs fails the test and does not hold it."""


@pytest.fixture
def job() -> Iterator[Job]:
    table, observer = new_table(log(appended_bytes=5)), new_observer()
    served: Job
    exporter = Exporter(
        "127.0.0.1",
        0,
        table=table,
        observer=observer,
        clock=lambda: served.now,
        healthy=lambda: served.healthy_is(),
        scraped=lambda who: served.scrape(who),
        watched=lambda: served.look(),
        monotonic=lambda: served.monotonic,
    )
    served = Job(table, observer, exporter)
    exporter.start()
    yield served
    exporter.close()


def ready(job: Job) -> None:
    """Everything that was there when the job began is counted."""
    job.table.set_agents([])
    job.table.set_whole()
    job.now += 3  # looks are shared for two seconds


def test_who_takes_the_metrics_is_reported_and_that_a_person_looks(job: Job) -> None:
    ask(job, "/metrics", User_Agent="Prometheus/3.5")
    ask(job, "/-/healthy")
    assert (job.scraped, job.watched) == (["127.0.0.1 Prometheus/3.5"], 0)
    ask(job, "/")
    assert (len(job.scraped), job.watched) == (1, 1)
    open_connection(job, b"GET /metr").close()  # gone before it has asked
    ask(job, "/metrics")
    assert job.scraped[1:] == ["127.0.0.1 "]


def open_connection(job: Job, request: bytes = b"", source: str = "127.0.0.1") -> socket.socket:
    connection = socket.create_connection(job.exporter.address, timeout=SECONDS, source_address=(source, 0))
    connection.sendall(request)
    return connection


def test_metrics_are_the_page_in_text(job: Job) -> None:
    answer = ask(job, "/metrics")
    assert (answer.status, answer.headers["Content-Type"]) == (200, TEXT_TYPE)
    assert samples(answer.body.decode()) == samples(page(job.table, job.observer, now=job.now))


def test_metrics_are_openmetrics_for_who_asks(job: Job) -> None:
    answer = ask(job, "/metrics", Accept="application/openmetrics-text; version=1.0.0")
    assert (answer.status, answer.headers["Content-Type"]) == (200, OPENMETRICS_TYPE)
    assert samples(answer.body.decode(), openmetrics=True) == samples(page(job.table, job.observer, now=job.now))


def test_a_page_is_packed_for_who_accepts_it(job: Job) -> None:
    answer = ask(job, "/metrics", Accept_Encoding="gzip")
    assert answer.headers["Content-Encoding"] == "gzip"
    assert int(answer.headers["Content-Length"]) == len(answer.body)
    assert gzip.decompress(answer.body) == ask(job, "/metrics").body


def test_a_query_string_makes_no_difference(job: Job) -> None:
    assert ask(job, "/metrics?name=x").body == ask(job, "/metrics").body


def test_every_scrape_shows_the_table_as_it_is(job: Job) -> None:
    job.table.apply(states(log(appended_bytes=6)))
    assert b'segtail_partition_appended_bytes_total{broker="1",topic="orders",partition="0"} 6\n' in ask(job, "/metrics").body


def test_is_healthy_as_long_as_the_job_says_so(job: Job) -> None:
    assert ask(job, "/-/healthy").status == 200
    job.healthy_is = lambda: False
    assert ask(job, "/-/healthy").status == 503


def test_is_ready_when_everything_is_recalled_and_as_long_as_an_agent_answers(job: Job) -> None:
    job.table.recalls(1)
    job.table.set_agents([])
    assert ask(job, "/-/ready").status == 503
    job.table.apply(states(recalled(0)))
    for up, status in ((False, 503), (True, 200), (False, 503)):
        job.observer.know([AgentStatus(name="a1", up=up), AgentStatus(name="a2", up=False)])
        assert ask(job, "/-/ready").status == status


def test_the_root_is_a_page_for_people(job: Job) -> None:
    answer = ask(job, "/")
    assert (answer.status, answer.headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    assert b"Starting: no agent has answered yet" in answer.body
    assert b"watched." not in answer.body
    ready(job)
    assert b"1 partition, 1 log watched." in ask(job, "/").body


@pytest.mark.parametrize("path", ["/", "/metrics", "/-/healthy", "/-/ready", "/nothing"])
def test_head_has_the_headers_of_get_and_no_body(job: Job, path: str) -> None:
    get, head = ask(job, path), ask(job, path, "HEAD")
    assert (head.status, head.headers["Content-Type"], head.body) == (get.status, get.headers["Content-Type"], b"")
    assert int(head.headers["Content-Length"]) == len(get.body)


def test_nothing_follows_the_headers_of_an_answer_to_head(job: Job) -> None:
    with open_connection(job, b"HEAD /metrics HTTP/1.0\r\n\r\n") as connection:
        answer = connection.makefile("rb").read()
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert answer.index(b"\r\n\r\n") == len(answer) - 4


@pytest.mark.parametrize("path", ["/nothing", "/metrics/", "/-/", "/../etc/passwd", "/favicon.ico"])
def test_what_is_not_there_is_not_found(job: Job, path: str) -> None:
    assert ask(job, path).status == 404


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "SCRAPE"])
def test_other_methods_are_refused_with_those_that_are_not(job: Job, method: str) -> None:
    answer = ask(job, "/metrics", method, body=None if method == "TRACE" else b"x" * 10_000)
    assert (answer.status, answer.headers["Allow"]) == (405, "GET, HEAD")


def test_a_client_may_send_its_body_to_the_end_though_it_was_refused_at_once(job: Job) -> None:
    with open_connection(job, b"POST /metrics HTTP/1.0\r\nContent-Length: 40000\r\n\r\n") as connection:
        assert connection.makefile("rb").read().startswith(b"HTTP/1.1 405 ")
        for _ in range(40_000):
            connection.sendall(b"x")  # raises where the connection was reset


def test_an_error_is_answered_and_the_next_scrape_is_served(job: Job, caplog: pytest.LogCaptureFixture) -> None:
    job.now = "no number"  # type: ignore[assignment]
    assert ask(job, "/metrics").status == 500
    assert "no answer to /metrics" in caplog.text
    job.now = 0.0
    assert ask(job, "/metrics").status == 200


def test_clients_that_say_nothing_keep_nobody_out_the_oldest_is_cut(job: Job) -> None:
    with ExitStack() as stack:
        silent = [stack.enter_context(open_connection(job, b"GET /metr")) for _ in range(SILENT_PER_CLIENT)]
        for oldest in silent[:5]:
            assert ask(job, "/-/healthy").status == 200
            assert oldest.recv(1) == b""
            stack.enter_context(open_connection(job))


def test_a_client_is_refused_while_too_much_is_being_answered_and_probes_are_not(job: Job) -> None:
    go_on = Event()
    job.on_scrape = lambda: go_on.wait(SECONDS)
    with ExitStack() as stack:
        stack.callback(go_on.set)
        for number in range(REQUESTS):
            source = f"127.0.1.{number // REQUESTS_PER_CLIENT + 1}"
            served = stack.enter_context(open_connection(job, b"GET /metrics HTTP/1.0\r\n\r\n", source))
        refused = ask(job, "/nothing")  # its connection is accepted after theirs, which had sent all
        assert (refused.status, refused.headers["Retry-After"], refused.body) == (503, "2", b"busy: try again\n")
        assert [ask(job, path).status for path in ("/-/healthy", "/metrics", "/-/healthy")] == [200, 503, 200]
        go_on.set()
        assert served.makefile("rb").read().startswith(b"HTTP/1.1 200 ")
        assert ask(job, "/metrics").status == 200


def test_one_probe_more_than_can_wait_is_refused(job: Job) -> None:
    go_on = Event()
    job.healthy_is = lambda: go_on.wait(SECONDS)
    with ExitStack() as stack:
        stack.callback(go_on.set)
        probes = [stack.enter_context(open_connection(job, b"GET /-/healthy HTTP/1.0\r\n\r\n")) for _ in range(PROBES + 1)]
        assert probes[-1].makefile("rb").read().startswith(b"HTTP/1.1 503 ")
        assert ask(job, "/metrics").status == 200
        go_on.set()
        assert all(each.makefile("rb").read().endswith(b"healthy\n") for each in probes[:-1])


def test_a_client_that_does_not_read_its_page_keeps_nobody_waiting(job: Job) -> None:
    job.table.apply(states(*(log("a" * 249, number) for number in range(5000))))
    with ExitStack() as stack:
        for _ in range(3):
            stack.enter_context(open_connection(job, b"GET /metrics HTTP/1.0\r\n\r\n"))
        assert ask(job, "/-/healthy").status == 200
        assert len(ask(job, "/metrics").body) > 10_000_000


def test_a_connection_is_cut_when_it_has_lasted_too_long(job: Job) -> None:
    with open_connection(job, b"GET /metrics HTTP/1.0\r\nX-Slow: ") as slow:
        assert ask(job, "/-/healthy").status == 200  # served after the slow one was taken
        job.monotonic += HEAD_SECONDS
        assert slow.recv(1) == b""
    go_on = Event()
    job.healthy_is = lambda: go_on.wait(SECONDS)
    with open_connection(job, b"GET /-/healthy HTTP/1.0\r\n\r\n") as slow:
        assert ask(job, "/metrics").status == 200
        job.monotonic += CONNECTION_SECONDS
        assert slow.recv(1) == b""
        go_on.set()


def test_closing_cuts_connections_and_frees_the_port(job: Job) -> None:
    host, port = job.exporter.address
    with open_connection(job, b"GET /metr") as slow:
        assert ask(job, "/-/healthy").status == 200
        job.exporter.close()
        assert slow.recv(1) == b""
    again = Exporter(host, port, table=job.table, observer=job.observer, clock=lambda: 0.0, healthy=lambda: True)
    assert again.address == (host, port)
    again.close()


def test_a_port_in_use_is_named_with_what_to_do(job: Job) -> None:
    host, port = job.exporter.address
    with pytest.raises(UsageError, match=rf"cannot listen on {host}:{port}: Address already in use; .* --listen HOST:PORT"):
        Exporter(host, port, table=job.table, observer=job.observer, clock=lambda: 0.0, healthy=lambda: True)


def test_an_address_of_another_machine_is_named() -> None:
    with pytest.raises(UsageError, match=r"cannot listen on 192\.0\.2\.1:9712: Cannot assign requested address"):
        Exporter("192.0.2.1", 9712, table=new_table(), observer=new_observer(), clock=lambda: 0.0, healthy=lambda: True)


@pytest.mark.parametrize(("host", "start"), [("127.0.0.1", "http://127.0.0.1:"), ("localhost", "http://"), ("::1", "http://[::1]:")])
def test_the_url_is_what_a_browser_takes(host: str, start: str) -> None:
    if ":" in host and not socket.has_dualstack_ipv6():
        pytest.skip("no IPv6 here")
    exporter = Exporter(host, 0, table=new_table(), observer=new_observer(), clock=lambda: 0.0, healthy=lambda: True)
    exporter.start()
    try:
        assert exporter.url.startswith(start)
        assert exporter.url.endswith(f":{exporter.address[1]}/metrics")
        with socket.create_connection(exporter.address, timeout=SECONDS) as connection:
            connection.sendall(b"GET /-/healthy HTTP/1.0\r\n\r\n")
            assert connection.recv(12) == b"HTTP/1.1 200"
    finally:
        exporter.close()
