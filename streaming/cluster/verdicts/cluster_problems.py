"""Problems of the cluster by its metadata: brokers, the controller, partitions without a leader or with too few replicas."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from streaming.broker.protocol.cluster_messages import AffectedPartition, PartitionCounts, TopicCounts
from streaming.broker.protocol.status_json import INFO
from streaming.broker.protocol.status_messages import ProcessStatus
from streaming.cluster.verdicts import kinds
from streaming.cluster.verdicts.circumstances import (
    NOT_WRITING_MS,
    Circumstances,
    LinkedProblem,
    Links,
    found,
    partitions_named,
    partitions_of,
)
from streaming.cluster.verdicts.commands import Command
from streaming.cluster.verdicts.out_of_sync import why_out_of_sync
from streaming.cluster.view.broker_status import BrokerPhase, judged_counts, newest
from streaming.common.units import capitalized, format_count, format_duration, format_size, format_time
from streaming.kafka.formats.metadata_records import Phase
from streaming.rules.broker_process import ProcessState
from streaming.rules.restart_cost import reading_seconds

NO_CONTROLLER_MS = 30_000
"""An active controller writes to the metadata log twice a second."""

STOPPED_FOR_MS = 1_800_000
"""Who stopped a broker knows; after so long others should know, too."""

_MOST_DESCRIBED = 5
_YET = "serves nothing yet"
_GOES_ON = Command(reason="it goes on when it is started again")
_START = Command(reason="Kafka has no tool that starts a broker: start it on its host")

REPLICATION: tuple[tuple[kinds.ProblemKind, str], ...] = (
    (kinds.OFFLINE, "offline"),
    (kinds.UNDER_MIN_ISR, "under_min_isr"),
    (kinds.UNDER_REPLICATED, "under_replicated"),
)
"""Kinds of problems with replicas, and the field of `TopicCounts` that counts such partitions."""

NOBODY = "nobody holds the locks of its log dirs: its process has ended, or they are a copy"
"""Of a broker whose process was not seen to end."""


def cluster_problems(circumstances: Circumstances) -> Iterator[LinkedProblem]:
    """Problems of brokers, of the controller, and of topics' replicas."""
    yield from _controller(circumstances)
    yield from _phases(circumstances)
    yield from _silent_brokers(circumstances)
    yield from _replicas(circumstances)


def _controller(circumstances: Circumstances) -> Iterator[LinkedProblem]:
    quiet = quiet_metadata(circumstances)
    if quiet and any(_may_append(circumstances, broker) for broker in circumstances.appended_ms):
        yield found(kinds.QUORUM_LOST, quiet, since_ms=max(circumstances.appended_ms.values()))


def quiet_metadata(circumstances: Circumstances) -> str:
    """For how long no controller has written, as far as any copy of the metadata log shows; "" if one does, or that is not known."""
    quiet_ms = circumstances.now_ms - max(circumstances.appended_ms.values(), default=circumstances.now_ms)
    if not circumstances.live or quiet_ms <= NO_CONTROLLER_MS:
        return ""
    return f"the metadata log has not grown on any broker for {format_duration(quiet_ms / 1000)}"


def _may_append(circumstances: Circumstances, broker: int) -> bool:
    """Whether a broker's copy of the metadata log should grow: its process runs, for all that is known, and writes."""
    phase = circumstances.phases.get(broker)
    ended = phase is not None and phase.phase in (Phase.DOWN, Phase.STOPPING)
    written = circumstances.checkpointed_ms.get(broker)
    return not ended and (written is None or circumstances.now_ms - written <= NOT_WRITING_MS)


def ended(process: ProcessStatus | None) -> str:
    """When the process of a broker that is down was seen to end; "" if it was not."""
    if process is None or process.state != ProcessState.ENDED:
        return ""
    first, last = (format_time(each, "seconds") for each in (process.last_ms, process.since_ms))
    return f"its process has ended {f'at {last}' if first == last else f'between {first} and {last}'}"


