"""Operations drawn at random, on a real broker and on segtail; each number at rest is held against the broker's and an archive's.

The archive has a hard link to every segment that ever was, so it knows the bytes of what has been deleted, too. It reads headers of batches
by itself: what is held against it must not have the same errors.
"""

import os
import random
import re
import shutil
import signal
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from functools import partial
from glob import iglob
from itertools import count
from pathlib import Path

from confluent_kafka import KafkaException, Producer

from streaming.broker.journal.journal import MOST_BYTES
from tests.broker.clients import producer
from tests.broker.kafka import Kafka
from tests.broker.lab import Lab, lab
from tests.broker.moving_clients import moving_clients
from tests.broker.moving_jobs import asking, meanwhile
from tests.broker.moving_logs import end_transaction
from tests.few_events import keeping
from tests.ports import free_ports
from tests.processes import Page, read_page, until, values
from tests.worlds.scraping import Scraper, scrape
from tests.worlds.services import AGENT, ALL, DRIVER, Service, service

_TOPICS: Mapping[str, Mapping[str, str]] = {
    "kept": {"internal.segment.bytes": "20000"},
    "small": {"internal.segment.bytes": "2000", "retention.bytes": "1", "file.delete.delay.ms": "1000"},
    "aged": {"internal.segment.bytes": "8000", "retention.ms": "3000", "file.delete.delay.ms": "1000"},
    "again": {"internal.segment.bytes": "5000"},
}
_AGAIN = "again"
"""The one that is made anew under the same name; how much is missing of what it was before is known of nothing."""

_BROKER = {"log.retention.check.interval.ms": 1000, "log.initial.task.delay.ms": 1000}
_OPTIONS = ("--trigger", "200ms", "--set", "state_shards=2", "--set", "replicas=all", "--spark", "spark.driver.memory=512m")
_KEPT = (MOST_BYTES, 1 << 12)
"""So much of its events the agent keeps: as any agent, or so little that a job that stops for a moment begins again."""

_OPERATIONS_SECONDS = 20.0
_REST_SECONDS = 240.0
_PATIENCE = 10.0
_ESTIMATED = 0.5
"""What nobody has listed before it was unlinked is skipped by the mean size of an offset in what was read of its log. A mean of two
or three records is as far from what it was, and where nothing was read there is none: then a byte stands for all of it."""

_HEADER = struct.Struct(">qi")
"""Base offset, and the bytes after this."""

_ABSENT = {"open_transactions": 0}
"""What is absent where a log has had no transaction."""

Key = tuple[str, int]
"""Topic and partition."""


class Archive:
    """Links each segment as soon as it sees it. One file may be seen in several directories, as a log moves."""

    def __init__(self, directory: Path, log_dirs: tuple[Path, ...]) -> None:
        self._directory, self._log_dirs = directory, log_dirs
        self._links: dict[tuple[int, int], tuple[tuple[str, str], Path]] = {}  # by inode, and by partition and topic id
        self._number = count(1)
        directory.mkdir()

    def look(self) -> None:
        """Link what is new."""
        for each in (each for log_dir in self._log_dirs for each in iglob(f"{log_dir}/*-*/*.log*")):  # noqa: PTH207 - Path.glob fails if one goes
            path = Path(each)
            with suppress(OSError):
                found = path.stat()
                place = found.st_dev, found.st_ino
                if place in self._links:
                    continue
                topic_id = re.search(r"topic_id: (\S+)", (path.parent / "partition.metadata").read_text())
                link = self._directory / str(next(self._number))
                os.link(path, link)
                name = re.sub(r"(\.[0-9a-f]{32}-\w+)$", "", path.parent.name)
                self._links[place] = (name, topic_id[1] if topic_id else ""), link

    def sizes(self) -> Mapping[tuple[str, str], int]:
        """The bytes of each batch that ever was, by partition and topic id."""
        batches: dict[tuple[str, str], dict[int, int]] = {}
        for log, link in [*self._links.values()]:
            batches.setdefault(log, {}).update(_batches(link.read_bytes()))
        return {log: sum(sizes.values()) for log, sizes in batches.items()}


def _batches(data: bytes) -> Iterator[tuple[int, int]]:
    position = 0
    while position + _HEADER.size <= len(data):
        offset, length = _HEADER.unpack_from(data, position)
        size = _HEADER.size + length
        if length <= 0 or position + size > len(data):
            return
        yield offset, size
        position += size


