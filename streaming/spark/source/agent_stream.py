"""Agents as the place of a stream's logs: they plan by the positions that they are told, and keep nothing of who asks.

Logs belong to brokers. Several agents may share the log dirs of one broker, or watch the same ones: each answers for what it has. A log is
gone only if no agent has it, and all agents have answered.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter

import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from streaming.broker.excerpts.position_between import Move, moves_of
from streaming.broker.protocol.agent_calls import Call, Reason
from streaming.broker.protocol.excerpt_messages import ScanRequest, UnreadPart
from streaming.broker.protocol.position_messages import Between, BetweenRequest, Missing, Reached, ReachRequest, Selected
from streaming.broker.protocol.status_messages import Status
from streaming.common.log_positions import LogName, Position, pack, unpack
from streaming.common.start_from import StartFrom
from streaming.errors import AgentError, SameAgentError, VersionError
from streaming.kafka.formats.properties import known_clusters
from streaming.spark.client.agent_client import LISTING_SECONDS, REACH_SECONDS, AgentClient
from streaming.spark.source import agent_connections
from streaming.spark.source.agent_reader import BUSY_SECONDS, AgentReader
from streaming.spark.source.at_once import Task, scan_of
from streaming.spark.source.producer_names import LATE_SECONDS, ProducerNames, names_of_agents
from streaming.spark.source.public_options import PublicOptions, nothing_fits
from streaming.spark.source.stream_logs import AllPositions, StreamLogs, StreamTask, Wanted, missing_row

log = logging.getLogger(__name__)

READ_SECONDS = 120.0
"""How long a query waits for an agent whose rows were planned."""

BUFFER_BYTES = 64 << 20
"""So many bytes of an answer are kept until it is complete, so that it can be asked for again; of a longer one the task fails."""

_PAUSE_SECONDS = 0.25

_BEFORE, _TO = attrgetter("before"), attrgetter("to")


class AgentLogs(StreamLogs):
    """The logs of a stream that are read through agents. Only one thread uses it."""

    def __init__(self, options: PublicOptions, clock: Callable[[], float], sleep: Callable[[float], None]) -> None:
        self._options, self._clock, self._sleep = options, clock, sleep
        self._agents: dict[str, Status] = {}  # by address: those that take part
        self._available: dict[str, dict[LogName, Position]] = {}
        self._absent: dict[str, set[LogName]] = {}  # what no agent had at the last plan
        self._has_planned = False

    def available(self) -> dict[str, dict[LogName, Position]]:
        """Up to where each log could be read at the last plan."""
        return self._available

    def plan(self, wanted: Wanted) -> dict[str, dict[LogName, Position]]:
        """The positions after the next micro-batch. An agent that is away is planned no further, and no other agent waits for it.

        Raises:
            AgentError: no agent answers at first, or all are wanted and one does not.
            UsageError: a query that begins names topics, and no agent has any of them.
        """
        seconds = READ_SECONDS if self._has_planned else agent_connections.PATIENCE_SECONDS
        deadline = self._clock() + seconds
        while True:
            answers = self._reached(wanted)
            late = self._late()
            enough = (bool(answers) and not late) if wanted.all else (bool(answers) or self._has_planned)
            if enough:
                self._has_planned = True
                if not wanted.at and not late:
                    self._check_topics(answers)
                # one that was asked for other brokers than it has now may have any of their logs
                right = all(each.said.brokers == sorted(map(int, of)) for of in answers.values() for each in of.values())
                return self._merged(wanted.at, answers, whole=right and not late)
            if self._clock() > deadline:
                raise AgentError(self._reasons(late))
            self._sleep(_PAUSE_SECONDS)

    def _reached(self, wanted: Wanted) -> dict[str, dict[str, _Plan]]:
        """The answers of each agent, by address and broker."""
        self._look_for_agents()
        count = sum(len(status.brokers) for status in self._agents.values())
        budget = None if wanted.budget is None else max(1, wanted.budget // max(1, count))
        options = self._options
        start = options.starting_position or StartFrom.LATEST
        packed = {key: pack(each) for key, each in wanted.at.items()}

        def ask(client: AgentClient) -> dict[str, _Plan]:
            status, found = self._agents[client.address], {}
            for broker in status.brokers:
                request = ReachRequest(
                    broker=broker,
                    at=packed.get(str(broker), ""),
                    first=str(broker) not in packed,
                    start=str(options.starting_timestamp if options.starting_timestamp >= 0 else start),
                    selected=Selected.of(options.selection),
                    budget=budget,
                )
                answer = client.reach(request)
                self._check_name(client, status, answer.agent)
                found[str(broker)] = _Plan.of(answer, client.address)
            return found

        begins = any(str(broker) not in packed for status in self._agents.values() for broker in status.brokers)
        seconds = LISTING_SECONDS if begins else REACH_SECONDS
        answers = agent_connections.ask_all(self._agents, ask, options.files, call=Call.REACH, seconds=seconds)
        self._agents = {
            address: replace(status, brokers=next(iter(answers[address].values())).said.brokers) if answers[address] else status
            for address, status in self._agents.items()
            if address in answers
        }
        return answers

    def _merged(self, at: AllPositions, answers: Mapping[str, Mapping[str, _Plan]], *, whole: bool) -> dict[str, dict[LogName, Position]]:
        """The positions after all answers; ``whole``: all agents have answered."""
        ends = {key: dict(each) for key, each in at.items()}
        available = {key: dict(each) for key, each in at.items()}
        for key in sorted({key for each in answers.values() for key in each}):
            own = [each[key] for each in answers.values() if key in each]
            of = ends.setdefault(key, {})
            for each in own:
                of |= each.changed
            if whole and not any(each.said.away for each in own):
                absent = set.intersection(*({*each.absent} for each in own))
                # of several agents, one may have looked before it came and another one after it left: it is looked for once more
                for name in absent if len(own) == 1 else absent & self._absent.get(key, set()):
                    of.pop(name, None)
                self._absent[key] = absent
            available[key] = {**of, **{name: upto for each in own for name, upto in each.available.items()}}
        self._available = available
        return ends

    def _check_topics(self, answers: Mapping[str, Mapping[str, _Plan]]) -> None:
        """Check that one of the topics is there that a query names when it begins. A pattern waits for those that come."""
        selection = self._options.selection
        found = [each.said for of in answers.values() for each in of.values()]
        if not selection.topics or any(each.matched or each.away for each in found):
            return
        there = agent_connections.ask_all(self._agents, lambda client: client.topics(), self._options.files, seconds=LISTING_SECONDS)
        raise nothing_fits(selection, {topic for names in there.values() for topic in names})

    def tasks(self, before: AllPositions, to: AllPositions) -> list[StreamTask]:
        """The tasks between two positions.

        Raises:
            AgentError: no agent has a log of which a part was planned, and an agent does not answer for `READ_SECONDS`.
        """
        found = _Found({key: moves_of(before.get(key, {}), to[key]) for key in to})
        deadline, looked = self._clock() + READ_SECONDS, 0
        while found.left:
            self._look_for_agents()
            found.away.clear()
            for address, answers in self._between(found.left).items():
                for key, (answer, absent) in answers.items():
                    self._take(found, address, key, answer, absent)
            late, looked = self._late(), looked + 1
            if not late and not found.away.keys() & found.left.keys() and looked > 1:  # it may have moved from one to another meanwhile
                break
            if found.left and self._clock() > deadline:
                raise AgentError(self._why_missing(found, late))
            if found.left:
                self._sleep(_PAUSE_SECONDS)
        for key, moves in found.left.items():  # no agent has them
            for move in moves:
                self._tell(found, key, move.missing(None))
        return [*found.tasks, StreamTask(missing=tuple(found.rows))] if found.rows else found.tasks

    def _between(self, left: Mapping[str, Sequence[Move]]) -> dict[str, dict[str, tuple[Between, Collection[LogName]]]]:
        """What agents have of what is left, by address and broker, with the logs that they lack."""
        excerpt_bytes = AgentReader(self._options).excerpt_bytes

        def ask(client: AgentClient) -> dict[str, tuple[Between, Collection[LogName]]]:
            status, found = self._agents[client.address], dict[str, tuple[Between, Collection[LogName]]]()
            for key in sorted(left.keys() & set(map(str, status.brokers))):
                before, to = ({each.name: at for each in left[key] if (at := of(each)) is not None} for of in (_BEFORE, _TO))
                request = BetweenRequest(broker=int(key), before=pack(before), to=pack(to), excerpt_bytes=excerpt_bytes)
                answer = client.between(request)
                self._check_name(client, status, answer.agent)
                found[key] = answer, _unpacked(answer.absent, client.address)
            return found

        answers = agent_connections.ask_all(self._agents, ask, self._options.files, call=Call.BETWEEN, seconds=LISTING_SECONDS)
        self._agents = {address: status for address, status in self._agents.items() if address in answers}
        return answers

    def _take(self, found: _Found, address: str, key: str, answer: Between, absent: Collection[LogName]) -> None:
        """Take what an agent has of the logs that no other one had; ``absent``: those that it lacks."""
        moves = found.left.get(key, [])
        own = {move.name for move in moves if move.name not in absent}
        found.leave(key, [move for move in moves if move.name in absent])
        if answer.away:
            found.away[key] = f"agent {answer.agent} cannot read {', '.join(answer.away)} now"
        excerpts = [each for each in answer.excerpts if LogName(each.topic, each.partition) in own]
        for task in AgentReader(self._options).tasks(address, excerpts, self._cluster_id):
            scan = AgentTask(task.address, task.excerpts, False, cluster_id=task.cluster_id, agent=answer.agent)
            found.tasks.append(StreamTask(scan))
        self._tell(found, key, [each for each in answer.missing if LogName(each.topic, each.partition) in own])

    def _tell(self, found: _Found, key: str, missing: Iterable[Missing]) -> None:
        rows = (missing_row(self._options.relation, key, each) for each in missing)
        found.rows += [each for each in rows if each is not None]

    def rows(self, scan: InputPartition) -> Iterator[pa.RecordBatch]:
        """Raises AgentError: the agent does not answer for a while, or went away in the middle of a long answer."""
        assert isinstance(scan, AgentTask)
        yield from _TaskReader(self._options, self._clock, self._sleep).read(scan)

    # --- who takes part

    @property
    def _cluster_id(self) -> str:
        return next(iter(known_clusters(status.cluster_id for status in self._agents.values())), "")

    def _look_for_agents(self) -> None:
        """Find the agents that take part: each once, of one cluster, and of a version that is understood."""
        addresses, files = self._options.addresses(), self._options.files
        self._agents = {address: status for address, status in self._agents.items() if address in addresses}
        strangers = agent_connections.ask_all(
            [each for each in addresses if each not in self._agents], lambda client: client.status(), files
        )
        for refused in (
            agent_connections.misfits(strangers, files),
            agent_connections.unwelcome(strangers, self._agents, {}, self._options.cluster_id or self._cluster_id),
        ):
            for address, error in refused.items():
                agent_connections.line(address, files).refuse(error)
                strangers.pop(address, None)
        self._agents |= strangers

    def _late(self) -> list[str]:
        """The addresses of agents that should take part and do not answer."""
        addresses = self._options.addresses()
        errors = agent_connections.errors(addresses, self._options.files)
        return [each for each in addresses if each not in self._agents and not isinstance(errors.get(each), SameAgentError)]

    def _reasons(self, addresses: Iterable[str]) -> str:
        errors = agent_connections.errors(addresses, self._options.files)
        reasons = [str(errors.get(address, f"agent at {address}: it does not answer")) for address in addresses]
        return "; ".join(reasons) or "option agents: none has an address yet"

    def _why_missing(self, found: _Found, late: Sequence[str]) -> str:
        key = next(iter(found.left))
        name = found.left[key][0].name
        reasons = [*found.away.values(), *([self._reasons(late)] if late else [])]
        return f"{name.topic}-{name.partition} of broker {key} was planned, and no agent that answers has it: {'; '.join(reasons)}"

    @staticmethod
    def _check_name(client: AgentClient, status: Status, agent: str) -> None:
        if agent != status.agent:
            raise AgentError(f"agent at {client.address}: it is {status.agent} no more")


@dataclass(frozen=True, slots=True)
class _Plan:
    """An agent's `Reached`, unpacked where it was received: what is none is a problem of that agent alone."""

    said: Reached
    changed: dict[LogName, Position]
    absent: dict[LogName, Position]
    available: dict[LogName, Position]

    @classmethod
    def of(cls, said: Reached, address: str) -> _Plan:
        return cls(said, *(_unpacked(each, address) for each in (said.changed, said.absent, said.available)))