def _phases(circumstances: Circumstances) -> Iterator[LinkedProblem]:
    answering = {broker for each in circumstances.up for broker in each.brokers}
    quiet = quiet_metadata(circumstances)
    unmoved = f"; {quiet}: no controller is active that would move its leaderships" if quiet else ""
    for each in circumstances.phases.values():
        since_ms = -1 if each.since is None else round(each.since * 1000)
        age_ms = circumstances.now_ms - since_ms if since_ms >= 0 else None
        if each.phase is Phase.DOWN:
            process = circumstances.processes.get(each.broker)
            host = "answers: the host is up" if each.broker in answering else "does not answer, either"
            detail = down(process) + (f"; segtail's agent there {host}" if circumstances.live else "") + unmoved
            yield found(kinds.BROKER_DOWN, detail, broker=each.broker, since_ms=since_ms, command=_START)
        elif each.phase is Phase.STARTING:
            yield _starting(circumstances, each, since_ms, age_ms)
        elif each.phase is Phase.STOPPING:
            yield _stopped(circumstances, each.broker, since_ms, age_ms)


def down(process: ProcessStatus | None) -> str:
    """Why a broker is down, as far as its process shows it."""
    if process is None or process.state == ProcessState.UNKNOWN:
        return "it sends no heartbeats, and was not shut down"
    if process.state == ProcessState.UP:
        return "it sends no heartbeats, although its process is there: it hangs, or the network is cut"
    return f"{ended(process) or NOBODY}; it was not shut down"


def _starting(circumstances: Circumstances, phase: BrokerPhase, since_ms: int, age_ms: int | None) -> LinkedProblem:
    """A start that lasts, or a note of one that does not yet: the partitions that have no leader meanwhile follow from it."""
    late = age_ms is not None and age_ms > circumstances.thresholds.starting_after_ms
    ago = "" if age_ms is None else f" {circumstances.times.ago(since_ms)}"
    lasts = f"{'it registered' if phase.registered else 'its process came up'}{ago} and {'still serves nothing' if late else _YET}"
    there = serves_nothing(circumstances.processes.get(phase.broker)) if phase.registered else ""
    detail = f"{lasts}{there}{_left(circumstances, phase.broker)}"
    if late:
        return found(kinds.BROKER_STARTING, detail, broker=phase.broker, since_ms=since_ms)
    summary = f"Broker {phase.broker} is starting"
    return found(kinds.BROKER_STARTING, detail, severity=INFO, summary=summary, broker=phase.broker, since_ms=since_ms)


def serves_nothing(process: ProcessStatus | None) -> str:
    """What is added of a broker that starts: whether its process is there, if that is known."""
    return "; its process is there" if process is not None and process.state == ProcessState.UP else ""


def _left(circumstances: Circumstances, broker: int) -> str:
    """How much of its logs a broker that starts after a crash still has to read, and until when if that is known."""
    dirs = [each for each in circumstances.log_dirs if each.broker == broker and each.recovering_bytes >= 0]
    if not dirs:
        return ""
    logs = format_count(sum(each.recovering_logs for each in dirs), "log")
    left = f"; after a crash it reads its logs, and {format_size(sum(each.recovering_bytes for each in dirs))} in {logs} are left"
    seconds = [reading_seconds(each.recovering_bytes, each.recovery_rate) for each in dirs if each.recovering_bytes]
    return f"{left}, for about {format_duration(max(seconds))}" if min(seconds, default=-1) >= 0 else left


def _stopped(circumstances: Circumstances, broker: int, since_ms: int, age_ms: int | None) -> LinkedProblem:
    """The problem of a stopped broker; a note if it was stopped lately: the partitions that have no leader meanwhile follow from it."""
    detail = "it was shut down cleanly, or it is away and has no replica"
    if age_ms is not None and age_ms <= STOPPED_FOR_MS:
        return found(kinds.BROKER_STOPPED, detail, severity=INFO, broker=broker, since_ms=since_ms, command=_GOES_ON)
    detail += "; the command is for one that is gone for good, after its partitions were reassigned"
    return found(kinds.BROKER_STOPPED, detail, broker=broker, since_ms=since_ms, command=circumstances.commands.unregister(broker))


