"""Rebalances of groups on live brokers: deployments, a crash loop, new partitions, elections, restarts; each of them counts once."""

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient  # type: ignore[attr-defined]

from streaming.broker.disk.logdirs import open_log_dirs
from streaming.broker.protocol.group_json import GroupDetail
from streaming.common.settings import Settings
from streaming.terminal.offline.group_reading import read_groups
from tests.broker import rebalancing
from tests.broker.clients import create_topic
from tests.broker.kafka import Kafka
from tests.broker.lab import lab
from tests.broker.rebalance_comparing import ELECTION, agree
from tests.broker.rebalancing import COOPERATIVE, EAGER, NEWER, Members, Step, described_epoch, members
from tests.group_answers import detailed
from tests.job_without_spark import WITHOUT_SPARK
from tests.limits import SECONDS
from tests.processes import Segtail, segtail, until

KINDS = ("members", "metadata", "unfinished")


@dataclass(slots=True)
class Counted:
    """What a job's page had of a group, one look after the other: each kind."""

    group: str
    looks: list[dict[str, float]] = field(default_factory=list)

    def look(self, page: dict[tuple[str, frozenset[tuple[str, str]]], float]) -> None:
        found = {
            kind: page[name, labels]
            for (name, labels) in page
            if name == "segtail_group_rebalances_total" and ("group", self.group) in labels
            for kind in (dict(labels)["kind"],)
        }
        if found and (not self.looks or found != self.looks[-1]):
            self.looks.append(found)

    @property
    def total(self) -> float:
        return sum(self.looks[-1].values()) if self.looks else -1

    def increase(self, kind: str) -> float:
        """As Prometheus computes it: a counter that falls was reset."""
        values = [each.get(kind, 0.0) for each in self.looks]
        return sum(later if later < before else later - before for before, later in pairwise(values))


class Watched:
    """A job that is started again now and then, and what its pages had of some groups."""

    def __init__(self, kafka: Kafka, directory: Path, groups: Sequence[Members]) -> None:
        self._kafka, self._directory = kafka, directory
        self.groups = {each.group: each for each in groups}
        self.counted = {name: Counted(name) for name in self.groups}
        self._started = 0

    @contextmanager
    def job(self) -> Iterator[Segtail]:
        """A job with an agent of its own, neither of which knows anything of the one before."""
        self._started += 1
        name = f"job-{self._started}"
        dirs, properties = (",".join(map(str, each)) for each in (self._kafka.log_dirs, [each.properties for each in self._kafka.brokers]))
        where = ("--log-dirs", dirs, "--server-properties", properties, "--checkpoint", self._directory / name, "--listen", "127.0.0.1:0")
        options = ("--from", "latest", "--trigger", "1s", "--set", "state_shards=4")
        with segtail("run", *where, *options, stated=self._directory / f"{name}.said", before=WITHOUT_SPARK) as started:
            yield started

    def agree(self, job: Segtail) -> None:
        """Until the page has the generations that the groups' clients are in."""

        def right() -> bool:
            page = job.page()
            for each in self.counted.values():
                each.look(page)
            return self.shown == self.right

        until("the page has the generations of the clients", right, saw=lambda: (self.shown, self.right))

    @property
    def shown(self) -> dict[str, float]:
        return {name: each.total for name, each in self.counted.items()}

    @property
    def right(self) -> dict[str, float]:
        return {name: float(each.generation()) for name, each in self.groups.items()}


