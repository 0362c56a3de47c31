"""A job beside an agent that lies: whatever it answers, the error names it, and the other agents' numbers stay right."""

import json
import struct
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from pyspark.sql.streaming.datasource import ReadAllAvailable

from streaming.broker.agent.call_answers import Answer, answers
from streaming.broker.protocol.agent_calls import Call, Reason
from streaming.broker.protocol.consumer_messages import PlanRequest, Range
from streaming.broker.protocol.group_messages import POSITIONS_ASKED
from streaming.broker.protocol.group_stream import read_table, table_message
from streaming.broker.protocol.status_messages import Status
from streaming.broker.protocol.versions import PROTOCOL
from streaming.cluster.view.observer import Observer
from streaming.cluster.view.table import Table
from streaming.common.event_row import EVENTS
from streaming.errors import AgentError
from streaming.spark.client.agent_client import AgentClient
from streaming.spark.job.agent_statuses import AgentWatch
from streaming.spark.source import agent_connections
from streaming.spark.source.job_options import parse_options
from tests.agents import Agent, Reader, served
from tests.builders import CLUSTER_ID, batch, log_dir, partition
from tests.exposition.reading import page, samples
from tests.protocol.built import built
from tests.source.event_reading import next_batch, read, reader_of, records
from tests.source.public_reading import read as read_stream
from tests.source.public_reading import stream
from tests.tables import each_row
from tests.view.rows import new_observer, new_table

pytestmark = pytest.mark.usefixtures("at_once")


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("FIRST_PAUSE_SECONDS", "LONGEST_PAUSE_SECONDS", "REFUSED_SECONDS", "PATIENCE_SECONDS"):
        monkeypatch.setattr(agent_connections, name, 0.0)


@dataclass
class Liar:
    """An agent whose answers are changed on their way."""

    agent: Agent
    lies: dict[str, Callable[[bytes], bytes]] = field(default_factory=dict)

    @contextmanager
    def served(self) -> Iterator[str]:
        with self.agent.served():
            known = answers(self.agent.service)
            with served({call: self._lying(call, answer) for call, answer in known.items()}) as address:
                yield address

    def _lying(self, call: str, answer: Answer) -> Answer:
        def changed(body: bytes, principal: str) -> Iterator[bytes | pa.Buffer]:
            for message in answer(body, principal):
                yield self.lies.get(call, bytes)(bytes(message))

        return changed

    def say(self, call: str, **fields: object) -> None:
        """Other fields in each answer to a call."""
        self.lies[call] = lambda message: json.dumps(json.loads(message) | fields).encode()

    def rows(self, change: Callable[[pa.Table], pa.Table]) -> None:
        """Other rows."""
        self.lies[Call.EVENTS] = lambda message: table_message(change(pa.ipc.open_stream(message).read_all())).to_pybytes()


@pytest.fixture
def honest(tmp_path: Path) -> Iterator[Agent]:
    yield from _agent(tmp_path, "honest", 1)


@pytest.fixture
def liar(tmp_path: Path) -> Iterator[Liar]:
    for agent in _agent(tmp_path, "liar", 2):
        yield Liar(agent)


def _agent(tmp_path: Path, name: str, broker: int) -> Iterator[Agent]:
    log = partition(log_dir(tmp_path, name, broker=broker, cluster_id=CLUSTER_ID), f"of-{name}")
    log.append(batch(3))
    agent = Agent(tmp_path / name, name=name)
    yield agent
    agent.close()
    log.close()


def column(name: str, *values: object) -> Callable[[pa.Table], pa.Table]:
    """Put another value into a column of all rows."""

    def change(rows: pa.Table) -> pa.Table:
        kind = EVENTS.field(name)
        return rows.set_column(EVENTS.names.index(name), kind, pa.array(list(values) * rows.num_rows, kind.type))

    return change


PLANS: Mapping[str, dict[str, object]] = {
    "of another agent": {"agent": "honest", "journal": "x", "seq": 1 << 40},
    "of none": {"agent": ""},
    "of a name that is a megabyte": {"journal": "j" * (1 << 20)},
    "a text for a number": {"seq": "7"},
    "a truth value for a number": {"seq": True},
    "a number above 64 bits": {"seq": 1 << 64},
    "a negative total": {"total": -5},
    "another type of all": {"agent": 1, "journal": None, "again": 0},
}


