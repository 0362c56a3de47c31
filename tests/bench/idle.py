"""What the threads of an agent cost beside very many logs in which nothing happens, as its parts have it: polls, rescans, ladders, groups.

The broker does what a live one does all the same: its controller writes twice a second, and checkpoints are replaced by files of the same
content, those of high watermarks every five seconds. One process, no JVM; the clock jumps from poll to poll.

Left out: answers to a job and to groups, connections, memory; logs that grow (`turns`).
"""

import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from streaming.kafka.formats.names import HIGH_WATERMARK_CHECKPOINT, RECOVERY_POINT_CHECKPOINT
from streaming.simulator.file_writer import encode_checkpoint, replace_file
from tests.agents import Agent, Reader
from tests.bench.bounds import Bounds
from tests.bench.partitions import RECORDS, Partitions, now_ms
from tests.bench.table import show

POLL_MS = 7_500
HEARTBEATS = 15  # in that time
POLLS = 24
POLLS_A_RESCAN = 8
BATCH_BYTES = 300


def run(bounds: Bounds) -> None:
    """Print one table."""
    with (
        tempfile.TemporaryDirectory(prefix="segtail-bench-") as scratch,
        Partitions(Path(scratch, "log"), bounds.mostly_idle, BATCH_BYTES) as logs,
    ):
        agent = Agent(logs.path, journal=Path(scratch, "journal"))
        agent.now = now_ms()
        Reader(agent, start_from="latest").begin()
        polls = [_turn(agent, logs, number) for number in range(2 * POLLS)][POLLS:]
        agent.close()
    rescans, plain = polls[POLLS_A_RESCAN - 1 :: POLLS_A_RESCAN], [each for number, each in enumerate(polls, 1) if number % POLLS_A_RESCAN]
    ladders, groups = (statistics.median(each[number] for each in polls) for number in (1, 2))
    poll, rescan = (statistics.median(each[0] for each in those) for those in (plain, rescans))
    share = ((POLLS_A_RESCAN - 1) * poll + rescan) / POLLS_A_RESCAN / POLL_MS + ladders / 5_000 + groups / 1_000
    rows = [
        ("a poll", f"{poll:.0f} ms"),
        ("a poll with a rescan, once a minute", f"{rescan:.0f} ms"),
        ("a look at ladders, every 5 s", f"{ladders:.1f} ms"),
        ("a look at coordinators' logs, every second", f"{groups:.2f} ms"),
        ("of a core, polled every 7.5 s", f"{100 * share:.2f} %"),
    ]
    show(f"an agent beside {len(logs):,} logs in which nothing happens", ("CPU of", ""), rows)


def _turn(agent: Agent, logs: Partitions, number: int) -> tuple[float, float, float]:
    """CPU milliseconds of a poll, of the ladders and of the groups' logs."""
    entries = [(*logs.place(item), RECORDS) for item in range(len(logs))]
    replace_file(logs.path / HIGH_WATERMARK_CHECKPOINT, encode_checkpoint(entries))
    if number % POLLS_A_RESCAN == 0:
        replace_file(logs.path / RECOVERY_POINT_CHECKPOINT, encode_checkpoint((*logs.place(item), 0) for item in range(len(logs))))
    for _ in range(HEARTBEATS):
        logs.heartbeat()
    agent.now += POLL_MS

    def poll() -> None:
        while agent.watcher.poll(set()):
            pass
        agent.host_status.refresh()

    return _spent(poll), _spent(agent.count), _spent(agent.follow_groups)


def _spent(work: Callable[[], object]) -> float:
    before = time.thread_time()
    work()
    return 1_000 * (time.thread_time() - before)
