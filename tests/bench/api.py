"""What people ask a job of 10,000 partitions for, over HTTP: each message anew, and from the look that the last one was made from.

Left out: connections of many clients, TLS and passwords, consumer groups.
"""

import http.client
import statistics
from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter

from streaming.broker.protocol.cost_json import COST_PATH
from streaming.broker.protocol.listing_json import PARTITIONS_PATH, RETENTION_PATH, TRANSACTIONS_PATH
from streaming.broker.protocol.partition_json import path_of_partition
from streaming.broker.protocol.problem_json import PROBLEMS_PATH
from streaming.broker.protocol.status_json import STATUS_PATH
from streaming.pages.site.exporter import Exporter
from tests.bench.render import NOW_MS, ROUNDS, new_observer, new_table, publish, states
from tests.bench.table import show

PARTITIONS = 10_000
ASKED = {
    "status": STATUS_PATH,
    "problems": PROBLEMS_PATH,
    "partitions, busiest 50": PARTITIONS_PATH,
    "partitions, 1,000 by name, filtered": f"{PARTITIONS_PATH}?sort=topic&order=desc&filter=SETTLED.1&limit=1000",
    "transactions": TRANSACTIONS_PATH,
    "retention": RETENTION_PATH,
    "one partition": path_of_partition("payments.settled.7", 7),
    "cost": COST_PATH,
}


class _Clock:
    def __init__(self) -> None:
        self.now = NOW_MS / 1000

    def __call__(self) -> float:
        return self.now


def run() -> None:
    """Print one table: seconds until the answer is there, when a new look has to be made and when it has not, and its bytes."""
    clock = _Clock()
    with _serving(clock) as exporter:
        rows = [_row(exporter.address, clock, name, path) for name, path in ASKED.items()]
    show(f"answers about {PARTITIONS:,} partitions; medians of {ROUNDS}", ("", "seconds", "seconds, same look", "kB"), rows)


@contextmanager
def _serving(clock: _Clock) -> Iterator[Exporter]:
    table = new_table()
    publish(table, states(PARTITIONS))
    exporter = Exporter("127.0.0.1", 0, table=table, observer=new_observer(), clock=clock, healthy=lambda: True)
    exporter.start()
    try:
        _ask(exporter.address, "/metrics")
        yield exporter
    finally:
        exporter.close()


def _row(address: tuple[str, int], clock: _Clock, name: str, path: str) -> tuple[str, str, str, str]:
    anew, again, size = [], [], 0
    for _ in range(ROUNDS):
        clock.now += 10
        size, seconds = _ask(address, path)
        anew.append(seconds)
        again.append(_ask(address, path)[1])
    return name, f"{statistics.median(anew):.3f}", f"{statistics.median(again):.3f}", f"{size / 1000:.1f}"


def _ask(address: tuple[str, int], path: str) -> tuple[int, float]:
    """The bytes of an answer, and the seconds until it is there."""
    connection = http.client.HTTPConnection(*address)
    began = perf_counter()
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        body = response.read()
        if response.status != 200:
            raise RuntimeError(f"{path}: {response.status} {body[:200]!r}")
        return len(body), perf_counter() - began
    finally:
        connection.close()
