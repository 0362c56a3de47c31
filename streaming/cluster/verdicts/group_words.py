"""The words about a group's offsets and rebalances that several sentences share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from streaming.broker.protocol.group_json import GroupRebalance, MovedOffset, RebalancedMember
from streaming.broker.protocol.history_json import DeletedTopic
from streaming.cluster.consumers.group_rebalances import Lately, Restless
from streaming.cluster.consumers.query_groups import QueryFacts
from streaming.common.units import TimeWords, format_count, format_duration, format_list, format_name
from streaming.kafka.groups.group_rows import GroupFacts
from streaming.kafka.groups.group_states import GroupType
from streaming.kafka.groups.offset_moves import MoveKind
from streaming.kafka.groups.rebalance_log import MINUTE_MS, MemberName, RebalanceKind, unpacked_rebalances

_BY_DURATION = "with by_duration they skip what is older than that"  # KIP-1106, since Kafka 4.1
_POLICIES = f"with none they fail until the offset is reset, with latest they skip what is left, {_BY_DURATION}"

_BY = {
    MoveKind.ADMIN: "by hand, as kafka-consumer-groups.sh --reset-offsets does: the group had no members, and the log does not say who it "
    "was",
    MoveKind.RESET: "from beyond the end of the log, as its consumers do by auto.offset.reset: records were cut off, or somebody had "
    "committed that",
    MoveKind.CONSUMER: "by one of its own consumers, further than they go back to repeat what they had not committed",
}

_MOST_NAMED = 3
_MOST_REBALANCES = 3


def reset_words(type_: str, protocol: str) -> ResetWords:
    """The words for a type of group; a classic one without a protocol has only commits, of consumers with ``assign()``."""
    if type_ == GroupType.SHARE:
        return _SHARE
    if type_ == GroupType.STREAMS:
        return _STREAMS
    if type_ == GroupType.SPARK:
        return _SPARK
    return _ASSIGNED if type_ == GroupType.CLASSIC and not protocol else _SUBSCRIBED


@dataclass(frozen=True, slots=True, kw_only=True)
class ResetWords:
    """What decides where consumers go on."""

    after_loss: str  # a sentence about what was deleted
    beyond_end: str  # another one, of an offset after the end
    begins: str  # a clause, of a partition without an offset


_SHARE = ResetWords(
    after_loss="Its consumers go on with what is left, without a reset",
    beyond_end="Its consumers get nothing until the log has grown so far, or the start offset is reset",
    begins="its share.auto.offset.reset decides where the group begins",
)


_STREAMS = ResetWords(
    after_loss="The reset policy that the topology has for the topic decides where the application goes on, or else its auto.offset.reset: "
    "with none it fails until the offset is reset, with latest it skips what is left, with by_duration what is older than that",
    beyond_end="Where the application goes on, the reset policy that the topology has for the topic decides, or else its auto.offset.reset",
    begins="where the application begins is decided by the reset policy that the topology has for the topic, or else its auto.offset.reset",
)


_SPARK = ResetWords(
    after_loss="The query fails with its next micro-batch, unless failOnDataLoss is false: then it goes on at the log start",
    beyond_end="The query fails with its next micro-batch, unless failOnDataLoss is false",
    begins="its startingOffsets decide where the query begins",
)


_ASSIGNED = ResetWords(
    after_loss=f"Its consumers go on where they seek to, or else auto.offset.reset decides: {_POLICIES}",
    beyond_end="Its consumers go on where they seek to, or else auto.offset.reset decides",
    begins="its consumers begin where they seek to, or else where auto.offset.reset says",
)


_SUBSCRIBED = ResetWords(
    after_loss=f"auto.offset.reset decides where its consumers go on: {_POLICIES}",
    beyond_end="auto.offset.reset decides where its consumers go on",
    begins="auto.offset.reset decides where its consumers begin",
)


class MoveWords:
    """The sentences, as of ``times``."""

    def __init__(self, times: TimeWords) -> None:
        self._times = times

    def skipped(self, moves: Sequence[MovedOffset], *, read_to: int, members: bool) -> str:
        """Records were skipped, by moves one after the other.

        Args:
            read_to: the offset that is committed now, -1 where nothing sets it back.
            members: the group has some, and Kafka resets no offset of such a group.
        """
        since = "Once it is set back it reads them, and once more all that it has read since, up to offset"
        again = f". {since} {read_to}" if read_to > moves[-1].to_offset else ""
        return f"skipped: {self._moves(moves)}. Left unread: {_records(moves)}{again}{stop_first(members=members)}"

    def rewound(self, moves: Sequence[MovedOffset]) -> str:
        """The group was set back."""
        return f"set back: {self._moves(moves)}. Between both: {_records(moves)}"

    @staticmethod
    def moved(*, forwards: bool) -> str:
        """The same, where nothing says how."""
        return "records were skipped, because its committed offset was moved" if forwards else "its committed offset was moved back"

    def _moves(self, moves: Sequence[MovedOffset]) -> str:
        last = moves[-1]
        more = f", the last of {len(moves)} such moves," if len(moves) > 1 else ""
        how = _BY.get(MoveKind(last.kind), "") if last.kind in {*MoveKind} else ""
        went = f"the committed offset went from {last.from_offset} to {last.to_offset} at {self._times.at(last.at_ms)}"
        return f"{went}{more} {how}".rstrip()


def _records(moves: Sequence[MovedOffset]) -> str:
    """How many records; an offset whose record was not counted may have had none."""
    records, offsets = sum(max(each.records, 0) for each in moves), sum(each.offsets for each in moves)
    return f"{'up to ' if offsets else ''}{format_count(records + offsets, 'record')}"


def stop_first(*, members: bool) -> str:
    """What comes before a reset of a group that has ``members``, "" of one without."""
    return ". Its consumers have to be stopped before an offset is reset" if members else ""


def restless_text(storm: Lately | None, restless: Restless | None, rebalances: Sequence[GroupRebalance], times: TimeWords) -> str:
    """What is said of a group that rebalances all the time, or whose members come and go. ``rebalances``: as for `storm_text`."""
    text = storm_text(storm, rebalances, times) if storm is not None else ""
    if restless is None or not restless.standing:
        return text
    if not text:
        text = f"its members come and go: since {times.at(restless.first_ms)} they have come back {format_count(restless.returns, 'time')}"
    first, several = restless.standing[0], len(restless.standing) > 1
    where = format_list([f"{format_name(each.topic)}-{each.partition} at offset {each.offset}" for each in restless.standing], _MOST_NAMED)
    stands = f"What it reads next has stayed the same meanwhile: {where}" if several else f"Meanwhile it stands in {where}"
    committed = "" if several else f", since its last commit before that, at {times.at(first.since_ms)}"
    fails = "the first record of one of them" if several else "that record"
    return f"{text}. {stands}{committed}. Perhaps its consumers fail at {fails}: to start them again helps nothing"


def storm_text(of_late: Lately, rebalances: Sequence[GroupRebalance], times: TimeWords) -> str:
    """What is said of a group that rebalances all the time. ``rebalances``: its last ones, the newest first."""
    lasted_ms = max(of_late.last_ms - of_late.first_ms, MINUTE_MS)
    often = f"it has rebalanced {format_count(of_late.in_a_row, 'time')} within {format_duration(lasted_ms / 1000)}"
    members = f"with {format_count(of_late.members, 'member')} at most"
    last = f"last {times.ago(of_late.last_ms)}"
    return f"{often}, {members}, {last}{_restless([each for each in rebalances if each.at_ms >= of_late.first_ms], times)}"


def _restless(rebalances: Sequence[GroupRebalance], times: TimeWords) -> str:
    """Who has come and gone most often among the last rebalances that are known one by one, and since when these are."""
    joined = Counter(member for each in rebalances for member in each.joined if each.kind != RebalanceKind.REJOINED)
    left = Counter(member for each in rebalances for member in each.left)
    both = (joined + left).most_common(1)
    if not both or both[0][1] < 2:
        return ""
    ((member, _),) = both
    counts = [f"{verb} {format_count(of[member], 'time')}" for verb, of in (("left", left), ("joined", joined)) if of[member]]
    listed_ms = min(each.at_ms for each in rebalances)
    return (
        f"; of the last {format_count(len(rebalances), 'rebalance')}, since {times.at(listed_ms)}, {_name(member)} {' and '.join(counts)}"
    )


def _name(member: RebalancedMember) -> str:
    return f"{format_name(member.client)} ({format_name(member.host)})"


def last_rebalances(rebalances: Sequence[GroupRebalance], now_ms: int) -> list[str]:
    """The last ones of a group, a line each, the newest first, as they come."""
    return [rebalance_text(each, now_ms) for each in rebalances[:_MOST_REBALANCES]]


def rebalance_text(rebalance: GroupRebalance, now_ms: int) -> str:
    """One rebalance in a line."""
    at = TimeWords(now_ms).at(rebalance.at_ms) if rebalance.at_ms >= 0 else "at a time that is not stored"
    if rebalance.kind == RebalanceKind.REJOINED:
        return f"{at}: {_named(rebalance.joined, 1)} came back under its group.instance.id, without a rebalance"
    return f"{at}: generation {rebalance.generation}, {format_count(rebalance.members, 'member')}; {'; '.join(_what(rebalance))}"


def _named(members: Sequence[RebalancedMember], count: int) -> str:
    names = [_name(each) for each in members]
    return format_list([*names, *[""] * (count - len(names))], min(len(names), _MOST_NAMED)) if names else format_count(count, "member")


def _what(rebalance: GroupRebalance) -> Iterator[str]:
    if rebalance.kind == RebalanceKind.METADATA:
        yield "partitions or topics came or went"
    elif rebalance.joined_members < 0:
        yield "who joined or left is not on disk any more"
    elif not rebalance.joined_members and not rebalance.left_members:
        yield "nobody joined or left"
    if rebalance.joined_members > 0:
        yield f"{_named(rebalance.joined, rebalance.joined_members)} joined"
    if rebalance.left_members > 0:
        yield f"{_named(rebalance.left, rebalance.left_members)} left"
    if rebalance.unfinished:
        yield f"{format_count(rebalance.unfinished, 'generation')} before it had no assignment"


def listed_rebalances(facts: GroupFacts | None) -> list[GroupRebalance]:
    """Those that are known of a group, the newest first."""
    if facts is None:
        return []
    return [
        GroupRebalance(
            at_ms=each.at_ms,
            kind=each.kind,
            generation=each.raised,
            generations=each.generations,
            unfinished=each.unfinished,
            members=each.members,
            joined_members=each.joined,
            left_members=each.left,
            joined=[_member(name) for name in each.joined_names],
            left=[_member(name) for name in each.left_names],
        )
        for each in reversed(unpacked_rebalances(facts.rebalances, facts.rebalance_clients, facts.rebalance_hosts))
    ]


def _member(name: MemberName) -> RebalancedMember:
    return RebalancedMember(client=name.client, host=name.host)


def query_notes(facts: QueryFacts | None, now_ms: int) -> Iterator[str]:
    """Sentences about a query as of ``now_ms``, Unix milliseconds; nothing of any other group."""
    if facts is None:
        return
    known = "known to be " if facts.doubts else ""
    done = f"; micro-batch {facts.batch} is the last one {known}committed" if facts.batch >= 0 else ""  # else doubts say why
    yield f"its checkpoint is {format_name(facts.checkpoint, 500)}{done}"
    if facts.planned_batch >= 0:
        at = TimeWords(now_ms).at(facts.planned_ms)
        yield f"micro-batch {facts.planned_batch} is planned since {at} and not committed, so what it reads does not count as read"
    yield from facts.notes


def deleted_topic_text(deleted: DeletedTopic, times: TimeWords) -> str:
    """That a topic was deleted with records that a group had not read."""
    parts = [f"at least {format_count(deleted.records, 'record')}"] if deleted.records else []
    parts += [f"{format_count(deleted.offsets, 'offset')} whose records were not counted"] if deleted.offsets else []
    as_of = f", as of {times.at(deleted.counted_ms)}" if deleted.at_ms - deleted.counted_ms > MINUTE_MS else ""
    return (
        f"topic {format_name(deleted.topic)} was deleted at {times.at(deleted.at_ms)} with {' and '.join(parts)} that the group had still "
        f"to read{as_of}; the controller's log may say who deleted it"
    )
