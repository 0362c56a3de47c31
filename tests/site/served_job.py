"""An exporter with all that stands behind it, and what it answers."""

import http.client
from collections.abc import Callable
from dataclasses import dataclass, field

from streaming.cluster.view.observer import Observer
from streaming.cluster.view.table import Table
from streaming.pages.site.exporter import Exporter
from tests.limits import SECONDS


@dataclass
class Job:
    """What stands behind an exporter: everything that may be turned by hand."""

    table: Table
    observer: Observer
    exporter: Exporter
    healthy_is: Callable[[], bool] = lambda: True
    on_scrape: Callable[[], object] = lambda: None
    scraped: list[str] = field(default_factory=list)
    watched: int = 0
    now: float = 1_700_000_000.0
    monotonic: float = 0.0

    def scrape(self, who: str) -> None:
        self.scraped.append(who)
        self.on_scrape()

    def look(self) -> None:
        self.watched += 1


@dataclass(frozen=True)
class Answer:
    status: int
    headers: http.client.HTTPMessage
    body: bytes


def ask(job: Job, path: str, method: str = "GET", *, body: bytes | None = None, **headers: str) -> Answer:
    connection = http.client.HTTPConnection(*job.exporter.address, timeout=SECONDS)
    try:
        connection.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
        response = connection.getresponse()
        return Answer(response.status, response.headers, response.read())
    finally:
        connection.close()
