"""The exporter: ``/metrics``, health, `/api/v1/` and a page over HTTP, from the table alone. A scrape never waits for Spark."""

import logging
import re
import socket
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from http import HTTPStatus
from pathlib import Path
from threading import Event, Lock, Thread
from time import monotonic as system_monotonic
from typing import Generic, TypeVar

from streaming.broker.protocol.history_json import KeptGroups
from streaming.broker.protocol.status_json import Cost
from streaming.cluster.consumers.group_snapshot import GroupBoard
from streaming.cluster.verdicts.circumstances import Thresholds, thresholds_of
from streaming.cluster.view.observer import Observer
from streaming.cluster.view.table import Table
from streaming.common.settings import Settings
from streaming.common.units import Address
from streaming.common.web.gate import Gate
from streaming.common.web.messages import OPENMETRICS_TYPE, TEXT_TYPE, HttpRequest, Response, sentence, wants_openmetrics
from streaming.pages.api.listed_groups import MakeDetails
from streaming.pages.api.state import State
from streaming.pages.exposition.costs import Costs, cost_message
from streaming.pages.exposition.group_families import NO_GROUPS
from streaming.pages.exposition.kept_lines import KeptLines
from streaming.pages.exposition.render import render, render_packed, shown_groups_of
from streaming.pages.exposition.series import choose
from streaming.pages.site.judged_looks import JobHistory, JudgedLooks, Looks
from streaming.pages.site.page_site import PageSite
from streaming.pages.site.state_routes import API, RESTART_HOOK, StateAnswers, listen, restart_answer, root_url

log = logging.getLogger(__name__)

_EVERY_ADDRESS = ("", "0.0.0.0", "::")  # not to listen on: what stands for all addresses of the host
_REACHABLE = re.compile(r"[A-Za-z0-9._-]+|[0-9A-Fa-f:.]+")

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

_REMEMBER_SECONDS = 10.0


