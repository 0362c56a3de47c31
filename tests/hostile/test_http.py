"""Strangers at the HTTP ports of a real agent and a real exporter: probes and the scraper are answered whatever they do."""

import itertools
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path

import pytest

from streaming.common.web.places import PROBE_THREADS, REQUEST_THREADS
from tests.certificates import Authority, trusting
from tests.hostile.http_servers import PASSWORD, Server, address, agent, authorization, exporter, passwords

pytestmark = pytest.mark.slow

SCRAPER, PROBE = "127.0.0.2", "127.0.0.3"
SLACK_KB, SLACK_THREADS, SLACK_DESCRIPTORS = 64 << 10, REQUEST_THREADS + PROBE_THREADS + 1, 420
"""How much more a process may take while it is attacked: connections are bounded, and none has a thread but for a whole request."""

Served = Callable[[Path, Path | None], AbstractContextManager[Server]]


@pytest.fixture(params=[agent, exporter], ids=["agent", "exporter"])
def guarded(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Server]:
    """With a password that the scraper has used."""
    with request.param(tmp_path, passwords(tmp_path / "web.yml")) as server:
        assert server.ask("/metrics", password=PASSWORD, source=SCRAPER) == 200
        yield server


@pytest.fixture(params=[agent, exporter], ids=["agent", "exporter"])
def encrypted(request: pytest.FixtureRequest, tmp_path: Path, authority: Authority) -> Iterator[Server]:
    files = authority.issue("web")
    config = passwords(tmp_path / "web.yml", tls_server_config=f"{{cert_file: {files.cert}, key_file: {files.key}}}")
    with request.param(tmp_path, config, trusting(authority)) as server:
        assert server.ask("/metrics", password=PASSWORD, source=SCRAPER) == 200
        yield server


ANSWERED = [200] * 6


def answers(server: Server) -> list[int]:
    """The kubelet and Prometheus get what they ask for, from addresses of their own and from that of the strangers."""
    asked = [server.ask(path, source=source) for path in ("/-/healthy", "/-/ready") for source in (PROBE, "127.0.0.1")]
    return [*asked, *(server.ask("/metrics", password=PASSWORD, source=source) for source in (SCRAPER, "127.0.0.1"))]


@contextmanager
def bounded(server: Server) -> Iterator[None]:
    """What the process takes meanwhile does not grow with what is done to it."""
    before = server.figures()
    yield
    after = server.figures()
    assert after.peak - before.peak < SLACK_KB
    assert after.threads <= before.threads + SLACK_THREADS
    assert after.descriptors <= before.descriptors + SLACK_DESCRIPTORS


def connections(server: Server, number: int, source: Callable[[], str], data: bytes = b"") -> Iterator[AbstractContextManager[object]]:
    for _ in range(number):
        connection = server.connect(source())
        if data:
            connection.sendall(data)
        yield connection


def one() -> str:
    return "127.0.0.1"


@pytest.mark.parametrize("source", [one, address], ids=["one address", "many addresses"])
def test_connections_that_send_nothing(guarded: Server, source: Callable[[], str]) -> None:
    with ExitStack() as held, bounded(guarded):
        for _ in range(10):
            for connection in connections(guarded, 70, source):
                held.enter_context(connection)
            assert answers(guarded) == ANSWERED


@pytest.mark.parametrize("source", [one, address], ids=["one address", "many addresses"])
def test_handshakes_that_never_end(encrypted: Server, source: Callable[[], str]) -> None:
    begun = bytes.fromhex("1603010200010001fc0303")  # of a ClientHello of 512 bytes
    with ExitStack() as held, bounded(encrypted):
        for data in (b"", begun):
            for connection in connections(encrypted, 250, source, data):
                held.enter_context(connection)
            assert answers(encrypted) == ANSWERED


@pytest.mark.parametrize("source", [one, address], ids=["one address", "many addresses"])
def test_clients_that_try_passwords(guarded: Server, source: Callable[[], str]) -> None:
    """64 tries wait for their answers at any time; the scraper's password is remembered."""
    tries = itertools.count()
    with ExitStack() as held, bounded(guarded):
        for _ in range(5):
            for _ in range(64):
                request = b"GET /metrics HTTP/1.0\r\nAuthorization: %s\r\n\r\n" % authorization(str(next(tries))).encode()
                held.enter_context(next(connections(guarded, 1, source, request)))
            assert answers(guarded) == ANSWERED


