"""A job that is away while a real broker is written to, for longer than its agent keeps events: back again, it has to count all of it."""

import random
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from confluent_kafka import Producer

from bench.partitions import PARTITIONS_A_TOPIC
from streaming.broker.protocol.consumer_messages import NOT_BEGUN, PlanRequest, Register
from streaming.broker.protocol.status_messages import StatusRequest
from streaming.errors import AgentError
from streaming.spark.client.agent_client import AgentClient
from tests.broker.clients import CODECS, create_topic, producer, transaction
from tests.broker.kafka import Kafka
from tests.broker.kafka_tools import TopicPartition
from tests.broker.kills import compare_live, undisturbed_page
from tests.broker.transactions import Reported, reported_by
from tests.few_events import keeping
from tests.limits import SECONDS
from tests.ports import free_ports
from tests.processes import Page, until, values
from tests.worlds.scraping import Scraper, scrape
from tests.worlds.services import AGENT, ALL, Service, service

_WAITING, _PASSED_BY, _GONE = "nobody reads", "another job reads on", "the agent is killed, too"
_SHARES: Mapping[str, float] = {_WAITING: 0.4, _PASSED_BY: 0.5, _GONE: 0.1}
"""How the job is away, one after the other, and for how much of the time."""

_LONGEST = 5
"""So many times as long it is away if the agent has kept all events till then."""

_PRODUCERS = 4
_PIECE = 50
"""So many partitions have a batch of each transaction, and a marker."""

