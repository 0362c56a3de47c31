"""How many records each log has on disk, as its agent counts them: asked for in changes, and put into the table."""

from collections.abc import Iterable, Sequence
from itertools import compress

import numpy as np
import pyarrow.compute as pc

from streaming.broker.protocol.group_messages import RecordsRequest
from streaming.broker.protocol.group_stream import RecordsAnswer
from streaming.cluster.view.table import RECORD_KINDS, Table
from streaming.cluster.view.uncounted import Uncounted
from streaming.common.arrays import Longs
from streaming.common.log_key import LogKey, keys_in


class CountedRecords:
    """The counts of all agents. For one thread."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._versions: dict[str, RecordsRequest] = {}
        self._counted: dict[str, set[LogKey]] = {}  # by agent
        self._errors: dict[str, dict[LogKey, str]] = {}  # by agent
        self._idle: set[str] = set()  # agents that count no log
        self._waiting: dict[str, dict[LogKey, Longs]] = {}  # by agent, the counts of logs that were not in the table yet

    def request(self, agent: str) -> RecordsRequest:
        """The question for an agent: everything since its last answer."""
        return self._versions.get(agent, RecordsRequest())

    def take(self, agent: str, answer: RecordsAnswer) -> None:
        """An agent has answered."""
        self._versions[agent] = RecordsRequest(answer.process, answer.number)
        keys, known = keys_in(answer.rows), self._counted.setdefault(agent, set())
        if answer.whole:
            self._lose(agent, known.difference(keys))
        ends, *counts = (answer.rows[name].to_numpy() for name in ("next_offset", *RECORD_KINDS))
        counted = ends >= 0
        known.update(compress(keys, counted.tolist()))
        self._put(agent, list(compress(keys, counted.tolist())), np.stack(counts)[:, counted])
        self._lose(agent, set(compress(keys, (~counted).tolist())))
        self._take_errors(agent, keys, answer)
        self._idle = self._idle | {agent} if not answer.process else self._idle - {agent}
        self._publish()

    def settle(self) -> None:
        """Try again to put the counts of logs into the table that were not in it."""
        for agent, counts in self._waiting.items():
            if counts:
                self._put(agent, list(counts), np.stack(list(counts.values()), axis=1))

    def forget(self, agents: Iterable[str]) -> None:
        """These agents take part no more: nobody knows what their logs have by now."""
        for agent in agents:
            self._versions.pop(agent, None)
            self._lose(agent, self._counted.pop(agent, set()))
            self._errors.pop(agent, None)
            self._waiting.pop(agent, None)
            self._idle.discard(agent)
            self._publish()

    @property
    def agents(self) -> set[str]:
        """The agents that have answered."""
        return set(self._counted)

    def _put(self, agent: str, keys: Sequence[LogKey], counts: Longs) -> None:
        """Set the counts of some logs, shape (`RECORD_KINDS`, logs)."""
        self._wait_no_more(agent, keys)
        missing = self._table.set_records(keys, counts).tolist()
        self._waiting.setdefault(agent, {}).update((keys[item], counts[:, item].copy()) for item in missing)

    def _lose(self, agent: str, keys: set[LogKey]) -> None:
        """It is not known any more how many records these logs have."""
        if keys:
            self._table.set_records(list(keys), np.full((len(RECORD_KINDS), len(keys)), -1))
            self._counted.get(agent, set()).difference_update(keys)
            self._wait_no_more(agent, keys)

    def _wait_no_more(self, agent: str, keys: Iterable[LogKey]) -> None:
        waiting = self._waiting.get(agent)
        if waiting:
            for key in waiting.keys() & keys:
                del waiting[key]

    def _take_errors(self, agent: str, keys: Sequence[LogKey], answer: RecordsAnswer) -> None:
        """Take over why logs are not counted: of those that the answer is about, or of all if it has all."""
        before = {} if answer.whole else self._errors.get(agent, {})
        texts = pc.fill_null(answer.rows["error"], "")
        now = {keys[item]: texts[item].as_py() for item in np.flatnonzero(pc.not_equal(texts, "").to_numpy()).tolist()}
        there = {*keys} if before else set()
        self._errors[agent] = {key: error for key, error in before.items() if key not in there} | now

    def _publish(self) -> None:
        """Why the other logs have no counts."""
        errors = {key: error for of_agent in self._errors.values() for key, error in of_agent.items()}
        self._table.set_uncounted(Uncounted(errors=errors, idle=frozenset(self._idle)))
