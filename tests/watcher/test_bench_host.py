"""What benches append is what a live broker would have written: an agent takes it as whole, led by its broker and without gaps."""

from pathlib import Path

import pytest

from streaming.common.rows import Kind
from streaming.kafka.formats import names
from tests.bench.host import Host
from tests.bench.partitions import RECORDS, Partitions
from tests.commands import run_command
from tests.watcher.journalled import events_of

APPENDS = 7


@pytest.mark.parametrize(("producers", "earlier"), [(0, 0), (1, 0), (3, 0), (3, 8)])
def test_appends_of_a_bench_are_ranges_without_gaps(tmp_path: Path, producers: int, earlier: int) -> None:
    with Partitions(tmp_path / "log", 2, 4096, producers, earlier) as logs:
        host = Host(logs.path, tmp_path / "journal")
        host.catch_up()
        host.climb()
        begun = host.journal.end().seq
        for _ in range(APPENDS):
            logs.append(1)
        host.poll()
        events = [event for _, event in events_of(host.journal, begun, host.journal.end().seq) if event.kind is not Kind.FOUND]
        host.close()
    (event,) = events
    assert (event.kind, event.partition, event.batches, event.bytes) == (Kind.APPENDED, 1, APPENDS, APPENDS * logs.batch_bytes)
    assert (event.leads, event.log_epoch, event.sequence_gaps, event.active_producers) == (1, 0, 0, producers)
    assert (event.append_delay_ms < event.batches * 60_000, event.ahead_batches) == (True, 0)
    verified = run_command("dump", *sorted((logs.path / "bench.0-1").glob("*.log")), "--summary", "--verify")
    assert (verified.returncode, verified.stderr) == (0, "")


def test_a_bench_writes_the_checkpoints_of_a_broker_at_their_time(tmp_path: Path) -> None:
    with Partitions(tmp_path / "log", 2, 4096) as logs:
        checkpoint = logs.path / names.HIGH_WATERMARK_CHECKPOINT
        assert checkpoint.read_text() == f"0\n2\nbench.0 0 {RECORDS}\nbench.0 1 {RECORDS}\n"
        logs.append(1)
        logs.keep_house(0.0)
        assert checkpoint.read_text().endswith(f" {RECORDS}\n")
        logs.keep_house(float("inf"))
        assert checkpoint.read_text().endswith(f" {2 * RECORDS}\n")
        assert (logs.path / names.RECOVERY_POINT_CHECKPOINT).read_text() == "0\n2\nbench.0 0 0\nbench.0 1 0\n"
        assert (logs.path / names.LOG_START_OFFSET_CHECKPOINT).read_text() == "0\n0\n"