@pytest.mark.long
def test_rebalances_are_those_that_members_made_over_elections_and_restarts(kafka_jars: None, tmp_path: Path) -> None:
    kafka = Kafka(tmp_path / "kafka", nodes=3, settings=rebalancing.SETTINGS)
    with ExitStack() as stack:
        stack.callback(kafka.kill)
        kafka.start()
        kinds = {"eager": EAGER, "cooperative": COOPERATIVE, "newer": NEWER, "fixed": {**NEWER, "static": True}}
        groups = {name: stack.enter_context(members(kafka.bootstrap, name, settings)) for name, settings in kinds.items()}
        for each in groups.values():
            each.join("a", "b", "c")
        watched = Watched(kafka, tmp_path, list(groups.values()))
        begun = {name: each.generation() for name, each in groups.items()}
        with watched.job() as job:
            until("the job listens", lambda: job.url)
            watched.agree(job)
            groups["eager"].deploy()
            groups["newer"].deploy()
            for _ in range(2):
                groups["fixed"].come_back("b")
            watched.agree(job)
            assert ratios(job) == {name: value for name, value in ratios(job).items() if value <= 3}, "a deployment is no storm"
            groups["newer"].add_partitions(2)
            watched.agree(job)
            agent = job.agent
            assert agent is not None
            job.kill(agent)  # another one reads the logs from their beginnings
            groups["cooperative"].deploy()
            watched.agree(job)
            lead = coordinator(kafka, "eager")
            kafka.kill(lead)
            kafka.until(lambda: coordinator(kafka, "eager") not in (lead, -1), "another broker coordinates the group")
            for each in groups.values():
                each.rest()
                each.steps.append(Step(ELECTION, (), each.generation()))
            watched.agree(job)
        groups["newer"].leave("c")  # while nobody looks
        with watched.job() as job:
            until("the job listens", lambda: job.url)
            watched.agree(job)
            kafka.start(lead)
            for _ in range(4):
                groups["eager"].leave("b")
                groups["eager"].join("b")
            watched.agree(job)
            assert ratios(job)["eager"] > 3
        assert {name: raised(each) for name, each in watched.counted.items()} == {
            name: each.generation() - begun[name] for name, each in groups.items()
        }
        assert watched.counted["newer"].increase("metadata") == 1
        assert watched.counted["fixed"].looks[0] == watched.counted["fixed"].looks[-1], "static members that come back raise nothing"
        assert described_epoch(kafka.bootstrap, "newer") == watched.counted["newer"].total
        for name, each in groups.items():
            assert agree(each.steps, shown(kafka, name).rebalances[::-1], metadata="metadata" if name == "newer" else "members") > 0 or (
                name == "fixed"
            )


def test_share_groups_rebalance_by_their_epochs(kafka: Kafka, tmp_path: Path) -> None:
    create_topic(kafka.bootstrap, "rebalanced", 1)
    with lab(kafka.bootstrap, tmp_path / "lab.log") as clients:
        for _ in range(3):
            clients.produce("rebalanced", 0, [[(None, 100, None)]])
            clients.ask("share", group="rebalanced", topic="rebalanced", answers="a")
            clients.ask("leave", group="rebalanced")
    kafka.until(lambda: shown(kafka, "rebalanced").summary.members == 0, "the disk shows that everybody has left")
    found = shown(kafka, "rebalanced")
    assert found.summary.epoch == described_epoch(kafka.bootstrap, "rebalanced", "share-groups")
    changes = [(each.kind, each.joined_members, each.left_members) for each in found.rebalances[::-1]]
    joined, left = ("members", 1, 0), ("members", 0, 1)
    assert changes == [joined, ("metadata", 0, 0), left, joined, left, joined, left], "its partition became ready once"
    assert found.summary.rebalances_lately in (0, 2, 4), "it was without a member for a minute, or for less"


def raised(counted: Counted) -> float:
    return sum(counted.increase(kind) for kind in KINDS)


def ratios(job: Segtail) -> dict[str, float]:
    return {dict(labels)["group"]: value for (name, labels), value in job.page().items() if name == "segtail_group_rebalance_ratio"}


def coordinator(kafka: Kafka, group: str) -> int:
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    found = admin.describe_consumer_groups([group])[group].result(SECONDS)
    return -1 if found.coordinator is None else found.coordinator.id


def shown(kafka: Kafka, group: str) -> GroupDetail:
    """What the disks show of a group now."""
    settings = Settings(server_properties=tuple(each.properties for each in kafka.brokers))
    (found,) = detailed(read_groups(open_log_dirs(kafka.log_dirs), [group], settings, time.time_ns() // 1_000_000)).groups
    return found