class Exporter:
    """Listens as soon as it is created, answers from `start` to `close`.

    Args:
        host: name or address to listen on.
        port: 0 for any that is free.
        clock: the present time in Unix seconds, for everything that depends on it.
        healthy: returns whether the query has checked for work lately, and does not fail each time.
        scraped: called with the scraper's identity when the metrics are requested, before the page is made.
        watched: called when a browser requests the page for people.
        monotonic: seconds that only go forward, for connections that last too long.
        groups: what is known of consumer groups; None for nothing.
        details: asks agents for what only they know of a group.
        thresholds: from when on something is a problem; None for the defaults.
        redacted: names of groups and transactional ids are not Kafka's own.
        public_url: where people reach the page, "" for the address that it listens on.
        web_config: TLS and passwords, see `streaming.common.web.gate`; None for neither.

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
        groups: GroupBoard | None = None,
        details: MakeDetails = lambda _: None,
        thresholds: Thresholds | None = None,
        redacted: bool = False,
        public_url: str = "",
        web_config: Path | None = None,
    ) -> None:
        self._gate = Gate(web_config)
        self._table = table
        self._groups = groups
        self._looks = Looks(table, clock)
        judged_by = thresholds or thresholds_of(Settings())
        self._judged_looks = JudgedLooks(table, observer, self._looks, groups, details, judged_by, redacted=redacted)
        self.state = State(self._judged_looks.look, events=self._judged_looks.events)
        """What the page shows and `/api/v1/` answers."""
        self._costs = Costs()
        self._state_answers = StateAnswers(self.state, self._cost)
        self._page_site = PageSite(self.state, self._cost)
        self._observer = observer
        self._clock = clock
        self._monotonic = monotonic
        self._healthy = healthy
        self._scraped = scraped
        self._watched = watched
        self._rendering = Lock()  # one page of 100 MB is made at a time, and by what was kept of the last
        self._kept = KeptLines()
        self._pages: Shared[tuple[bool, bool], bytes] = Shared()  # by whether it is OpenMetrics, and packed
        self._history: JobHistory | None = None
        self._ends = Event()
        self._remembering = Thread(target=self._remember, name="history", daemon=True)
        self._server = listen(host, port, self._answer, self._gate, monotonic)
        observer.serves(self._server.counts, public_url or page_address(*self.address, encrypted=self._gate.encrypted))

    @property
    def address(self) -> tuple[str, int]:
        """Host and port that it listens on."""
        return self._server.address

    @property
    def url(self) -> str:
        """The URL of the metrics."""
        return f"{root_url(self._server, self._gate)}metrics"

    def start(self) -> None:
        """Begin to answer, in threads that end with the process."""
        self._server.start("exporter")
        self._remembering.start()

    def keep(self, path: Path, groups: Callable[[], KeptGroups], recall_groups: Callable[[KeptGroups], None]) -> None:
        """Go on with what a job before has kept in a file, and keep there what is seen. See `JobHistory`."""
        history = JobHistory(path, self._judged_looks, self._table.transactions, groups, self._monotonic)
        history.recall(recall_groups)
        self._history = history

    def close(self) -> None:
        """Stop answering and release the port; connections that are still open are cut."""
        self._ends.set()
        if self._remembering.is_alive():
            self._remembering.join()
        if self._history is not None:
            self._history.save()
        self._server.close()

    def _answer(self, request: HttpRequest) -> Response:
        if request.path == "/metrics":
            self._scraped(f"{request.client} {request.user_agent}")
            openmetrics = wants_openmetrics(request.accept)
            body = self._pages.get((openmetrics, request.gzip), lambda: self._render(openmetrics, packed=request.gzip))
            return Response(status=HTTPStatus.OK, content_type=OPENMETRICS_TYPE if openmetrics else TEXT_TYPE, body=body, gzip=request.gzip)
        if request.path.startswith(API):
            self._watched()
            return self._state_answers.answer(request)
        if request.path == "/-/healthy":
            return _state(self._healthy(), "healthy", "the query has not checked for work lately, or fails again and again")
        if request.path == "/-/ready":
            answers = any(agent.up for agent in self._observer.agents)
            return _state(self._table.ready and answers, "ready", "what is there is still on its way" if answers else "no agent answers")
        if request.path.startswith(RESTART_HOOK):
            self._watched()
            return restart_answer(self.state, request)
        page = self._page_site.answer(request)
        if page is None:
            return sentence(HTTPStatus.NOT_FOUND, "not found")
        self._watched()
        return page

    def _remember(self) -> None:
        """Keep the last hour and what changed, whether a client asks for it or not."""
        while not self._ends.wait(_REMEMBER_SECONDS):
            try:
                look = self._looks.remember()
                if look is not None:
                    self._judged_looks.notice(look)
                if self._history is not None:
                    self._history.save_sometimes()
            except Exception:
                log.exception("the last hour has a gap")
            if not self._looks.is_wanted:
                self._judged_looks.forget()

    def _cost(self) -> Cost:
        look = self._looks.recent()
        with self._rendering:
            groups = NO_GROUPS if self._groups is None else shown_groups_of(self._groups, self._table, look.now_ms)
            limit, label_limit = self._table.series_limit, self._table.label_limit
            choice = choose(look.view, limit, self._table.export, groups, label_limit=label_limit)
            return cost_message(self._costs, choice.families)

    def _render(self, openmetrics: bool, *, packed: bool) -> bytes:
        with self._rendering:
            began = self._monotonic()
            look = self._looks.new()
            of = self._table, self._observer, look.now_ms / 1000, openmetrics, self._groups, lambda: look.view, self._costs
            page = render_packed(self._kept, *of) if packed else render(*of)
            self._costs.took(self._monotonic() - began)
            return page


class Shared(Generic[K, V]):
    """Results by key, for as long as they are being computed; none is kept."""

    def __init__(self) -> None:
        self._lock = Lock()  # protects what follows
        self._under_way: dict[K, Future[V]] = {}

    def get(self, key: K, work: Callable[[], V]) -> V:
        """What ``work`` returns or raises. If another thread is doing the work for the same key, its result or error."""
        with self._lock:
            theirs = self._under_way.get(key)
            if theirs is None:
                ours = self._under_way[key] = Future()
        if theirs is not None:
            return theirs.result()
        try:
            result = self._done(key, work)
        except BaseException as error:
            ours.set_exception(error)
            raise
        ours.set_result(result)
        return result

    def _done(self, key: K, work: Callable[[], V]) -> V:
        try:
            return work()
        finally:
            # Before any thread has the result: a thread that asks later must not get an older result.
            with self._lock:
                del self._under_way[key]


def page_address(host: str, port: int, *, encrypted: bool) -> str:
    """The address of a page that is served there; "" if it is none that others could use, as one of a single link is.

    The name of the host is as the system has it: to ask a resolver for a longer one could take a minute.
    """
    name = socket.gethostname() if host in _EVERY_ADDRESS else host
    return f"{'https' if encrypted else 'http'}://{Address(name, port)}" if _REACHABLE.fullmatch(name) else ""


def _state(good: bool, word: str, otherwise: str) -> Response:
    return sentence(HTTPStatus.OK, word) if good else sentence(HTTPStatus.SERVICE_UNAVAILABLE, otherwise)
