"""What breaks first as a cluster grows: one agent with very many logs, and one job with very many agents.

**One agent**, its inside in a process of its own (`bench.host`), on logs like those of `start`, in memory: its start from nothing
and from its journal, memory, and polls: idle at its own pace for a minute, with a broker's checkpoints rewritten; with 1,000 logs grown;
with all. Each measure is held against a limit, and the number of logs at which it is reached is worked out from two sizes, as if it went
in proportion.

**One job** with simulated agents (`bench.fleet`): the same partitions on few agents and on many, a scraper every 15 s. CPU by part
for each round of 15 s: workers fold, the driver asks the agents, keeps the table and makes the page, the JVM plans and commits.

Left out: disks (logs lie in memory), logs with many segments, transactions, consumer groups; what a hundred hosts and a network between
them add, as agents are few processes on one machine and watch nothing; executors; topics that come and go.
"""

import resource
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from bench.host import START_SECONDS, HostProcess, Took
from bench.measuring import Bounds, show
from bench.partitions import Partitions
from bench.processes import PARTS, Holdings
from bench.remote import fleet, planned
from bench.running import Cost, RunningJob
from bench.start import BATCH_BYTES, EARLIER
from streaming.broker.agent.polling_thread import REST_SECONDS
from streaming.broker.agent.service import POLL_SECONDS
from streaming.broker.disk.opening import RESERVED
from tests.scratch import scratch

GROWN = 1_000
ROUNDS = 3
IDLE_POLLS, POLL_EVERY_SECONDS = 8, 7.5
"""A minute: each log dir is listed anew once in it."""

SCRAPE_SECONDS, WARM_UP_SCRAPES, SCRAPES = 15, 4, 4
APPENDS_A_SECOND = 2_000
"""Of all agents together."""

MEMORY_HIGH = 512 << 20
"""Of the unit of an agent (`install/deb/segtail-agent.service`)."""

_DESCRIPTORS = 1 << 20
"""What that unit allows."""


@dataclass(frozen=True, slots=True)
class _Agent:
    """What was measured of an agent with so many logs.

    ``start``: beside a live broker, until it is given up; ``rest``: what was left then, beside one that writes no more.
    """

    logs: int
    start: Took
    rest: Took
    ladders: Took
    idle: list[Took]
    some_grown: list[Took]
    all_grown: list[Took]
    holdings: Holdings


