"""Times by a host's clock, told by the job's: a host whose clock is wrong is not down, and its coordinators are not late."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from streaming.broker.protocol.agent_calls import Reason
from streaming.broker.protocol.status_messages import BrokerStatus
from streaming.cluster.view.observer import AgentStatus


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


def _broker_moved(each: BrokerStatus, ahead_ms: int) -> BrokerStatus:
    process = each.process
    if process is not None:
        process = replace(process, since_ms=_moved(process.since_ms, ahead_ms), last_ms=_moved(process.last_ms, ahead_ms))
    return replace(each, appended_ms=_moved(each.appended_ms, ahead_ms), process=process)


def clocks_ahead(statuses: Iterable[AgentStatus]) -> Mapping[int, int]:
    """By how many milliseconds the clock of each broker is ahead of the job's, for those where that is a problem."""
    return {broker: ahead_ms for each in statuses if (ahead_ms := _ahead_ms(each)) for broker in each.brokers}


def _ahead_ms(status: AgentStatus) -> int:
    wrong = Reason.CLOCK in status.problems and status.clock_ahead_seconds is not None
    return round(1000 * (status.clock_ahead_seconds or 0.0)) if wrong else 0


def _moved(at_ms: int, ahead_ms: int) -> int:
    return at_ms - ahead_ms if at_ms >= 0 else at_ms
