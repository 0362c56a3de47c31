"""What commits cost without disks and network: their replay at the agent, and the job's store of them.

Left out: disks and network, the reading of the coordinators' logs; group members.
"""

import gc
from collections.abc import Iterator

import numpy as np

from bench.measuring import Bounds, resident_bytes, show, timed
from streaming.common.log_key import LogKey
from streaming.kafka.formats.consumer_offsets import OffsetCommit
from streaming.kafka.formats.names import OFFSETS_TOPIC
from streaming.kafka.groups.commit_log import CommitLog
from streaming.kafka.groups.commit_store import CommitStore
from streaming.kafka.groups.commit_table import Current
from streaming.kafka.groups.log_replay import GroupLimit
from streaming.kafka.scan.group_records import Commit, GroupRecords, group_records
from streaming.kafka.scan.headers import read_headers
from streaming.kafka.scan.walk import walk
from streaming.simulator.batch_writer import Batch, encode
from streaming.simulator.coordinators import offset_commit_record

KNOWN = 1_000_000
MOVED = 10_000
LOGS = 50
PARSED = 20_000
TOPICS, PARTITIONS = 10, 10
NOW = 1_700_000_000_000


def run(_: Bounds) -> None:
    """Print one table."""
    gc.collect()
    before = resident_bytes()
    filling, logs = timed(lambda: [_log(number) for number in range(LOGS)])
    held = resident_bytes() - before
    store, currents = CommitStore(), {(OFFSETS_TOPIC, number): Current("a", 2**62) for number in range(LOGS)}
    telling, reported = timed(lambda: [log.changes(0) for log in logs])
    taking, _nothing = timed(lambda: [store.take("a", changes) for changes in reported])
    joining, _table = timed(lambda: store.table(currents))
    idle, _table = timed(lambda: store.table(currents))
    moving, _nothing = timed(lambda: [_move(log) for log in logs])
    changing, reported = timed(lambda: [log.changes(store.version("a", (OFFSETS_TOPIC, log.log.partition))[1]) for log in logs])
    storing, _nothing = timed(lambda: [store.take("a", changes) for changes in reported])
    rejoining, _table = timed(lambda: store.table(currents))
    show(
        f"{KNOWN:,} known commits in {LOGS} logs; CPU",
        ("", "all", f"{MOVED:,} moved"),
        [
            ("agent: parsing a commit, us", f"{_parsing() * 1e6 / PARSED:.1f}", ""),
            ("agent: replaying a commit, us", f"{filling * 1e6 / KNOWN:.1f}", f"{moving * 1e6 / MOVED:.1f}"),
            ("agent: telling what changed, ms", f"{telling * 1e3:.0f}", f"{changing * 1e3:.0f}"),
            ("job: taking that, ms", f"{taking * 1e3:.0f}", f"{storing * 1e3:.0f}"),
            ("job: its table, ms", f"{joining * 1e3:.0f}", f"{rejoining * 1e3:.0f}"),
            ("job: its table if nothing moved, ms", f"{idle * 1e3:.1f}", ""),
            ("agent: memory, MB", f"{held / 1e6:.0f}", ""),
        ],
    )


def _log(number: int) -> CommitLog:
    log = CommitLog(LogKey(1, OFFSETS_TOPIC, number, ""), f"e{number}", GroupLimit(KNOWN))
    for begin in range(0, KNOWN // LOGS, PARSED // 4):
        records = tuple(_commits(number, range(begin, begin + PARSED // 4), begin))
        log.replay(GroupRecords(records, 0), records[-1].record_offset + 1)
    return log


def _move(log: CommitLog) -> None:
    some = range(0, KNOWN // LOGS, KNOWN // MOVED)
    log.replay(GroupRecords(tuple(_commits(log.log.partition, some, log.upto)), 0), log.upto + len(some))


def _commits(log: int, numbers: range, offset: int) -> Iterator[Commit]:
    value = OffsetCommit(offset=offset, metadata="", commit_timestamp=NOW)
    for at, number in enumerate(numbers, offset):
        group, topic, partition = number // (TOPICS * PARTITIONS), number // PARTITIONS % TOPICS, number % PARTITIONS
        yield Commit(at, -1, f"consumer-group-{log}-{group}", f"some-topic-name-{topic}", partition, value)


def _parsing() -> float:
    records = (
        offset_commit_record(f"consumer-group-{number % 1000}", "some-topic-name", number % 10, number, NOW) for number in range(PARSED)
    )
    data = np.frombuffer(b"".join(encode(Batch(records=(record,)), at) for at, record in enumerate(records)), np.uint8)
    headers = read_headers(data, walk(data, 0, len(data)).positions)
    return min(timed(lambda: group_records(headers, data))[0] for _ in range(3))
