"""Consumer groups: what a job spends on a round and a page, with 1,000,000 committed offsets of which 10,000 move every 5 seconds.

CPU seconds of one core. Agents answer at once, from memory: what they spend on positions is in the bench of the ladder.

Left out: what agents' answers cost there, rebalances, and groups that come and go.
"""

import statistics
from collections.abc import Callable

import numpy as np
import pyarrow as pa

from bench.measuring import Bounds, median, resident_bytes, show, timed
from streaming.broker.protocol.group_messages import POSITIONS, RECORDS, GroupsRequest, RecordsRequest
from streaming.broker.protocol.group_stream import GroupsAnswer, RecordsAnswer
from streaming.cluster.consumers.group_questions import MOST_ASKED
from streaming.cluster.consumers.group_rounds import GroupRounds, Surroundings
from streaming.cluster.consumers.group_snapshot import GroupBoard, PartitionListing
from streaming.cluster.consumers.group_tracker import GroupTracker
from streaming.cluster.view.family import EVERYTHING
from streaming.kafka.formats.names import OFFSETS_TOPIC
from streaming.kafka.groups.group_rows import COMMITS, GROUPS, PENDING, GroupChanges
from streaming.pages.exposition.render import render
from tests.view.rows import Row, log, new_observer, new_table, states

GROUP_COUNT, TOPICS, PARTITIONS = 1_000, 10, 100
MOVED = 10_000
ROUNDS = 5
ROUND_SECONDS = 15
_NOW = 1_700_000_000.0


