"""The exporter: ``/metrics``, health and a small page over HTTP, from the table alone. A scrape never waits for Spark."""

from collections.abc import Callable
from functools import partial
from http import HTTPStatus
from pathlib import Path
from threading import Lock, Thread
from time import monotonic as system_monotonic

import cramjam

from streaming.errors import UsageError
from streaming.metrics.observer import Observer
from streaming.metrics.page import write_page
from streaming.metrics.render import render
from streaming.metrics.single_flight import Shared
from streaming.metrics.table import Table
from streaming.metrics.view import view
from streaming.units import Address
from streaming.web.connections import BoundedServer
from streaming.web.gate import Gate
from streaming.web.handler import Answer, Handler, Request
from streaming.web.negotiation import OPENMETRICS_TYPE, TEXT_TYPE, wants_openmetrics

_POLL_SECONDS = 0.1  # how long `close` may have to wait


class Exporter:
    """Listens as soon as it is created, answers from `start` to `close`.

    Args:
        host: name or address to listen on.
        port: 0 for any that is free.
        clock: the present time in Unix seconds, for everything that depends on it.
        healthy: returns whether the query has checked for work lately, and does not fail each time.
        scraped: called with the scraper's identity when the metrics are requested, before the page is made.
        watched: called when somebody requests the page for people.
        monotonic: seconds that only go forward, for connections that last too long.
        web_config: TLS and passwords, see `streaming.web.web_config`; None for neither.

    Raises:
        UsageError: nothing can listen there, or ``web_config`` cannot be used.
    """

    def __init__(
        self,
        host: str,
        port: int,
        *,
        table: Table,
        observer: Observer,
        clock: Callable[[], float],
        healthy: Callable[[], bool],
        scraped: Callable[[str], None] = lambda _: None,
        watched: Callable[[], None] = lambda: None,
        monotonic: Callable[[], float] = system_monotonic,
        web_config: Path | None = None,
    ) -> None:
        self._gate = Gate(web_config)
        self._table = table
        self._observer = observer
        self._clock = clock
        self._healthy = healthy
        self._scraped = scraped
        self._watched = watched
        self._rendering = Lock()  # one page of 100 MB is made at a time
        self._pages: Shared[tuple[bool, bool], bytes] = Shared()  # by whether it is OpenMetrics, and packed
        self._thread: Thread | None = None
        try:
            self._server = BoundedServer(host, port, partial(Handler, self._answer, self._gate), self._gate, monotonic)
        except OSError as error:
            raise UsageError(
                f"cannot listen on {host}:{port}: {error.strerror}; stop the process that uses it, "
                "or choose another address with --listen HOST:PORT"
            ) from error

    @property
    def address(self) -> tuple[str, int]:
        """Host and port that it listens on."""
        host, port = self._server.server_address[:2]
        return str(host), int(port)

    @property
    def url(self) -> str:
        """The URL of the metrics."""
        host, port = self.address
        return f"{'https' if self._gate.encrypted else 'http'}://{Address(host, port)}/metrics"

    def start(self) -> None:
        """Begin to answer, in threads that end with the process."""
        self._thread = Thread(target=self._server.serve_forever, args=(_POLL_SECONDS,), name="exporter", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop answering and release the port; connections that are still open are cut."""
        if self._thread is not None:
            self._server.shutdown()  # waits for serve_forever, for ever if that never ran
            self._thread.join()
        self._server.server_close()

    def _answer(self, request: Request) -> Answer:
        if request.path == "/metrics":
            self._scraped(f"{request.client} {request.user_agent}")
            openmetrics = wants_openmetrics(request.accept)
            body = self._packed(openmetrics) if request.gzip else self._page(openmetrics)
            return Answer(status=HTTPStatus.OK, content_type=OPENMETRICS_TYPE if openmetrics else TEXT_TYPE, body=body, gzip=request.gzip)
        if request.path == "/-/healthy":
            return _state(self._healthy(), "healthy", "the query has not checked for work lately, or fails again and again")
        if request.path == "/-/ready":
            return _state(self._table.ready, "ready", "what is there is still on its way")
        if request.path == "/":
            self._watched()
            with self._rendering:
                shown = view(self._table.snapshot(self._clock()))
            body = write_page(shown, self._observer.agents, self._table.ready)
            return Answer(status=HTTPStatus.OK, content_type="text/html; charset=utf-8", body=body)
        return Answer(status=HTTPStatus.NOT_FOUND, body=b"not found\n")

    def _page(self, openmetrics: bool) -> bytes:
        return self._pages.get((openmetrics, False), lambda: self._render(openmetrics))

    def _packed(self, openmetrics: bool) -> bytes:
        # Level 1: 100 MB of labels shrink to 11 MB; more effort costs the scrape more than the network saves.
        return self._pages.get((openmetrics, True), lambda: bytes(cramjam.gzip.compress(self._page(openmetrics), 1)))

    def _render(self, openmetrics: bool) -> bytes:
        with self._rendering:
            return render(self._table, self._observer, self._clock(), openmetrics)


def _state(good: bool, word: str, otherwise: str) -> Answer:
    if good:
        return Answer(status=HTTPStatus.OK, body=f"{word}\n".encode())
    return Answer(status=HTTPStatus.SERVICE_UNAVAILABLE, body=f"{otherwise}\n".encode())
