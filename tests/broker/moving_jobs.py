"""Agents beside brokers, and jobs with some of these agents: what jobs and log dirs say of groups that move, against their coordinators."""

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from itertools import combinations
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

from streaming.broker.disk.logdirs import open_log_dirs
from streaming.broker.protocol.group_json import GROUPS_PATH, GroupDetail, GroupPage, path_of
from streaming.broker.protocol.listing_json import LARGEST_LIMIT
from streaming.common.settings import Settings
from streaming.terminal.offline.group_reading import read_groups
from tests.broker.coordinator_answers import NONE, OLD_DATA, WINDOW, Answers, Counts, Key
from tests.broker.kafka import Kafka, Node
from tests.group_answers import detailed
from tests.job_without_spark import WITHOUT_SPARK
from tests.limits import SECONDS
from tests.ports import free_ports
from tests.processes import Segtail, segtail, until

_OPTIONS = ("--from", "latest", "--trigger", "1s", "--set", "state_shards=4", "--set", "late_after=0s")

_ASK_SECONDS = 0.2

LOOKING = 2.0
"""An agent that is not behind publishes what it has found after so many seconds at most."""

JOB, LOG_DIRS = "job", "log dirs"
Source = tuple[str, int]
"""`JOB` or `LOG_DIRS`, and of how many brokers."""


@dataclass(frozen=True, slots=True)
class Job:
    """One that runs. ``agents``: the brokers beside which its agents are."""

    agents: tuple[int, ...]
    running: Segtail

    @property
    def url(self) -> str:
        """Where its pages are."""
        return (self.running.url or "").removesuffix("/metrics")


@contextmanager
def meanwhile(work: Iterable[Callable[[], object]], ended: threading.Event, seconds: float) -> Iterator[None]:
    """Work on threads of its own, to the end of the body; each ends within so many seconds once ``ended`` is set."""
    threads = [threading.Thread(target=each, daemon=True) for each in work]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        ended.set()
        for thread in threads:
            thread.join(seconds)


def asking(ask: Callable[[], object], ended: threading.Event) -> None:
    """Ask again and again."""
    while not ended.wait(_ASK_SECONDS):
        ask()


@contextmanager
def jobs(kafka: Kafka, directory: Path, sets: Iterable[tuple[int, ...]], knows: Callable[[Job], bool] | None = None) -> Iterator[list[Job]]:
    """An agent beside each broker, and a job for each set of these; all of them know groups, or what ``knows`` asks for."""
    ports = dict(zip((node.node_id for node in kafka.brokers), free_ports(len(kafka.brokers)), strict=True))
    with ExitStack() as stack:
        for node in kafka.brokers:
            where = ("--log-dirs", ",".join(map(str, node.log_dirs)), "--set", f"server_properties={node.properties}")
            served = ("--listen", f"127.0.0.1:{ports[node.node_id]}")
            name = f"host-{node.node_id}"
            agent = stack.enter_context(segtail("agent", *where, *served, "--name", name, stated=directory / f"{name}.said"))
            until(f"the agent {name} listens", partial(_listens, agent))
        found = []
        for agents in sets:
            of = ",".join(f"http://127.0.0.1:{ports[each]}" for each in agents)
            name = "job-" + "".join(map(str, agents))
            properties = ",".join(str(kafka.broker(each).properties) for each in agents)
            where = ("--agents", of, "--checkpoint", directory / name, "--listen", "127.0.0.1:0", "--server-properties", properties)
            stated = directory / f"{name}.said"
            found.append(Job(agents, stack.enter_context(segtail("run", *where, *_OPTIONS, stated=stated, before=WITHOUT_SPARK))))
        for job in found:
            until(f"the job of {job.agents} knows what there is", partial(knows or _knows, job))
        yield found


def _listens(agent: Segtail) -> bool:
    assert agent.running(), agent.stated
    return "agent listens" in agent.stated


