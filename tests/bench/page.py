"""The page of a job with many partitions over HTTP: each view when nobody has looked for a while, and again at once.

The values are those of the bench `render`.

Left out: a browser, consumer groups, followers, agents that answer, and more than one broker.
"""

import http.client
import statistics
from time import perf_counter, process_time

from streaming.pages.site.exporter import Exporter
from tests.bench.render import NOW_MS, ROUNDS, new_observer, new_table, publish, states
from tests.bench.table import show

PARTITIONS = 10_000
STEP_S = 5.0
"""Later than a look is kept for, so that the first request of a round has to look at the table anew."""

VIEWS = {
    "/": "what is wrong",
    "/topics": "all 100 of them, the worst first",
    "/topics/payments.settled.7": "one topic",
    "/brokers": "one",
    "/disks": "what fills them, by topic",
    "/search?q=settled.7": "in all names",
    "/partitions": "50 of them, the worst first",
    "/partitions?filter=settled.7&sort=size_bytes&offset=50": "filtered, sorted, the second page",
    "/transactions": "open transactions",
    "/retention": "what is kept",
    "/partitions/payments.settled.7/3": "one partition",
}


def run() -> None:
    """Print one table: seconds and CPU seconds of each view with a new look at the table, and with one that is there; the bytes sent."""
    table, now = new_table(), [NOW_MS / 1000]
    publish(table, states(PARTITIONS))
    exporter = Exporter("127.0.0.1", 0, table=table, observer=new_observer(), clock=lambda: now[0], healthy=lambda: True)
    exporter.start()
    rows = []
    try:
        _get(exporter.address, "/")  # compiles the templates
        for path, what in VIEWS.items():
            figures: tuple[list[float], ...] = ([], [], [], [])
            size = 0
            for _ in range(ROUNDS):
                now[0] += STEP_S
                for wall, cpu in (figures[:2], figures[2:]):
                    began, before = perf_counter(), process_time()
                    size = _get(exporter.address, path)
                    wall.append(perf_counter() - began)
                    cpu.append(process_time() - before)
            medians = (f"{statistics.median(each):.3f}" for each in figures)
            rows.append((f"{path.partition('?')[0]}: {what}", *medians, f"{size / 1e3:.1f}"))
    finally:
        exporter.close()
    show(
        f"views of {PARTITIONS:,} partitions; medians of {ROUNDS}",
        ("", "s, new look", "its CPU s", "s, again", "its CPU s", "kB packed"),
        rows,
    )


def _get(address: tuple[str, int], path: str) -> int:
    connection = http.client.HTTPConnection(*address)
    try:
        connection.request("GET", path, headers={"Accept-Encoding": "gzip"})
        answer = connection.getresponse()
        body = answer.read()
        if answer.status != http.HTTPStatus.OK:
            raise RuntimeError(f"{path} was answered with {answer.status}")
        return len(body)
    finally:
        connection.close()
