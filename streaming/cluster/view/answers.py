"""Puts into the table what a round of agents' answers contains beside the rows that they publish, by the clock of the job."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from streaming.broker.protocol.agent_calls import Reason
from streaming.broker.protocol.status_messages import BrokerStatus, Status
from streaming.cluster.view.broker_status import (
    away_brokers,
    broker_processes,
    each_broker,
    newest,
    reassignments,
    topic_ids,
    topic_partitions,
)
from streaming.cluster.view.host_families import coordinator_partitions, corrupt_replicas, fenced
from streaming.cluster.view.observer import AgentStatus
from streaming.cluster.view.table import Table


def by_our_clock(status: AgentStatus) -> AgentStatus:
    """The status with the times of files on its host moved by as much as its clock is wrong, if that is a problem; else as it is.

    A difference of less than that is no more than the way of an answer, and would make every time waver.
    """
    ahead_ms = _ahead_ms(status)
    if not ahead_ms:
        return status
    return replace(
        status,
        log_dirs=tuple(replace(each, checkpoint_ms=_moved(each.checkpoint_ms, ahead_ms)) for each in status.log_dirs),
        broker_statuses=tuple(_broker_moved(each, ahead_ms) for each in status.broker_statuses),
    )


def _ahead_ms(status: AgentStatus) -> int:
    wrong = Reason.CLOCK in status.problems and status.clock_ahead_seconds is not None
    return round(1000 * (status.clock_ahead_seconds or 0.0)) if wrong else 0


def _moved(at_ms: int, ahead_ms: int) -> int:
    return at_ms - ahead_ms if at_ms >= 0 else at_ms


def _broker_moved(each: BrokerStatus, ahead_ms: int) -> BrokerStatus:
    process = each.process
    if process is not None:
        process = replace(process, since_ms=_moved(process.since_ms, ahead_ms), last_ms=_moved(process.last_ms, ahead_ms))
    return replace(each, appended_ms=_moved(each.appended_ms, ahead_ms), process=process)


def apply(table: Table, statuses: Iterable[AgentStatus], answered: Iterable[Status]) -> None:
    """Update the table's brokers, log dirs, and logs that cannot be read.

    Args:
        statuses: all agents; for those that are down, their last status.
        answered: the answers of the agents that have answered now and take part.
    """
    agents, answers = list(statuses), list(answered)
    up = [each for each in agents if each.up]
    brokers = [status for each in agents for status in each.broker_statuses]
    processes = broker_processes(each_broker(status for each in up for status in each.broker_statuses))
    counting = newest(status for each in up for status in each.broker_statuses if status.counts)
    table.set_context(
        coordinator_partitions=coordinator_partitions(brokers),
        fenced=frozenset(fenced(brokers)),
        away=frozenset(each.broker for each in away_brokers(processes)),
        metadata_ms=written_ms(brokers),
        clocks_ahead_ms=clocks_ahead(up),
        reassignments=tuple(reassignments(counting)),
        topic_ids=topic_ids(counting),
        topic_partitions=topic_partitions(counting),
    )
    table.set_unreadable(key for each in up for key in each.unreadable_keys)
    unread = [(each.broker, each.log_dir) for status in answers for each in status.log_dirs if not each.up]
    table.set_unread_dirs([*unread, *((each.broker, each.log_dir) for status in answers for each in status.blocked)])
    table.set_scrubbed(corrupt_replicas(scrub for each in up for scrub in each.scrubs))


def written_ms(brokers: Sequence[BrokerStatus]) -> int | None:
    """When the most advanced copy of the metadata log was last written to; None unless a running cluster writes to it all the time."""
    latest = newest(brokers)
    return None if latest is None or latest.appended_ms < 0 else latest.appended_ms


def clocks_ahead(statuses: Iterable[AgentStatus]) -> Mapping[int, int]:
    """By how many milliseconds the clock of each broker is ahead of the job's, for those where that is a problem."""
    return {broker: ahead_ms for each in statuses if (ahead_ms := _ahead_ms(each)) for broker in each.brokers}