def _knows(job: Job) -> bool:
    """Whether a job that starts is through with the seconds in which what counts cannot be known yet."""
    page = page_of(job)
    return page is not None and any(row.partitions for row in page.rows) and not any(row.unknown == row.partitions > 0 for row in page.rows)


def page_of(job: Job) -> GroupPage | None:
    """All groups, as a job lists them; None before it has looked at them once."""
    answered = list_of(job, GROUPS_PATH)
    return GroupPage.decode(answered) if answered else None


def list_of(job: Job, path: str) -> bytes:
    """All rows of a list; nothing before the job has looked once."""
    if not job.url:
        return b""
    try:
        return _get(f"{job.url}{path}?limit={LARGEST_LIMIT}")
    except HTTPError as error:
        if error.code != HTTPStatus.SERVICE_UNAVAILABLE:
            raise
        return b""


@dataclass(slots=True)
class Comparison:
    """``counts``: by who answered, and of how many brokers."""

    kafka: Kafka
    answers: Answers
    counts: dict[Source, Counts] = field(default_factory=dict)

    @property
    def total(self) -> Counts:
        """Of all together."""
        return sum(self.counts.values(), Counts())

    def compare(self, running: Iterable[Job]) -> None:
        """Each job, and the log dirs of each broker that runs, of each two and of all, once."""
        for job in running:
            self._compare_job(job)
        up = [node for node in self.kafka.brokers if node.node_id not in self.kafka.down]
        for some in (each for count in range(1, len(up) + 1) for each in combinations(up, count)):
            self._compare_log_dirs(some)

    def _compare_job(self, job: Job) -> None:
        """One that names no group of a partition whose coordinator's log it does not read says so by ``unread``."""
        began = time.monotonic()
        page = page_of(job)
        assert page is not None
        details = [each for each in (_detail(job, row.group) for row in page.rows) if each is not None]
        doubts = [*page.doubts, *([f"{page.unread} coordinators' logs are not read"] if page.unread else [])]
        self._add((JOB, len(job.agents)), f"the job of {job.agents}", began, stated(details, time.time_ns() // 1_000_000), doubts)

    def _compare_log_dirs(self, some: tuple[Node, ...]) -> None:
        began = time.monotonic()
        log_dirs = [each for node in some for each in node.log_dirs]
        now_ms = time.time_ns() // 1_000_000
        answer = detailed(read_groups(open_log_dirs(log_dirs), (), Settings(), now_ms))
        who = f"brokers {[node.node_id for node in some]}"
        self._add((LOG_DIRS, len(some)), who, began, stated(answer.groups, now_ms), answer.doubts)

    def _add(self, source: Source, who: str, began: float, reported: Mapping[Key, tuple[int, str]], doubts: Iterable[str]) -> None:
        self.answers.until_asked(time.monotonic())
        given = self.answers.given(began - WINDOW, time.monotonic())
        self.counts.setdefault(source, Counts()).add(who, reported, given, doubts)


def stated(groups: Iterable[GroupDetail], now_ms: int) -> dict[Key, tuple[int, str]]:
    """Committed offsets, and why something of them is not known, or not known of the last seconds."""
    found: dict[Key, tuple[int, str]] = {}
    for group in groups:
        is_old = now_ms - group.at_ms + group.data_age_ms > 1000 * (WINDOW - LOOKING)
        for each in group.partitions:
            key = group.summary.group, each.topic, each.partition
            found[key] = max(each.committed, NONE), each.unknown or (OLD_DATA if is_old else "")
    return found


def _detail(job: Job, group: str) -> GroupDetail | None:
    """One group; None if it has just been deleted."""
    try:
        return GroupDetail.decode(_get(job.url + path_of(group)))
    except HTTPError as error:
        if error.code != HTTPStatus.NOT_FOUND:
            raise
        return None


def _get(url: str) -> bytes:
    """The answer at an address."""
    with urlopen(url, timeout=SECONDS) as answer:
        body: bytes = answer.read()
        return body
