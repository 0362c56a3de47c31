"""A long run beside a broker of very many partitions: appends, rolls, topics that come and go, a backlog; and what must stay flat."""

import re
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from bench.soak.fleet import BACKLOG, Fleet, Written
from bench.soak.sampling import CACHE, DESCRIPTORS, LAG, MEASURES, Measure, Trend, sample, size_of, trend
from tests.ports import free_ports
from tests.processes import until
from tests.worlds.scraping import Scraper, scrape
from tests.worlds.services import Service, services

STEP_SECONDS = 0.2
ROLL_SECONDS = 1.0
CHURN_SECONDS, DELAY_SECONDS = 10.0, 60.0
"""How often a topic comes and another goes, and when files that were deleted are removed; a short run has less time for both."""

KEPT_TOPICS = 6
SCRAPE_SECONDS = 15.0
"""As Prometheus does; a short run samples more often."""

JUDGED_MINUTES = 5
"""In less time memory tells nothing: only descriptors are judged then."""

_START_SECONDS = 600
_CAUGHT_UP_SECONDS = 900
_SMALL = ("--spark", "spark.driver.memory=512m", "--set", "log_level=warning")
_BYTES = re.compile(r'^segtail_partition_appended_bytes_total\{[^}]*topic="(soak\.[^"]*)"[^}]*\} (\S+)$', re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How large a run is. The backlog appears after a quarter of the time and is deleted when it was read."""

    minutes: float
    partitions: int
    active: int
    appends_a_second: int
    backlog_bytes: int
    seed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What a run was. ``problems`` are empty if all stayed flat and everything was counted."""

    plan: Plan
    written: Written
    trends: Mapping[Measure, Trend]
    samples: int
    start_seconds: float
    backlog_seconds: float
    lag_seconds: float
    """The longest time that the page was behind outside of the backlog, as it says itself."""

    problems: tuple[str, ...]


class _Run:
    """The parts of a run and what was seen of them."""

    def __init__(self, fleet: Fleet, running: Mapping[str, Service], cache: Path, url: str, plan: Plan) -> None:
        self.fleet = fleet
        self.running = running
        self.pages = Scraper(url, leave_out=("churn.",))
        self.samples: dict[Measure, list[tuple[float, float]]] = {measure: [] for measure in MEASURES}
        self.lag_seconds = 0.0
        self._cache = cache
        self.every = min(SCRAPE_SECONDS, plan.minutes)
        self._churn_seconds = min(CHURN_SECONDS, 3 * plan.minutes)
        self._next_sample = self._next_churn = self._next_roll = 0.0
        self._pause = threading.Event()

    def write(self, seconds: float, appends_a_second: int) -> None:
        """Go on as a broker does for so long, and look at the processes now and then."""
        began = time.monotonic()
        due = 0.0
        while (now := time.monotonic()) < began + seconds:
            wanted = (now - began) * appends_a_second
            self.fleet.append(int(wanted - due))
            due += int(wanted - due)
            if now >= self._next_roll:
                self.fleet.roll()
                self._next_roll = now + ROLL_SECONDS
            if now >= self._next_churn:
                self.fleet.churn()
                self.fleet.sweep()
                self._next_churn = now + self._churn_seconds
            if now >= self._next_sample:
                self._sample()
                self._next_sample = time.monotonic() + self.every
            self._pause.wait(STEP_SECONDS)

    def _sample(self) -> None:
        now = time.monotonic()
        found = sample(self.running["agent"], self.running["job"])
        found[CACHE] = size_of(self._cache)
        page = scrape(self.pages.url) or ""
        self.pages.take(page)
        found[LAG] = sum(value for _, value in values_of(page, "segtail_tail_lag_bytes"))
        self.lag_seconds = max([self.lag_seconds, *(value for _, value in values_of(page, "segtail_tail_lag_seconds"))])
        for measure, value in found.items():
            self.samples[measure].append((now, value))

    def counted(self) -> dict[str, float]:
        """Bytes by topic, of those that stay and of the backlog."""
        found: dict[str, float] = {}
        for topic, value in _BYTES.findall(scrape(self.pages.url) or ""):
            found[topic] = found.get(topic, 0.0) + float(value)
        return found

    def whole(self) -> bool:
        """Everything of the partitions that stay is on the page: counted, or skipped where its segment went unread."""
        counted = sum(value for topic, value in self.counted().items() if topic != BACKLOG)
        skipped = sum(value for _, value in values_of(scrape(self.pages.url) or "", "segtail_skipped_bytes_total"))
        return 0 <= self.fleet.written.steady - counted <= skipped


def values_of(page: str, name: str) -> list[tuple[str, float]]:
    """The series of a name."""
    lines = [line.rpartition(" ") for line in page.splitlines() if line.startswith((f"{name}{{", f"{name} "))]
    return [(series, float(value)) for series, _, value in lines]


def run_steady(directory: Path, plan: Plan) -> Report:
    """Run it."""
    agent_port, page_port = free_ports(2)
    cache, logs = directory / "cache", directory / "logs"
    where = ("--agents", f"http://127.0.0.1:{agent_port}", "--checkpoint", directory / "checkpoint", "--listen", f"127.0.0.1:{page_port}")
    agent = ("agent", "--log-dirs", logs, "--cache", cache, "--listen", f"127.0.0.1:{agent_port}", "--name", "soak", *_SMALL[2:])
    url = f"http://127.0.0.1:{page_port}/metrics"
    delay_seconds = min(DELAY_SECONDS, 6 * plan.minutes)
    with (
        Fleet(logs, plan.partitions, plan.active, plan.seed, topics=KEPT_TOPICS, delay_seconds=delay_seconds) as fleet,
        services(directory / "messages", agent=agent, job=("run", "--from", "earliest", *where, *_SMALL)) as running,
    ):
        run = _Run(fleet, running, cache, url, plan)
        began = time.monotonic()
        until("everything is counted", run.whole, _START_SECONDS)
        start_seconds = time.monotonic() - began
        seconds = plan.minutes * 60
        began = time.monotonic()
        run.write(seconds / 4, plan.appends_a_second)
        lag_seconds = run.lag_seconds
        backlog_seconds = _backlog(run, plan)
        run.lag_seconds = lag_seconds
        run.write(max(seconds / 2, began + seconds - time.monotonic()), plan.appends_a_second)
        problems = list(run.pages.steps_back)
        try:
            until("everything is counted", run.whole, _CAUGHT_UP_SECONDS)
        except AssertionError:
            problems.append(f"{fleet.written.steady} bytes were written, {run.counted()} are counted")
        problems += [f"{each.name} was started {each.starts} times" for each in running.values() if each.starts != 1]
        trends = {measure: trend(measure, samples) for measure, samples in run.samples.items()}
        judged = trends if plan.minutes >= JUDGED_MINUTES else DESCRIPTORS.values()
        problems += [f"{measure.name} grows" for measure in judged if not trends[measure].flat]
        problems += [f"no {what}" for what in ("rolls", "topics_deleted") if not getattr(fleet.written, what)]
        return Report(
            plan=plan,
            written=fleet.written,
            trends=trends,
            samples=len(run.samples[CACHE]),
            start_seconds=start_seconds,
            backlog_seconds=backlog_seconds,
            lag_seconds=run.lag_seconds,
            problems=tuple(problems),
        )


def _backlog(run: _Run, plan: Plan) -> float:
    """The seconds from when the backlog appears until the page has all of it, while appends go on."""
    if not plan.backlog_bytes:
        return 0.0
    run.fleet.begin_backlog(plan.backlog_bytes)
    began = time.monotonic()
    while run.counted().get(BACKLOG) != run.fleet.written.backlog:
        assert time.monotonic() < began + _CAUGHT_UP_SECONDS, f"{run.counted().get(BACKLOG)} of {run.fleet.written.backlog} bytes"
        run.write(min(5.0, run.every), plan.appends_a_second)
    seconds = time.monotonic() - began
    run.fleet.end_backlog()
    return seconds