def _unpacked(packed: str, address: str) -> dict[LogName, Position]:
    try:
        return unpack(packed)
    except ValueError as error:
        raise AgentError(f"agent at {address}: its positions cannot be read ({error})", Reason.PROTOCOL) from error


@dataclass(slots=True)
class _Found:
    """What was found of moved logs: those that are ``left`` by broker, and why some of them may be ``away``."""

    left: dict[str, list[Move]]
    away: dict[str, str] = field(default_factory=dict)
    tasks: list[StreamTask] = field(default_factory=list)
    rows: list[dict[str, object]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.left = {key: moves for key, moves in self.left.items() if moves}

    def leave(self, key: str, moves: list[Move]) -> None:
        """So many are left of a broker's."""
        self.left.pop(key, None)
        if moves:
            self.left[key] = moves


@dataclass
class AgentTask(Task):
    """Excerpts of the agent of this name, which was at ``address`` when they were planned."""

    agent: str = ""


class _TaskReader(AgentReader):
    """Reads a task of one agent, and asks again while nothing of it was passed on."""

    def __init__(self, options: PublicOptions, clock: Callable[[], float], sleep: Callable[[float], None]) -> None:
        super().__init__(options)
        self._clock, self._sleep = clock, sleep

    def _rows(self, task: Task) -> Generator[pa.Table, None, list[UnreadPart]]:
        assert isinstance(task, AgentTask)
        request = ScanRequest(scan=scan_of(self._options.relation), excerpts=list(task.excerpts))
        began, logged = self._clock(), ""
        while True:
            kept = _Kept()
            try:
                return (yield from kept.passed(self._found(task).scan(request)))
            except AgentError as error:
                patience = BUSY_SECONDS if error.reason == Reason.BUSY else READ_SECONDS
                if kept.has_passed or isinstance(error, VersionError) or self._clock() - began > patience:
                    raise
                if str(error) != logged:
                    log.warning("read failed", extra={"agent": task.agent, "error": str(error)})
                    logged = str(error)
            self._sleep(_PAUSE_SECONDS)

    def _found(self, task: AgentTask) -> AgentClient:
        """The connection to the task's agent, which may have come back at another address.

        Raises:
            AgentError: it is at none of the addresses.
        """
        problem: AgentError | None = None
        for address in sorted(self._options.addresses(), key=lambda address: address != task.address):
            client = self._client(address)
            try:
                if client.status().agent == task.agent:
                    return client
            except AgentError as error:
                problem = problem or error
                client.close()
        raise problem or AgentError(f"agent {task.agent} is at none of the addresses of option agents")

    def _names(self, cluster_id: str) -> ProducerNames:
        return names_of_agents(self._options, cluster_id, LATE_SECONDS)


@dataclass(slots=True)
class _Kept:
    """The rows of an answer that is not complete, as long as they are few."""

    has_passed: bool = False

    def passed(self, rows: Generator[pa.Table, None, list[UnreadPart]]) -> Generator[pa.Table, None, list[UnreadPart]]:
        """The same rows, none before there are many or all."""
        pieces: list[pa.Table] = []
        size = 0
        while True:
            try:
                table = next(rows)
            except StopIteration as end:
                self.has_passed = True
                yield from pieces
                unread: list[UnreadPart] = end.value
                return unread
            size += table.nbytes
            pieces.append(table)
            if self.has_passed or size > BUFFER_BYTES:
                self.has_passed = True
                yield from pieces
                pieces = []