@each_row("lie", PLANS)
def test_a_plan_that_is_none_moves_nobody(lie: str, honest: Agent, liar: Liar, caplog: pytest.LogCaptureFixture) -> None:
    liar.say(Call.PLAN, **PLANS[lie])
    with honest.served() as beside, liar.served() as address:
        reader, end, found = reader_of(beside, address), dict[str, Any](), 0
        while found < 3:
            following = next_batch(reader, end)
            found += records(read(reader, end, following))
            reader.commit(following)
            end = following
        assert list(end) == ["honest"]
        assert address in {getattr(record, "address", "") for record in caplog.records}


ROWS: Mapping[str, Callable[[pa.Table], pa.Table]] = {
    "of another agent": column("agent", "honest"),
    "of another journal": column("journal", "x"),
    "beyond the plan": column("seq", 1 << 40),
    "of the source's kind": column("kind", "arrived"),
    "a count below 0": column("records", -1),
    "a count that overflows": column("bytes", (1 << 63) - 1),
    "counts that overflow": column("codec_bytes", [(1 << 63) - 1] * 5),
    "an offset that overflows": column("next_offset", (1 << 63) - 1),
    "segments that are cut": column("segments", b"\0" * 33),
    "topics that are cut": column("topics", b"\0" * 3),
    "a column of another type": lambda rows: rows.set_column(rows.schema.names.index("bytes"), "bytes", pa.array(["1"] * len(rows))),
    "a column with nulls": lambda rows: rows.set_column(rows.schema.names.index("topic"), "topic", pa.nulls(len(rows), pa.string())),
    "texts as numbers of texts": lambda rows: rows.set_column(
        rows.schema.names.index("topic"), "topic", pa.array(["t" * 1000] * len(rows)).dictionary_encode()
    ),
}


def outside(message: bytes) -> bytes:
    """One row, whose topic is far behind the end of its buffer."""
    rows = pa.ipc.open_stream(message).read_all().slice(0, 1)
    long = bytes(table_message(column("topic", "t" * 7_777)(rows)))
    assert _PLACE in long
    return long.replace(_PLACE, struct.pack("<ii", 0, 1 << 30))


_NUMBERS = count()
_PLACE = struct.pack("<ii", 0, 7_777)


@pytest.mark.slow
@each_row("lie", ROWS)
def test_rows_that_are_none_are_not_taken(lie: str, liar: Liar) -> None:
    asked, connected = planned(liar)
    with connected as client:
        liar.rows(ROWS[lie])
        refused(client, asked)


def test_rows_that_lead_outside_of_their_message_end_no_process(liar: Liar) -> None:
    asked, connected = planned(liar)
    with connected as client:
        liar.lies[Call.EVENTS] = outside
        refused(client, asked)


@contextmanager
def _connected(liar: Liar) -> Iterator[AgentClient]:
    with liar.served() as address:
        client = AgentClient(address)
        yield client
        client.close()


def planned(liar: Liar) -> tuple[Range, AbstractContextManager[AgentClient]]:
    """A range with rows, and what connects with the agent."""
    reader = Reader(liar.agent, f"job{next(_NUMBERS)}").begin()
    return reader.asked(reader.plan()), _connected(liar)


def refused(client: AgentClient, asked: Range) -> None:
    """Its rows are refused, with a reason for the metrics."""
    with pytest.raises(AgentError, match=f"agent at {client.address}: its rows ") as error:
        client.read(asked, "liar")
    assert error.value.reason == Reason.PROTOCOL


def test_rows_of_the_agent_are_taken(liar: Liar) -> None:
    asked, connected = planned(liar)
    with connected as client:
        assert client.read(asked, "liar").num_rows


def test_a_plan_that_goes_back_is_refused(liar: Liar) -> None:
    reader = Reader(liar.agent).begin()
    reader.step()
    journal, seq = reader.has
    with _connected(liar) as client:
        request = PlanRequest("job", "run 1", journal, seq, None, 0)
        assert client.plan(request).seq == seq
        liar.say(Call.PLAN, seq=seq - 1)
        with pytest.raises(AgentError, match=rf"it plans back from {seq} to {seq - 1} of its journal"):
            client.plan(request)


def test_a_plan_that_leaves_something_out_is_refused(liar: Liar) -> None:
    """What lies between would never be asked for again."""
    reader = Reader(liar.agent).begin()
    reader.step()
    journal, seq = reader.has
    with _connected(liar) as client:
        liar.say(Call.PLAN, after=seq + 1, seq=seq + 2)
        with pytest.raises(AgentError, match=rf"it leaves out what is between {seq} and {seq + 1} of its journal"):
            client.plan(PlanRequest("job", "run 1", journal, seq, None, 0))


