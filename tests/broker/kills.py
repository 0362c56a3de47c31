"""Kill -9 of agent, driver, JVM and Python workers at random moments under a real broker's load; afterwards all numbers must agree."""

import random
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.broker.kafka import Kafka
from tests.broker.load import PAID, TOPICS, Load
from tests.broker.transactions import Reported, reported_by
from tests.commands import into
from tests.ports import free_ports
from tests.processes import Page, counted, differences, read_page, segtail, until, values
from tests.worlds.scraping import Scraper, scrape
from tests.worlds.services import AGENT, ALL, CHILD, DRIVER, JVM, SOURCE, WORKER, Service, services

SHARES: Mapping[str, int] = {AGENT: 70, WORKER: 10, SOURCE: 10, DRIVER: 4, JVM: 3, ALL: 3}
"""Of a hundred kills. A JVM takes many seconds to start, an agent one."""

_ANY_MOMENT = 0.35
_PAUSE_SECONDS = 0.05
_PATIENT = {"broker.session.timeout.ms": 60_000}
"""A machine that starts JVMs is no reason to take a broker's partitions away from it."""

_SMALL = ("--spark", "spark.driver.memory=512m", "--trigger", "200ms", "--set", "state_shards=4")


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What a run was. ``problems`` are empty if every number agreed."""

    seed: int
    kills: Mapping[str, int]
    seconds: float
    records: int
    scrapes: int
    absent_seconds: float
    problems: tuple[str, ...]


def plan_kills(count: int, chance: random.Random) -> list[str]:
    """Which part is killed when: each by its share, at least once where there are enough, in a random order."""
    dear = [part for part in SHARES if part != AGENT for _ in range(max(1, count * SHARES[part] // 100))]
    parts = dear[:count] + [AGENT] * (count - len(dear))
    chance.shuffle(parts)
    return parts


def run_kills(directory: Path, kills: int, seed: int, *, child: bool = False) -> Report:
    """Run a broker, its load, an agent and a job, kill, and compare.

    Args:
        child: the agent is the job's own, started by it, and started again by it.
    """
    began = time.monotonic()
    chance = random.Random(seed)
    plan = plan_kills(kills, chance)
    directory.mkdir(parents=True, exist_ok=True)
    kafka = Kafka(directory / "kafka", settings=_PATIENT)
    try:
        kafka.start()
        load = Load(kafka, seed)
        agent_port, page_port = free_ports(2)
        dirs = ",".join(map(str, kafka.log_dirs))
        agent = ("agent", "--log-dirs", dirs, "--listen", f"127.0.0.1:{agent_port}", "--name", "crash")
        of = ("--log-dirs", dirs) if child else ("--agents", f"http://127.0.0.1:{agent_port}")
        where = (*of, "--checkpoint", directory / "checkpoint", "--listen", f"127.0.0.1:{page_port}")
        url = f"http://127.0.0.1:{page_port}/metrics"
        arguments: dict[str, Sequence[object]] = {} if child else {AGENT: agent}
        arguments["job"] = ("run", "--from", "earliest", *where, *_SMALL)
        with services(directory / "messages", **arguments) as running, Scraper(url) as pages:
            with load.running():
                for part in plan:
                    _await_moment(running, pages, chance)
                    if part == AGENT and child:
                        _kill(running["job"], CHILD, chance)
                    else:
                        _kill(running[AGENT if part == AGENT else "job"], part, chance)
            load.leave_open()
            reported = reported_by(kafka.nodes[0].port, TOPICS)
            kafka.freeze()  # not stopped: that would be written down too, and leave its partitions without a leader
            undisturbed = undisturbed_page(dirs, directory)
            problems = _problems_of(undisturbed, load, reported)
            problems += compare_live(running, url, undisturbed)
            problems += pages.steps_back
            problems += [f"{process} was left by its parent" for each in running.values() for process in each.left()]
    finally:
        kafka.kill()
    return Report(
        seed=seed,
        kills=Counter(plan),
        seconds=time.monotonic() - began,
        records=load.records.total(),
        scrapes=pages.scrapes,
        absent_seconds=pages.absent_seconds,
        problems=tuple(problems),
    )


def _await_moment(running: Mapping[str, Service], pages: Scraper, chance: random.Random) -> None:
    """Any moment at all, a part that is being started included, or one soon after the job went on."""
    if chance.random() >= _ANY_MOMENT:
        before, scraped = pages.records, pages.scrapes

        def goes_on() -> bool:
            _tend(running)
            return pages.records > before and pages.scrapes > scraped

        until("the job goes on", goes_on, saw=lambda: (pages.records, pages.scrapes))
    deadline = time.monotonic() + chance.random()
    while time.monotonic() < deadline:
        _tend(running)
        threading.Event().wait(_PAUSE_SECONDS)


def _tend(running: Mapping[str, Service]) -> None:
    for each in running.values():
        each.tend()


def _kill(service: Service, part: str, chance: random.Random) -> None:
    """Kill it, waiting for one that is not there yet."""
    pick = chance.randrange(1 << 16)

    def killed() -> bool:
        service.tend()
        return service.kill(part, pick)

    until(f"there is a process to kill: {part}", killed, saw=lambda: service.running.family)


def undisturbed_page(dirs: str, directory: Path) -> Page:
    """What a job makes of it that nobody disturbs, with an agent and a checkpoint of its own."""
    out = directory / "undisturbed.prom"
    arguments = ("--log-dirs", dirs, "--from", "earliest", "--once", "--checkpoint", directory / "undisturbed", *_SMALL)
    with segtail("run", *arguments, stated=directory / "undisturbed.messages", before=into(out)) as job:
        assert job.wait() == 0, job.stated
    return read_page(out.read_text())


def _problems_of(page: Page, load: Load, reported: Mapping[tuple[str, int], Reported]) -> list[str]:
    """Where a page differs from what the producers and the broker said."""
    series = ("appended_records_total", "log_end_offset", "high_watermark", "last_stable_offset", "open_transactions")
    records, ends, high, stable, opened = (values(page, f"segtail_partition_{name}") for name in series)
    problems = []
    for key, stated in reported.items():
        ours = (records.get(key), ends.get(key), high.get(key), stable.get(key), opened.get(key, 0))
        theirs = (load.records[key], stated.high_watermark, stated.high_watermark, stated.last_stable_offset, len(stated.opened))
        if ours != theirs:
            problems.append(f"{key}: records, end, high watermark, stable, open are {ours} on the page, {theirs} by broker and producers")
    if sum(load.records[PAID, partition] for partition in range(TOPICS[PAID])) == 0 or not any(
        stated.opened for stated in reported.values()
    ):
        problems.append("no transaction was written, or none was left open")
    return problems


def compare_live(running: Mapping[str, Service], url: str, undisturbed: Page) -> list[str]:
    """What still differs between the killed job's page and an undisturbed one's when it has had time to catch up."""
    wanted = counted(undisturbed)
    different: list[str] = ["the page never came back"]

    def agrees() -> bool:
        _tend(running)
        page = scrape(url)
        if page is None:
            return False
        found = counted(read_page(page))
        # a run with --once counts no records, so it has no skew of them
        different[:] = differences({each: found[each] for each in found if each.name != "segtail_topic_records_skew_ratio"}, wanted)
        return not different

    try:
        until("both pages agree", agrees)
    except AssertionError:
        return different
    return []