def _silent_brokers(circumstances: Circumstances) -> Iterator[LinkedProblem]:
    for broker in sorted(circumstances.not_writing):
        at = circumstances.checkpointed_ms[broker]
        age = format_duration((circumstances.now_ms - at) / 1000)
        detail = f"no checkpoint in any of its log dirs for {age}: {silent(circumstances.processes.get(broker))}"
        yield found(kinds.BROKER_NOT_WRITING, detail, broker=broker, since_ms=at)
    newest_ms = max(circumstances.appended_ms.values(), default=-1)
    for broker, at in circumstances.appended_ms.items():
        lags = circumstances.now_ms - at > 2 * NO_CONTROLLER_MS and circumstances.now_ms - newest_ms <= NO_CONTROLLER_MS
        if circumstances.live and lags and circumstances.runs(broker):
            detail = f"none for {format_duration((circumstances.now_ms - at) / 1000)}, while other brokers do"
            yield found(kinds.BROKER_METADATA_STALLED, detail, broker=broker, since_ms=at)


def silent(process: ProcessStatus | None) -> str:
    """What a broker may suffer from that writes nothing."""
    if process is None or process.state == ProcessState.UNKNOWN:
        return "it is down, it hangs, or its disks do"
    return "its process is there: it hangs, or its disks do" if process.state == ProcessState.UP else ended(process) or NOBODY


def _replicas(circumstances: Circumstances) -> Iterator[LinkedProblem]:
    counts = counts_of(circumstances)
    if counts is None:
        return
    clean = frozenset(each.broker for each in circumstances.brokers if each.clean)
    for kind, name in REPLICATION:
        by_topic: dict[str, list[AffectedPartition]] = {}
        for each in lacking_partitions(circumstances, counts, name):
            by_topic.setdefault(each.topic, []).append(each)
        for topic in counts.topics:
            if getattr(topic, name) and circumstances.export.has_topic(topic.topic):
                yield _of_topic(circumstances, kind, topic, by_topic.get(topic.topic, []), clean)


def counts_of(circumstances: Circumstances) -> PartitionCounts | None:
    """All partitions of the cluster, counted by topic, by the newest copy of the metadata log; None if there is none."""
    latest = newest(each for each in circumstances.brokers if each.counts)
    return None if latest is None else judged_counts(latest.counts, circumstances.min_isr(latest.broker))


def lacking_partitions(circumstances: Circumstances, counts: PartitionCounts, name: str) -> list[AffectedPartition]:
    """The partitions with one of `REPLICATION`, those alike in one value; with a worse one where that includes it.

    One that has no leader lacks in-sync replicas, too, if none is left. Without eligible leader replicas (KIP-966) the last one is.
    """
    topics = {each.topic for each in counts.topics if getattr(each, name) and circumstances.export.has_topic(each.topic)}
    named = (each for each in counts.affected if each.topic in topics and _lacks_too(each, name))
    return sorted(named, key=lambda each: (each.topic, each.partition))


def _lacks_too(partition: AffectedPartition, name: str) -> bool:
    """Whether what a partition is named with, which is the worst, includes this."""
    if partition.problem == "offline" and name != "offline":
        return not partition.in_sync if name == "under_min_isr" else bool(partition.out_of_sync)
    return partition.problem == name or (name, partition.problem) == ("under_replicated", "under_min_isr")


