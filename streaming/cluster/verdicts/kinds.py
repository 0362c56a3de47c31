"""The kinds of problems, with the sentences that they share with the alerts of conf/alerts: how bad, in one line, and what it costs.

An operator whom an alert pages finds the same words on the page and in the terminal; `tests/verdicts/test_kinds.py` compares them.
"""

from dataclasses import dataclass

from streaming.broker.protocol.status_json import CRITICAL, INFO, WARNING
from streaming.common.units import format_name

_NOT_ADVANCING = "Read_committed consumers of their partitions do not advance."

NO_KIND = {
    "BytesSkipped": "it reports bytes that were missed lately; they stay in a counter for ever",
    "ClustersMixed": "a job sees one cluster: another page has the other one",
    "LogTruncated": "it reports what was cut off lately; the count stays for ever",
    "ObserverDown": "who is down says nothing",
    "ObserverRestarting": "it counts restarts within a quarter of an hour",
    "Watchdog": "it reports that alerts arrive",
}
"""The alerts that no problem goes with, because one moment does not show what they report; with the reason."""

_NAMES = ("topic", "group", "log_dir", "agent", "client")
"""Labels whose values others have chosen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProblemKind:
    """One kind of problem, which the alert named ``alert`` reports, too, perhaps beside other kinds; "" if none does."""

    name: str
    severity: str
    alert: str
    summary: str  # the alert's, with ``{topic}`` for its label ``topic``; a problem's sentence begins with it
    costs: str = ""  # a sentence of the alert's description, "" if that has none that holds in every case
    else_severity: str = ""  # the one that it has in other circumstances, which both the judge and the alert know; "" if it has none

    def about(self, **labels: object) -> str:
        """The summary about one thing: names are written so that they can neither hide nor pretend anything."""
        return self.summary.format(**{label: format_name(str(value)) if label in _NAMES else value for label, value in labels.items()})


def _kind(name: str, severity: str, alert: str, summary: str, costs: str = "", *, else_severity: str = "") -> ProblemKind:
    return ProblemKind(name=name, severity=severity, alert=alert, summary=summary, costs=costs, else_severity=else_severity)


QUORUM_LOST = _kind("quorum_lost", CRITICAL, "QuorumLost", "The cluster has no active controller")
OFFLINE = _kind(
    "partition_offline",
    CRITICAL,
    "OfflinePartition",
    "Partitions of topic {topic} have no leader",
    "Nobody can write to or read from them.",
)
UNCLEAN = _kind(
    "unclean_election",
    CRITICAL,
    "UncleanElection",
    "Unclean leader election in topic {topic}",
    "Records that it lacks are gone, at the latest once the old leader is back and cuts its log off.",
)
LOG_CORRUPT = _kind(
    "log_corrupt",
    CRITICAL,
    "LogCorrupt",
    "A log of topic {topic} is corrupt on broker {broker}",
    "Reads of the damaged bytes from this broker fail.",
)
HANGING = _kind("transaction_hanging", CRITICAL, "TransactionHanging", "Hanging transactions in topic {topic}")
BROKER_DOWN = _kind("broker_down", CRITICAL, "BrokerDown", "Broker {broker} is down")
BROKER_NOT_WRITING = _kind("broker_not_writing", CRITICAL, "BrokerNotWriting", "Broker {broker} does not write")
BROKER_METADATA_STALLED = _kind(
    "broker_metadata_stalled",
    CRITICAL,
    "BrokerMetadataStalled",
    "Broker {broker} reads no metadata",
    "It does not learn which partitions it leads, which topics are new, and which options have changed.",
)
LOG_DIR_OFFLINE = _kind(
    "log_dir_offline",
    CRITICAL,
    "LogDirOffline",
    "Broker {broker} has given up log dir {log_dir}",
    "The replicas in it are out of sync or without a leader.",
)
LOG_SET_ASIDE = _kind(
    "log_set_aside",
    CRITICAL,
    "LogSetAside",
    "Broker {broker} sets logs of live topics aside in log dir {log_dir}",
    "Nobody serves their records, or will after the broker's next start.",
)
LOG_DIR_FULL = _kind(
    "log_dir_full",
    CRITICAL,
    "LogDirFillingUp",
    "Log dir {log_dir} of broker {broker} {does}",
    "When it is full, Kafka takes the log dir offline, or stops if it has no other.",
    else_severity=WARNING,
)
UNDER_MIN_ISR = _kind(
    "under_min_isr",
    CRITICAL,
    "UnderMinIsr",
    "Topic {topic} has too few in-sync replicas",
    "Producers with acks=all fail there. From Kafka 3.7 on consumers get nothing new there either, not even what producers with acks=1 "
    "still write.",
)
GROUP_WILL_LOSE = _kind(
    "group_will_lose", CRITICAL, "GroupWillLoseData", "Group {group} will lose records of topic {topic}", else_severity=WARNING
)
OVERDUE = _kind(
    "transaction_overdue",
    CRITICAL,
    "TransactionOverdue",
    "A coordinator does not abort transactions that have timed out",
    "Their coordinator should have aborted them within seconds.",
)
STUCK = _kind("transaction_stuck", CRITICAL, "TransactionStuck", "Stuck transactions in topic {topic}", _NOT_ADVANCING)
LOG_DIR_UNREADABLE = _kind(
    "log_dir_unreadable",
    CRITICAL,
    "LogDirUnreadable",
    "segtail cannot read log dir {log_dir} of broker {broker}",
    "segtail knows nothing of the partitions in it.",
)
METADATA_UNREADABLE = _kind(
    "metadata_unreadable",
    CRITICAL,
    "MetadataUnreadable",
    "segtail cannot read the metadata of any broker",
    "OfflinePartition, UnderMinIsr, UnderReplicated, UncleanElection, BrokerDown, BrokerStarting, BrokerStopped, BrokerMetadataStalled, "
    "QuorumLost and TransactionHanging cannot fire.",
)
LAGGING = _kind(
    "behind",
    CRITICAL,
    "ObserverLagging",
    "The metrics of broker {broker} are behind its logs",
    "Its rates show backlog, and alerts about its partitions stay quiet until segtail has caught up.",
    else_severity=WARNING,
)
GROUP_LOST = _kind("group_lost", WARNING, "GroupLostData", "Group {group} has lost records of topic {topic}")
GROUP_SKIPPED = _kind(
    "group_skipped",
    WARNING,
    "GroupSkippedRecords",
    "Records of topic {topic} were skipped for group {group}",
    "Nobody reads them for the group unless its offset is set back.",
)
GROUP_OFFSET_INVALID = _kind(
    "group_offset_invalid",
    WARNING,
    "GroupOffsetInvalid",
    "The committed offset of group {group} is not valid in topic {topic}",
    "Its consumers may skip records that they have not read, or wait.",
)
GROUP_HELD = _kind(
    "group_held",
    WARNING,
    "GroupHeldUp",
    "Group {group} waits for an open transaction in topic {topic}",
    "The group is not at fault.",
)
GROUP_PENDING = _kind(
    "group_pending",
    WARNING,
    "GroupHeldUp",
    "Group {group} waits for an open transaction in topic {topic}",
    "Until they end, consumers of these partitions get no offset to begin at.",
)
GROUP_STOPPED = _kind("group_stopped", WARNING, "GroupStopped", "Group {group} has stopped in topic {topic}")
GROUP_REBALANCING = _kind(
    "group_rebalancing",
    WARNING,
    "GroupRebalanceStorm",
    "Group {group} rebalances again and again",
    "With each rebalance consumers stop, or read what they had read before their last commit once more.",
)
GROUP_OFFSETS_EXPIRE = _kind(
    "group_offsets_expire",
    WARNING,
    "GroupOffsetsExpire",
    "Offsets of group {group} in topic {topic} expire",
    "Then auto.offset.reset decides where its consumers begin: at the earliest record, or at the end.",
)
STALLED = _kind(
    "last_stable_offset_stalled",
    WARNING,
    "LastStableOffsetStalled",
    "The last stable offset of topic {topic} does not move",
    "Read_committed consumers see no newer records.",
)
RETENTION_OVERDUE = _kind("retention_overdue", WARNING, "RetentionOverdue", "Broker {broker} does not delete old segments of topic {topic}")
RETENTION_BLOCKED = _kind(
    "retention_blocked", WARNING, "RetentionBlocked", "Retention of topic {topic} is blocked on broker {broker} ({reason})"
)
IN_FUTURE = _kind(
    "timestamps_in_future",
    WARNING,
    "TimestampsInFuture",
    "Records in topic {topic} are dated in the future",
    "Retention by time keeps their segments, and all behind them, until that date and the limit have passed.",
)
ARRIVES_EXPIRED = _kind(
    "arrives_expired",
    WARNING,
    "ArrivesExpired",
    "Records in topic {topic} are past their retention when they are written",
    "Producers get acknowledgments for records that Kafka deletes at its next check of retention.",
)
COMPACTION_STALLED = _kind("compaction_stalled", WARNING, "CompactionStalled", "Topic {topic} is not compacted on broker {broker}")
CLIENT_ABORTS = _kind(
    "client_aborts",
    WARNING,
    "",  # the operator on call has nothing to do tonight
    "Client {client} aborts most of its transactions",
    "Consumers with read_committed do not get the records of these transactions.",
)
UNDER_REPLICATED = _kind(
    "under_replicated",
    WARNING,
    "UnderReplicated",
    "Topic {topic} is under-replicated",
    "Another failure may make them unavailable.",
)
BROKER_STARTING = _kind("broker_starting", WARNING, "BrokerStarting", "Broker {broker} does not finish its start")
BROKER_STOPPED = _kind("broker_stopped", WARNING, "BrokerStopped", "Broker {broker} is shut down", "Replicas on it fall behind meanwhile.")
REPLICA_CORRUPT = _kind(
    "replica_corrupt",
    WARNING,
    "ReplicaCorrupt",
    "A follower's log of topic {topic} is corrupt on broker {broker}",
    "Nobody reads them before that replica leads.",
)
SCRUB_CORRUPT = _kind(
    "scrub_corrupt",
    WARNING,
    "ReplicaCorrupt",
    "Closed segments are damaged on broker {broker}, log dir {log_dir}",
    "Reads of them from this replica fail; the other replicas may be whole.",
)
LOG_UNREADABLE = _kind(
    "log_unreadable",
    WARNING,
    "LogUnreadable",
    "Logs of broker {broker} that segtail cannot read: {value}",
    "Their metrics do not change.",
)
SCRUB_UNREADABLE = _kind(
    "scrub_unreadable",
    WARNING,
    "LogUnreadable",
    "Closed segments cannot be read on broker {broker}, log dir {log_dir}",
    "If it is the disk, the broker gets the same errors when it reads there, and gives the log dir up.",
)
AGENT_DOWN = _kind("agent_down", WARNING, "AgentDown", "segtail's agent {agent} {does}", else_severity=CRITICAL)
BLIND = _kind(
    "blind",
    WARNING,
    "ObserverBlind",
    "segtail does not see everything ({reason})",
    "Alerts that need this stay quiet.",
    else_severity=CRITICAL,
)
LIMITS_ASSUMED = _kind(
    "limits_assumed",
    WARNING,
    "ObserverBlind",
    "segtail does not see everything (limits_assumed)",
    "GroupWillLoseData, RetentionOverdue and RetentionBlocked are silent for them.",
)
LOG_DIR_UNWATCHED = _kind(
    "log_dir_unwatched",
    WARNING,
    "ObserverBlind",
    "segtail does not see everything (log_dir_unwatched)",
    "segtail knows the logs in them only from the metadata.",
)
SCRUB_OVERDUE = _kind(
    "scrub_overdue",
    WARNING,
    "ObserverBlind",
    "segtail does not see everything (scrub_overdue)",
    "Bit rot in its closed segments may be older than that.",
)
GROUPS_ABANDONED = _kind("groups_abandoned", INFO, "GroupsAbandoned", "Abandoned consumer groups: {value}", "What they lose alerts nobody.")

KINDS: tuple[ProblemKind, ...] = tuple(each for each in list(globals().values()) if isinstance(each, ProblemKind))
"""All kinds, the most severe first: this is the order of problems of one severity, too."""

AWAY = (BROKER_DOWN, BROKER_NOT_WRITING, BROKER_STARTING, BROKER_STOPPED)
"""Of a broker that serves nothing, or may not."""

ORDER = {each.name: place for place, each in enumerate(KINDS)}
