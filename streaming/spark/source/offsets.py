"""The stream's offset: how far the rows of each agent have been planned. All arithmetic on offsets is here, without Spark or network.

An offset is JSON. Spark compares it as text, so its keys are always in the same order. An agent's rows after ``after`` up to ``seq`` are
those of the micro-batch that ends there, and ``total`` the log bytes up to there since the agent's start. ``turn`` counts plans that
brought nothing new but have to deliver again what did not arrive.

Beside the agents, an offset holds how many shards a run of the query has recalled (`Recall`), so that a micro-batch that is run again
recalls the same ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from streaming.broker.protocol.consumer_messages import NOT_BEGUN, Plan, Range
from streaming.common.event_row import journal_file
from streaming.errors import CheckpointError
from streaming.spark.source.counted_file import NOT_ARRIVED, Arrived

RECALL_SHARDS = 16
"""One micro-batch recalls so many shards: with 1,250 logs each, and 3 KiB of state per log, that is 60 MiB."""

_RECALL = ""  # the key instead of an agent's name, which is never empty

Offset = dict[str, Any]
"""The JSON that Spark keeps: ``{agent: {journal, after, seq, total, turn}}``. The recall is ``{"": {run, shards}}``."""


@dataclass(frozen=True, slots=True)
class AgentOffset:
    """How far one agent's rows have been planned."""

    journal: str
    after: int
    seq: int
    total: int
    turn: int

    def has_arrived(self, upto: Arrived) -> bool:
        """Whether all of it is in the states, which have the agent's rows ``upto`` there."""
        return self.journal == upto.journal and self.seq <= upto.seq


def recall(start: Offset, run: str, shards: int) -> Offset:
    """The offset after the next shards of a query's ``shards`` are recalled; ``start`` itself if this run has recalled all of them."""
    before = _recalled(start)
    done = before.shards if before is not None and before.run == run else 0
    return start if done >= shards else {_RECALL: asdict(Recall(run, min(shards, done + RECALL_SHARDS))), **_agents(start)}


def _recalled(offset: Offset) -> Recall | None:
    return Recall(**offset[_RECALL]) if _RECALL in offset else None


@dataclass(frozen=True, slots=True)
class Recall:
    """A run of the query has recalled the first ``shards`` shards."""

    run: str
    shards: int


def _agents(offset: Offset) -> Offset:
    return {agent: fields for agent, fields in offset.items() if agent != _RECALL}


def recalls(start: Offset, end: Offset) -> range:
    """The shards that are recalled between two offsets."""
    before, to = _recalled(start), _recalled(end)
    if to is None:
        return range(0)
    return range(before.shards if before is not None and before.run == to.run else 0, to.shards)


def advance(start: Offset, plans: Iterable[Plan], arrived: Mapping[str, Arrived]) -> Offset:
    """The offset after ``plans``; ``start`` itself if nothing is new. An agent without a plan stays where it is.

    Args:
        arrived: up to where the rows of each agent are in the states.
    """
    agents = parse(start)
    for plan in plans:
        if plan.seq == NOT_BEGUN:
            continue
        before, turn = agents.get(plan.agent), 0
        if before is not None and before.journal == plan.journal:
            is_new = plan.seq > before.seq
            if not is_new and before.has_arrived(arrived.get(plan.agent, NOT_ARRIVED)):
                continue
            turn = before.turn + (not is_new)
        agents[plan.agent] = AgentOffset(plan.journal, plan.after, plan.seq, plan.total, turn)
    following = {_RECALL: start[_RECALL]} if _RECALL in start else {}
    following |= {agent: asdict(agents[agent]) for agent in sorted(agents)}
    return start if following == start else following


def parse(offset: Offset) -> dict[str, AgentOffset]:
    """The offset's agents.

    Raises:
        CheckpointError: it is of another version.
    """
    try:
        return {agent: AgentOffset(**fields) for agent, fields in _agents(offset).items()}
    except TypeError as error:
        raise CheckpointError(
            f"the checkpoint's offset is of another version of segtail ({error}): name another checkpoint with --checkpoint DIR"
        ) from error


def ranges(start: Offset, end: Offset, consumer: str, run: str) -> dict[str, Range]:
    """The ranges that the agents have to deliver between two offsets to a run of a consumer's query."""
    before = parse(start)
    return {agent: Range(consumer, run, to.journal, to.after, to.seq) for agent, to in parse(end).items() if before.get(agent) != to}


def reached(offset: Offset, targets: Mapping[str, Arrived]) -> bool:
    """Whether every agent has been planned up to its target, whichever beginning in its process the plans are of."""
    agents = parse(offset)
    return all(
        (at := agents.get(agent)) is not None and journal_file(at.journal) == journal_file(target.journal) and at.seq >= target.seq
        for agent, target in targets.items()
    )