def _of_topic(
    circumstances: Circumstances, kind: kinds.ProblemKind, topic: TopicCounts, lacking: list[AffectedPartition], clean: frozenset[int]
) -> LinkedProblem:
    """What partitions of one topic lack. All of them decide on its links, however few are described."""
    name = dict(REPLICATION)[kind]
    option, described = _TOOLS[name]
    count: int = getattr(topic, name)
    numbers = [number for each in lacking for number in each.partitions]
    few = (replace(each, partition=number) for each in lacking for number in each.partitions[:_MOST_DESCRIBED])
    shown = sorted(few, key=lambda each: each.partition)[:_MOST_DESCRIBED]
    detail = _detail(count, [described(each, clean) for each in shown], shown)
    if kind is not kinds.OFFLINE:
        detail += _why(circumstances, shown)
    if kind is kinds.UNDER_MIN_ISR:
        detail += circumstances.causes.of_min_isr(topic.topic, circumstances.times)
    named_all = count == len(numbers)  # of those without a leader it is not known which are under min ISR, too
    return found(
        kind,
        detail,
        topic=topic.topic,
        partition=numbers[0] if count == 1 and numbers else -1,
        command=circumstances.commands.describe_topics(option),
        links=Links(partitions=partitions_of(topic.topic, numbers), lacks=_lacks(kind, lacking) if named_all else -1),
    )


def _who_must_return(partition: AffectedPartition, clean: frozenset[int]) -> str:
    """Who can lead it without a loss. The last one that was in sync has everything if it was shut down cleanly, whatever has become of it
    in the metadata.
    """
    brokers = ", ".join(map(str, partition.electable))
    if not brokers:
        return "no replica holds everything"
    if len(partition.electable) > 1:
        return f"one of the brokers {brokers} must come back so that nothing is lost"
    if partition.in_sync or clean.issuperset(partition.electable):
        return f"broker {brokers} must come back so that nothing is lost"
    return f"broker {brokers} must come back; it may lack the end of its log if kafka-topics.sh names it as LastKnownElr"


def _who_lacks(partition: AffectedPartition) -> str:
    in_sync, out_of_sync = (", ".join(map(str, some)) or "none" for some in (partition.in_sync, partition.out_of_sync))
    return f"in sync {in_sync}, not in sync {out_of_sync}"


_TOOLS: dict[str, tuple[str, Callable[[AffectedPartition, frozenset[int]], str]]] = {
    "offline": ("--unavailable-partitions", lambda each, clean: _who_must_return(each, clean)),
    "under_min_isr": ("--under-min-isr-partitions", lambda each, _: _who_lacks(each)),
    "under_replicated": ("--under-replicated-partitions", lambda each, _: _who_lacks(each)),
}
"""The option of Kafka's tool that lists such partitions, and what is written about each of them; brokers that were shut down cleanly."""


def _detail(count: int, described: Sequence[str], those: Sequence[AffectedPartition]) -> str:
    if not those:
        return format_count(count, "partition")
    shown = "; ".join(f"{partitions_named([each.partition])}, {text}" for each, text in zip(those, described, strict=False))
    return shown + (f"; {count - _MOST_DESCRIBED:,} more" if count > _MOST_DESCRIBED else "")


def _why(circumstances: Circumstances, those: Sequence[AffectedPartition]) -> str:
    """Why these lack replicas, as far as the disks show it, each cause and each way out once."""
    found = [why_out_of_sync(circumstances, each, broker) for each in those for broker in each.out_of_sync]
    causes = [each for each in found if each is not None]
    texts = dict.fromkeys(f". {capitalized(each.text)}" for each in causes)
    return "".join((*texts, *dict.fromkeys(f". {each.way_out}" for each in causes if each.way_out)))


def _lacks(kind: kinds.ProblemKind, those: list[AffectedPartition]) -> int:
    """The only broker whose return mends all of these partitions, -1 if that needs others, or is not known."""
    missing = {tuple(each.electable if kind is kinds.OFFLINE else each.out_of_sync) for each in those}
    return next(iter(missing))[0] if len(missing) == 1 and len(next(iter(missing))) == 1 else -1
