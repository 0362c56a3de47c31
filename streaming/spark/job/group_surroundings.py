"""The rounds over consumer groups of a job: with the clients of its agents, and with what these say of the cluster."""

from collections.abc import Callable, Mapping
from datetime import timedelta

from streaming.cluster.consumers.group_rounds import GroupRounds, Surroundings
from streaming.cluster.consumers.group_snapshot import GroupBoard
from streaming.cluster.consumers.group_tracker import GroupTracker
from streaming.cluster.view.broker_status import newest
from streaming.cluster.view.cluster_counts import topic_partitions
from streaming.cluster.view.observer import Observer
from streaming.cluster.view.table import Table
from streaming.common.settings import Settings
from streaming.spark.client.agent_client import AgentClient, ClientFiles
from streaming.spark.job.agent_statuses import AgentWatch
from streaming.spark.source import agent_connections


def rounds_of(
    settings: Settings,
    table: Table,
    board: GroupBoard,
    observer: Observer,
    agents: AgentWatch,
    files: ClientFiles,
    clock: Callable[[], float],
) -> GroupRounds:
    """The rounds of a job, not started yet."""

    def topics() -> Mapping[str, int] | None:
        statuses = (status for each in observer.agents if each.up for status in each.broker_statuses)
        return topic_partitions(newest(each for each in statuses if each.counts))

    tracker = GroupTracker(table.export, settings.group_stopped_after // timedelta(milliseconds=1))
    around = Surroundings(agents=lambda: clients_of(observer, files), cluster_topics=topics, clock=clock, consumer=lambda: agents.consumer)
    return GroupRounds(table, board, tracker, around)


def clients_of(observer: Observer, files: ClientFiles) -> dict[str, AgentClient]:
    """The clients of the agents that are up, by name."""
    up = (each for each in observer.agents if each.up and each.address)
    return {each.name: agent_connections.client(each.address, files) for each in up}
