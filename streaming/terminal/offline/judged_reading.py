"""One reading of log dirs, judged as a job judges its table."""

from collections.abc import Sequence

from streaming.cluster.verdicts.circumstances import Circumstances, thresholds_of
from streaming.cluster.verdicts.commands import Commands, option
from streaming.cluster.view.disk_use import full_by_dir
from streaming.cluster.view.observer import AgentStatus
from streaming.cluster.view.table import Snapshot
from streaming.cluster.view.view import View
from streaming.common.settings import Settings
from streaming.kafka.formats.metadata_records import server_of_any
from streaming.pages.api.history import MeanRates
from streaming.pages.api.judged_look import JudgedLook
from streaming.pages.api.listed_groups import ListedGroups
from streaming.pages.api.look import Look
from streaming.terminal.offline.offline_agent import NAME
from streaming.terminal.offline.single_reading import SingleReading


def judged(
    reading: SingleReading,
    view: View,
    snapshot: Snapshot,
    settings: Settings,
    *,
    groups: ListedGroups | None = None,
    unknown: Sequence[str] = (),
    whole: bool = False,
) -> JudgedLook:
    """The reading, judged as of its own time.

    Args:
        unknown: sentences about what cannot be told.
        whole: all logs were read, so what is out of sight is unknown, too.
    """
    agent, now_ms = agent_of(reading), reading.now_ms
    return JudgedLook(
        look=Look(view, snapshot),
        circumstances=Circumstances(
            view=view,
            topics=snapshot.topic_names,
            now_ms=now_ms,
            agents=(agent,),
            groups=None if groups is None else groups.judged,
            thresholds=thresholds_of(settings),
            commands=Commands(
                server=server_of_any(map(reading.agent.cluster.broker, agent.brokers)),
                asked=option("--log-dirs", ",".join(map(str, settings.log_dirs))),
            ),
            live=False,
            full=full_by_dir(view, (agent,), now_ms),
            min_isr=reading.min_isr,
        ),
        groups=groups,
        rates=MeanRates(),
        newest_ms=now_ms,
        unknown=tuple(dict.fromkeys(unknown)),
        whole=whole,
    )


def agent_of(reading: SingleReading) -> AgentStatus:
    """What an agent would say of these log dirs."""
    status = reading.agent.status()
    return AgentStatus(
        name=NAME,
        up=True,
        brokers=tuple(status.brokers),
        cluster_id=status.cluster_id,
        metadata_brokers=frozenset(status.brokers) - frozenset(status.unreadable_metadata),
        log_dirs=tuple(status.log_dirs),
        broker_statuses=tuple(status.broker_statuses),
        unreadable_logs=tuple(status.unreadable_logs),
        logs=status.logs,
    )
