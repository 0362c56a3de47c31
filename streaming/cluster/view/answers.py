"""Puts into the table what a round of agents' answers contains beside the rows that they publish."""

from collections.abc import Iterable, Sequence

from streaming.broker.protocol.status_messages import BrokerStatus, Status
from streaming.cluster.view.broker_status import newest
from streaming.cluster.view.cluster_counts import reassignments, topic_ids
from streaming.cluster.view.host_clocks import clocks_ahead
from streaming.cluster.view.host_families import coordinator_partitions, fenced
from streaming.cluster.view.observer import AgentStatus
from streaming.cluster.view.process_reports import away_brokers, broker_processes
from streaming.cluster.view.reported_once import each_broker
from streaming.cluster.view.scrubs import corrupt_replicas
from streaming.cluster.view.table import Table
from streaming.common.log_key import key_of


def apply(table: Table, statuses: Iterable[AgentStatus], answered: Iterable[Status]) -> None:
    """Update the table's brokers, log dirs, and logs that cannot be read.

    Args:
        statuses: all agents; for those that are down, their last status.
        answered: the answers of the agents that have answered now and take part.
    """
    agents, answers = list(statuses), list(answered)
    up = [each for each in agents if each.up]
    brokers = [status for each in agents for status in each.broker_statuses]
    table.set_coordinators(coordinator_partitions(brokers))
    table.set_fenced(fenced(brokers))
    processes = broker_processes(each_broker(status for each in up for status in each.broker_statuses))
    table.set_away(each.broker for each in away_brokers(processes))
    table.set_metadata_time(written_ms(brokers))
    table.set_clocks(clocks_ahead(up))
    counting = newest(status for each in up for status in each.broker_statuses if status.counts)
    table.set_reassignments(reassignments(counting))
    table.set_topic_ids(topic_ids(counting))
    table.set_unreadable(key_of(log) for each in up for log in each.unreadable_logs)
    unread = [(each.broker, each.log_dir) for status in answers for each in status.log_dirs if not each.up]
    table.set_unread_dirs([*unread, *((each.broker, each.log_dir) for status in answers for each in status.blocked)])
    table.set_scrubbed(corrupt_replicas(scrub for each in up for scrub in each.scrubs))


def written_ms(brokers: Sequence[BrokerStatus]) -> int | None:
    """When the most advanced copy of the metadata log was last written to; None unless a running cluster writes to it all the time."""
    latest = newest(brokers)
    return None if latest is None or latest.appended_ms < 0 else latest.appended_ms
