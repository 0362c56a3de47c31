"""What agents say of the coordinators' logs, held back until the table holds their journals as far as they went then.

So a commit is never newer than the data that it is held against.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from streaming.broker.protocol.group_messages import Following, GroupsRequest, KnownLog
from streaming.broker.protocol.group_stream import GroupsAnswer
from streaming.cluster.view.rounds import End
from streaming.kafka.groups.commit_store import CommitStore


@dataclass(slots=True)
class _OfAgent:
    known: list[KnownLog] = field(default_factory=list)  # what was received, counting already or not
    waiting: list[GroupsAnswer] = field(default_factory=list)
    reading: set[tuple[int, str, int]] = field(default_factory=set)  # broker, topic, partition


class GroupChangesTaken:
    """The answers of all agents. For one thread.

    Args:
        reached: up to where an agent's journal is in the table.
        consumer: the job's id as a consumer.
    """

    def __init__(self, store: CommitStore, reached: Callable[[str], End | None], consumer: Callable[[], str]) -> None:
        self._store = store
        self._reached = reached
        self._consumer = consumer
        self._agents: dict[str, _OfAgent] = {}

    def request(self, agent: str) -> GroupsRequest:
        """What to ask an agent: everything since its last answer."""
        return GroupsRequest(known=self._agents.get(agent, _OfAgent()).known, consumer=self._consumer())

    def take(self, agent: str, answer: GroupsAnswer) -> None:
        """An agent has answered."""
        of = self._agents.setdefault(agent, _OfAgent())
        of.waiting.append(answer)
        of.known = [
            KnownLog(
                broker=each.broker,
                topic=each.topic,
                topic_id=each.topic_id,
                coordinator=each.coordinator,
                edition=each.edition,
                version=each.version,
            )
            for each in answer.changes
        ]

    def settle(self) -> None:
        """Put into the store what counts by now: the answers up to the last one whose end is reached."""
        for agent, of in self._agents.items():
            reached = self._reached(agent)
            counting = [number for number, answer in enumerate(of.waiting) if _is_reached(answer, reached)]
            for answer in of.waiting[: counting[-1] + 1] if counting else ():
                for changes in answer.changes:
                    self._store.take(agent, changes)
                others = {(each.topic, each.coordinator) for each in answer.others}
                of.reading = {(each.broker, each.topic, each.coordinator) for each in answer.others if each.following == Following.READING}
                self._store.forget(agent, others | {(each.topic, each.coordinator) for each in answer.changes})
            del of.waiting[: counting[-1] + 1 if counting else 0]

    @property
    def reading(self) -> set[tuple[str, int, str, int]]:
        """The logs, by agent and broker, that the agents have and whose commits they do not know now."""
        return {(agent, *log) for agent, of in self._agents.items() for log in of.reading}

    def forget(self, agents: set[str]) -> None:
        """These agents take part no more."""
        for agent in agents & self._agents.keys():
            del self._agents[agent]
            self._store.forget(agent)

    @property
    def agents(self) -> set[str]:
        """The agents that have answered."""
        return set(self._agents)


def _is_reached(answer: GroupsAnswer, reached: End | None) -> bool:
    return reached is not None and reached.journal == answer.journal and reached.seq >= answer.seq
