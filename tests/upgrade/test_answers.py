"""This version's client and the answers of others: read as they were meant, or refused with a sentence that says why."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import streaming
from streaming.broker.protocol.agent_calls import Reason
from streaming.broker.protocol.consumer_messages import PlanRequest, Range, Register
from streaming.broker.protocol.status_messages import Status
from streaming.broker.protocol.versions import OLDEST_AGENT, OLDEST_JOB, PROTOCOL
from streaming.common.event_row import EVENTS, MISSING
from streaming.errors import AgentError, VersionError
from streaming.spark.client import column_versions
from streaming.spark.client.agent_client import AgentClient
from tests.agents import Agent, event_rows
from tests.builders import batch, log_dir, partition
from tests.events import Shard
from tests.upgrade.other_version import OtherVersion, other_version


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[OtherVersion]:
    with other_version(tmp_path) as made:
        yield made


@pytest.fixture
def client(agent: OtherVersion) -> Iterator[AgentClient]:
    made = AgentClient(agent.address)
    yield made
    made.close()


def counted(table: pa.Table) -> dict[tuple[str, int], tuple[int, int, int, bytes | None]]:
    shard = Shard()
    shard.fold(*event_rows(table))
    return {
        (state.topic, state.partition): (state.appended_bytes, state.appended_records, state.log_end_offset, state.transactions)
        for state in shard.states.values()
    }


def without(name: str) -> Callable[[pa.Table], pa.Table]:
    return lambda rows: rows.drop_columns([name] if name in rows.schema.names else [])


def changed(name: str, values: Callable[[pa.Table], pa.Array]) -> Callable[[pa.Table], pa.Table]:
    return lambda rows: rows.set_column(rows.schema.names.index(name), name, values(rows))


# --- what can be read


def test_rows_of_another_version_are_read(client: AgentClient, agent: OtherVersion) -> None:
    client.check(client.status())
    found = client.read(agent.asked)
    assert found.schema == EVENTS
    assert {key: (records, end) for key, (_, records, end, _) in counted(found).items()} == {
        ("orders", 0): (12, 12),
        ("orders", 1): (11, 11),
        ("bare", 0): (0, 0),
    }


@pytest.mark.parametrize(
    "change",
    [
        lambda rows: rows.select(sorted(rows.schema.names)),
        lambda rows: rows.add_column(7, "mood", pa.array(["fine"] * len(rows))),
        changed("partition", lambda rows: rows["partition"].cast(pa.int64())),
    ],
    ids=["another order", "a column more", "another width"],
)
def test_columns_go_by_name(client: AgentClient, agent: OtherVersion, change: Callable[[pa.Table], pa.Table]) -> None:
    expected = counted(client.read(agent.asked))
    agent.rows = change(agent.rows)
    assert counted(client.read(agent.asked)) == expected


def test_what_stands_for_a_column_that_came_later_is_its_default(
    client: AgentClient, agent: OtherVersion, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the first version sees it that has a column more than this one."""
    agent.rows = agent.rows.drop_columns(["leader_epoch"])
    with pytest.raises(VersionError, match="column leader_epoch is missing"):
        client.read(agent.asked)
    monkeypatch.setattr(column_versions, "MISSING", {"leader_epoch": -7})
    assert set(client.read(agent.asked)["leader_epoch"].to_pylist()) == {-7}


# --- what cannot


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (without("bytes"), "column bytes is missing"),
        (without("transactions"), "column transactions is missing"),
        (lambda rows: rows.append_column("seq", rows["seq"]), "column seq is there 2 times"),
        (changed("records", lambda rows: rows["records"].cast(pa.string())), "column records is string and not int64"),
        (changed("partition", lambda rows: pa.array([1 << 40] * len(rows))), "column partition has a value that does not fit int32"),
        (changed("bytes", lambda rows: pa.array([None] * len(rows), pa.int64())), "column bytes has a null"),
        (changed("codec_bytes", lambda rows: pa.array([[0] * 6] * len(rows))), "column codec_bytes has a list that is not 5 long"),
        (changed("transactions", lambda rows: pa.array([b"x"] * len(rows))), "column transactions has a value that is not made of"),
    ],
)
def test_rows_that_cannot_be_used_are_refused_and_have_not_arrived(
    client: AgentClient, agent: OtherVersion, change: Callable[[pa.Table], pa.Table], says: str
) -> None:
    agent.says["version"] = "0.0.9"
    agent.rows = change(agent.rows)
    client.status()
    with pytest.raises(VersionError, match=says) as raised:
        client.read(agent.asked)
    assert raised.value.reason == Reason.PROTOCOL
    assert all(word in str(raised.value) for word in (agent.address, "segtail 0.0.9", f"segtail {streaming.__version__}", "upgrade"))


@pytest.mark.parametrize("name", sorted({*EVENTS.names} - {*MISSING}))
def test_a_missing_column_that_would_count_something_else_is_found_without_any_row(
    client: AgentClient, agent: OtherVersion, name: str
) -> None:
    agent.rows = agent.rows.drop_columns([name])
    with pytest.raises(VersionError, match=f"column {name} is missing"):
        client.check(client.status())


@pytest.mark.parametrize(("protocol", "upgrade"), [(PROTOCOL + 1, "the job"), (OLDEST_AGENT - 1, "the agent")])
def test_an_agent_of_another_protocol_is_refused(client: AgentClient, agent: OtherVersion, protocol: int, upgrade: str) -> None:
    agent.says |= {"protocol": protocol, "version": "9.9.9"}
    with pytest.raises(VersionError, match=f"segtail 9.9.9 and speaks protocol {protocol}, .* segtail .* upgrade {upgrade}"):
        client.check(client.status())


# --- the agent's side


def test_an_agent_refuses_a_job_that_would_misread_it(tmp_path: Path) -> None:
    disk = log_dir(tmp_path)
    partition(disk, "orders").append(batch(3))
    agent = Agent(disk.path)
    with agent.served() as address:
        client = AgentClient(address)
        client.check(client.status())
        calls: list[Callable[[], object]] = [
            lambda: client.register(Register("job", "earliest", resumed=False, protocol=OLDEST_JOB - 1)),
            lambda: client.plan(PlanRequest("job", "run", "", -1, None, 0, protocol=OLDEST_JOB - 1)),
            lambda: client.read(Range("job", "run", agent.journal.id, -1, 1, protocol=OLDEST_JOB - 1)),
        ]
        for call in calls:
            with pytest.raises(AgentError, match=f"speaks protocol {OLDEST_JOB - 1}, this agent is segtail .*: upgrade the job"):
                call()
        assert isinstance(
            client.register(Register("job", "earliest", resumed=False, protocol=PROTOCOL + 1)), Status
        )  # it decides for itself
        client.close()
    agent.close()
