"""A job as Spark runs it: the offset log, the micro-batch, the state, ``foreachBatch``, the commit log; a crash between any two of them.

Planning is what `streaming.spark.source.stream` does, without threads and clocks. The fold runs in the real processor, and what Spark
would keep of a shard is what survives. What is counted goes through the real file, which is of one run.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pyarrow as pa

from streaming.broker.protocol.consumer_messages import NOT_BEGUN, PlanRequest, Range, Register
from streaming.broker.protocol.event_tables import events_table
from streaming.broker.protocol.known_ends import pack
from streaming.cluster.view.table import Table
from streaming.common.event_row import Event
from streaming.common.log_key import LogKey
from streaming.common.rows import ROWS, SHARD, Change, Kind, unpack_rows
from streaming.common.state_row import STATES
from streaming.errors import AgentError
from streaming.rules.log_state import LogState
from streaming.rules.shard_state import ShardState
from streaming.spark.job.counting import Counting
from streaming.spark.query.processor import ShardProcessor
from streaming.spark.source import offsets
from streaming.spark.source.counted_file import NOT_ARRIVED, NOTHING_COUNTED, Counted, read_counted
from streaming.spark.source.stream import by_shard, recall
from tests.model.agent import Wire
from tests.view.rows import new_context

SHARDS = 2
STEPS = ("planned", "read", "folded", "kept", "shown")
"""Behind what a job may crash: the offset log is written, all is read, a shard is folded, the state is committed, the table has it."""


class Crashed(BaseException):
    """The driver ends here."""


class Job:
    """One job. What begins with ``self._offsets`` survives a crash.

    Args:
        counted: the file in which it says what it has counted.
    """

    def __init__(self, name: str, start_from: str, wires: dict[int, Wire], counted: Path) -> None:
        self.name, self.start_from, self.wires = name, start_from, wires
        self.crash_after = ""
        self.budget: int | None = None
        self._counted_file = counted
        self._offsets: list[offsets.Offset] = []
        self._committed = 0  # micro-batches
        self.states: dict[int, dict[str, bytes]] = {}  # by shard and name
        self._runs = 0
        self._shown_before: dict[LogKey, int] = {}
        self._saved: _Checkpoint | None = None
        self.start()

    def save(self) -> None:
        """Copy the checkpoint."""
        self._saved = _Checkpoint(list(self._offsets), self._committed, self.states, self._shown_before)

    def restore(self) -> bool:
        """Go on from that copy; returns whether there is one."""
        if self._saved is None:
            return False
        saved = self._saved
        self._offsets, self._committed = list(saved.offsets), saved.committed
        self.states, self._shown_before = saved.states, saved.shown
        self.start()
        return True

    def start(self) -> None:
        """A new run, in a new process: nothing is left but the checkpoint."""
        self._runs += 1
        self.run = f"run {self._runs}"
        self.crash_after = ""
        self._registered: dict[int, str] = {}  # agents, by their addresses, and the name that each had then
        self._goes_on: bool | None = None  # whether it recalls; None before its first plan
        self._counting = Counting(self._counted_file, SHARDS if self.at else 0)
        self.table = Table(replicas="all", stale_after_s=1e9, series_limit=1 << 20, context=new_context())

    @property
    def at(self) -> offsets.Offset:
        """The end of the last micro-batch that was planned."""
        return self._offsets[-1] if self._offsets else {}

    @property
    def everywhere(self) -> bool:
        """Whether every agent that is up knows that this run is there."""
        return all(address in self._registered for address, wire in self.wires.items() if wire.agent.up)

    # --- one trigger

    def step(self) -> bool:
        """One trigger; returns whether there was a micro-batch. Raises Crashed where it was told to."""
        if self._committed == len(self._offsets):
            end = self._plan()
            if end is self.at or end == self.at:
                return False
            self._offsets.append(end)
            self._crash("planned")
        start = self._offsets[-2] if len(self._offsets) > 1 else {}
        packed = self._read(start, self.at)
        self._crash("read")
        states, changed = self._fold(packed)
        self._crash("kept")
        self._show(changed)
        self._crash("shown")
        self.states, self._committed = states, len(self._offsets)
        if offsets.recalls(start, self.at):
            self._check_recalled()
        self._shown_before = self._shown()
        return True

    def _crash(self, after: str) -> None:
        if self.crash_after == after:
            raise Crashed(after)

    def _plan(self) -> offsets.Offset:
        if self._goes_on is None:
            self._goes_on = bool(self.at)
        if self._goes_on and (recalled := offsets.recall(self.at, self.run, SHARDS)) is not self.at:
            return recalled
        counted = read_counted(self._counted_file) if self.at else NOTHING_COUNTED
        if counted is None:  # the file is damaged or gone: it is written again before anything is planned
            return self.at
        for address in self.wires.keys() - self._registered.keys():
            self._register(address, counted)
        plans = []
        for address, name in list(self._registered.items()):
            arrived = counted.arrived.get(name, NOT_ARRIVED)
            request = PlanRequest(self.name, self.run, arrived.journal, arrived.seq, self.budget, 0)
            try:
                plan = self.wires[address].plan(request)
            except AgentError:
                del self._registered[address]
                continue
            if plan.seq == NOT_BEGUN or plan.agent != name:
                del self._registered[address]
            if plan.agent == name:
                plans.append(plan)
        return offsets.advance(self.at, plans, counted.arrived)

    def _register(self, address: int, counted: Counted) -> None:
        brokers = [self.wires[address].agent.broker]
        resumed = not counted.brokers.isdisjoint(brokers)
        request = Register(self.name, self.start_from, resumed, run=self.run, positions=pack(counted.ends(brokers)))
        try:
            self._registered[address] = self.wires[address].register(request).agent
        except AgentError:
            self._registered.pop(address, None)

    def _read(self, start: offsets.Offset, end: offsets.Offset) -> dict[int, list[bytes]]:
        packed = {row[SHARD]: [row[ROWS]] for row in recall(offsets.recalls(start, end)).to_pylist()}
        totals = {agent: at.total for agent, at in offsets.parse(end).items()}
        for name, asked in offsets.ranges(start, end, self.name, self.run).items():
            try:
                events = self._wire(name).read(asked, name)
            except AgentError:
                continue  # they come with a later range
            for row in by_shard(pa.concat_tables([events, _arrived(name, asked, totals[name])]), SHARDS).to_pylist():
                packed.setdefault(row[SHARD], []).append(row[ROWS])
        return packed

    def _wire(self, name: str) -> Wire:
        """To the agent that has this name now."""
        for wire in self.wires.values():
            if wire.agent.name == name:
                return wire
        raise AgentError("no agent has this name")

    def _fold(self, packed: dict[int, list[bytes]]) -> tuple[dict[int, dict[str, bytes]], list[pa.RecordBatch]]:
        states, changed = dict(self.states), []
        for shard, rows in sorted(packed.items()):
            kept = dict(states.get(shard, {}))
            processor = ShardProcessor()
            processor.init(SimpleNamespace(getValueState=lambda name, schema, kept=kept: _Kept(name, kept)))  # type: ignore[arg-type]
            frames = iter([pd.DataFrame({SHARD: [shard] * len(rows), ROWS: rows})])
            for produced in processor.handleInputRows((shard,), frames, None):
                changed += [unpack_rows(each, STATES) for each in produced[ROWS]]
            if kept:
                states[shard] = kept
            self._crash("folded")
        return states, changed

    def _show(self, changed: list[pa.RecordBatch]) -> None:
        table = pa.Table.from_batches(changed, STATES)
        self.table.apply(table)
        self._counting.take(table)
        anew = {LogKey(*key) for change, *key in _changes(table) if change in (Change.REMOVED, Change.DEPARTED)}
        shown = self._shown()
        for key, counted in self._shown_before.items():
            if key in shown and key not in anew:
                assert shown[key] >= counted, f"{self.name}: a counter of {key} stepped back from {counted} to {shown[key]}"

    def _check_recalled(self) -> None:
        """The table holds what the state does, whatever was reported before."""
        live = {key: state for key, state in self.logs().items() if key.topic and not state.departed}
        assert self._shown() == {key: state.appended_bytes for key, state in live.items()}, f"{self.name}: recalled and not in the state"
        seen = self.table.snapshot(0.0)
        carried = {
            LogKey(int(broker), seen.topic_names[topic], int(partition), seen.topic_ids[slot]): seen.carried[slot].segments is not None
            for slot, (kind, broker, topic, partition) in enumerate(
                zip(*(seen.columns[name] for name in ("kind", "broker", "topic", "partition")), strict=True)
            )
            if kind == 1
        }
        known = {key: state.segments is not None for key, state in live.items()}
        assert carried == known, f"{self.name}: lists of segments are in the state and were not recalled"

    def _shown(self) -> dict[LogKey, int]:
        """The byte counters on the page, by log."""
        seen = self.table.snapshot(0.0)
        columns = seen.columns
        values = zip(columns["kind"], columns["broker"], columns["topic"], columns["partition"], columns["appended_bytes"], strict=True)
        return {
            LogKey(int(broker), seen.topic_names[topic], int(partition), seen.topic_ids[slot]): int(counted)
            for slot, (kind, broker, topic, partition, counted) in enumerate(values)
            if kind == 1
        }

    # --- what it says

    def logs(self) -> dict[LogKey, LogState]:
        """All that the state holds."""
        found: dict[LogKey, LogState] = {}
        for kept in self.states.values():
            state = ShardState(kept["shard"], partial(kept.get, "segments"))
            state.lists.open()
            keys = list(state.known())
            state.load(keys)  # one by one it costs several times as much
            found.update({key: each for key in keys if (each := state.find(key)) is not None})
        return found


@dataclass(frozen=True, slots=True)
class _Checkpoint:
    """A copy of what Spark keeps, and what was on the page at its last commit."""

    offsets: list[offsets.Offset]
    committed: int
    states: dict[int, dict[str, bytes]]
    shown: dict[LogKey, int]


class _Kept:
    """A value that Spark would keep of a shard."""

    def __init__(self, name: str, kept: dict[str, bytes]) -> None:
        self._name = name
        self._kept = kept

    def get(self) -> tuple[bytes] | None:
        return (self._kept[self._name],) if self._name in self._kept else None

    def update(self, row: tuple[bytes]) -> None:
        (self._kept[self._name],) = row


def _changes(table: pa.Table) -> Iterator[tuple[Any, ...]]:
    return zip(*(table[name].to_pylist() for name in ("change", "broker", "topic", "partition", "topic_id")), strict=True)


def _arrived(agent: str, asked: Range, total: int) -> pa.Table:
    return events_table(agent, asked.journal, [(asked.upto, [Event(kind=Kind.ARRIVED, bytes=total)])])
