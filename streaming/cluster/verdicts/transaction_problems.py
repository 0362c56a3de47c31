"""Problems with open transactions: those that nobody ends, what each of them holds back, and the command where there is one."""

from collections.abc import Collection, Iterator, Sequence

import numpy as np

from streaming.cluster.verdicts import kinds
from streaming.cluster.verdicts.cases import Cases, overdue_coordinators
from streaming.cluster.verdicts.circumstances import Circumstances, found, only, partitions_named
from streaming.cluster.verdicts.commands import Command
from streaming.cluster.verdicts.group_sentences import ENDED_BY_ITSELF
from streaming.cluster.verdicts.held_back_groups import HeldBackGroups, held_back_groups
from streaming.cluster.verdicts.links import LinkedProblem, Links, TopicPartition, partitions_of
from streaming.cluster.verdicts.stuck_remedies import Remedy, StuckTransaction, remedy_after_start, remedy_of, remedy_of_hanging
from streaming.cluster.verdicts.transaction_causes import transaction_causes
from streaming.cluster.view.open_list import Late
from streaming.common.formatting import format_count, format_duration, format_list, format_name, format_size, format_word
from streaming.kafka.formats.names import OFFSETS_TOPIC
from streaming.rules.aborting_clients import AbortingClient
from streaming.rules.transaction_verdicts import TransactionVerdict

_MOST_NAMED = 5
_CLIENT = Command(reason="its application decides that: its log says why")


def transaction_problems(circumstances: Circumstances, cases: Sequence[Cases]) -> Iterator[LinkedProblem]:
    """Transactions that hang, are stuck or overdue, and last stable offsets that do not move."""
    judged, waiting = transaction_causes(circumstances).judged, held_back_groups(circumstances.groups)
    yield from (_aborting(circumstances, each) for each in circumstances.aborting[:_MOST_NAMED])
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


def _aborting(circumstances: Circumstances, client: AbortingClient) -> LinkedProblem:
    detail = aborts(client, circumstances.now_ms)
    return found(kinds.CLIENT_ABORTS, detail, client=client.transactional_id, since_ms=client.since_ms, command=_CLIENT)


def aborts(client: AbortingClient, now_ms: int) -> str:
    """How many of its transactions a client aborts, as far as they were seen."""
    share, ago = 100 * client.aborted // client.seen, format_duration((now_ms - client.since_ms) / 1000)
    rate = f"; it ends about {client.per_second:.1f} a second" if client.per_second >= 0 else ""
    return f"{share} % of a sample were aborted: {client.aborted:,} of {client.seen:,} in the last {ago}{rate}"


def remedy_for(circumstances: Circumstances, late: Late, waiting: HeldBackGroups) -> Remedy:
    """What aborts a transaction if it hangs, and ends it if it is stuck; else what asks its coordinator, or why there is nothing.

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


def described(circumstances: Circumstances, late: Late) -> str:
    """Which transaction it is."""
    who = f"transactional.id {format_name(late.transactional_id)}" if late.transactional_id else "transactional.id not known"
    ages = (circumstances.now_ms - late.start_ms) / 1000, (circumstances.now_ms - late.last_append_ms) / 1000
    seen = ""
    if late.as_of_ms >= 0:
        seen = f", as of {circumstances.times.at(late.as_of_ms)}: the logs that show whether it has ended are not read now"
    return (
        f"{who}, producer id {late.producer_id}, first offset {late.first_offset}, open for {format_duration(ages[0])}, "
        f"silent for {format_duration(ages[1])}{seen}"
    )


def _remedy(circumstances: Circumstances, late: Late, waiting: HeldBackGroups) -> Remedy:
    stuck = StuckTransaction(
        transactional_id=late.transactional_id,
        verdict=late.verdict,
        deadline_ms=late.deadline_ms,
        loss_ms=waiting.loss_ms(_partition(circumstances, late)),
        gone=waiting.gone_with(late.producer_id),
    )
    return remedy_of(stuck, circumstances.commands, circumstances.times)


def _of_transaction(circumstances: Circumstances, late: Late, kind: kinds.ProblemKind, waiting: HeldBackGroups) -> LinkedProblem:
    _, partition = _partition(circumstances, late)
    detail = f"{partitions_named([partition])}, {described(circumstances, late)}; {remedy_for(circumstances, late, waiting).advice}"
    return _found(circumstances, late, kind, detail, waiting)


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


def committers(late: Late, partition: TopicPartition, waiting: HeldBackGroups) -> list[str]:
    """The groups whose commits wait for a transaction, as far as they are known."""
    return sorted({*late.groups, *waiting.committers(late.producer_id, partition)})


def _holds_back(circumstances: Circumstances, late: Late, partition: TopicPartition, waiting: HeldBackGroups) -> str:
    held, size = circumstances.view.logs.held_by(late), int(circumstances.view.logs["unread_bytes"][late.log])
    parts = []
    if held > 0:
        bytes_too = f", {format_size(size)}," if size >= 0 else ""
        parts.append(f"{format_count(held, 'offset')}{bytes_too} wait for it: readers of committed data do not see them")
    elif held < 0:
        parts.append("Another transaction before it holds back readers of committed data")
    if groups := committers(late, partition, waiting):
        parts.append(f"committed offsets of these groups wait for it: {format_list([format_word(each) for each in groups], _MOST_NAMED)}")
    elif partition[0] == OFFSETS_TOPIC:
        parts.append("committed offsets of groups wait for it, and do not expire")
    text = "; ".join(parts)
    return f"{text[:1].upper()}{text[1:]}." if text else ""


def _overdue(circumstances: Circumstances, of_producer: list[Late], waiting: HeldBackGroups) -> LinkedProblem:
    """One transaction in all of its partitions, about the one that holds back most."""
    late = max(of_producer, key=circumstances.view.logs.held_by)
    others = [_place(circumstances, each) for each in of_producer if each is not late]
    too = f"; it is open in {format_list(others, _MOST_NAMED)}, too" if others else ""
    idle = circumstances.if_idle(int(circumstances.view.logs["broker"][late.log]))
    detail = f"{_place(circumstances, late)}, {described(circumstances, late)}{too}{idle}"
    return _found(circumstances, late, kinds.OVERDUE, detail, waiting, frozenset(_partition(circumstances, each) for each in of_producer))


def _place(circumstances: Circumstances, late: Late) -> str:
    return format_name("-".join(map(str, _partition(circumstances, late))))


def _partition(circumstances: Circumstances, late: Late) -> TopicPartition:
    logs = circumstances.view.logs
    return circumstances.topics[int(logs["topic"][late.log])], int(logs["partition"][late.log])


def _found(
    circumstances: Circumstances,
    late: Late,
    kind: kinds.ProblemKind,
    detail: str,
    waiting: HeldBackGroups,
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
        command=remedy_for(circumstances, late, waiting).command,
        links=Links(partitions=partitions or frozenset([(topic, partition)]), producer=late.producer_id, weight=max(logs.held_by(late), 0)),
    )


def _overdue_elsewhere(circumstances: Circumstances) -> Iterator[LinkedProblem]:
    """Transactions that are overdue and not listed: they have written nothing yet, or are too many."""
    for broker, count in overdue_coordinators(circumstances).items():
        detail = f"{format_count(count, 'transaction')} of the coordinator on broker {broker}{circumstances.if_idle(broker)}"
        yield found(kinds.OVERDUE, detail, broker=broker)


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
