"""What is wrong on the simulated broker in its first minute, as the offline commands find it on its disk, with the default limits."""

from pathlib import Path

import pytest

from streaming.broker.disk.logdirs import open_log_dirs
from streaming.common.settings import Settings
from streaming.simulator.broker import HISTORY_MS, SimulatedBroker
from streaming.terminal.offline.group_reading import read_groups
from tests.group_answers import detailed
from tests.offline.lists import kept, opened

pytestmark = pytest.mark.xdist_group("offline/test_simulated_trouble")  # one process makes the broker, not each

START = 1_700_000_000_000
NOW = START + 15_000


@pytest.fixture(scope="module")
def log_dirs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ...]:
    """The disk of a broker that was quiet, and then busy for some seconds."""
    directory = tmp_path_factory.mktemp("faults")
    broker = SimulatedBroker(directory, seed=7, clock=lambda: START, history_ms=HISTORY_MS, rate_bytes_per_second=300_000)
    broker.step(NOW)
    broker.close()
    return broker.log_dirs


def settings(log_dirs: tuple[Path, ...]) -> Settings:
    return Settings(server_properties=(log_dirs[0].parent / "server.properties",))


def test_one_transaction_hangs_and_one_is_stuck(log_dirs: tuple[Path, ...]) -> None:
    answer = opened(log_dirs, settings(log_dirs), NOW)
    assert not answer.doubts
    assert [(one.topic, one.partition, one.transactional_id) for one in answer.hanging] == [("invoices", 0, "invoice-import")]
    assert [(one.topic, one.partition, one.transactional_id) for one in answer.transactions if one.stuck] == [
        ("payments", 2, "billing-batch")
    ]


def test_retention_of_one_partition_is_blocked_by_a_record_of_the_future(log_dirs: tuple[Path, ...]) -> None:
    answer = kept(log_dirs, settings(log_dirs), NOW)
    blocked = {(row.topic, row.partition): row.retention_blocked for row in answer.rows if row.retention_blocked != "active_segment"}
    assert {place: reason for place, reason in blocked.items() if reason} == {("mobile.events", 1): "future_timestamp"}


def test_two_groups_are_held_up_and_one_has_stopped_and_will_lose_data(log_dirs: tuple[Path, ...]) -> None:
    found = detailed(read_groups(open_log_dirs(log_dirs), (), settings(log_dirs), NOW))
    kinds = {
        group.summary.group: {(verdict.verdict, verdict.topic, verdict.partition) for verdict in group.findings} for group in found.groups
    }
    assert ("held", "payments", 2) in kinds["ledger"]
    assert ("held", "invoices", 0) in kinds["invoice-mailer"]
    assert kinds["audit-export"] == {("will_lose", "audit_log", 0), ("stopped", "audit_log", 0)}
    assert {kind for kind, _, _ in kinds["click-counter"]} <= {"fine", "catching_up"}
