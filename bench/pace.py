"""What the running job costs where a scraper comes every 15 s, and how old what it sees is: at its pace, and at a trigger of 1 s.

How old: the time since the first append that a page does not show, over all partitions. Each partition has an idempotent producer of its
own, and the broker's checkpoints are written at their time (`bench.partitions`). They are a JVM's first minutes, in which a
micro-batch costs more than later.

Left out: transactions, segments that roll, consumer groups, more than one broker, and a job that has run for hours.
"""

import re
import statistics
import tempfile
import time
from collections import deque
from pathlib import Path

from bench.measuring import Bounds, show
from bench.partitions import PARTITIONS_A_TOPIC, Partitions
from bench.processes import PARTS
from bench.running import RunningJob, batches_of

LOADS = ((12, 320, ("auto", "1s")), (1_000, 2_000, ("auto", "1s")), (10_000, 2_000, ("5s",)), (10_000, 0, ("auto",)))
"""Partitions, appends a second, triggers."""

PERIOD_SECONDS = 15
UNTIL_LEARNED = 6
SCRAPES = 10
BATCH_BYTES = 16_384
_PAUSE_SECONDS = 0.02
_END_OFFSET = re.compile(rb'^segtail_partition_log_end_offset\{broker="1",topic="bench\.(\d+)",partition="(\d+)"\} (\d+)$', re.MULTILINE)


def run(_: Bounds) -> None:
    """Print a table a load."""
    for partitions, appends, triggers in LOADS:
        rows = [_measure(trigger, partitions, appends) for trigger in triggers]
        megabytes = appends * (BATCH_BYTES + 8) / 1e6
        title = f"a scraper every {PERIOD_SECONDS} s, {partitions:,} partitions, {megabytes:.0f} MB/s, {SCRAPES} scrapes once it is known"
        show(title, ("", "micro-batches", "% of a core", *PARTS, "p50 s", "oldest s"), rows)


def _measure(trigger: str, partitions: int, appends: int) -> tuple[str, ...]:
    with (
        tempfile.TemporaryDirectory(prefix="segtail-bench-") as scratch,
        Partitions(Path(scratch, "log"), partitions, BATCH_BYTES) as logs,
        logs.alive(),
        RunningJob(logs.path, Path(scratch, "checkpoint"), "--trigger", trigger) as job,
    ):
        scraper = Scraper(job, logs, appends)
        scraper.go_on(UNTIL_LEARNED)
        began, spent, batches = time.monotonic(), job.usage().cpu_seconds, scraper.batches
        scraper.ages.clear()
        scraper.go_on(SCRAPES)
        seconds, spent_then = time.monotonic() - began, job.usage().cpu_seconds
    parts = [spent_then[part] - spent[part] for part in PARTS]
    shares = (f"{100 * each / seconds:.1f}" for each in (sum(parts), *parts))
    ages = (f"{age:.2f}" for age in (statistics.median(scraper.ages), max(scraper.ages)))
    return f"trigger {trigger}", f"{scraper.batches - batches:.0f}", *shares, *ages


class Scraper:
    """Appends to all partitions in turn, and takes a page every ``PERIOD_SECONDS``."""

    def __init__(self, job: RunningJob, logs: Partitions, appends: int) -> None:
        self._job = job
        self._appends = appends
        self._logs = logs
        self._unseen: list[deque[tuple[int, float]]] = [deque() for _ in range(len(logs))]
        self._due = time.monotonic()
        self.ages: list[float] = []
        self.batches = 0.0

    def go_on(self, scrapes: int) -> None:
        """For so many of them."""
        began, done = time.monotonic(), 0
        until = self._due + scrapes * PERIOD_SECONDS
        while (now := time.monotonic()) < until:
            due = int((now - began) * self._appends)
            for number in range(done, due):
                item = number % len(self._logs)
                self._unseen[item].append((self._logs.append(item), time.monotonic()))
            done = due
            if now >= self._due:
                self._scrape()
                self._due += PERIOD_SECONDS
            time.sleep(_PAUSE_SECONDS)

    def _scrape(self) -> None:
        asked, page = time.monotonic(), self._job.scrape()  # nobody else may: an unexpected scrape changes the pace
        self.batches, _ = batches_of(page)
        for topic, partition, offset in _END_OFFSET.findall(page):
            item = int(topic) * PARTITIONS_A_TOPIC + int(partition)
            unseen = self._unseen[item]
            while unseen and unseen[0][0] <= int(offset):
                unseen.popleft()
        self.ages.append(max((asked - unseen[0][1] for unseen in self._unseen if unseen), default=0.0))
