"""What the checkpoints at the root of log dirs say, whole or damaged."""

from pathlib import Path

import pytest

from streaming.broker.disk.log_inventory import Inventory
from streaming.broker.disk.logdirs import list_partitions, open_log_dirs
from streaming.broker.watcher.offset_checkpoints import Checkpoints
from streaming.common.catalog.catalog_tables import UNREADABLE
from tests.builders import batch, log_dir, partition

NAMES = ("replication-offset-checkpoint", "log-start-offset-checkpoint", "cleaner-offset-checkpoint")


DAMAGED = {"empty": "", "version": "1\\n1\\nt 0 7\\n", "cut off": "0\\n2\\nt 0 7\\n", "number": "0\\n1\\nt 0 many\\n"}


@pytest.mark.parametrize("damaged", DAMAGED.values(), ids=DAMAGED)
def test_a_checkpoint_that_is_not_understood_is_not_known_and_counted_once(tmp_path: Path, damaged: str) -> None:
    disk = log_dir(tmp_path)
    partition(disk, "t", 0).append(batch(3))
    log_dirs = open_log_dirs([disk.path])
    (log,) = list_partitions(next(iter(log_dirs)))
    for name in NAMES:
        (disk.path / name).write_text(damaged)
    checkpoints = Checkpoints(log_dirs)
    checkpoints.refresh()
    checkpoints.refresh()
    expected = UNREADABLE if damaged else -1  # a broker makes the file empty
    assert (checkpoints.high_watermark(log), checkpoints.log_start(log), checkpoints.cleaned(log)) == (expected,) * 3
    assert checkpoints.unreadable == (3 if damaged else 0)
    seen = Inventory(thorough=True).look(log)
    assert seen is not None
    assert (seen.cleaner_checkpoint, seen.log_start_offset(), seen.end_offset) == (expected, 0, 3)

    disk.write_checkpoint(NAMES[0], [("t", 0, 3)])
    assert checkpoints.refresh()
    assert checkpoints.high_watermark(log) == 3