def run(bounds: Bounds) -> None:
    """Print three tables."""
    agents = [_agent(count) for count in (bounds.logs // 2, bounds.logs)]
    _show_agents(agents)
    _show_limits(*agents)
    _show_jobs(bounds)


# --- one agent


def _agent(count: int) -> _Agent:
    with (
        scratch() as memory,
        Partitions(Path(memory, "log"), count, BATCH_BYTES, earlier=EARLIER) as logs,
        _descriptors(),
        HostProcess(logs.path) as host,
    ):
        with logs.alive():
            start = host.start()
        rest = host.catch_up()  # nothing is left, unless it was given up
        ladders = host.do("climb")
        with logs.alive():
            idle = [_idle(host) for _ in range(IDLE_POLLS)]
        some_grown = [_grow(host, logs, count // GROWN or 1) for _ in range(ROUNDS)]
        all_grown = [_grow(host, logs, 1) for _ in range(ROUNDS)]
        holdings = host.holds()
        host.do("close")
    return _Agent(count, start, rest, ladders, idle, some_grown, all_grown, holdings)


@contextmanager
def _descriptors() -> Iterator[None]:
    """As many as the agent's unit allows, where this user may raise the limit."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, PermissionError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (before[0], max(before[1], _DESCRIPTORS)))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def _idle(host: HostProcess) -> Took:
    time.sleep(POLL_EVERY_SECONDS)
    return host.do("poll")


def _grow(host: HostProcess, logs: Partitions, every: int) -> Took:
    for item in range(0, len(logs), every):
        logs.append(item)
    return host.do("poll")


def _show_agents(agents: list[_Agent]) -> None:
    measures: dict[str, Callable[[_Agent], str]] = {
        f"start from nothing beside a live broker, CPU s, {START_SECONDS:.0f} at most": lambda each: _spent(each.start),
        "what was left then, beside a broker that does not write, CPU s": lambda each: f"{each.rest.cpu_seconds:.0f}",
        "ladders begun and filled, CPU s": lambda each: f"{each.ladders.cpu_seconds:.0f}",
        "idle poll, CPU s (mean)": lambda each: f"{_mean_cpu(each.idle):.2f}",
        "the most of one": lambda each: f"{max(took.cpu_seconds for took in each.idle):.2f}",
        f"% of a core at a poll every {POLL_EVERY_SECONDS} s": lambda each: f"{100 * _mean_cpu(each.idle) / POLL_EVERY_SECONDS:.1f}",
        f"poll with {GROWN:,} logs grown, CPU s": lambda each: f"{_median_cpu(each.some_grown):.2f}",
        "poll with all grown, CPU s": lambda each: f"{_median_cpu(each.all_grown):.2f}",
        "its CPU us a log": lambda each: f"{_median_cpu(each.all_grown) / each.logs * 1e6:.0f}",
        "PSS MB": lambda each: f"{each.holdings.proportional_bytes / 1e6:.0f}",
        "open files": lambda each: f"{each.holdings.descriptors:,}",
    }
    rows = [(name, *(measure(each) for each in agents)) for name, measure in measures.items()]
    show("one agent", ("", *(f"{each.logs:,} logs" for each in agents)), rows)


def _spent(took: Took) -> str:
    return f"{took.cpu_seconds:.0f}" if took.done else f"{took.cpu_seconds:.0f}, not done"


def _mean_cpu(polls: list[Took]) -> float:
    return statistics.mean(each.cpu_seconds for each in polls)


def _median_cpu(polls: list[Took]) -> float:
    return statistics.median(each.cpu_seconds for each in polls)


def _show_limits(half: _Agent, whole: _Agent) -> None:
    """Print what breaks first."""
    measures: dict[str, tuple[Callable[[_Agent], float], float]] = {
        f"a start takes {START_SECONDS:.0f} s": (lambda each: each.start.cpu_seconds + each.rest.cpu_seconds, START_SECONDS),
        f"an idle poll takes {POLL_SECONDS} s, for which a plan waits": (lambda each: _mean_cpu(each.idle), POLL_SECONDS),
        f"a poll with all grown takes {POLL_SECONDS} s": (lambda each: _median_cpu(each.all_grown), POLL_SECONDS),
        f"a poll with all grown takes {REST_SECONDS:.0f} s, and another is due": (lambda each: _median_cpu(each.all_grown), REST_SECONDS),
        f"MemoryHigh of the unit, {MEMORY_HIGH >> 20} MiB": (lambda each: each.holdings.proportional_bytes, MEMORY_HIGH),
    }
    broken = {what: _reached(half, whole, measure, limit) for what, (measure, limit) in measures.items()}
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    broken[f"open files, {_DESCRIPTORS:,} by the unit"] = _DESCRIPTORS - RESERVED
    broken[f"open files, {hard:,} on this machine"] = hard - RESERVED
    rows = [(what, f"{logs:,.0f}") for what, logs in sorted(broken.items(), key=lambda each: each[1])]
    show("what breaks first, on a core of its own", ("", "at about so many logs"), rows)


def _reached(half: _Agent, whole: _Agent, measure: Callable[[_Agent], float], limit: float) -> float:
    """At how many logs, on the line through both."""
    slope = (measure(whole) - measure(half)) / (whole.logs - half.logs)
    return whole.logs + (limit - measure(whole)) / slope if slope > 0 else float("inf")


# --- one job


def _show_jobs(bounds: Bounds) -> None:
    rows = []
    with tempfile.TemporaryDirectory(prefix="segtail-bench-") as directory:
        for agents in sorted({bounds.agents // 10 or 1, bounds.agents}):
            rows.append((f"{agents} agents", *_job(Path(directory, f"{agents}"), agents, bounds.logs // agents)))
    parts = [f"{part} CPU s" for part in PARTS[:3]]
    memory = "/".join(PARTS[:3]) + " MB"
    title = (
        f"one job, {bounds.logs:,} partitions over all agents, {APPENDS_A_SECOND:,} appends a second, a scraper every {SCRAPE_SECONDS} s"
    )
    heads = (
        "a round",
        *parts,
        "% of a core",
        "micro-batch s",
        "page s",
        "page MB",
        memory,
        "latestOffset ms",
        "its CPU ms",
        "offset bytes",
    )
    show(title, heads, rows)


def _job(directory: Path, agents: int, partitions: int) -> tuple[str, ...]:
    appends = APPENDS_A_SECOND // agents
    with (
        fleet(directory / "agents", agents, partitions, appends) as addresses,
        RunningJob(["--agents", addresses], directory / "checkpoint", "--spark", "spark.driver.memory=3g", "--trigger", "auto") as job,
    ):
        pages: list[tuple[float, int]] = []
        _scrape(job, time.monotonic() + WARM_UP_SCRAPES * SCRAPE_SECONDS, [])
        cost = job.cost(SCRAPES * SCRAPE_SECONDS, lambda until: _scrape(job, until, pages))
    with fleet(directory / "planned", agents, partitions, appends) as addresses:
        latest, cpu, offset = planned(addresses, agents)
    return (*_rounds(cost), *(f"{each:.2f}" for each in _page(pages)), _memory(cost), latest, cpu, offset)


def _scrape(job: RunningJob, until: float, pages: list[tuple[float, int]]) -> None:
    """Scrape every `SCRAPE_SECONDS`, the last time a period before ``until``; note seconds and bytes of each page."""
    due = time.monotonic()
    while due < until:
        time.sleep(max(0.0, due - time.monotonic()))
        began = time.monotonic()
        size = len(job.scrape())
        pages.append((time.monotonic() - began, size))
        due += SCRAPE_SECONDS
    time.sleep(max(0.0, until - time.monotonic()))


def _rounds(cost: Cost) -> tuple[str, ...]:
    parts = (f"{cost.cpu_seconds[part] / SCRAPES:.2f}" for part in PARTS[:3])
    return (*parts, f"{100 * cost.cores:.1f}", f"{cost.batch_seconds / max(1, cost.batches):.2f}")


def _page(pages: list[tuple[float, int]]) -> tuple[float, float]:
    """Seconds and megabytes."""
    return statistics.median(each for each, _ in pages), statistics.median(size for _, size in pages) / 1e6


def _memory(cost: Cost) -> str:
    return "/".join(f"{cost.resident_bytes[part] / 1e6:.0f}" for part in PARTS[:3])
