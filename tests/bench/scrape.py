"""A scrape of 1,000,000 series over HTTP: plain, packed, by several clients at the same moment, and beside one that does not read.

Left out: a network, TLS and passwords, and Prometheus' own work.
"""

import http.client
import socket
import statistics
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from time import perf_counter, process_time

from streaming.pages.site.exporter import Exporter
from tests.bench.render import NOW_MS, ROUNDS, SERIES, million, new_observer
from tests.bench.table import show

CLIENTS = 4


def run() -> None:
    """Print one table: seconds until the last client has its page, CPU of exporter and clients together, and the bytes of one page."""
    table = million()
    exporter = Exporter("127.0.0.1", 0, table=table, observer=new_observer(), clock=lambda: NOW_MS / 1000, healthy=lambda: True)
    exporter.start()
    try:
        address = exporter.address
        rows = [_row("plain", lambda: _get(address, "identity")), _row("gzip", lambda: _get(address, "gzip"))]
        with ThreadPoolExecutor(CLIENTS) as pool:
            rows.append(_row(f"gzip, {CLIENTS} clients at once", lambda: max(pool.map(lambda _: _get(address, "gzip"), range(CLIENTS)))))
        with socket.create_connection(address) as idle:
            idle.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
            rows.append(_row("gzip, beside a client that does not read", lambda: _get(address, "gzip")))
    finally:
        exporter.close()
    show(f"a scrape of {SERIES:,} series; medians of {ROUNDS}", ("", "seconds", "CPU seconds", "MB"), rows)


def _row(name: str, scrape: Callable[[], int]) -> tuple[str, str, str, str]:
    took, cpu, size = [], [], 0
    for _ in range(ROUNDS):
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
