"""The round that asks what is decided: only where it is asked for, and of a time before the journal's end that it names."""

from pathlib import Path

from streaming.broker.protocol.status_messages import Status, StatusRequest
from streaming.common.catalog import NOTHING_DECIDED, Version, unpack
from tests.agents import Agent, Reader
from tests.builders import batch, log_dir, partition


def test_it_is_reported_where_it_is_asked_for_and_then_only_what_changed(tmp_path: Path) -> None:
    directory = log_dir(tmp_path)
    partition(directory, "orders", 0).append(batch(3))
    agent = Agent(directory.path)
    Reader(agent).begin()
    assert agent.service.status().catalog == []
    first = Status.decode(agent.service.status(StatusRequest(catalog=True)).encode())
    (part,) = first.catalog
    version = Version(part.version.process, part.version.number)
    known = unpack(part.changes, version, whole=part.whole).applied(NOTHING_DECIDED)
    assert (part.whole, first.seq) == (True, agent.journal.end().seq)
    assert [row["topic"] for row in known.logs.to_pylist()] == ["orders"]
    asked = StatusRequest.decode(StatusRequest(catalog=True, catalogs=[part.version]).encode())
    (again,) = agent.service.status(asked).catalog
    assert (again.version, again.whole, again.changes) == (part.version, False, "")
    agent.close()
