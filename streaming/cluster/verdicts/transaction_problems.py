"""Problems of transactions: which are late, why, whose they are, what ends them, and which groups wait for them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from streaming.broker.protocol.group_json import GroupVerdict
from streaming.cluster.consumers.group_lag import ABSENT
from streaming.cluster.verdicts import kinds
from streaming.cluster.verdicts.cases import Cases, overdue_coordinators, transaction_verdict
from streaming.cluster.verdicts.circumstances import (
    NO_PRODUCER,
    Circumstances,
    LinkedProblem,
    Links,
    TopicPartition,
    found,
    only,
    partitions_named,
    partitions_of,
)
from streaming.cluster.verdicts.commands import Command, Commands
from streaming.cluster.verdicts.conditions import certain_losses
from streaming.cluster.verdicts.group_judge import JudgedGroups
from streaming.cluster.verdicts.group_sentences import ENDED_BY_ITSELF
from streaming.cluster.verdicts.kinds import ProblemKind
from streaming.cluster.view.transaction_columns import Late
from streaming.common.short_names import PREFIX
from streaming.common.units import TimeWords, capitalized, format_count, format_duration, format_list, format_name, format_size, format_word
from streaming.kafka.formats.names import OFFSETS_TOPIC
from streaming.rules.transaction_verdicts import AbortingClient, TransactionVerdict

NEAR_MS = 300_000
"""Within so long it is not worth to end a transaction by hand."""

_MOST_NAMED = 3

_NO_COORDINATOR = {
    "unknown": "whether a coordinator will end it cannot be told here: not all partitions of __transaction_state are read",
    "unclaimed": "no coordinator has it yet: it hangs if that stays so",
    "completing": "its coordinator has decided how it ends, and only its marker is missing: is the partition's leader there?",
}
"""Why an operator is not to end a transaction of that verdict by its transactional id."""

_MOST_GROUPS = 5
_CLIENT = Command(reason="its application decides that: its log says why")

_AT_ONCE_MS = 1_000
"""A transaction that was last appended to within this time of its begin has been silent for as long as it is open."""


def transaction_problems(circumstances: Circumstances, cases: Sequence[Cases]) -> Iterator[LinkedProblem]:
    """Transactions that hang, are stuck or overdue, and last stable offsets that do not move."""
    judged, waiting = transaction_causes(circumstances).judged, held_back_groups(circumstances.groups)
    yield from (_aborting(circumstances, each) for each in circumstances.aborting[:_MOST_GROUPS])
    overdue: dict[int, list[Late]] = {}
    for late, kind in judged:
        if kind is kinds.OVERDUE:
            overdue.setdefault(late.producer_id, []).append(late)
        else:
            yield _of_transaction(circumstances, late, kind, waiting)
    for of_producer in overdue.values():
        yield _overdue(circumstances, of_producer, waiting)
    if not overdue:
        yield from _overdue_elsewhere(circumstances)
    reported: set[int] = set()
    for each in cases:
        if each.kind in (kinds.HANGING, kinds.STUCK):
            yield from _not_listed(circumstances, each, {late.log for late, kind in judged if kind is each.kind})
        if each.kind in (kinds.HANGING, kinds.STUCK, kinds.OVERDUE):
            reported.update(each.items.tolist())
    for each in cases:
        if each.kind is kinds.STALLED:
            yield from _stalled(circumstances, each, reported)


def transaction_causes(circumstances: Circumstances) -> TransactionCauses:
    """Those of a moment."""
    logs = circumstances.view.logs
    verdicts = ((late, transaction_verdict(circumstances, late).kind) for late in logs.late)
    judged = [(late, kind) for late, kind in verdicts if kind is not None]
    holders = {
        (circumstances.topics[int(logs["topic"][late.log])], int(logs["partition"][late.log])): late.producer_id
        for late, _ in judged
        if logs.held_by(late) >= 0
    }
    return TransactionCauses(judged=judged, holders=holders, producers=frozenset(late.producer_id for late, _ in judged))


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionCauses:
    """``judged``: the listed transactions that are problems. ``holders``: by partition the producer of the one that holds it back."""

    judged: Sequence[tuple[Late, ProblemKind]] = ()
    holders: dict[TopicPartition, int] = field(default_factory=dict)
    producers: frozenset[int] = frozenset()

    def of_held(self, partition: TopicPartition) -> int:
        """Whose transaction holds a partition back, `NO_PRODUCER` if it is no problem."""
        return self.holders.get(partition, NO_PRODUCER)

    def of_pending(self, producers: Sequence[int]) -> int:
        """The first of some producers whose transaction is a problem."""
        return next((each for each in producers if each in self.producers), NO_PRODUCER)


def held_back_groups(judged: JudgedGroups | None) -> HeldBackGroups:
    """Those of a round; none if nothing is known of groups."""
    if judged is None:
        return HeldBackGroups()
    rows, logs = judged.snapshot.rows, judged.snapshot.logs
    held: dict[TopicPartition, set[str]] = {}
    losses_ms: dict[TopicPartition, int] = {}
    certain_ms = certain_losses(judged.snapshot.found)
    for row in np.flatnonzero(judged.commits.severity[GroupVerdict.HELD] != ABSENT).tolist():
        partition = logs.topics[logs.of_row[row]], int(rows.partition[row])
        held.setdefault(partition, set()).add(rows.group_names[rows.group[row]])
        if (loss_ms := int(certain_ms[row])) >= 0:
            losses_ms[partition] = min(loss_ms, losses_ms.get(partition, loss_ms))
    committing: dict[tuple[int, int], set[str]] = {}
    for each in judged.snapshot.pending:
        committing.setdefault((each.producer_id, each.coordinator), set()).add(each.group)
    deserted = frozenset(name for name, facts in judged.snapshot.groups.items() if facts.members == 0)
    return HeldBackGroups(held=held, losses_ms=losses_ms, committing=committing, deserted=deserted)


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldBackGroups:
    """Names of groups, each set of them sorted where it is asked for.

    ``losses_ms``: by the partitions of ``held``, when the first of those groups loses records there, where that is certain.
    """

    held: dict[TopicPartition, set[str]] = field(default_factory=dict)  # by the partition whose last stable offset holds them up
    losses_ms: dict[TopicPartition, int] = field(default_factory=dict)
    committing: dict[tuple[int, int], set[str]] = field(default_factory=dict)  # by the producer and the partition of `__consumer_offsets`
    deserted: frozenset[str] = frozenset()  # those that are known to have no member

    def readers(self, partition: TopicPartition) -> list[str]:
        """The groups that are held up in a partition."""
        return sorted(self.held.get(partition, ()))

    def loss_ms(self, partition: TopicPartition) -> int:
        """When the first of these groups loses records; -1 if none does as far as is known."""
        return self.losses_ms.get(partition, -1)

    def committers(self, producer_id: int, partition: TopicPartition) -> list[str]:
        """The groups whose commits are in a transaction, if the partition is one of `__consumer_offsets`."""
        return sorted(self.committing.get((producer_id, partition[1]), ())) if partition[0] == OFFSETS_TOPIC else []

    def gone_with(self, producer_id: int) -> Collection[str]:
        """The groups that commit in a producer's transaction, if none of them has a member: then the producer is gone, too.

        Of a producer that commits for no group nothing shows that it is gone.
        """
        groups = {name for (producer, _), names in self.committing.items() if producer == producer_id for name in names}
        return sorted(groups) if groups <= self.deserted else []


def _aborting(circumstances: Circumstances, client: AbortingClient) -> LinkedProblem:
    detail = aborts(client, circumstances.now_ms)
    return found(kinds.CLIENT_ABORTS, detail, client=client.transactional_id, since_ms=client.since_ms, command=_CLIENT)


def aborts(client: AbortingClient, now_ms: int) -> str:
    """How many of its transactions a client aborts, as far as they were seen."""
    share, ago = 100 * client.aborted // client.seen, format_duration((now_ms - client.since_ms) / 1000)
    rate = f"; it ends about {client.per_second:.1f} a second" if client.per_second >= 0 else ""
    return f"{share} % of a sample were aborted: {client.aborted:,} of {client.seen:,} in the last {ago}{rate}"


def _of_transaction(circumstances: Circumstances, late: Late, kind: kinds.ProblemKind, waiting: HeldBackGroups) -> LinkedProblem:
    remedy = remedy_for(circumstances, late, waiting)
    detail = f"{partitions_named([_partition(circumstances, late)[1]])}, {remedy.advice}. It is {described(circumstances, late)}"
    return _found(circumstances, late, kind, detail, waiting, remedy.command)


def remedy_for(circumstances: Circumstances, late: Late, waiting: HeldBackGroups) -> Remedy:
    """What aborts a transaction if it hangs, and ends it if it is stuck; else what asks its coordinator, or why there is nothing.

    What can be done about a transaction that hangs, or is stuck: until when its coordinator ends it by itself, and the command that
    ends it. Nothing shows that a producer is alive but what it writes. That it is gone shows where it has committed offsets of groups
    and none of these has a member; else the command is for an operator who knows it.

    A transaction that its coordinator has is never to be aborted by offset.
    """
    broker, hangs = int(circumstances.view.logs["broker"][late.log]), late.verdict == TransactionVerdict.HANGING.label
    if broker in circumstances.away:
        return remedy_after_start(broker, hangs=hangs)
    if hangs:
        return remedy_of_hanging(circumstances.commands, *_partition(circumstances, late), late.first_offset)
    if late.stuck:
        return _remedy(circumstances, late, waiting)
    if late.verdict in (TransactionVerdict.UNKNOWN.label, TransactionVerdict.UNCLAIMED.label):
        return Remedy(command=Command(reason="whether a coordinator will end the transaction is not known"))
    if late.transactional_id:
        return Remedy(command=circumstances.commands.describe_transaction(late.transactional_id))
    return Remedy(command=Command(reason=ENDED_BY_ITSELF.get(late.verdict, ENDED_BY_ITSELF["open"])))


@dataclass(frozen=True, slots=True, kw_only=True)
class Remedy:
    """``advice``: what to know before the command is run, and what it does: a clause without a period. "" if the command only asks."""

    command: Command
    advice: str = ""


def remedy_after_start(broker: int, *, hangs: bool) -> Remedy:
    """The remedy of a transaction in a log of a broker without a process: before its start no command gets the end written there."""
    ends = "no coordinator will end it, and the abort" if hangs else "its end"
    return Remedy(
        command=Command(reason=f"broker {broker} is down: start it first"),
        advice=f"broker {broker} is down: {ends} is written only when that is started",
    )


def remedy_of_hanging(commands: Commands, topic: str, partition: int, first_offset: int) -> Remedy:
    """The remedy of a transaction that no coordinator will end."""
    return Remedy(
        command=commands.abort(topic, partition, first_offset),
        advice="no coordinator will end it. The abort discards its records: first make sure that its producer has ended",
    )


def _partition(circumstances: Circumstances, late: Late) -> TopicPartition:
    logs = circumstances.view.logs
    return circumstances.topics[int(logs["topic"][late.log])], int(logs["partition"][late.log])


def _remedy(circumstances: Circumstances, late: Late, waiting: HeldBackGroups) -> Remedy:
    stuck = StuckTransaction(
        transactional_id=late.transactional_id,
        verdict=late.verdict,
        deadline_ms=late.deadline_ms,
        loss_ms=waiting.loss_ms(_partition(circumstances, late)),
        gone=waiting.gone_with(late.producer_id),
    )
    return remedy_of(stuck, circumstances.commands, circumstances.times)


@dataclass(frozen=True, slots=True, kw_only=True)
class StuckTransaction:
    """What a remedy depends on."""

    transactional_id: str
    verdict: str
    deadline_ms: int  # when its timeout has passed, -1 not known
    loss_ms: int = -1  # when the first of the groups that wait for it loses records, -1 if none does as far as is known
    gone: Collection[str] = ()  # as `HeldBackGroups.gone_with`


def remedy_of(stuck: StuckTransaction, commands: Commands, times: TimeWords) -> Remedy:
    """The remedy of a stuck transaction."""
    ask = commands.describe_transaction(stuck.transactional_id) if stuck.transactional_id else Command(reason="its id is not known")
    if stuck.verdict in _NO_COORDINATOR:
        unknown = Command(reason="whether a coordinator will end the transaction is not known")
        return Remedy(command=ask if stuck.verdict == "completing" else unknown, advice=_NO_COORDINATOR[stuck.verdict])
    ends = _ends_by_itself(stuck.deadline_ms, times)
    until = ends or "when its coordinator ends it is not known"
    loses = 0 <= stuck.loss_ms < stuck.deadline_ms
    if loses:
        only_at = times.at(stuck.deadline_ms)
        until = f"groups that wait for it lose records at {times.at(stuck.loss_ms)}, and its coordinator ends it only at {only_at}"
    owner = owner_of(stuck.transactional_id)
    whose = f"by its id it is {owner.likely} of {owner.name}: {owner.known}" if owner is not None else ""
    if owner is not None and owner.loses:
        return Remedy(command=ask, advice=f"{until}{_sentence(whose)}")
    if not stuck.transactional_id or (0 <= stuck.deadline_ms < times.now_ms + NEAR_MS and not loses):
        return Remedy(
            command=ask,
            advice=f"{until}. Until then stop its producer, or restart it with the same transactional.id{_sentence(whose)}",
        )
    groups = format_list([format_word(each) for each in stuck.gone], _MOST_NAMED)
    gone = (
        f"Its producer is gone, for no group that it commits for has a member ({groups}): the command ends it at once"
        if stuck.gone
        else "If its producer is gone, and only then, the command ends it at once"
    )
    return Remedy(
        command=commands.terminate(stuck.transactional_id),
        advice=f"{until}. {gone}, for whoever uses this transactional.id now (Kafka's tools of 4.3 have it, those of 3.9 do not); else "
        f"stop its producer, or restart it with the same transactional.id{_sentence(whose)}",
    )


def _ends_by_itself(deadline_ms: int, times: TimeWords) -> str:
    """When its coordinator ends a transaction, as a clause; "" if that is not known."""
    if deadline_ms < 0:
        return ""
    at = times.at(deadline_ms)
    if deadline_ms < times.now_ms:
        return f"its coordinator should have ended it at {at}"
    return f"its coordinator ends it at {at} if its producer does not"


def owner_of(transactional_id: str) -> TransactionOwner | None:
    """Whose a transaction probably is; None if the form of its id does not show it, as where ids leave their host as hashes.

    Whose a transaction probably is, by the form of its transactional id: what has to be known before it is ended. Nothing else on a
    disk says it, and any client may choose an id of such a form: whatever is said of it says "probably" or "perhaps". Forms: Flink's
    `KafkaSink` (flink-connector-kafka 1.14 to 5.0, `TransactionalIdFactory`: prefix, subtask, checkpoint or number in a pool), before
    that `FlinkKafkaProducer` (`TransactionalIdsGenerator`: task, uid of the operator as 32 hex digits, number); Kafka Streams
    (`StreamsProducer`: application, process, thread; before exactly_once_v2 a task such as 0_1); Kafka Connect
    (`DistributedConfig.transactionalProducerId`; of a task group, connector, number); Spring (`DefaultKafkaProducerFactory`: prefix,
    number).
    """
    if transactional_id.startswith(PREFIX):
        return None
    return next((owner for form, owner in _FORMS if re.fullmatch(form, transactional_id, re.ASCII | re.DOTALL)), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionOwner:
    """``name``: what it ``likely`` is. ``known``: what is known of its kind, a clause. ``loses``: its end loses what a restart commits."""

    name: str
    known: str
    likely: str = "probably"
    loses: bool = False


_FLINK = TransactionOwner(
    name="a sink of Flink",
    known="what its last checkpoint has of the transaction is lost if the transaction is ended: restore the job from that checkpoint or "
    "savepoint, which commits it, or commit it by the producer id and epoch that the checkpoint has; never force its end",
    loses=True,
)


_STREAMS = TransactionOwner(
    name="an application of Kafka Streams",
    known="it commits what it has read in the same transaction, so it makes again what its end discards: start it again",
)


_CONNECT = TransactionOwner(
    name="Kafka Connect",
    known="a source task commits its source's offsets in the same transaction, so it reads again what its end discards: restart it",
)


_NUMBERED = TransactionOwner(
    name="a source task of Kafka Connect, or a producer of Spring",
    likely="perhaps",
    known="a source task reads again what its end discards, and of what Spring's application writes only that can tell",
)


_FORMS = (
    (r".*-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}(-StreamThread)?-\d+", _STREAMS),
    (r".*-\d+_\d+", _STREAMS),
    (r".*-[0-9a-f]{32}-\d+", _FLINK),
    (r"connect-cluster-.+", _CONNECT),
    (r".*-(0|[1-9]\d*)-(0|[1-9]\d*)", _FLINK),
    (r".*-\d+", _NUMBERED),
)


def _sentence(clause: str) -> str:
    """A clause as one more sentence; nothing if there is none."""
    return f". {capitalized(clause)}" if clause else ""


def described(circumstances: Circumstances, late: Late) -> str:
    """Which transaction it is."""
    who = f"transactional.id {format_name(late.transactional_id)}" if late.transactional_id else "of an unknown transactional.id"
    age_ms, silent_ms = circumstances.now_ms - late.start_ms, circumstances.now_ms - late.last_append_ms
    silent = f"silent for {format_duration(silent_ms / 1000)}" if age_ms - silent_ms > _AT_ONCE_MS else "and silent since"
    seen = ""
    if late.as_of_ms >= 0:
        seen = f", as of {circumstances.times.at(late.as_of_ms)}: the logs that show whether it has ended are not read now"
    return (
        f"{who}, producer id {late.producer_id}, first offset {late.first_offset}, open for {format_duration(age_ms / 1000)}, "
        f"{silent}{seen}"
    )


def _found(
    circumstances: Circumstances,
    late: Late,
    kind: kinds.ProblemKind,
    detail: str,
    waiting: HeldBackGroups,
    command: Command,
    partitions: frozenset[TopicPartition] = frozenset(),
) -> LinkedProblem:
    logs = circumstances.view.logs
    topic, partition = _partition(circumstances, late)
    return found(
        kind,
        detail,
        broker=int(logs["broker"][late.log]),
        topic=topic,
        partition=partition,
        since_ms=late.start_ms,
        holds_back=_holds_back(circumstances, late, (topic, partition), waiting),
        command=command,
        links=Links(partitions=partitions or frozenset([(topic, partition)]), producer=late.producer_id, weight=max(logs.held_by(late), 0)),
    )


def _holds_back(circumstances: Circumstances, late: Late, partition: TopicPartition, waiting: HeldBackGroups) -> str:
    held, size = circumstances.view.logs.held_by(late), int(circumstances.view.logs["unread_bytes"][late.log])
    parts = []
    if held > 0:
        bytes_too = f", {format_size(size)}," if size >= 0 else ""
        parts.append(f"{format_count(held, 'offset')}{bytes_too} wait for it: readers of committed data do not see them")
    elif held < 0:
        parts.append("Another transaction before it holds back readers of committed data")
    if groups := committers(late, partition, waiting):
        parts.append(f"committed offsets of these groups wait for it: {format_list([format_word(each) for each in groups], _MOST_GROUPS)}")
    elif partition[0] == OFFSETS_TOPIC:
        parts.append("committed offsets of groups wait for it, and do not expire")
    text = "; ".join(parts)
    return f"{capitalized(text)}." if text else ""


def committers(late: Late, partition: TopicPartition, waiting: HeldBackGroups) -> list[str]:
    """The groups whose commits wait for a transaction, as far as they are known."""
    return sorted({*late.groups, *waiting.committers(late.producer_id, partition)})


def _overdue(circumstances: Circumstances, of_producer: list[Late], waiting: HeldBackGroups) -> LinkedProblem:
    """One transaction in all of its partitions, about the one that holds back most."""
    late = max(of_producer, key=circumstances.view.logs.held_by)
    others = [_place(circumstances, each) for each in of_producer if each is not late]
    too = f"; it is open in {format_list(others, _MOST_GROUPS)}, too" if others else ""
    idle = circumstances.if_idle(int(circumstances.view.logs["broker"][late.log]))
    detail = f"{_place(circumstances, late)}, {described(circumstances, late)}{too}{idle}"
    command, partitions = (
        remedy_for(circumstances, late, waiting).command,
        frozenset(_partition(circumstances, each) for each in of_producer),
    )
    return _found(circumstances, late, kinds.OVERDUE, detail, waiting, command, partitions)


def _place(circumstances: Circumstances, late: Late) -> str:
    return format_name("-".join(map(str, _partition(circumstances, late))))


def _overdue_elsewhere(circumstances: Circumstances) -> Iterator[LinkedProblem]:
    """Transactions that are overdue and not listed: they have written nothing yet, or are too many."""
    for broker, count in overdue_coordinators(circumstances).items():
        detail = f"{format_count(count, 'transaction')} of the coordinator on broker {broker}{circumstances.if_idle(broker)}"
        yield found(kinds.OVERDUE, detail, broker=broker)


def _not_listed(circumstances: Circumstances, cases: Cases, listed: Collection[int]) -> Iterator[LinkedProblem]:
    """Topics with transactions of a kind in logs of which none is listed, because there are too many: they are only counted."""
    for topic, items in _by_topic(circumstances, cases, set(circumstances.view.logs.items[[*listed]].tolist()) if listed else ()):
        partitions = sorted(circumstances.view.observed.columns["partition"][items].tolist())
        detail = f"{partitions_named(partitions)}; these are not listed, because there are more than late_limit"
        links = Links(partitions=partitions_of(topic, partitions))
        yield found(cases.kind, detail, topic=topic, partition=only(partitions), links=links)


def _by_topic(circumstances: Circumstances, cases: Cases, without: Collection[int]) -> Iterator[tuple[str, list[int]]]:
    topics: dict[str, list[int]] = {}
    for item in cases.items.tolist():
        if item not in without:
            topics.setdefault(circumstances.view.observed.names[item], []).append(item)
    yield from topics.items()


def _stalled(circumstances: Circumstances, cases: Cases, reported: Collection[int]) -> Iterator[LinkedProblem]:
    """Topics with a last stable offset that does not move, if no transaction that is ``reported`` for these logs says why."""
    observed, since = circumstances.view.observed, dict(zip(cases.items.tolist(), cases.since_ms.tolist(), strict=True))
    for topic, items in _by_topic(circumstances, cases, reported):
        partitions = sorted(observed.columns["partition"][items].tolist())
        waiting = int(np.maximum(observed.replica_offsets["unread_offsets"][items], 0).sum())
        yield found(
            kinds.STALLED,
            f"{partitions_named(partitions)}, {format_count(waiting, 'offset')} behind open transactions",
            broker=int(observed.columns["broker"][items[0]]) if len(items) == 1 else -1,
            topic=topic,
            partition=only(partitions),
            since_ms=min(since[item] for item in items),
            links=Links(partitions=partitions_of(topic, partitions)),
        )
