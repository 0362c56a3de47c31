"""Scrapes a page again and again and notes every counter that steps back between two of them."""

import threading
import time
import urllib.request
from collections.abc import Iterable
from types import TracebackType
from typing import Self

from tests.limits import SECONDS

_PAUSE_SECONDS = 0.2
_COUNTED = ("segtail_partition_", "segtail_topic_", "segtail_skipped_")
_COUNTERS = ("_total", "_bucket", "_count", "_sum")
_RECORDS = "segtail_partition_appended_records_total"


def scrape(url: str) -> str | None:
    """The page, None while nobody answers."""
    try:
        with urllib.request.urlopen(url, timeout=SECONDS) as answer:
            page: bytes = answer.read()
            return page.decode()
    except OSError:
        return None


def counters(page: str, leave_out: Iterable[str] = ()) -> dict[str, float]:
    """The counters of logs and topics, by name with labels. What the processes count of themselves begins anew with each of them."""
    found = {}
    for line in page.splitlines():
        if line.startswith(_COUNTED) and not any(word in line for word in leave_out):
            series, _, value = line.rpartition(" ")
            if series.partition("{")[0].endswith(_COUNTERS):
                found[series] = float(value)
    return found


class Scraper:
    """A thread that scrapes until the block is left. A page that is absent is no step back, nor is a series that is not there.

    Args:
        leave_out: series that hold one of these words are not looked at, as those of topics that are made anew.
    """

    def __init__(self, url: str, leave_out: Iterable[str] = ()) -> None:
        self.url = url
        self.scrapes = 0
        self.absent_seconds = 0.0
        """The longest time without a page that holds counters."""
        self.steps_back: list[str] = []
        self.records = 0.0
        """Of all partitions, on the last page."""
        self._leave_out = tuple(leave_out)
        self._highest: dict[str, float] = {}
        self._last = time.monotonic()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._scrape, name="scraper")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._over.set()
        self._thread.join()

    def _scrape(self) -> None:
        while not self._over.wait(_PAUSE_SECONDS):
            self.take(scrape(self.url) or "")

    def take(self, page: str) -> None:
        """Compare a page with those before."""
        found, now = counters(page, self._leave_out), time.monotonic()
        if not found:
            return
        self.scrapes += 1
        self.absent_seconds = max(self.absent_seconds, now - self._last)
        self._last = now
        for series, value in found.items():
            before = self._highest.get(series, 0.0)
            if value < before:
                self.steps_back.append(f"scrape {self.scrapes}: {series} fell from {before} to {value}")
            self._highest[series] = max(before, value)
        self.records = sum(value for series, value in found.items() if series.startswith(_RECORDS))