_LEFT_OPEN = 20
_HOURS_MS = 7_200_000
_BROKER = {"broker.session.timeout.ms": 60_000, "transaction.max.timeout.ms": _HOURS_MS}
_SMALL = ("--spark", "spark.driver.memory=512m", "--set", "log_level=warning")
_LOOK_SECONDS = 2.0
_RECORDS = re.compile(r'^segtail_partition_appended_records_total\{[^}]*topic="away\.[^}]*\} (\S+)$', re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How large a run is. ``appends_a_second``: data and markers, over all partitions; ``kept_bytes``: of the agent's events."""

    minutes: float
    partitions: int
    appends_a_second: int
    kept_bytes: int
    seed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Absence:
    """One. ``records``: written meanwhile; ``events``: published meanwhile by the agent, which has not ``kept`` all of them.

    ``back_seconds``: from the job's start until its page has all that was written by then.
    """

    how: str
    seconds: float
    records: int
    events: int
    kept: bool
    back_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What a run was. ``problems`` are empty if every number is that of an undisturbed job, of the broker and of the producers."""

    absences: Sequence[Absence]
    records: int
    transactions: int
    compared: int
    problems: tuple[str, ...]


def run_away(directory: Path, plan: Plan) -> Report:
    """Run it."""
    kafka = Kafka(directory / "kafka", settings=_BROKER)
    agent_port, page_port = free_ports(2)
    dirs, address = ",".join(map(str, kafka.log_dirs)), f"http://127.0.0.1:{agent_port}"
    job: tuple[object, ...] = ("run", "--from", "earliest", "--agents", address, "--checkpoint", directory / "checkpoint", *_SMALL)
    job = (*job, "--listen", f"127.0.0.1:{page_port}")
    agent = ("agent", "--log-dirs", dirs, "--listen", f"127.0.0.1:{agent_port}", "--name", "away", *_SMALL[2:])
    messages = directory / "messages"
    try:
        kafka.start()
        writing = _Writing(kafka, plan)
        with (
            service(AGENT, *agent, directory=messages, before=keeping(plan.kept_bytes)) as watching,
            service("job", *job, directory=messages) as counting,
        ):
            running = {AGENT: watching, "job": counting}
            run = _Run(writing, running, address, Scraper(f"http://127.0.0.1:{page_port}/metrics"))
            with writing.running():
                run.wait_for(writing.written())
                absences = [run.absence(how, 60 * plan.minutes * share) for how, share in _SHARES.items()]
            writing.leave_open()
            reported = reported_by(kafka.nodes[0].port, writing.topics)
            kafka.freeze()
            undisturbed = undisturbed_page(dirs, directory)
            problems = _problems_of(undisturbed, writing, reported, kafka.log_dirs)
            problems += compare_live(running, run.pages.url, undisturbed)
            problems += run.pages.steps_back
    finally:
        kafka.kill()
    problems += [f"{each.how}: the agent kept all {each.events:,} events" for each in absences if each.kept]
    transactions = sum(writing.committed.values()) + sum(writing.aborted.values())
    return Report(
        absences=absences,
        records=writing.written(),
        transactions=transactions,
        compared=len(undisturbed),
        problems=tuple(problems),
    )


class _Run:
    """The parts of a run and what was seen of them."""

    def __init__(self, writing: "_Writing", running: Mapping[str, Service], address: str, pages: Scraper) -> None:
        self._writing = writing
        self._running = running
        self._address = address
        self.pages = pages

    def absence(self, how: str, seconds: float) -> Absence:
        """The job is killed and comes back after so long."""
        job, agent, before = self._running["job"], self._running[AGENT], self._writing.written()
        across = self._writing.begin(f"away-over-{how.replace(' ', '-')}")
        job.kill(ALL)
        began = time.monotonic()
        if how == _GONE:
            agent.kill(AGENT)
            events, kept = 0, False
            _rest_until(began + seconds)
        else:
            events, kept = self._nobody_takes(began + seconds, passed_by=how == _PASSED_BY)
        took, written = time.monotonic() - began, self._writing.written()
        if how == _GONE:
            agent.start()
        began = time.monotonic()
        job.start()
        self.wait_for(written)
        self._writing.end(across, commit=how != _WAITING)
        back = time.monotonic() - began
        return Absence(how=how, seconds=took, records=written - before, events=events, kept=kept, back_seconds=back)

    def _nobody_takes(self, until_s: float, *, passed_by: bool) -> tuple[int, bool]:
        """How many events the agent has published, and whether it kept all of them and read on."""
        client = AgentClient(self._address)
        left = _Other(client, "left behind")
        first = until("the agent has begun", left.plan)
        others = [_Other(client, "reads on", takes=True)] if passed_by else [left]
        kept, latest = True, until_s + (_LONGEST - 1) * (until_s - time.monotonic())
        while (now := time.monotonic()) < until_s or (kept and now < latest):
            for each in others:
                each.plan()
            kept = kept and (left.plan() is not None if passed_by else not _is_full(client))
        end = client.status().seq
        client.close()
        return end - first, kept

    def wait_for(self, records: int) -> None:
        """Wait until so many are on the page. No counter may step back meanwhile."""

        def are_there() -> bool:
            page = scrape(self.pages.url) or ""
            self.pages.take(page)
            found = sum(map(float, _RECORDS.findall(page)))
            if found < records:
                _rest_until(time.monotonic() + _LOOK_SECONDS)
            return found >= records

        until("all that was written is on the page", are_there)


class _Other:
    """A job that only plans: the agent reads its logs for it. One that ``takes`` is read up to what it planned last."""

    def __init__(self, client: AgentClient, name: str, *, takes: bool = False) -> None:
        self._client = client
        self._name = name
        self._takes = takes
        self._journal, self._after = "", -1

    def plan(self) -> int | None:
        """Up to where there is something; None if what it has not taken is not there any more, or it has not begun."""
        with suppress(AgentError):  # an agent under load may not answer in time
            if not self._journal:
                self._client.register(Register(self._name, "latest", resumed=False, run="one"))
            plan = self._client.plan(PlanRequest(self._name, "one", self._journal, self._after, None, 0))
            if plan.seq == NOT_BEGUN:
                return None
            if not self._journal:
                self._journal, self._after = plan.journal, plan.after
            if self._takes:
                self._after = plan.seq
            return plan.seq
        return self._after


def _is_full(client: AgentClient) -> bool:
    with suppress(AgentError):
        return client.status(StatusRequest()).full
    return False


def _rest_until(moment: float) -> None:
    threading.Event().wait(max(0.0, moment - time.monotonic()))


@dataclass(slots=True)
class _Writing:
    """Transactions over all partitions. What was acknowledged is counted by partition."""

    kafka: Kafka
    plan: Plan
    topics: dict[str, int] = field(default_factory=dict)
    records: Counter[TopicPartition] = field(default_factory=Counter)
    committed: Counter[TopicPartition] = field(default_factory=Counter)
    aborted: Counter[TopicPartition] = field(default_factory=Counter)
    opened: Counter[TopicPartition] = field(default_factory=Counter)
    _places: list[TopicPartition] = field(default_factory=list)
    _left: list["_Open"] = field(default_factory=list)  # whose producers have to live on
    _over: threading.Event = field(default_factory=threading.Event)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        for first in range(0, self.plan.partitions, PARTITIONS_A_TOPIC):
            topic, count = f"away.{first}", min(PARTITIONS_A_TOPIC, self.plan.partitions - first)
            self.topics[topic] = count
            create_topic(self.kafka.bootstrap, topic, count, config={"retention.ms": "-1", "internal.segment.bytes": "262144"})
            self._places += [(topic, partition) for partition in range(count)]

    def written(self) -> int:
        with self._lock:
            return self.records.total()

    @contextmanager
    def running(self) -> Iterator[None]:
        """Write while the block runs. What a producer could not do fails at its end."""
        with ThreadPoolExecutor(_PRODUCERS) as threads:
            futures = [threads.submit(self._write, number) for number in range(_PRODUCERS)]
            try:
                until("something is written", self.written)
                yield
            finally:
                self._over.set()
            for future in futures:
                future.result()

    def begin(self, name: str) -> "_Open":
        """A transaction that goes on while others come and go."""
        places = random.Random(f"{self.plan.seed} {name}").sample(self._places, min(_LEFT_OPEN, len(self._places)))
        client = producer(self.kafka.bootstrap, transactional_id=name, more={"transaction.timeout.ms": _HOURS_MS, "log_level": 0})
        client.init_transactions(SECONDS)
        client.begin_transaction()
        self._send(client, places, 1)
        return _Open(client, places)

    def end(self, opened: "_Open", *, commit: bool) -> None:
        """It ends."""
        ended: Callable[[float], None] = opened.client.commit_transaction if commit else opened.client.abort_transaction
        ended(SECONDS)
        self._note_end(opened.places, commit=commit)

    def leave_open(self) -> None:
        """One that ends when nobody looks any more."""
        opened = self.begin("away-left-open")
        self.opened.update(opened.places)
        self._left.append(opened)

    def _write(self, number: int) -> None:
        chance = random.Random(f"{self.plan.seed} {number}")
        client = producer(self.kafka.bootstrap, CODECS[number % len(CODECS)], transactional_id=f"away-{number}")
        client.init_transactions(SECONDS)
        piece = min(_PIECE, len(self._places))
        while not self._over.is_set():
            due = time.monotonic() + 2 * piece * _PRODUCERS / self.plan.appends_a_second
            places, commit = chance.sample(self._places, piece), chance.random() < 0.7
            with transaction(client, commit=commit):
                self._send(client, places, chance.randint(1, 3))
            self._note_end(places, commit=commit)
            self._over.wait(max(0.0, due - time.monotonic()))

    def _note_end(self, places: Sequence[TopicPartition], *, commit: bool) -> None:
        with self._lock:
            (self.committed if commit else self.aborted).update(places)

    def _send(self, client: Producer, places: Sequence[TopicPartition], records: int) -> None:
        failures: list[object] = []

        def delivered(error: object, _: object) -> None:
            if error is not None:
                failures.append(error)

        for topic, partition in places:
            for number in range(records):
                client.produce(topic, f"value {number} of {partition}", partition=partition, on_delivery=delivered)
        left = client.flush(SECONDS)
        assert (left, failures) == (0, [])
        with self._lock:
            self.records.update(dict.fromkeys(places, records))


@dataclass(frozen=True, slots=True)
class _Open:
    client: Producer
    places: Sequence[TopicPartition]


def _problems_of(page: Page, writing: _Writing, reported: Mapping[TopicPartition, Reported], log_dirs: Sequence[Path]) -> list[str]:
    """Where a page differs from what producers, broker and files say."""
    names = ("appended_records_total", "committed_transactions_total", "aborted_transactions_total", "open_transactions")
    series = (*names, "log_end_offset", "last_stable_offset", "appended_bytes_total")
    found = [values(page, f"segtail_partition_{name}") for name in series]
    problems = []
    for key, stated in reported.items():
        size = sum(path.stat().st_size for log_dir in log_dirs for path in (log_dir / f"{key[0]}-{key[1]}").glob("*.log"))
        counts = (each[key] for each in (writing.records, writing.committed, writing.aborted, writing.opened))
        theirs = (*counts, stated.high_watermark, stated.last_stable_offset, size)
        ours = tuple(each.get(key, 0) for each in found)
        if ours != theirs:
            problems.append(f"{key}: {', '.join(series)} are {ours} on the page, {theirs} by producers, broker and files")
    return problems
