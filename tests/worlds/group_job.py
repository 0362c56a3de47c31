"""What a job says of the groups of log dirs, with an agent and its ladders, by all of its parts but Spark."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pyarrow as pa

from streaming.broker.protocol.group_json import BatchCheck, GroupDetail
from streaming.broker.protocol.group_messages import POSITIONS, BatchRequest, GroupsRequest, PositionsRequest, RecordsRequest
from streaming.broker.protocol.group_stream import GroupsAnswer, RecordsAnswer, read_records, read_table
from streaming.broker.protocol.group_stream import read_groups as read_answer
from streaming.cluster.consumers.group_details import GroupDetails
from streaming.cluster.consumers.group_partitions import GroupPartitions
from streaming.cluster.consumers.group_rounds import GroupRounds, Surroundings, ask_agents
from streaming.cluster.consumers.group_snapshot import GroupBoard
from streaming.cluster.consumers.group_tracker import GroupTracker
from streaming.cluster.consumers.group_uncommitted import LOG_START_MS
from streaming.cluster.verdicts.group_judge import judge_groups
from streaming.cluster.view.family import EVERYTHING
from streaming.cluster.view.transaction_columns import READ_AFTER_MS
from streaming.cluster.view.view import view
from streaming.common.settings import Settings
from streaming.pages.api.listed_groups import GroupResults, ListedGroups
from tests.agents import Agent
from tests.one_agent_job import OneAgentJob

HOUR = 3_600_000
SETTINGS = Settings(broker_config={"log.retention.ms": str(30 * HOUR)}, group_stopped_after=timedelta(days=10_000))
STOPPED_AFTER_MS = SETTINGS.group_stopped_after // timedelta(milliseconds=1)


class Client:
    """The calls of a client, without a wire."""

    def __init__(self, agent: Agent, now_ms: int) -> None:
        assert agent.service.about_groups is not None
        self._answers = replace(agent.service.about_groups, clock=lambda: now_ms / 1000)

    def groups(self, request: GroupsRequest | None = None) -> GroupsAnswer:
        return read_answer(_sent(self._answers.groups(request or GroupsRequest())))

    def records(self, request: RecordsRequest | None = None) -> RecordsAnswer:
        return read_records([*_sent(self._answers.records(request or RecordsRequest()))])

    def positions(self, asked: pa.Table) -> pa.Table:
        (message,) = _sent(self._answers.positions(PositionsRequest.of(asked)))
        return read_table(message, POSITIONS)

    def batch(self, request: BatchRequest) -> BatchCheck:
        return self._answers.check_batch(request)


def _sent(messages: Iterable[bytes | pa.Buffer]) -> Iterator[bytes]:
    return (bytes(memoryview(each)) for each in messages)


def reported_by_job(
    path: Path | Sequence[Path], scratch: Path, now_ms: int, tracker: GroupTracker | None = None, settings: Settings = SETTINGS
) -> dict[str, GroupDetail]:
    """What it says that has just begun, or has seen what its tracker has."""
    agent = Agent(*([path] if isinstance(path, Path) else path))
    job = OneAgentJob(agent, settings)
    agent.count()
    agent.follow_groups()
    job.round(now_ms)
    table = job.table
    board, clock = GroupBoard(), lambda: now_ms / 1000
    around = Surroundings(
        agents=lambda: {"a1": Client(agent, now_ms)}, cluster_topics=lambda: None, clock=clock, consumer=lambda: "job", monotonic=clock
    )
    rounds = GroupRounds(table, board, tracker or GroupTracker(EVERYTHING, STOPPED_AFTER_MS), around)
    for read_ms in (now_ms, now_ms + max(READ_AFTER_MS, LOG_START_MS)):  # what offsets prove, they do when the agent has looked again
        table.set_reading({"a1": read_ms / 1000})
        rounds.round()
    table.set_reading({"a1": now_ms / 1000})
    groups = board.latest(now_ms)
    assert groups is not None
    snapshot = table.snapshot(now_ms / 1000)
    answers = ListedGroups(
        judged=judge_groups(groups, now_ms),
        results=GroupResults(groups, EVERYTHING.has_consumer),
        messages=lambda: GroupPartitions(groups, view(snapshot), snapshot.topic_names),
        details=lambda messages: GroupDetails(messages, {"a1": Client(agent, now_ms)}, ask_agents),
    )
    found = {name: answers.detail(item) for item, name in enumerate(answers.totals.names)}
    rounds.close()
    agent.close()
    return found
