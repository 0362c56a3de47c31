"""The stream's offset: how far the journal of each agent has been planned. All arithmetic on offsets is here, without Spark or network.

An offset is JSON. Spark compares it as text, so its keys are always in the same order. ``seq`` is the last event planned, and ``total`` the
log bytes up to it since the journal began. ``turn`` counts plans that brought nothing new but have to deliver again what did not arrive.
``brokers`` are the brokers whose logs the agent watched: they identify an agent that comes back under another name.

Beside the agents, an offset holds how many shards a run of the query has recalled (`Recall`), so that a micro-batch that is run again
recalls the same ones.
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from streaming.broker.protocol.consumer_messages import NOT_BEGUN, Plan, Range

OWN_BEGINNING = -1
"""``after`` of a range that begins where the agent began to publish for this consumer."""


@dataclass(frozen=True, slots=True)
class AgentOffset:
    """How far one agent's journal has been planned."""

    journal: str
    seq: int
    total: int
    turn: int
    brokers: tuple[int, ...] = ()  # none: not known


@dataclass(frozen=True, slots=True)
class Recall:
    """A run of the query has recalled the first ``shards`` shards."""

    run: str
    shards: int


RECALL_SHARDS = 16
"""One micro-batch recalls so many shards: with 1,250 logs each, and 3 KiB of state per log, that is 60 MiB."""

_RECALL = ""  # the key instead of an agent's name, which is never empty

Offset = dict[str, Any]
"""The JSON that Spark keeps: ``{agent: {journal, seq, total, turn, brokers}}``, without ``brokers`` if they are not known. The recall is
``{"": {run, shards}}``."""


def parse(offset: Offset) -> dict[str, AgentOffset]:
    """The offset's agents."""
    return {agent: AgentOffset(**fields | {"brokers": tuple(fields.get("brokers", ()))}) for agent, fields in _agents(offset).items()}


def _recalled(offset: Offset) -> Recall | None:
    return Recall(**offset[_RECALL]) if _RECALL in offset else None


def recall(start: Offset, run: str, shards: int) -> Offset:
    """The offset after the next shards of a query's ``shards`` are recalled; ``start`` itself if this run has recalled all of them."""
    before = _recalled(start)
    done = before.shards if before is not None and before.run == run else 0
    return start if done >= shards else {_RECALL: asdict(Recall(run, min(shards, done + RECALL_SHARDS))), **_agents(start)}


def recalls(start: Offset, end: Offset) -> range:
    """The shards that are recalled between two offsets."""
    before, to = _recalled(start), _recalled(end)
    if to is None:
        return range(0)
    return range(before.shards if before is not None and before.run == to.run else 0, to.shards)


def _agents(offset: Offset) -> Offset:
    return {agent: fields for agent, fields in offset.items() if agent != _RECALL}


def _fields(at: AgentOffset) -> dict[str, Any]:
    found = asdict(at) | {"brokers": list(at.brokers)}
    return {name: value for name, value in found.items() if name != "brokers" or value}


def knows(agents: Mapping[str, AgentOffset], agent: str, brokers: Iterable[int]) -> bool:
    """Whether something of these brokers' logs has been planned before, by this agent or by one of another name.

    An agent whose brokers are not known may have watched any of them.
    """
    return agent in agents or any(not at.brokers or not set(at.brokers).isdisjoint(brokers) for at in agents.values())


def advance(start: Offset, plans: Iterable[Plan], brokers: Mapping[str, Iterable[int]] | None = None) -> Offset:
    """The offset after ``plans``; ``start`` itself if nothing is new. An agent without a plan stays where it is.

    Args:
        brokers: the brokers whose logs each agent watches, as far as they are known.
    """
    agents = parse(start)
    for plan in plans:
        if plan.seq == NOT_BEGUN:
            continue
        before = agents.get(plan.agent)
        turn = 0 if before is None or before.journal != plan.journal else before.turn + plan.again
        watched = tuple(sorted((brokers or {}).get(plan.agent, ()))) or (() if before is None else before.brokers)
        agents[plan.agent] = AgentOffset(plan.journal, plan.seq, plan.total, turn, watched)
    following = {_RECALL: start[_RECALL]} if _RECALL in start else {}
    following |= {agent: _fields(agents[agent]) for agent in sorted(agents)}
    return start if following == start else following


def ranges(start: Offset, end: Offset, consumer: str, run: str) -> dict[str, Range]:
    """The ranges that the agents have to deliver between two offsets to a run of a consumer's query."""
    before, found = parse(start), {}
    for agent, to in parse(end).items():
        since = before.get(agent)
        if since == to or (since is not None and replace(since, brokers=to.brokers) == to):
            continue
        if since is not None and since.journal == to.journal and since.seq <= to.seq:
            found[agent] = Range(consumer, run, to.journal, since.seq, since.total, to.seq)
        else:
            found[agent] = Range(consumer, run, to.journal, OWN_BEGINNING, 0, to.seq)
    return found


def reached(offset: Offset, targets: Mapping[str, AgentOffset]) -> bool:
    """Whether every agent has been planned up to its target."""
    agents = parse(offset)
    return all(
        (at := agents.get(agent)) is not None and at.journal == target.journal and at.seq >= target.seq for agent, target in targets.items()
    )