class Agent:
    """Says of all logs that each offset holds a record of 100 bytes."""

    def __init__(self) -> None:
        numbers = np.arange(GROUP_COUNT * TOPICS * PARTITIONS)
        self.offset = 100 + numbers // (TOPICS * PARTITIONS) % 800
        self.changed = numbers
        self.version = 0
        self.asked = 0

    def move(self, round_number: int) -> None:
        """Some groups commit."""
        self.version += 1
        self.changed = np.arange(MOVED) + MOVED * (round_number % 2)
        self.offset[self.changed] += 10

    def groups(self, request: GroupsRequest | None = None) -> GroupsAnswer:
        """What has changed since the last round."""
        whole = request is None or not request.known
        rows = np.arange(len(self.offset)) if whole else self.changed
        changes = GroupChanges(
            broker=1,
            topic=OFFSETS_TOPIC,
            topic_id="",
            coordinator=0,
            edition="e",
            version=self.version + 1,
            whole=whole,
            upto=1 << 40,
            commits=self._commits(rows),
            pending=pa.RecordBatch.from_pylist([], PENDING),
            groups=pa.RecordBatch.from_pylist([], GROUPS),
        )
        return GroupsAnswer(journal="j", seq=1, changes=[changes], others=[])

    def _commits(self, rows: np.ndarray[tuple[int, ...], np.dtype[np.int64]]) -> pa.RecordBatch:
        topics = pa.array([f"topic-{number}" for number in range(TOPICS)])
        groups = pa.array([f"group-{number}" for number in range(GROUP_COUNT)])
        count = len(rows)
        columns = {
            "group": groups.take(pa.array(rows // (TOPICS * PARTITIONS))),
            "topic": topics.take(pa.array(rows // PARTITIONS % TOPICS)),
            "topic_id": pa.array([""]).take(pa.array(np.zeros(count, np.int64))),
            "partition": pa.array((rows % PARTITIONS).astype(np.int32)),
            "coordinator": pa.array(np.zeros(count, np.int32)),
            "offset": pa.array(self.offset[rows]),
            "commit_ms": pa.array(np.full(count, round(_NOW * 1000))),
            "expire_ms": pa.array(np.full(count, -1)),
            "record_offset": pa.array(np.full(count, self.version)),
            "effective_offset": pa.array(np.full(count, self.version)),
            "share": pa.array(np.zeros(count, np.bool_)),
            "delivered": pa.array(np.zeros(count, np.int64)),
            "done": pa.nulls(count, COMMITS.field("done").type),
        }
        return pa.RecordBatch.from_arrays([columns[name] for name in COMMITS.names], schema=COMMITS)

    def records(self, request: RecordsRequest | None = None) -> RecordsAnswer:
        """Nothing is counted."""
        return RecordsAnswer(process="p", number=1, whole=False, rows=RECORDS.empty_table())

    def positions(self, asked: pa.Table) -> pa.Table:
        """One record at each offset."""
        self.asked += len(asked)
        offset = asked["offset"].to_numpy()
        numbers = {
            "data": offset,
            "bytes": offset * 100,
            "next_offset": np.where(offset < asked["upto"].to_numpy(), offset, -1),
            "next_timestamp_ms": np.full(len(offset), round(_NOW * 1000) - 1000),
        }
        zeros = pa.array(np.zeros(len(offset), np.int64))
        texts = {"edition": "e", "state": "KNOWN"}
        columns = [
            asked[name]
            if name in asked.column_names
            else pa.array([texts[name]]).take(zeros)
            if name in texts
            else pa.array(numbers[name])
            if name in numbers
            else zeros
            for name in POSITIONS.names
        ]
        return pa.table(columns, schema=POSITIONS)


def run(_: Bounds) -> None:
    """Print one table."""
    held = resident_bytes()
    table, agent, clock = new_table(series_limit=1 << 40), Agent(), [_NOW]
    board = GroupBoard()
    around = Surroundings(agents=lambda: {"a1": agent}, cluster_topics=lambda: None, clock=lambda: clock[0])
    rounds = GroupRounds(table, board, GroupTracker(EVERYTHING, 600_000), around)
    table.apply(states(*_logs(1000), {"change": "arrived", "agent": "a1", "topic_id": "j", "partition": 0, "log_end_offset": 1}))
    table.mark_agent("a1", clock[0])
    first, filling = _cpu_of(rounds.round), 1
    while (snapshot := board.latest(round(clock[0] * 1000))) is not None and snapshot.pairs.unknown.any():
        rounds.round()
        filling += 1
    idle = median(rounds.round)

    def busy() -> None:
        clock[0] += ROUND_SECONDS
        agent.move(round(clock[0]))
        rounds.round()

    numbers = iter(range(1, 1000))

    def moved() -> float:
        table.apply(states(*_logs(1000 + 10 * next(numbers))))
        return _cpu_of(busy)

    working = statistics.median(moved() for _ in range(ROUNDS))
    observer = new_observer()
    page = median(lambda: render(table, observer, clock[0], groups=board))
    without = median(lambda: render(table, observer, clock[0]))
    resident = resident_bytes() - held
    every = GroupBoard(PartitionListing(partitions=True))
    assert snapshot is not None
    every.publish(snapshot)
    whole = _cpu_of(lambda: render(table, observer, clock[0], groups=every))
    names = snapshot.rows.group_names
    named = _cpu_of(lambda: [snapshot.rows_of(name) for name in names])
    rows = [
        ("the first round, CPU s", f"{first:.2f}"),
        (f"rounds until all positions are known, {MOST_ASKED:,} of an agent in each", f"{filling}"),
        ("a round in which nothing moves, CPU s", f"{idle:.2f}"),
        (f"a round in which {MOVED:,} commits and all logs move, CPU s", f"{working:.2f}"),
        (f"of a core at a round every {ROUND_SECONDS} s, %", f"{100 * working / ROUND_SECONDS:.1f}"),
        ("groups' part of a page, by topic, CPU s", f"{page - without:.3f}"),
        ("a page with the series of all partitions, CPU s", f"{whole:.2f}"),
        ("the commits of each group by its name, CPU s", f"{named:.3f}"),
        ("memory that all of it takes, agent's answers included, MB", f"{resident / 1e6:.0f}"),
    ]
    show(f"{GROUP_COUNT * TOPICS * PARTITIONS:,} committed offsets of {GROUP_COUNT:,} groups", ("", ""), rows)


def _logs(end: int) -> list[Row]:
    facts = {"leader": 1, "leader_epoch": 1, "log_end_offset": end, "high_watermark": end}
    own = [log(f"topic-{topic}", partition, **facts) for topic in range(TOPICS) for partition in range(PARTITIONS)]
    return [log(OFFSETS_TOPIC, 0, **facts | {"log_end_offset": 1 << 40, "high_watermark": 1 << 40}), *own]


def _cpu_of(work: Callable[[], object]) -> float:
    return timed(work)[0]
