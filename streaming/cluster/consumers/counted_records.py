"""How many records each log has on disk, as its agent counts them: asked for in changes, and put into the table."""

from collections.abc import Iterable

from streaming.broker.protocol.group_messages import RecordsRequest
from streaming.broker.protocol.group_stream import RecordsAnswer
from streaming.cluster.view.table import RECORD_KINDS, Table
from streaming.cluster.view.uncounted import Uncounted
from streaming.common.log_key import LogKey

_NOT_KNOWN = (-1,) * len(RECORD_KINDS)


class CountedRecords:
    """The counts of all agents. For one thread."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._versions: dict[str, RecordsRequest] = {}
        self._counts: dict[str, dict[LogKey, tuple[int, ...]]] = {}  # by agent
        self._errors: dict[str, dict[LogKey, str]] = {}  # by agent
        self._idle: set[str] = set()  # agents that count no log
        self._waiting: set[LogKey] = set()  # logs that were not in the table yet

    def request(self, agent: str) -> RecordsRequest:
        """The question for an agent: everything since its last answer."""
        return self._versions.get(agent, RecordsRequest())

    def take(self, agent: str, answer: RecordsAnswer) -> None:
        """An agent has answered."""
        self._versions[agent] = RecordsRequest(answer.process, answer.number)
        known, changed = self._counts.setdefault(agent, {}), dict[LogKey, tuple[int, ...]]()
        if answer.whole:
            changed = dict.fromkeys(known, _NOT_KNOWN)
            self._errors[agent] = {}
        errors = self._errors.setdefault(agent, {})
        names = ("broker", "topic", "partition", "topic_id", "error", "next_offset", *RECORD_KINDS)
        for broker, topic, partition, topic_id, error, end, *counts in zip(*(answer.rows[name].to_pylist() for name in names), strict=True):
            key = LogKey(broker, topic, partition, topic_id)
            changed[key] = tuple(counts) if end >= 0 else _NOT_KNOWN
            errors[key] = error or ""
        self._errors[agent] = {key: error for key, error in errors.items() if error}
        self._idle = self._idle | {agent} if not answer.process else self._idle - {agent}
        known |= {key: counts for key, counts in changed.items() if counts != _NOT_KNOWN}
        for key in [key for key, counts in changed.items() if counts == _NOT_KNOWN]:
            known.pop(key, None)
        self._put(changed)
        self._publish()

    def settle(self) -> None:
        """Try again to put the counts of logs into the table that were not in it."""
        again = {key: counts[key] for counts in self._counts.values() for key in self._waiting & counts.keys()}
        self._waiting.clear()
        self._put(again)

    def forget(self, agents: Iterable[str]) -> None:
        """These agents take part no more: nobody knows what their logs have by now."""
        for agent in agents:
            self._versions.pop(agent, None)
            self._put(dict.fromkeys(self._counts.pop(agent, {}), _NOT_KNOWN))
            self._errors.pop(agent, None)
            self._idle.discard(agent)
            self._publish()

    @property
    def agents(self) -> set[str]:
        """The agents that have answered."""
        return set(self._counts)

    def _put(self, counts: dict[LogKey, tuple[int, ...]]) -> None:
        self._waiting |= {key for key in self._table.set_records(counts) if counts[key] != _NOT_KNOWN}

    def _publish(self) -> None:
        """Why the other logs have no counts."""
        errors = {key: error for of_agent in self._errors.values() for key, error in of_agent.items()}
        self._table.set_uncounted(Uncounted(errors=errors, idle=frozenset(self._idle)))