@dataclass(slots=True)
class _Writer:
    """The clients. What a broker that is down does not take is no problem of a run."""

    kafka: Kafka
    clients: Lab
    chance: random.Random
    partitions: dict[str, int] = field(default_factory=lambda: dict.fromkeys(_TOPICS, 2))
    transactional: dict[int, Producer] = field(default_factory=dict)
    opened: set[int] = field(default_factory=set)
    plain: Producer | None = None

    def create(self, topic: str) -> None:
        self._ask("create", topic=topic, partitions=self.partitions[topic], copies=1, configs=_TOPICS[topic])

    def _ask(self, do: str, **request: object) -> None:
        with suppress(AssertionError):
            self.clients.ask(do, **request)

    def _place(self) -> Key:
        topic = self.chance.choice([*_TOPICS])
        return topic, self.chance.randrange(self.partitions[topic])

    def _send(self, client: Producer) -> None:
        for _ in range(self.chance.randint(1, 3)):
            topic, partition = self._place()
            for _ in range(self.chance.randint(1, 12)):
                client.produce(topic, self.chance.randbytes(self.chance.randint(1, 120)), partition=partition)
            client.flush(_PATIENCE)

    def produce(self) -> None:
        self.plain = self.plain or producer(self.kafka.bootstrap)
        self._send(self.plain)

    def produce_in_transaction(self) -> None:
        number = self.chance.randrange(3)
        try:
            if number not in self.transactional:
                self.transactional[number] = producer(self.kafka.bootstrap, transactional_id=f"hunt-{number}")
                self.transactional[number].init_transactions(_PATIENCE)
            if number not in self.opened:
                self.transactional[number].begin_transaction()
                self.opened.add(number)
            self._send(self.transactional[number])
        except KafkaException:
            self._let_go(number)

    def end_transaction(self) -> None:
        if not self.opened:
            return
        number = self.chance.choice(sorted(self.opened))
        try:
            end_transaction(self.transactional[number], commit=self.chance.random() < 0.5, seconds=_PATIENCE)
            self.opened.discard(number)
        except KafkaException:
            self._let_go(number)

    def _let_go(self, number: int) -> None:
        self.transactional.pop(number, None)
        self.opened.discard(number)

    def rest(self) -> None:
        """End all that is open: the next one of an id ends what the one before has left."""
        self.plain = None
        self.transactional.clear()
        self.opened.clear()
        for number in range(3):
            with suppress(KafkaException):
                producer(self.kafka.bootstrap, transactional_id=f"hunt-{number}").init_transactions(6 * _PATIENCE)

    def delete_records(self) -> None:
        topic, partition = self._place()
        self._ask("truncate", topic=topic, partition=partition, before=self.chance.choice((-1, self.chance.randrange(300))))

    def expand(self) -> None:
        topic, _ = self._place()
        self.partitions[topic] = min(self.partitions[topic] + 1, 4)
        self._ask("expand", topic=topic, partitions=self.partitions[topic])

    def make_anew(self) -> None:
        self._ask("remove", topic=_AGAIN)
        time.sleep(self.chance.choice((0, 0, 1, 3)))
        self.create(_AGAIN)

    def rehouse(self) -> None:
        topic, partition = self._place()
        log_dir = self.chance.choice(self.kafka.log_dirs)
        self._ask("rehouse", topic=topic, partition=partition, broker=1, log_dir=str(log_dir))


@dataclass(slots=True)
class _Watchers:
    """The agent and the job, which are paused, killed and away. ``due``: when each that is paused goes on, and each that is away comes."""

    running: Mapping[str, Service]
    chance: random.Random
    cache: Path
    due: dict[str, float] = field(default_factory=dict)

    def pause(self) -> None:
        name = self.chance.choice((AGENT, AGENT, "job"))
        self._signal(name, signal.SIGSTOP)
        self.due[name] = time.monotonic() + self.chance.choice((1, 5, 20, 40))

    def tend(self, now: float) -> None:
        """Let those go on whose pause is over, and start those again that have ended."""
        for name in [name for name, at in self.due.items() if now >= at]:
            del self.due[name]
            self._signal(name, signal.SIGCONT)
        for name, each in self.running.items():
            if name not in self.due:
                each.tend()

    def _signal(self, name: str, number: signal.Signals) -> None:
        for process in self.running[name].running.family:
            with suppress(ProcessLookupError):
                os.kill(process.pid, number)

    def kill_agent(self) -> None:
        self._kill(AGENT, AGENT)

    def end_agent(self) -> None:
        self._signal(AGENT, signal.SIGTERM)

    def empty_agent(self) -> None:
        """The agent's cache is emptied beside it, or it begins on an empty disk."""
        if self.chance.random() < 0.5:
            self.kill_agent()
        shutil.rmtree(self.cache, ignore_errors=True)

    def kill_job(self) -> None:
        self._kill("job", DRIVER)

    def take_away(self) -> None:
        """The job, the agent or both are not there for a while, and what is written meanwhile waits for them."""
        for name, part in self.chance.choice(((("job", ALL),), ((AGENT, AGENT),), (("job", ALL), (AGENT, AGENT)))):
            self._kill(name, part)
            self.due[name] = time.monotonic() + self.chance.choice((2, 10, 40))

    def _kill(self, name: str, part: str) -> None:
        """What is paused goes on, or the rest of a job would hold its checkpoint for ever."""
        self._signal(name, signal.SIGCONT)
        if self.running[name].running.running():
            self.running[name].kill(part)


