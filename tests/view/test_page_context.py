"""What judges are made of: settings, and files that change while the job runs."""

from datetime import timedelta
from pathlib import Path

import pytest

from streaming.cluster.view.page_context import context_of
from streaming.common.settings import Settings
from streaming.errors import UsageError
from tests.tables import each_row


def test_a_server_properties_that_changes_is_taken_up(tmp_path: Path) -> None:
    properties = tmp_path / "server.properties"
    properties.write_text("node.id=1\nlog.retention.hours=2\n")
    limiter = context_of(Settings(server_properties=(properties,))).limiter
    assert limiter.now()(1, "orders", "{}").retention_ms == 2 * 3_600_000
    properties.write_text("node.id=1\nlog.retention.minutes=30\n")
    assert limiter.now()(1, "orders", "{}").retention_ms == 30 * 60_000
    properties.write_text("log.retention.minutes=40\n")  # half written: whose it is stands in no line yet
    assert limiter.now()(1, "orders", "{}").retention_ms == 30 * 60_000


def test_a_server_properties_that_cannot_be_used_is_refused_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        context_of(Settings(server_properties=(tmp_path / "none",)))


@each_row(("trigger", "seconds"), [(1, 60), (20, 60), (300, 900), (None, 90)])
def test_what_agents_publish_may_take_a_minute_or_three_triggers(trigger: int | None, seconds: int) -> None:
    settings = Settings(trigger=None if trigger is None else timedelta(seconds=trigger))
    assert context_of(settings).transactions.read_within_ms == seconds * 1000
