"""What the checkpoints at the root of log dirs say, whole or damaged."""

from pathlib import Path

import pytest

from streaming.broker.disk import logdirs
from streaming.broker.disk.log_inventory import Inventory
from streaming.broker.disk.logdirs import Partition, list_partitions, open_log_dirs
from streaming.broker.watcher.offset_checkpoints import Checkpoints
from streaming.common.catalog import UNREADABLE
from tests.builders import batch, log_dir, partition

NAMES = ("replication-offset-checkpoint", "log-start-offset-checkpoint", "cleaner-offset-checkpoint")


def high_watermark(checkpoints: Checkpoints, log: Partition) -> int:
    return checkpoints.offsets([log], NAMES[0])[0]


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
    assert [*(offset for name in NAMES for offset in checkpoints.offsets([log], name))] == [expected] * 3
    assert checkpoints.unreadable == (3 if damaged else 0)
    seen = Inventory(thorough=True).look(log)
    assert seen is not None
    assert (seen.cleaner_checkpoint, seen.log_start_offset(), seen.end_offset) == (expected, 0, 3)

    disk.write_checkpoint(NAMES[0], [("t", 0, 3)])
    assert checkpoints.refresh()
    assert high_watermark(checkpoints, log) == 3


@pytest.fixture
def logs(tmp_path: Path) -> dict[str, Partition]:
    disk = log_dir(tmp_path)
    for topic in ("a", "b", "c"):
        partition(disk, topic)
    found = {each.topic: each for each in list_partitions(next(iter(open_log_dirs([disk.path]))))}
    return dict(sorted(found.items()))


def written(logs: dict[str, Partition], *offsets: int | str) -> None:
    """A broker replaces the high watermarks."""
    path = logs["a"].log_dir.path / NAMES[0]
    text = f"0\n{len(offsets)}\n" + "".join(f"{topic} 0 {offset}\n" for topic, offset in zip(logs, offsets, strict=False))
    path.with_suffix(".tmp").write_text(text)
    path.with_suffix(".tmp").rename(path)


def test_what_an_idle_broker_writes_again_is_not_parsed_again(logs: dict[str, Partition], monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoints = Checkpoints(open_log_dirs([logs["a"].log_dir.path]))
    written(logs, 7, 7, 7)
    assert checkpoints.refresh()
    monkeypatch.setattr(logdirs, "parse_offset_checkpoint", None)
    written(logs, 7, 7, 7)
    assert not checkpoints.refresh()
    written(logs, 7, 8, 7)
    assert checkpoints.refresh().logs == {logs["a"].log_dir.path: {("b", 0)}}
    assert [high_watermark(checkpoints, log) for log in logs.values()] == [7, 8, 7]


def test_a_file_of_the_same_size_is_read_and_one_that_was_damaged_meanwhile_is_known_again(logs: dict[str, Partition]) -> None:
    checkpoints = Checkpoints(open_log_dirs([logs["a"].log_dir.path]))
    path = logs["a"].log_dir.path
    for offsets, expected, changed in (
        ((7, 7, 7), [7, 7, 7], {("a", 0), ("b", 0), ("c", 0)}),
        ((9, 8, 7), [9, 8, 7], {("a", 0), ("b", 0)}),
        (("many", 8, 7), [UNREADABLE] * 3, None),
        (("many", 8, 7), [UNREADABLE] * 3, None),
        ((9, 8, 7), [9, 8, 7], None),
        ((9, 8), [9, 8, -1], {("c", 0)}),
        ((9, 8, 6), [9, 8, 6], {("c", 0)}),
    ):
        written(logs, *offsets)
        assert checkpoints.refresh().logs == {path: changed}, offsets
        assert [high_watermark(checkpoints, log) for log in logs.values()] == expected
    assert checkpoints.unreadable == 2
    (path / NAMES[0]).unlink()
    (path / NAMES[0]).mkdir()
    assert checkpoints.refresh().logs == {path: None}
    assert high_watermark(checkpoints, logs["a"]) == UNREADABLE
    (path / NAMES[0]).rmdir()
    written(logs, 9, 8, 6)
    assert checkpoints.refresh().logs == {path: None}
    assert [high_watermark(checkpoints, log) for log in logs.values()] == [9, 8, 6]
