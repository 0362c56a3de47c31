"""Agents of several versions behind one job: what can be read is counted, what cannot is put aside with a reason, and the others go on."""

import logging
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable

from streaming.broker.protocol.versions import PROTOCOL
from streaming.errors import AgentError
from streaming.simulator.log import PartitionLog
from streaming.spark.job.agent_statuses import AgentWatch
from streaming.spark.source import agent_connections
from streaming.spark.source.job_options import parse_options
from tests.agents import Agent, poll_until
from tests.builders import CLUSTER_ID, batch, log_dir, partition
from tests.exposition.reading import named
from tests.source.event_reading import Stream, ready
from tests.upgrade.other_version import RECORDS, OtherVersion, other_version
from tests.view.rows import new_observer, new_table


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Agents in trouble are asked again as soon as there is time; a read that waits for one would not end."""
    monkeypatch.setattr(agent_connections, "FIRST_PAUSE_SECONDS", 0.0)
    monkeypatch.setattr(agent_connections, "LONGEST_PAUSE_SECONDS", 0.0)
    monkeypatch.setattr(agent_connections, "REFUSED_SECONDS", 0.0)
    monkeypatch.setattr(agent_connections, "PATIENCE_SECONDS", 1e9)


class Fleet:
    """One of another version and one of this version, which watches the log."""

    def __init__(self, tmp_path: Path, stack: ExitStack) -> None:
        self.counted = tmp_path / "counted"
        disk = log_dir(tmp_path, broker=2)
        self.log: PartitionLog = partition(disk, "bills", topic_id=9)
        self.log.append(batch(3))
        self.other: OtherVersion = stack.enter_context(other_version(tmp_path))
        new = Agent(disk.path, name="a2")
        stack.callback(new.close)
        self.addresses = (self.other.address, stack.enter_context(new.served()))
        self.observer, self.table = new_observer(), new_table()
        options = parse_options({"agents": ",".join(self.addresses)})
        self.watch = AgentWatch(options, self.observer, self.table, lambda: 0.0, names=[], cluster_id=CLUSTER_ID)
        stack.callback(self.watch.close)

    def reported(self, name: str, *labels: str) -> dict[tuple[str, ...], float]:
        found = named(self.table, name, self.observer)
        return {tuple(dict(each)[label] for label in labels): value for each, value in found.items()}

    @property
    def up(self) -> dict[tuple[str, ...], float]:
        return self.reported("segtail_agent_up", "agent", "broker")

    @property
    def problems(self) -> set[tuple[str, ...]]:
        return set(self.reported("segtail_agent_problem", "agent", "reason"))


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    with ExitStack() as stack:
        yield Fleet(tmp_path, stack)


def test_one_of_another_version_takes_part(fleet: Fleet) -> None:
    stream = Stream(*fleet.addresses, counted=fleet.counted)
    stream.until(lambda records: records == RECORDS | {"bills": 3})
    assert sorted(stream.end) == ["a1", "a2"]
    poll_until(fleet.watch, lambda: fleet.up == {("a1", "1"): 1, ("a2", "2"): 1})
    assert fleet.problems == set()


@pytest.mark.parametrize(
    ("protocol", "missing", "says"),
    [
        (None, "bytes", "column bytes is missing"),
        (PROTOCOL + 1, None, f"speaks protocol {PROTOCOL + 1}"),
        (PROTOCOL - 1, None, f"speaks protocol {PROTOCOL - 1}"),
    ],
    ids=["rows that cannot be used", "a later protocol", "an earlier protocol"],
)
def test_one_that_cannot_be_read_is_put_aside_and_the_others_go_on(
    fleet: Fleet,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    protocol: int | None,
    missing: str | None,
    says: str,
) -> None:
    monkeypatch.setattr(agent_connections, "_job_logs", True)  # as in the process of a job's source: whoever asks for statuses says so
    if protocol is not None:
        fleet.other.says["protocol"] = protocol
    if missing is not None:
        fleet.other.rows = fleet.other.rows.drop_columns([missing])
    stream = Stream(*fleet.addresses, counted=fleet.counted)
    stream.until(lambda records: records == {"bills": 3})
    fleet.log.append(batch(4))
    stream.until(lambda records: records == {"bills": 7})
    assert list(stream.end) == ["a2"]
    for _ in range(3):  # it keeps its name, and is reported once
        poll_until(fleet.watch, lambda: fleet.up == {("a1", "1"): 0, ("a2", "2"): 1} and fleet.problems == {("a1", "protocol")})
    # under the address before, if the source's connection, which a job has in another process, was refused before it had a name
    of_name = [record for record in caplog.records if getattr(record, "agent", "") == "a1"]
    reported = [record for record in of_name if says in str(getattr(record, "error", ""))]
    assert len(reported) == 1
    assert (reported[0].levelno, "upgrade" in reported[0].error) == (logging.WARNING, True)  # type: ignore[attr-defined]


def test_one_that_is_replaced_under_a_running_query_by_one_that_cannot_be_read(fleet: Fleet) -> None:
    """Its plan is made by then: the read goes without its rows at once, and from then on it is planned no more."""
    stream = Stream(*fleet.addresses, counted=fleet.counted)
    while "a1" not in (following := stream.reader.latestOffset(stream.end, ReadAllAvailable())):
        pass
    sound, fleet.other.rows = fleet.other.rows, fleet.other.rows.drop_columns(["kind"])
    fleet.other.says["version"] = "9.9.9"
    stream.take(following)
    fleet.log.append(batch(4))
    stream.until(lambda records: records.get("bills") == 7)
    while fleet.other.address in stream.reader._registered:
        stream.step()
    poll_until(fleet.watch, lambda: fleet.problems == {("a1", "protocol")})

    fleet.other.rows, fleet.other.says["version"] = sound, "0.1.0"
    stream.until(lambda records: records == RECORDS | {"bills": 7})
    poll_until(fleet.watch, lambda: fleet.problems == set())


def test_everything_there_is_cannot_be_had_from_one_that_cannot_be_read(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent_connections, "PATIENCE_SECONDS", 0.0)
    fleet.other.says["protocol"] = PROTOCOL + 1
    with pytest.raises(AgentError, match=f"speaks protocol {PROTOCOL + 1}"):
        ready(Stream(*fleet.addresses, counted=fleet.counted).reader)
