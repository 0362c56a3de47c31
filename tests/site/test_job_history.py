"""What a job has seen, in a file that its next start goes on with."""

import logging
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from streaming.broker.protocol.history_json import KeptCommit, KeptGroups, KeptHistory
from streaming.cluster.verdicts.circumstances import thresholds_of
from streaming.common.settings import Settings
from streaming.pages.site.judged_looks import SAVE_SECONDS, JobHistory, JudgedLooks, Looks
from tests.view.rows import log as row
from tests.view.rows import new_observer, new_table
from tests.worlds.transactions import NOW, orders, transaction

COMMIT = KeptCommit(
    group="g",
    topic="orders",
    partition=0,
    offset=2,
    unmoved_ms=1,
    stopped_since_ms=2,
    stopped_earlier=True,
    held_next=-1,
    held_since_ms=-1,
    lost_ms=-1,
    losing_since_ms=-1,
    lost_records=0,
    lost_offsets=0,
)


class _Job:
    """A job that looks at one log with an open transaction, and keeps what it has seen in a file."""

    def __init__(self, path: Path, now: float) -> None:
        self.now, self.commits = now, [COMMIT]
        self.table = new_table(row(topic="other"), orders(transaction(7, 40, age=1000)))
        looks = Looks(self.table, lambda: self.now)
        self.judged = JudgedLooks(self.table, new_observer(), looks, None, lambda _: None, thresholds_of(Settings()), redacted=False)
        self.table.set_agents([])
        self.table.set_whole()
        self.history = JobHistory(path, self.judged, self.table.transactions, lambda: KeptGroups(commits=self.commits), lambda: self.now)
        self.recalled: list[KeptCommit] = []
        self.history.recall(lambda kept: self.recalled.extend(kept.commits))


def test_the_next_start_goes_on_with_what_a_job_has_seen(tmp_path: Path) -> None:
    path = tmp_path / "history"
    before = _Job(path, NOW)
    before.judged.look()
    before.history.save_sometimes()
    assert not path.exists()
    before.now += SAVE_SECONDS
    before.history.save_sometimes()
    assert (path.stat().st_mode & 0o777, [*tmp_path.iterdir()]) == (0o600, [path])
    after = _Job(path, NOW + 90)
    assert after.recalled == [COMMIT]
    assert after.judged.events.kept() == before.judged.events.kept() is not None
    assert after.table.transactions.kept() == before.table.transactions.kept() != []


def cut(packed: bytes) -> bytes:
    return packed[:-9]


def foreign(packed: bytes) -> bytes:
    return b"SQLite" + packed


def no_history(_: bytes) -> bytes:
    return zlib.compress(b'{"groups": {"commits": [7]}}')


def other_changes(packed: bytes) -> bytes:
    return zlib.compress(zlib.decompress(packed).replace(b'"epochs": {}', b'"epochs": {"one": 1}'))


@pytest.mark.parametrize("damage", [cut, foreign, no_history, other_changes])
def test_a_file_that_is_damaged_is_said_and_the_job_begins_anew(
    damage: Callable[[bytes], bytes], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "history"
    before = _Job(path, NOW)
    before.judged.look()
    before.history.save()
    path.write_bytes(damage(path.read_bytes()))
    with caplog.at_level(logging.WARNING):
        after = _Job(path, NOW + 90)
    (warning,) = caplog.records
    assert (warning.getMessage()[:44], vars(warning)["path"]) == ("what the job had seen before its start cannot be read"[:44], path)
    assert (after.judged.events.kept(), after.recalled, after.table.transactions.kept()) == (None, [], [])
    after.history.save()
    assert KeptHistory.decode(zlib.decompress(path.read_bytes())).groups.commits == [COMMIT]


def test_where_nothing_can_be_written_that_is_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    job = _Job(tmp_path / "gone" / "history", NOW)
    job.history.save()
    assert [each.getMessage() for each in caplog.records] == ["what the job has seen cannot be kept for its next start"]
