"""What all tests of the agent share: clients that wait."""

import pytest

from tests.limits import SECONDS


@pytest.fixture(autouse=True)
def _patient_clients(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client of these tests is in the agent's process: on a busy machine it may wait for longer than the three seconds of a job."""
    monkeypatch.setattr("streaming.spark.client.agent_client.ANSWER_SECONDS", SECONDS)
