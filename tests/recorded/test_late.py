"""Records that came past their retention to a real broker: counted are the batches that Kafka's tool shows, reported what Kafka deleted."""

import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from streaming.broker.watcher.found_events import CHECK_MS
from streaming.cluster.view.late_arrivals import CATCHES_UP_MS
from streaming.cluster.view.view import View
from streaming.common.settings import Settings
from streaming.rules.expired_arrivals import LateLooks
from tests.agents import RESCAN_MS, Agent
from tests.broker.dumped_logs import DumpedBatch, parsed
from tests.broker.install import KAFKA_VERSION
from tests.one_agent_job import OneAgentJob
from tests.recorded.recordings import Disk, Replayed, replay
from tests.recorded.worlds.late import TOPICS

Counts = Mapping[str, tuple[int, int, int]]
"""Batches, records and bytes by topic, where there are any."""

NOT_KNOWN = "by-the-broker"
"""Its limit stands in ``server.properties``, which the agent does not have."""


@pytest.fixture(scope="module")
def replayed(tmp_path_factory: pytest.TempPathFactory) -> Replayed:
    """Before anything was written, after one turn, and after another one."""
    return replay("late", KAFKA_VERSION, tmp_path_factory.mktemp("late"))


class Watching:
    """An agent and its job on the disk of the recording, which goes from state to state as it did under the broker."""

    def __init__(self, replayed: Replayed, directory: Path, state: str) -> None:
        self._replayed, self._disk = replayed, Disk(directory / "disk", 0)
        first = replayed.disk(state)
        shutil.copytree(first.directory, self._disk.directory)
        self.agent = Agent(*self._disk.log_dirs)
        self.agent.now = first.now_ms - RESCAN_MS
        self.job = OneAgentJob(self.agent, Settings(server_properties=first.properties))
        self.job.round(first.now_ms)

    def go_on(self, state: str) -> View:
        """The disk comes to this state; then the agent looks at it, and the job at the agent."""
        self.lay_over(state)
        return self.look(state)

    def lay_over(self, state: str) -> None:
        """Files that are there grow in place."""
        there = self._replayed.disk(state).directory
        for path in sorted(there.rglob("*")):
            target = self._disk.directory / path.relative_to(there)
            if path.is_dir():
                target.mkdir(exist_ok=True)
                continue
            with target.open("r+b" if target.exists() else "wb") as file:
                file.write(path.read_bytes())
                file.truncate()
            os.utime(target, ns=(path.stat().st_atime_ns, path.stat().st_mtime_ns))

    def look(self, state: str) -> View:
        self.agent.now = self._replayed.disk(state).now_ms
        hints = {path for log_dir in self.agent.paths for path in log_dir.iterdir() if path.is_dir()}
        while self.agent.watcher.poll(hints):
            hints = set()
        self.agent.host_status.refresh()
        return self.job.round(self.agent.now)

    def know_all(self) -> None:
        """Poll until the times of all segments are known: each poll looks at some lists of segments, at one at least."""
        for _ in self.agent.watcher.tails():
            self.agent.now += CHECK_MS
            while self.agent.watcher.poll(set()):
                pass
        self.job.round(self.agent.now)


@pytest.fixture
def watching(replayed: Replayed, tmp_path: Path) -> Watching:
    """Since before anything was written."""
    return Watching(replayed, tmp_path, "before")


def counted(found: View) -> Counts:
    columns = [found.observed.columns[f"share_expired_{name}"].tolist() for name in ("batches", "records", "bytes")]
    values = dict(zip(found.observed.names, zip(*columns, strict=True), strict=True))
    return {topic: counts for topic, counts in values.items() if any(counts)}


def late(replayed: Replayed, earliest_ms: Callable[[str, DumpedBatch], int | None]) -> Mapping[str, list[DumpedBatch]]:
    """The batches of each topic that were past their retention when they came, if that was not before the time of each; None: any time."""
    kept_for = replayed.json("kept_for")
    found: dict[str, list[DumpedBatch]] = {}
    for (topic, _), batches in parsed(replayed.text("dumped")).items():
        limit_ms, policy = kept_for[topic]
        if topic == NOT_KNOWN or limit_ms < 0 or "delete" not in policy:
            continue
        for batch in batches:
            came_ms = earliest_ms(topic, batch)
            if came_ms is not None and not batch.control and max(stamp for _, stamp in batch.records) < came_ms - limit_ms:
                found.setdefault(topic, []).append(batch)
    return found


def summed(batches: Mapping[str, list[DumpedBatch]]) -> Counts:
    return {
        topic: (len(those), sum(len(each.records) for each in those), sum(each.size for each in those)) for topic, those in batches.items()
    }


def test_what_is_counted_are_the_batches_that_were_past_their_retention(replayed: Replayed, watching: Watching) -> None:
    watching.go_on("half")
    view = watching.go_on("written")
    assert {*view.observed.names} >= {*TOPICS}
    truth = late(replayed, lambda _topic, _batch: replayed.disk("before").now_ms)
    assert counted(view) == summed(truth)
    assert {*truth} == {*TOPICS} - {"in-time", "within", "clock-ahead", "mixed", "dated-by-broker", "compacted", "for-ever", NOT_KNOWN}
    assert counted(watching.go_on("written")) == summed(truth)
    watching.agent.close()


def test_a_first_reading_counts_nothing(replayed: Replayed, tmp_path: Path) -> None:
    watching = Watching(replayed, tmp_path, "written")
    assert counted(watching.look("written")) == {}
    assert watching.look("written").late == ()
    watching.agent.close()


def test_it_is_reported_where_the_next_check_of_the_broker_has_deleted_the_last_of_it(replayed: Replayed, watching: Watching) -> None:
    watching.go_on("half")
    watching.go_on("written")
    watching.know_all()
    written_ms = replayed.disk("written").now_ms
    at_once, later = ({each.topic: each.looks for each in watching.job.look(written_ms + after).late} for after in (0, CATCHES_UP_MS))
    earliest = {line.split(":")[0]: int(line.split(":")[2]) for line in replayed.text("earliest").splitlines()}
    truth = late(replayed, lambda _topic, _batch: replayed.disk("before").now_ms)
    assert {*later} == {topic for topic, batches in truth.items() if batches[-1].last < earliest[topic]}
    assert later == {
        "breaks-off": LateLooks.REPLAY,
        "catches-up": LateLooks.REPLAY,
        "clock-back": LateLooks.CLOCK,
        "in-seconds": LateLooks.SECONDS,
        "no-time": LateLooks.NO_TIME,
        "recovers": LateLooks.OLD,
        "rolls": LateLooks.CLOCK,
    }
    assert at_once == {topic: looks for topic, looks in later.items() if looks is not LateLooks.REPLAY}
    watching.agent.close()
