"""What a round of agents' answers says beside the rows that they publish, as the table wants to know it."""

from collections.abc import Iterable, Sequence

from streaming.agent.messages import BrokerStatus, Status
from streaming.metrics.broker_status import newest
from streaming.metrics.health import coordinator_partitions, fenced
from streaming.metrics.observer import AgentStatus
from streaming.metrics.partition_counts import reassignments
from streaming.metrics.scrubs import corrupt_replicas
from streaming.metrics.table import LogKey, Table


def tell(table: Table, known: Iterable[AgentStatus], answered: Iterable[Status]) -> None:
    """Tell the table of brokers, of log dirs, and of logs that cannot be read.

    Args:
        known: all agents, those that are down as they answered last.
        answered: what those said that have answered now and take part.
    """
    agents, answers = list(known), list(answered)
    up = [each for each in agents if each.up]
    brokers = [status for each in agents for status in each.broker_statuses]
    table.told_coordinators(coordinator_partitions(brokers))
    table.told_fenced(fenced(brokers))
    table.told_metadata(written_ms(brokers))
    table.told_reassignments(reassignments(newest(status for each in up for status in each.broker_statuses if status.counts)))
    table.told_unreadable(LogKey(log.broker, log.topic, log.partition, log.topic_id) for each in up for log in each.unreadable_logs)
    unread = [(each.broker, each.log_dir) for status in answers for each in status.log_dirs if not each.up]
    table.told_unread_dirs([*unread, *((each.broker, each.log_dir) for status in answers for each in status.blocked)])
    table.told_scrubbed(corrupt_replicas(scrub for each in up for scrub in each.scrubs))


def written_ms(brokers: Sequence[BrokerStatus]) -> int | None:
    """When the copy of the metadata log that has come furthest was last written to, where a running cluster would do that all the time."""
    latest = newest(brokers)
    return None if latest is None or latest.appended_ms < 0 else latest.appended_ms
