"""The stream's offset: for each agent how far its journal has been planned. All arithmetic on offsets is here, without Spark or network.

An offset is JSON, compared by Spark as text, so its keys are always in the same order. ``seq`` is the last event planned and ``total`` the
log bytes up to it since the journal began; ``turn`` counts plans that brought nothing new but have to deliver again what did not arrive.
``brokers`` are those whose logs the agent watched: by them an agent that comes under another name is known for what it is.
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from streaming.agent.messages import NOT_BEGUN, Plan, Range

OWN_BEGINNING = -1
"""``after`` of a range that begins where the agent has begun to publish for this consumer."""


@dataclass(frozen=True, slots=True)
class AgentOffset:
    """How far one agent's journal has been planned."""

    journal: str
    seq: int
    total: int
    turn: int
    brokers: tuple[int, ...] = ()  # none: planned by an earlier version


Offset = dict[str, Any]
"""What Spark keeps: ``{agent: {journal, seq, total, turn, brokers}}``, without brokers where they are not known."""


def parse(offset: Mapping[str, Any]) -> dict[str, AgentOffset]:
    """The offset's agents."""
    return {agent: AgentOffset(**fields | {"brokers": tuple(fields.get("brokers", ()))}) for agent, fields in offset.items()}


def _fields(at: AgentOffset) -> dict[str, Any]:
    found = asdict(at) | {"brokers": list(at.brokers)}
    return {name: value for name, value in found.items() if name != "brokers" or value}


def knows(known: Mapping[str, AgentOffset], agent: str, brokers: Iterable[int]) -> bool:
    """Whether something of these brokers' logs has been planned before, by this agent or by one of another name.

    Of what an earlier version planned nobody knows whose logs it was: any agent may be one of those.
    """
    return agent in known or any(not at.brokers or not set(at.brokers).isdisjoint(brokers) for at in known.values())


def advance(start: Offset, plans: Iterable[Plan], brokers: Mapping[str, Iterable[int]] | None = None) -> Offset:
    """The offset after ``plans``; ``start`` itself if nothing is new. An agent without a plan stays where it is.

    Args:
        brokers: whose logs each agent watches, as far as that is known.
    """
    agents = parse(start)
    for plan in plans:
        if plan.seq == NOT_BEGUN:
            continue
        before = agents.get(plan.agent)
        turn = 0 if before is None or before.journal != plan.journal else before.turn + plan.again
        watched = tuple(sorted((brokers or {}).get(plan.agent, ()))) or (() if before is None else before.brokers)
        agents[plan.agent] = AgentOffset(plan.journal, plan.seq, plan.total, turn, watched)
    following = {agent: _fields(agents[agent]) for agent in sorted(agents)}
    return start if following == start else following


def ranges(start: Mapping[str, Any], end: Mapping[str, Any], consumer: str, run: str) -> dict[str, Range]:
    """What each agent has to deliver between two offsets to a run of a consumer's query."""
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


def reached(offset: Mapping[str, Any], targets: Mapping[str, AgentOffset]) -> bool:
    """Whether every agent has been planned up to its target."""
    agents = parse(offset)
    return all(
        (at := agents.get(agent)) is not None and at.journal == target.journal and at.seq >= target.seq for agent, target in targets.items()
    )
