"""Problems with open transactions: those that nobody ends, what each of them holds back, and the command where there is one."""

from collections.abc import Collection, Iterator

import numpy as np

from streaming.formatting import format_count, format_duration, format_list, format_name, format_size, format_word
from streaming.kafka.names import OFFSETS_TOPIC
from streaming.metrics.open_list import Late
from streaming.protocol.problem_json import Problem
from streaming.rules.verdicts import Verdict
from streaming.verdicts import kinds
from streaming.verdicts.circumstances import Circumstances, found, only, partitions_named
from streaming.verdicts.commands import Command
from streaming.verdicts.group_sentences import ENDED_BY_ITSELF

STUCK_ADVICE = "end its producer, or start it again with its transactional.id: a coordinator still knows the transaction"
"""Why a stuck transaction is not to be aborted by offset."""

NOT_KNOWN_ADVICE = "whether a coordinator will end it cannot be told here: not all partitions of __transaction_state are read"
"""Of a stuck transaction whose coordinator is not seen."""

_MOST_NAMED = 5


def transaction_problems(of: Circumstances) -> Iterator[Problem]:
    """Transactions that hang, are stuck or overdue, and last stable offsets that do not move."""
    logs = of.shown.logs
    overdue: dict[int, list[Late]] = {}
    reported: set[int] = set()
    for late in logs.late:
        if int(logs["broker"][late.log]) in of.not_current:
            continue
        if late.verdict in (Verdict.HANGING.label, Verdict.OVERDUE.label) or late.stuck:
            reported.add(late.log)
        if late.verdict == Verdict.HANGING.label:
            yield _of_transaction(of, late)
        elif late.verdict == Verdict.OVERDUE.label:
            overdue.setdefault(late.producer_id, []).append(late)
        elif late.stuck:
            yield _of_transaction(of, late)
    for of_producer in overdue.values():
        yield _overdue(of, of_producer)
    if not overdue:
        yield from _overdue_elsewhere(of)
    yield from _stalled(of, reported)


def command_of(of: Circumstances, late: Late) -> Command:
    """The command that aborts a transaction if it hangs; else the one that asks its coordinator, or the reason why there is none.

    A transaction that its coordinator has is never to be aborted by hand.
    """
    if late.verdict == Verdict.HANGING.label:
        return of.commands.abort(
            of.topics[int(of.shown.logs["topic"][late.log])], int(of.shown.logs["partition"][late.log]), late.first_offset
        )
    if late.verdict in (Verdict.UNKNOWN.label, Verdict.UNCLAIMED.label):
        return Command(reason="whether a coordinator will end the transaction is not known")
    if late.transactional_id:
        return of.commands.describe_transaction(late.transactional_id)
    return Command(reason=ENDED_BY_ITSELF.get(late.verdict, ENDED_BY_ITSELF["open"]))


def described(of: Circumstances, late: Late) -> str:
    """Which transaction it is."""
    who = f"transactional.id {format_name(late.transactional_id)}" if late.transactional_id else "transactional.id not known"
    ages = (of.now_ms - late.start_ms) / 1000, (of.now_ms - late.last_ms) / 1000
    return (
        f"{who}, producer id {late.producer_id}, first offset {late.first_offset}, open for {format_duration(ages[0])}, "
        f"silent for {format_duration(ages[1])}"
    )


def _of_transaction(of: Circumstances, late: Late) -> Problem:
    hangs = late.verdict == Verdict.HANGING.label
    known = late.verdict != Verdict.UNKNOWN.label
    end = "no coordinator will end it" if hangs else STUCK_ADVICE if known else NOT_KNOWN_ADVICE
    partition = int(of.shown.logs["partition"][late.log])
    return _found(of, late, kinds.HANGING if hangs else kinds.STUCK, f"{partitions_named([partition])}, {described(of, late)}; {end}")


def _holds_back(of: Circumstances, late: Late, topic: str) -> str:
    held, size = of.shown.logs.held_by(late), int(of.shown.logs["last_stable_offset_lag_bytes"][late.log])
    parts = []
    if held > 0:
        bytes_too = f", {format_size(size)}," if size >= 0 else ""
        parts.append(f"{format_count(held, 'offset')}{bytes_too} wait for it: readers of committed data do not see them")
    elif held < 0:
        parts.append("Another transaction before it holds back readers of committed data")
    if late.groups:
        parts.append(
            f"committed offsets of these groups wait for it: {format_list([format_word(each) for each in late.groups], _MOST_NAMED)}"
        )
    elif topic == OFFSETS_TOPIC:
        parts.append("committed offsets of groups wait for it, and do not expire")
    text = "; ".join(parts)
    return f"{text[:1].upper()}{text[1:]}." if text else ""


def _overdue(of: Circumstances, of_producer: list[Late]) -> Problem:
    """One transaction in all of its partitions, about the one that holds back most."""
    late = max(of_producer, key=of.shown.logs.held_by)
    others = [_place(of, each) for each in of_producer if each is not late]
    too = f"; it is open in {format_list(others, _MOST_NAMED)}, too" if others else ""
    idle = of.if_idle(int(of.shown.logs["broker"][late.log]))
    return _found(of, late, kinds.OVERDUE, f"{_place(of, late)}, {described(of, late)}{too}{idle}")


def _place(of: Circumstances, late: Late) -> str:
    logs = of.shown.logs
    return format_name(f"{of.topics[int(logs['topic'][late.log])]}-{int(logs['partition'][late.log])}")


def _found(of: Circumstances, late: Late, kind: kinds.Kind, detail: str) -> Problem:
    logs = of.shown.logs
    topic, partition = of.topics[int(logs["topic"][late.log])], int(logs["partition"][late.log])
    return found(
        kind,
        detail,
        broker=int(logs["broker"][late.log]),
        topic=topic,
        partition=partition,
        since_ms=late.start_ms,
        holds_back=_holds_back(of, late, topic),
        command=command_of(of, late),
    )


def _overdue_elsewhere(of: Circumstances) -> Iterator[Problem]:
    """Transactions that are overdue and not listed: they have written nothing yet, or are too many."""
    for broker, count in sorted(of.shown.observed.coordinators.overdue.items()):
        if count and broker not in of.not_current:
            detail = f"{format_count(count, 'transaction')} of the coordinator on broker {broker}{of.if_idle(broker)}"
            yield found(kinds.OVERDUE, detail, broker=broker)


def _stalled(of: Circumstances, reported: Collection[int]) -> Iterator[Problem]:
    """Topics with a last stable offset that does not move, if no transaction that is ``reported`` for these logs says why."""
    logs = of.shown.logs
    stalled = (logs["stalled"] > 0) & ~np.isin(logs["broker"], list(of.not_current))
    stalled[list(reported)] = False
    some = np.flatnonzero(stalled)
    for number in np.unique(logs["topic"][some]).tolist():
        those = some[logs["topic"][some] == number]
        partitions = sorted(logs["partition"][those].tolist())
        since = logs["oldest_open_start_ms"][those]
        waiting = int(np.maximum(logs["last_stable_offset_lag"][those], 0).sum())
        yield found(
            kinds.STALLED,
            f"{partitions_named(partitions)}, {format_count(waiting, 'offset')} behind open transactions",
            broker=int(logs["broker"][those[0]]) if len(those) == 1 else -1,
            topic=of.topics[number],
            partition=only(partitions),
            since_ms=int(since.min()),
        )
