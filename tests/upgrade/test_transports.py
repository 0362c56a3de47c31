"""Job and agent of which one speaks by Arrow Flight, as versions of before protocol 4 did: either side says what to upgrade."""

from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import flight

from streaming.client.agent_client import AgentClient
from streaming.errors import AgentError
from streaming.protocol.problems import Reason
from tests.agents import Agent
from tests.builders import log_dir


def test_an_agent_of_an_earlier_transport_is_named_as_that() -> None:
    with flight.FlightServerBase("grpc://127.0.0.1:0") as earlier:
        client = AgentClient(f"grpc://127.0.0.1:{earlier.port}")
        with pytest.raises(AgentError, match="an agent of an earlier version: upgrade it") as raised:
            client.status()
        client.close()

    assert raised.value.reason == Reason.PROTOCOL


def test_a_job_of_an_earlier_transport_is_told_to_be_upgraded(tmp_path: Path) -> None:
    agent = Agent(log_dir(tmp_path).path, journal=tmp_path / "journal")
    with agent.served() as address, flight.FlightClient(f"grpc://{address}") as earlier:
        for ask in (
            lambda: list(earlier.do_action(flight.Action("status", b"{}"))),
            lambda: earlier.do_get(flight.Ticket(b"{}")),
        ):
            with pytest.raises(pa.ArrowNotImplementedError, match="of an earlier version: upgrade the job"):
                ask()
    agent.close()
