"""The offset of a public stream: how far each agent has been planned. All arithmetic on it is here, without Spark or network.

An offset is JSON. Spark compares it as text, so its keys are always in the same order. Beside the agents it holds the reader's own id,
under which the agents know it, the option ``consumer`` or one that was made up when the query first planned:
``{"": id, agent: {journal, seq, total, excerpts}}``.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from streaming.broker.protocol.reader_messages import ReaderPlan, ReaderPosition
from streaming.spark.source.offsets import Offset as Offset

_ID = ""  # the key instead of an agent's name, which is never empty


@dataclass(frozen=True, slots=True)
class AgentRange:
    """What a micro-batch reads of an agent. ``events``: the journal has something between the two positions.

    ``anew``: the reader began anew at this agent after ``begin``, because that could not go on: what lay between is not known.
    """

    begin: ReaderPosition
    end: ReaderPosition
    events: bool
    anew: bool = False


def reader_id(offset: Offset) -> str:
    """The id in an offset, "" if there is none."""
    found: str = offset.get(_ID, "")
    return found


def positions(offset: Offset) -> dict[str, ReaderPosition]:
    """The position at each agent."""
    return {agent: ReaderPosition(**fields) for agent, fields in offset.items() if agent != _ID}


def advance(start: Offset, reader: str, plans: Iterable[ReaderPlan]) -> Offset:
    """The offset after ``plans``; ``start`` itself if nothing is new. An agent without a plan stays where it is."""
    at = positions(start) | {plan.agent: plan.to for plan in plans if plan.begun}
    if at == positions(start) and reader_id(start) in ("", reader):
        return start
    return {_ID: reader} | {agent: _fields(at[agent]) for agent in sorted(at)}


def _fields(at: ReaderPosition) -> dict[str, Any]:
    return {"journal": at.journal, "seq": at.seq, "total": at.total, "excerpts": at.excerpts}


def ranges(start: Offset, end: Offset) -> dict[str, AgentRange]:
    """What has to be read of each agent between two offsets."""
    before, found = positions(start), {}
    for agent, to in positions(end).items():
        since = before.get(agent)
        if since == to:
            continue
        if since is not None and since.journal == to.journal:
            found[agent] = AgentRange(since, to, events=since.seq < to.seq)
        else:
            # what lay there before it has had, if it has been there before
            begin = ReaderPosition(journal=to.journal, seq=-1, excerpts=0 if since is None else to.excerpts)
            found[agent] = AgentRange(begin, to, events=True, anew=since is not None)
    return found


def reached(offset: Offset, targets: Mapping[str, ReaderPosition]) -> bool:
    """Whether every agent has been planned up to its target."""
    at = positions(offset)
    return all(agent in at and at[agent] == target for agent, target in targets.items())