def test_a_password_that_nobody_has_time_for_is_refused_with_a_word(guarded: Server) -> None:
    requests = [b"GET /metrics HTTP/1.0\r\nAuthorization: %s\r\n\r\n" % authorization(str(number)).encode() for number in range(20)]
    with ExitStack() as held:
        waiting = [held.enter_context(guarded.connect()) for _ in requests]
        for connection, request in zip(waiting, requests, strict=True):
            connection.sendall(request)
        got = [connection.makefile("rb").read() for connection in waiting]
    refused = [answer for answer in got if answer.startswith(b"HTTP/1.1 503 ")]
    assert len(refused) > len(got) / 2
    assert all(b"\r\nRetry-After: 2\r\n" in answer for answer in refused)
    assert all(answer.startswith(b"HTTP/1.1 401 ") for answer in got if answer not in refused)


def test_headers_without_end(guarded: Server) -> None:
    """The standard library takes a hundred of 64 KiB each."""
    head = b"GET /metrics HTTP/1.1\r\n" + b"".join(b"X-%d: %s\r\n" % (number, b"x" * 60_000) for number in range(99))
    with ExitStack() as held, bounded(guarded):
        for _ in range(60):
            connection = held.enter_context(guarded.connect(address()))
            connection.setblocking(False)
            sent = 0
            try:
                while sent < len(head):
                    sent += connection.send(head[sent : sent + (1 << 20)])
            except OSError:  # it takes no more
                continue
        assert answers(guarded) == ANSWERED


@pytest.mark.parametrize("source", [one, address], ids=["one address", "many addresses"])
def test_readers_that_do_not_read_a_large_page(tmp_path: Path, source: Callable[[], str]) -> None:
    with exporter(tmp_path, None, logs=3000) as server, ExitStack() as held:
        page = len(server.answer("/metrics")[2])
        assert page > 10_000_000
        before = server.figures()
        for _ in range(4):
            for connection in connections(server, 30, source, b"GET /metrics HTTP/1.0\r\n\r\n"):
                held.enter_context(connection)
            status, _, body = server.answer("/metrics", source=SCRAPER)
            assert status == 200
            assert len(body) >= page  # it counts connections, too
            assert server.ask("/-/healthy", source=PROBE) == 200
        after = server.figures()
        assert after.threads <= before.threads + SLACK_THREADS


SECURED = {"X-Content-Type-Options", "Content-Security-Policy", "Referrer-Policy", "Cache-Control"}
BROKEN = {
    b"GET http://[ HTTP/1.1\r\n\r\n": 400,
    b"GET / HTTP/1.1 x\r\n\r\n": 400,
    b"\x16\x03\x01\x02\x00\r\n\r\n": 400,
    b"\r\n\r\n": 400,
    b"GET / HTTP/1.1\r\n\r\n": 400,  # a host is asked for
    b"GET /nope HTTP/1.0\r\n\r\n": 404,
    b"GET /%s HTTP/1.1\r\n\r\n" % (b"x" * 70_000): 414,
    b"GET / HTTP/1.1\r\n" + b"X-A: b\r\n" * 9_000 + b"\r\n": 431,
    b"GET / HTTP/1.1\r\nX-A: %s\r\n\r\n" % (b"x" * 70_000): 431,
    b"BREW / HTTP/1.0\r\n\r\n": 405,
    b"GET / HTTP/2.0\r\n\r\n": 505,
}


@pytest.mark.parametrize("served", [agent, exporter], ids=["agent", "exporter"])
def test_what_is_no_request_is_refused_in_plain_text_and_hardly_logged(served: Served, tmp_path: Path) -> None:
    with served(tmp_path, None) as server:
        logged = len(server.log.read_text().splitlines())
        for data, status in BROKEN.items():
            head, _, body = server.asked(data).partition(b"\r\n\r\n")
            lines = head.decode().split("\r\n")
            headers = dict(line.split(": ", 1) for line in lines[1:])
            assert lines[0].split()[1:2] == [str(status)], (data[:40], head)
            assert headers["Content-Type"] == "text/plain; charset=utf-8"
            assert headers.keys() >= SECURED
            assert b"<" not in body
        for _ in range(200):
            server.asked(b"GET http://[ HTTP/1.1\r\n\r\n")
        assert "Traceback" not in server.log.read_text()
        assert len(server.log.read_text().splitlines()) <= logged + 2