@dataclass(frozen=True, slots=True)
class Report:
    """``operations``: how often each was drawn; ``compared``: numbers at rest; ``problems``: those that differ, and counters that fell."""

    operations: Counter[str]
    compared: int
    problems: list[str]


def run_hunt(directory: Path, minutes: float, seed: int) -> Report:
    """Draw operations for some seconds, then compare at rest; again and again."""
    chance, ends, drawn = random.Random(seed), time.monotonic() + 60 * minutes, Counter[str]()
    kafka = Kafka(directory / "kafka", settings=_BROKER)
    agent_port, page_port = free_ports(2)
    url = f"http://127.0.0.1:{page_port}/metrics"
    agent: tuple[object, ...] = ("agent", "--log-dirs", ",".join(map(str, kafka.log_dirs)))
    job = ("run", "--from", "earliest", "--agents", f"http://127.0.0.1:{agent_port}", "--checkpoint", directory / "checkpoint", *_OPTIONS)
    agent = (*agent, "--cache", directory / "cache", "--listen", f"127.0.0.1:{agent_port}", "--name", "hunt")
    kept = chance.choice(_KEPT)
    print(f"the agent keeps {kept >> 10:,} KiB of events", flush=True)
    compared, problems = 0, list[str]()
    with ExitStack() as stack:
        stack.callback(kafka.kill)
        kafka.start()
        clients = stack.enter_context(moving_clients(kafka.bootstrap, directory / "clients.log"))
        consuming = stack.enter_context(lab(kafka.bootstrap, directory / "consuming.log"))
        archive = Archive(directory / "archive", kafka.log_dirs)
        over = threading.Event()
        stack.enter_context(meanwhile([partial(asking, archive.look, over)], over, _PATIENCE))
        writer = _Writer(kafka, clients, chance)
        for topic in _TOPICS:
            writer.create(topic)
        messages = directory / "messages"
        watching = stack.enter_context(service(AGENT, *agent, directory=messages, before=keeping(kept)))
        counting = stack.enter_context(service("job", *job, "--listen", f"127.0.0.1:{page_port}", directory=messages))
        watchers = _Watchers({AGENT: watching, "job": counting}, chance, directory / "cache")
        pages = stack.enter_context(Scraper(url, leave_out=[f'topic="{_AGAIN}"']))
        until("the job is ready: what was deleted before is in no counter", lambda: "segtail_partition_" in (scrape(url) or ""))
        while time.monotonic() < ends and not problems:
            drawn += _draw(kafka, writer, watchers, chance)
            writer.rest()
            if not any(topic == "kept" for topic, _ in consuming.ends()):
                # Killed, it may throw its only metadata log away as damaged (Kafka's `LogLoader.recoverSegment`): all topics are gone then.
                print("the broker has begun a new cluster: Kafka found its metadata damaged after a kill; this hunt ends here", flush=True)
                break
            archive.look()
            found, problems = _at_rest(consuming, archive, watchers, url, messages)
            compared += found
            problems += pages.steps_back
            print(f"{drawn.total():,} operations, {compared:,} numbers compared, {len(problems)} differ", flush=True)
    return Report(drawn, compared, problems)