POSITIONS: Mapping[str, tuple[str, dict[str, object]]] = {
    "of another agent": (Call.REACH, {"agent": "honest"}),
    "no positions": (Call.REACH, {"changed": "AAAA"}),
    "absent ones that are none": (Call.REACH, {"absent": "!"}),
    "positions for a number": (Call.REACH, {"changed": 7}),
    "brokers that are none": (Call.REACH, {"brokers": [1 << 40]}),
    "excerpts of another agent": (Call.BETWEEN, {"agent": "honest"}),
    "excerpts without an end": (Call.BETWEEN, {"last": False}),
    "excerpts that are none": (Call.BETWEEN, {"excerpts": [{}]}),
    "logs that are none": (Call.BETWEEN, {"absent": "AAAA"}),
}


@each_row("lie", POSITIONS)
def test_positions_that_are_none_are_a_problem_of_their_agent_alone(lie: str, honest: Agent, liar: Liar) -> None:
    call, fields = POSITIONS[lie]
    liar.lies.clear()
    liar.say(call, **fields)
    with honest.served() as beside, liar.served() as address:
        reader = stream(f"{beside},{address}")
        if call == Call.REACH:
            end = reader.latestOffset({}, ReadAllAvailable())
            assert [row["topic"] for row in read_stream(reader, {}, end)] == ["of-honest"]
        else:
            reader.prepareForTriggerAvailableNow()  # it waits for both
            end = reader.latestOffset({}, ReadAllAvailable())
            words = f"of-liar-0 of broker 2 was planned, and no agent that answers has it: agent at {address}: "
            with pytest.raises(AgentError, match=words):
                reader.partitions({}, end)


STATUSES: Mapping[str, dict[str, object]] = {
    "no name": {"agent": ""},
    "a name that is a megabyte": {"agent": "a" * (1 << 20)},
    "an agent that is none": {"agent": None},
    "no brokers": {"brokers": ["1"]},
    "brokers that are none": {"brokers": [1 << 40]},
    "a directory of no broker": {"directories": ["/data"]},
    "a time that is none": {"now_ms": True},
    "silence that is no number": {"silent_seconds": float("nan")},
    "log dirs that are none": {"log_dirs": [7]},
    "a hundred megabytes": {"log_dirs": [{}] * (5 << 20)},
    "packed content that is none": {"catalog": [{"version": {"process": "p", "number": 1}, "whole": True, "changes": 7}]},
}


@each_row("lie", STATUSES)
def test_a_status_that_is_none_is_a_problem_of_its_agent_alone(lie: str, honest: Agent, liar: Liar) -> None:
    liar.say(Call.STATUS, **STATUSES[lie])
    with honest.served() as beside, liar.served() as address:
        found, watch = watched(beside, address)
        assert up(found, watch) == {"honest": 1.0, address: 0.0}
        watch.close()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30)
@given(built(Status))
def test_whatever_a_status_says_the_page_is_made(honest: Agent, liar: Liar, status: Status) -> None:
    reported = replace(
        status, agent="liar", cluster_id=CLUSTER_ID, journal="x", protocol=PROTOCOL, directories=[], twins=[], silent_seconds=0.0
    )
    liar.lies[Call.STATUS] = lambda _: reported.encode()
    with honest.served() as beside, liar.served() as address:
        found, watch = watched(beside, address)
        assert up(found, watch) == {"honest": 1.0, "liar": 1.0}
        watch.close()


def watched(*addresses: str) -> tuple[tuple[Table, Observer], AgentWatch]:
    """A job's look at agents."""
    table, observer = new_table(), new_observer()
    options = parse_options({"agents": ",".join(addresses)})
    return (table, observer), AgentWatch(options, observer, table, lambda: 0.0, names=[], cluster_id=CLUSTER_ID)


def up(found: tuple[Table, Observer], watch: AgentWatch) -> dict[str, float]:
    """Which agents the page says are up, after one look."""
    watch.poll()
    return {dict(labels)["agent"]: value for (name, labels), value in samples(page(*found)).items() if name == "segtail_agent_up"}


def test_what_a_stranger_asks_in_arrow_is_checked(honest: Agent) -> None:
    asked = pa.table(
        {"broker": [1], "topic": ["t" * 7_777], "topic_id": [""], "partition": [0], "offset": [0], "upto": [9], "reads_uncommitted": [0]},
        POSITIONS_ASKED,
    )
    body = table_message(asked).to_pybytes().replace(_PLACE, struct.pack("<ii", 0, 1 << 30))
    with pytest.raises(AgentError, match="its rows cannot be read"):
        read_table(body, POSITIONS_ASKED)
