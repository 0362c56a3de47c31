"""A scrape of 1,000,000 series over HTTP: plain, packed, by several clients at the same moment, and beside one that does not read.

Clients are on loopback and throw away what they read. The values are made up, as of a healthy cluster (`bench.healthy_table`).

Left out: a network, Spark, the rows of a micro-batch that go into the table, followers, consumer groups, faults in more than one log of a
thousand, and clocks of brokers.
"""

import http.client
import socket
import statistics
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from time import perf_counter, process_time

from bench.healthy_table import NOW_MS, SERIES, grown, million, new_observer, new_table, publish
from bench.measuring import Bounds, show
from streaming.pages.site.exporter import Exporter

CLIENTS = 4
ROUNDS = 5
SCRAPE_S = 15


def run(_: Bounds) -> None:
    """Print one table: seconds until the last client has its page, CPU of exporter and clients together, and the bytes of one page."""
    table, logs, now = new_table(), million(), [NOW_MS / 1000]
    publish(table, logs)
    exporter = Exporter("127.0.0.1", 0, table=table, observer=new_observer(), clock=lambda: now[0], healthy=lambda: True)
    exporter.start()

    def nothing(number: int) -> None:
        now[0] += SCRAPE_S

    def growth(number: int) -> None:
        now[0] += SCRAPE_S
        table.apply(grown(logs, number + 1, round(now[0] * 1000)))

    def packed() -> int:
        return _get(exporter.address, "gzip")

    try:
        rows = [
            _row("plain", nothing, lambda: _get(exporter.address, "identity")),
            _row("gzip, all logs have grown", growth, packed),
            _row("gzip, nothing changed", nothing, packed),
        ]
        with ThreadPoolExecutor(CLIENTS) as pool:
            by_all = f"gzip, all logs have grown, {CLIENTS} clients at once"
            rows.append(_row(by_all, growth, lambda: max(pool.map(lambda _: packed(), range(CLIENTS)))))
        with socket.create_connection(exporter.address) as idle:
            idle.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
            rows.append(_row("gzip, nothing changed, beside a client that does not read", nothing, packed))
    finally:
        exporter.close()
    show(f"a scrape of {SERIES:,} series; medians of {ROUNDS}", ("", "seconds", "CPU seconds", "MB"), rows)


def _row(name: str, happen: Callable[[int], None], scrape: Callable[[], int]) -> tuple[str, str, str, str]:
    """Of one way to scrape; what happens before each is not measured."""
    took, cpu, size = [], [], 0
    for number in range(ROUNDS):
        happen(number)
        began, before = perf_counter(), process_time()
        size = scrape()
        took.append(perf_counter() - began)
        cpu.append(process_time() - before)
    return name, f"{statistics.median(took):.2f}", f"{statistics.median(cpu):.2f}", f"{size / 1e6:.1f}"


def _get(address: tuple[str, int], encoding: str) -> int:
    """The bytes of one page."""
    connection = http.client.HTTPConnection(*address)
    try:
        connection.request("GET", "/metrics", headers={"Accept-Encoding": encoding})
        return len(connection.getresponse().read())
    finally:
        connection.close()