def _draw(kafka: Kafka, writer: _Writer, watchers: _Watchers, chance: random.Random) -> Counter[str]:
    def restart_broker() -> None:
        chance.choice((kafka.kill, kafka.stop))()
        time.sleep(chance.choice((0, 1, 5)))
        kafka.start()

    operations: dict[Callable[[], None], float] = {
        writer.produce: 40,
        writer.produce_in_transaction: 20,
        writer.end_transaction: 12,
        writer.delete_records: 3,
        writer.expand: 1,
        writer.make_anew: 2,
        writer.rehouse: 3,
        restart_broker: 1,
        watchers.pause: 4,
        watchers.kill_agent: 3,
        watchers.end_agent: 1,
        watchers.empty_agent: 2,
        watchers.kill_job: 0.5,
        watchers.take_away: 1.5,
    }
    drawn, end = Counter[str](), time.monotonic() + _OPERATIONS_SECONDS
    while (now := time.monotonic()) < end:
        watchers.tend(now)
        (operation,) = chance.choices([*operations], [*operations.values()])
        drawn[operation.__name__] += 1
        with suppress(KafkaException):
            operation()
        time.sleep(chance.uniform(0, 0.5))
    watchers.tend(now + 3600)
    return drawn


def _at_rest(consuming: Lab, archive: Archive, watchers: _Watchers, url: str, messages: Path) -> tuple[int, list[str]]:
    """How many numbers were compared, and those that still differ when there was time enough."""
    deadline, differing = time.monotonic() + _REST_SECONDS, ["the page never came back"]
    compared = 0
    while time.monotonic() < deadline and differing:
        watchers.tend(time.monotonic())
        time.sleep(1)
        archive.look()
        with suppress(AssertionError):
            wanted = _wanted(consuming)
            page = read_page(scrape(url) or "")
            compared, differing = len(wanted), _differing(page, wanted, archive, _of_unknown_size(messages))
    return compared, differing


def _of_unknown_size(messages: Path) -> set[str]:
    """Logs of which something was deleted unread when nothing was known of its size: it counts as one byte, and agents say so."""
    lines = (line for path in messages.glob("agent.*") for line in path.read_text().splitlines())
    told = (re.search(r"deleted before they were read\" log=(\S+) .* bytes=1$", line) for line in lines)
    return {found[1] for found in told if found}


def _wanted(consuming: Lab) -> dict[tuple[str, Key], float]:
    """What the broker says of each partition, and what consumers get."""
    ends = {key: each for key, each in consuming.ends().items() if key[0] in _TOPICS}
    starts = [(*key, each.log_start) for key, each in ends.items()]
    every, committed = (consuming.consume(isolation, starts) for isolation in ("read_uncommitted", "read_committed"))
    found: dict[tuple[str, Key], float] = {}
    for (key, each), data, kept in zip(ends.items(), every, committed, strict=True):
        found["log_start_offset", key] = each.log_start
        found["log_end_offset", key] = found["high_watermark", key] = each.high_watermark
        found["last_stable_offset", key] = each.last_stable
        found["open_transactions", key] = 0
        found["records data", key] = max(data.records, 0)
        found["records aborted", key] = max(data.records, 0) - max(kept.records, 0)
    return found


def _differing(page: Page, wanted: Mapping[tuple[str, Key], float], archive: Archive, unknown: set[str]) -> list[str]:
    found: dict[tuple[str, Key], float] = {}
    for series, value in page.items():
        labels = dict(series.labels)
        if series.name.startswith("segtail_partition_") and labels.get("topic") in _TOPICS:
            what = " ".join(filter(None, (series.name.removeprefix("segtail_partition_"), labels.get("kind"))))
            found[what, (labels["topic"], int(labels["partition"]))] = value
    problems = [f"{key}: {found.get(key)}, not {value}" for key, value in wanted.items() if found.get(key, _ABSENT.get(key[0])) != value]
    skipped = sum(value for series, value in page.items() if series.name == "segtail_skipped_bytes_total")
    appended, cut = (values(page, f"segtail_partition_{name}_bytes_total") for name in ("appended", "truncated"))
    missing, least, gone = dict[str, float](), 0.0, 0.0
    for (name, _), size in archive.sizes().items():
        topic, _, number = name.rpartition("-")
        key = topic, int(number)
        if topic == _AGAIN:
            gone += size
        elif topic in _TOPICS:
            missing[name] = size - appended.get(key, 0.0) + cut.get(key, 0.0)
            least += (1 - _ESTIMATED) * missing[name] if appended.get(key) and name not in unknown else missing[name] > 0
    if not least <= skipped <= (1 + _ESTIMATED) * sum(missing.values()) + gone:
        problems.append(f"{skipped:,.0f} bytes were skipped; in no counter are {missing}, and at most {gone:,.0f} of {_AGAIN}")
    return problems
