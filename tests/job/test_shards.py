"""The logs by which the shards of a new checkpoint's state are chosen."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from streaming.broker.disk.availability import LogDir
from streaming.spark.job.checkpoint import logs_in, logs_of
from tests.tables import each_row


def status(logs: int) -> Any:
    return SimpleNamespace(logs=logs)


def test_logs_are_the_directories_of_all_log_dirs_that_can_be_read(tmp_path: Path) -> None:
    for name in ("d1/orders-0", "d1/orders-1", "d2/bills-0", "d2/no log"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "d2" / "recovery-point-offset-checkpoint").touch()
    log_dirs = [LogDir(tmp_path / name, 1, "cluster", None) for name in ("d1", "d2", "gone")]
    assert logs_in(log_dirs) == 3


@each_row(
    ("answers", "addresses", "logs"),
    [([], 3, 0), ([700], 1, 700), ([700, 500], 2, 1200), ([700, 500], 4, 2400), ([0], 5, 0), ([700, 500], 1, 1200)],
)
def test_agents_that_have_not_answered_are_taken_to_have_as_many_logs(answers: list[int], addresses: int, logs: int) -> None:
    assert logs_of([status(each) for each in answers], addresses) == logs
