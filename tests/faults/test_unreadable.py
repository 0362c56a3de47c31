"""A log that the disk does not give: a run that ends by itself counts everything else, and says so."""

from pathlib import Path

import pytest

from tests.builders import batch, log_dir, partition
from tests.processes import read_page, segtail, values

pytestmark = pytest.mark.spark


def test_once_counts_everything_else_and_fails_with_the_name_of_the_log(tmp_path: Path) -> None:
    disk = log_dir(tmp_path)
    logs = [partition(disk, "orders", number) for number in range(3)]
    for log in logs:
        log.append(batch(5))
        log.close()
    disk.release()
    segment = logs[1].active.path("log")
    segment.rename(tmp_path / "kept")
    segment.symlink_to(segment)  # which nobody can open
    out = tmp_path / "page.prom"
    arguments = ("run", "--log-dirs", disk.path, "--once", "--textfile", out, "--checkpoint", tmp_path / "checkpoint")
    with segtail(*arguments, said=tmp_path / "said") as job:
        assert job.wait() == 1, job.said
        assert "everything else was processed, but this could not be read: orders-1 of broker 1" in job.said
    page = read_page(out.read_text())
    assert values(page, "segtail_partition_appended_records_total") == {("orders", 0): 5, ("orders", 2): 5}
    segment.unlink()
    (tmp_path / "kept").rename(segment)
    with segtail(*arguments, said=tmp_path / "said again") as job:
        assert job.wait() == 0, job.said
    page = read_page(out.read_text())
    assert values(page, "segtail_partition_appended_records_total") == {("orders", number): 5 for number in range(3)}
