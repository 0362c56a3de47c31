"""What is to be said of one consumer group: a sentence for each judgement, with the command that mends it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from streaming.broker.protocol.cluster_messages import MetadataChange
from streaming.broker.protocol.group_json import (
    GroupFinding,
    GroupPartition,
    GroupRebalance,
    GroupSummary,
    GroupVerdict,
    HoldingTransaction,
    MovedOffset,
)
from streaming.broker.protocol.history_json import DeletedTopic
from streaming.cluster.consumers.group_partitions import NOT_COMMITTED
from streaming.cluster.consumers.group_rebalances import Lately, Restless
from streaming.cluster.verdicts.admin_causes import NO_CAUSES, AdminCauses, former_limit
from streaming.cluster.verdicts.commands import NO_COMMAND, Command, GroupCommands
from streaming.cluster.verdicts.conditions import UNKNOWN_LAG, WholeLag
from streaming.cluster.verdicts.group_bounds import CALM, SEVERITY, GroupBounds, order
from streaming.cluster.verdicts.group_judge import Judgement, had_members
from streaming.cluster.verdicts.group_sentences import ENDED_BY_ITSELF, Sentences, deleted_by_client
from streaming.cluster.verdicts.group_words import MoveWords, deleted_topic_text, restless_text
from streaming.cluster.verdicts.transaction_problems import Remedy, StuckTransaction, remedy_after_start, remedy_of, remedy_of_hanging
from streaming.common.units import TimeWords, capitalized
from streaming.kafka.groups.group_states import GroupState, GroupType
from streaming.rules.transaction_verdicts import TransactionVerdict

_CAUSES = (GroupVerdict.HELD.label, GroupVerdict.PENDING.label)
"""Verdicts that are the cause of others about the same partition, that which explains most first."""

_EFFECTS = frozenset(verdict.label for verdict in (GroupVerdict.LOST, GroupVerdict.WILL_LOSE, GroupVerdict.STOPPED, GroupVerdict.SLOWER))

TopicPartition = tuple[str, int]

BECAUSE = "the cause is that "

_INVALID = (GroupVerdict.BEYOND_END, GroupVerdict.OTHER_HISTORY)

_BECAUSE = Command(reason="the open transaction has to end first")
_AFTER_IT = Command(reason="no reset helps before the open transaction has ended")
_IN_MEMORY = Command(reason="a reset of its offset makes the loss real, and so does a restart")
ABOVE = "run the same command above once"
_HOUR_MS = 3_600_000

NO_OFFSETS = "it has no committed offsets, or none any more"
"""What is said of a group without any partition."""

NOT_ON_DISK = f"{NO_OFFSETS}, but it has members: what they have read is not on disk"
"""What is said of such a group while it has consumers: they may be stuck before their first commit, or commit elsewhere."""

NOT_STORED_YET = "not known: its records are above the high watermark of its coordinator's log, damaged, or of a later version of Kafka"
"""What is said of a group of which nothing else is known."""

SHARES_NOT_READ = "not known: what it has done with is in logs of __share_group_state that are not read here"
"""What is said of a share group without any partition, where not all of these logs are read."""

_Judged = TypeVar("_Judged", GroupSummary, GroupPartition)

JudgedPartition = tuple[GroupPartition, Sequence[Judgement]]

_CALM: Mapping[GroupVerdict, Callable[[Sentences, GroupPartition], str]] = {
    GroupVerdict.UNKNOWN: Sentences.unknown,
    GroupVerdict.PERHAPS_LOST: Sentences.perhaps_lost,
    GroupVerdict.CATCHING_UP: Sentences.catching_up,
    GroupVerdict.ONLY_MARKERS: Sentences.only_markers,
    GroupVerdict.FINE: Sentences.fine,
    GroupVerdict.LEFT_OVER: Sentences.left_over,
}


def causes_first(
    findings: Sequence[GroupFinding], by_other: Collection[TopicPartition] = (), lowered: Collection[TopicPartition] = ()
) -> list[GroupFinding]:
    """The findings in their order, but those that follow from another one come after it, and it comes where the worst of them was.

    The findings about a group with causes before effects: an open transaction that holds a partition up is why the rest is so there.
    That the group has no members is why its partitions stand still, whatever else does not hold them up.

    A cause says so: its sentence begins with `BECAUSE`, and ``because`` of its effects is its verdict. That the group has no
    members is the cause of what no other finding explains.

    Args:
        by_other: partitions that lost something for another reason than what holds them up now: a client deleted it, or they have gone
            on since.
        lowered: partitions that will lose something because the limit of retention was lowered: that is the cause, and to take it back is
            what saves the records, whether or not consumers are there.
    """

    def follows(one: GroupFinding) -> bool:
        if one.verdict == GroupVerdict.WILL_LOSE.label and (one.topic, one.partition) in lowered:
            return False
        past = one.verdict == GroupVerdict.LOST.label and (not one.topic or (one.topic, one.partition) in by_other)
        return one.verdict in _EFFECTS and not past

    of_partition: dict[TopicPartition, list[GroupFinding]] = defaultdict(list)
    for each in findings:
        of_partition[each.topic, each.partition].append(each)
    ordered: list[GroupFinding] = []
    placed: set[TopicPartition] = set()
    for each in findings:
        where = each.topic, each.partition
        some = of_partition[where]
        cause = _cause(some) if each.topic and any(map(follows, some)) else None
        if cause is None:
            ordered.append(each)
        elif where not in placed and (each is cause or follows(each)):
            placed.add(where)
            text = f"{BECAUSE}{'it is ' if cause.verdict == GroupVerdict.HELD.label else ''}{cause.text}"
            ordered.append(replace(cause, text=text))
            ordered += (replace(one, because=cause.verdict) for one in some if follows(one))
        elif each is not cause and not follows(each):
            ordered.append(each)
    return _nobody_first(ordered, [each for each in ordered if follows(each) and not each.because])


def _nobody_first(findings: list[GroupFinding], effects: Sequence[GroupFinding]) -> list[GroupFinding]:
    """The same with the absence of members before the first of some effects."""
    nobody = next((each for each in findings if each.verdict == GroupVerdict.NO_MEMBERS.label), None)
    if nobody is None or not effects:
        return findings
    cause = replace(nobody, text=f"{BECAUSE}{nobody.text}")
    found = [replace(each, because=nobody.verdict) if each in effects else each for each in findings if each is not nobody]
    first = next(at for at, each in enumerate(found) if each.because == nobody.verdict)
    return [*found[:first], cause, *found[first:]]


def _cause(some: Sequence[GroupFinding]) -> GroupFinding | None:
    """The cause among the findings about one partition, None if there is none. Commits may wait for a while, and nothing follows."""
    held, pending = ([each for each in some if each.verdict == verdict] for verdict in _CAUSES)
    return next(iter([*held, *(each for each in pending if each.severity)]), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupFindings:
    """Makes the findings about one group.

    Args:
        commands: for its cluster, and for the group.
        whole: its lag, of which partitions have a part.
        shares_unread: some log that may have the offsets of share groups is not read.
        rebalances: its last ones, the newest first; ``storm``: what it has of late, if it rebalances all the time; ``restless``: that its
            members come and go, and where it stands meanwhile.
        doubts: what is not known of it if it is a streaming query, in sentences.
        away: the brokers that surely have no process.
        lasting: in sentences that are read later.
        invalid: some of its offsets are not valid, or perhaps not.
        causes: what admins did that may have begun it.
        deleted_topics: those that were deleted while it had records of them to read.
    """

    summary: GroupSummary
    commands: GroupCommands
    bounds: GroupBounds
    now_ms: int
    whole: WholeLag = UNKNOWN_LAG
    shares_unread: bool = False
    rebalances: Sequence[GroupRebalance] = ()
    storm: Lately | None = None
    restless: Restless | None = None
    doubts: Sequence[str] = ()
    away: Collection[int] = ()
    lasting: bool = False
    invalid: bool = False
    causes: AdminCauses = NO_CAUSES
    deleted_topics: Sequence[DeletedTopic] = ()

    def all_of(self, partitions: Sequence[JudgedPartition], about: Sequence[Judgement]) -> list[GroupFinding]:
        """All findings, the worst first; of those that are as bad as `order` says.

        Args:
            about: what is to be said of the group as a whole.
        """
        of_all = replace(self, invalid=any(each.verdict in _INVALID for _, judgements in partitions for each in judgements))
        every, by_other, lowered = [(judgement, of_all.of_group(judgement), -self.summary.lag) for judgement in about], set(), set()
        for partition, judgements in partitions:
            every += [
                (judgement, self.of_partition(partition, judgement), order(judgement.verdict, partition.lag, partition.loss_ms))
                for judgement in judgements
            ]
            if not partition.lost_offsets or deleted_by_client(partition):
                by_other.add((partition.topic, partition.partition))
            if not partition.held and self._lowering(partition) is not None:
                lowered.add((partition.topic, partition.partition))
        if not every and not self.summary.partitions:
            every.append((*self._without_offsets(), 0))
        every.sort(key=lambda each: (each[0].severity, each[0].verdict, each[2], each[1].topic, each[1].partition))
        return _without_repeats(causes_first([finding for _, finding, _ in every], by_other, lowered))

    def of_group(self, judgement: Judgement) -> GroupFinding:
        """What is said of the group as a whole."""
        return _finding(judgement, text=_OF_GROUP[judgement.verdict](self), lag=self.summary.lag)

    def of_partition(self, partition: GroupPartition, judgement: Judgement) -> GroupFinding:
        """What is said of one of its partitions."""
        text, command = _OF_PARTITION[judgement.verdict](self, partition, judgement.verdict)
        return _finding(
            judgement,
            topic=partition.topic,
            partition=partition.partition,
            lag=partition.lag,
            text=text,
            command=command.line,
            no_command=command.reason,
        )

    def _rebalancing(self) -> str:
        return restless_text(self.storm, self.restless, self.rebalances, self._times)

    def _lost(self, partition: GroupPartition, _: GroupVerdict) -> tuple[str, Command]:
        if not partition.lost_offsets:
            return self._sentences.went_on(partition), NO_COMMAND
        text = self._sentences.lost(partition, self._began(partition, partition.lost_lately_ms), members=self.summary.members > 0)
        return text, _AFTER_IT if partition.held else self._after_loss(partition)

    def _will_lose(self, partition: GroupPartition, _: GroupVerdict) -> tuple[str, Command]:
        text = self._sentences.will_lose(partition, self._began(partition))
        if partition.held:
            return text, _BECAUSE
        command = self._kept(partition)
        return f"{text}. {command.changes}" if command.changes else text, command

    def _kept(self, partition: GroupPartition) -> Command:
        """What keeps what is deleted next: the former limit, where it was lowered and that is enough, else a higher one."""
        change = self._lowering(partition)
        if change is not None:
            back = self.commands.take_back(change)
            age_ms = self.now_ms - partition.next_timestamp_ms if partition.next_timestamp_ms >= 0 else 0
            if back.line and (partition.loss_by_size or former_limit(change, by_size=False) > age_ms):
                return back
        return _keep_longer(partition, self.commands, self.now_ms)

    def _lowering(self, partition: GroupPartition) -> MetadataChange | None:
        """The change of an admin by which it will lose records."""
        if deleted_by_client(partition) or partition.next_expired_ms >= 0:
            return None
        return self.causes.lowering(partition.topic, partition.broker, self.now_ms, by_size=partition.loss_by_size)

    def _began(self, partition: GroupPartition, before_ms: int = -1) -> str:
        """What made retention delete earlier what is not read. Of what a client deletes, or what came too late, that is no cause."""
        if deleted_by_client(partition) or partition.lost_expired or partition.next_expired_ms >= 0:
            return ""
        of = partition
        return self.causes.of_deletion(of.topic, of.broker, self._times, by_size=of.loss_by_size, before_ms=before_ms)

    def _pending(self, partition: GroupPartition, _: GroupVerdict) -> tuple[str, Command]:
        waiting = [each for each in partition.pending if 0 <= each.since_ms < self.now_ms - self.bounds.pending_after_ms]
        waiting = waiting or partition.pending
        return self._sentences.pending(waiting[0], len(waiting)), NO_COMMAND

    def _elsewhere(self, partition: GroupPartition, verdict: GroupVerdict) -> tuple[str, Command]:
        said = self._sentences.beyond_end if verdict is GroupVerdict.BEYOND_END else self._sentences.other_history
        return said(partition, members=self.summary.members > 0), self._go_on(partition)

    def _go_on(self, partition: GroupPartition) -> Command:
        """What lets it go on where no record is skipped that it has not read, also if more come before the command is run."""
        if partition.go_on_at > partition.log_start:
            return self.commands.reset_to(partition.topic, partition.partition, partition.go_on_at)
        return self.commands.reset_to_earliest(partition.topic, partition.partition, by_itself=False)

    def _after_loss(self, partition: GroupPartition) -> Command:
        """A reset brings nothing back. Where nothing is left it only helps consumers that fail, as with auto.offset.reset=none."""
        if not partition.records_left and had_members(self.summary):
            return Command(reason="nothing is left to read, and what was deleted does not come back")
        return self.commands.reset_to_earliest(partition.topic, partition.partition)

    def _moved(self, partition: GroupPartition, verdict: GroupVerdict) -> tuple[str, Command]:
        """Its offset was moved; the command moves it to where it was before these moves, while that undoes them."""
        forwards = verdict is GroupVerdict.SKIPPED
        moves = [each for each in partition.moves if (each.to_offset > each.from_offset) == forwards]
        words = MoveWords(self._times)
        if not moves:  # of another job, which does not say how
            return words.moved(forwards=forwards), NO_COMMAND
        command = self._undone(partition, moves, forwards=forwards)
        stop = self.summary.members > 0 and bool(command.line)
        if not forwards:
            return words.rewound(moves), command
        return words.skipped(moves, read_to=partition.committed if command.line else -1, members=stop), command

    def _undone(self, partition: GroupPartition, moves: Sequence[MovedOffset], *, forwards: bool) -> Command:
        """What undoes moves forwards, if anything does by now: an offset of a history that has ended is none to go back to.

        Nothing undoes one back: the group reads once more what it has read, and nothing shows that it had read all before the offset that
        it had. It may have been set there by hand.
        """
        if not forwards:
            return Command(reason="it reads on from there, and a reset forwards might skip what it has not read")
        if partition.history:
            return Command(reason="the history of its log in which it was moved has ended")
        first = min(each.from_offset for each in moves)
        if max(each.to_offset for each in moves) <= partition.log_start:
            return Command(reason="what was skipped is deleted by now")
        if 0 <= partition.committed <= first:
            return Command(reason="it is back before that offset, and reads on from there")
        return self.commands.reset_to(partition.topic, partition.partition, first)

    def _held(self, partition: GroupPartition, _: GroupVerdict) -> tuple[str, Command]:
        """The cause of whatever else is said of the partition, with what ends it."""
        holding, words = partition.held_by, self._sentences
        hangs = holding is not None and holding.verdict == TransactionVerdict.HANGING.label
        if partition.broker in self.away:
            remedy = remedy_after_start(partition.broker, hangs=hangs)
            return _advised(words.held(_without_deadline(partition)), remedy)
        if holding is not None and hangs:
            remedy = remedy_of_hanging(self.commands, partition.topic, partition.partition, holding.first_offset)
            return _advised(words.held(partition), remedy)
        if holding is None or not holding.stuck:
            return words.held(partition), _no_abort(holding)
        stuck = StuckTransaction(
            transactional_id=holding.transactional_id,
            verdict=holding.verdict,
            deadline_ms=holding.deadline_ms,
            loss_ms=-1 if partition.limits_assumed else partition.loss_ms,
        )
        remedy = remedy_of(stuck, self.commands, self._times)
        return _advised(words.held(_without_deadline(partition)), remedy)

    @property
    def _times(self) -> TimeWords:
        return TimeWords(self.now_ms, self.lasting)

    @property
    def _sentences(self) -> Sentences:
        of = self.summary
        return Sentences(self._times, of.type, of.protocol, of.state, of.state_ms)

    def _damaged(self, partition: GroupPartition, _: GroupVerdict) -> tuple[str, Command]:
        """What is damaged; the command shows how much is. To go on after it loses what another replica may have whole."""
        batch = partition.batch
        assert batch is not None
        shows = (
            self.commands.verify(str(Path(batch.file).parent)) if batch.file else Command(reason="a reset to after it loses its records")
        )
        return self._sentences.damaged(partition, batch), shows

    def _stopped(self, partition: GroupPartition, _: GroupVerdict) -> tuple[str, Command]:
        """Where it stands; the command shows the record that its consumers get next."""
        text, batch = self._sentences.stopped(partition, deserted=had_members(self.summary)), partition.batch
        if batch is None or not batch.file:
            return text, NO_COMMAND
        offset = batch.record_offset if batch.record_offset >= 0 else max(partition.next_offset, partition.committed, batch.base_offset)
        return text, self.commands.record(batch.file, offset)

    def _calm(self, partition: GroupPartition, verdict: GroupVerdict) -> tuple[str, Command]:
        words = self._sentences
        if verdict is GroupVerdict.BETWEEN_RUNS:
            text = words.between_runs(partition, self.summary)
        elif partition.unknown == NOT_COMMITTED:
            text = words.not_committed(partition)
        else:
            text = _CALM[verdict](words, partition)
        if self.restless is not None and (partition.topic, partition.partition) in {
            (at.topic, at.partition) for at in self.restless.standing
        }:
            text = text.replace("fine: ", "stands while members come and go: ", 1)
        ended = self.causes.of_end(partition.topic, self._times) if partition.unknown == "topic_gone" else ""
        return text + ended + words.deleted_next(partition), NO_COMMAND

    def _without_offsets(self) -> tuple[Judgement, GroupFinding]:
        judgement = without_offsets(self.summary, shares_unread=self.shares_unread)
        if self.shares_unread and self.summary.type == GroupType.SHARE:
            return judgement, _finding(judgement, text=SHARES_NOT_READ)
        if self.summary.state == GroupState.UNKNOWN:
            return judgement, _finding(judgement, text=NOT_STORED_YET)
        return judgement, _finding(judgement, text=NOT_ON_DISK if judgement.verdict is GroupVerdict.UNKNOWN else NO_OFFSETS)


_OF_GROUP: Mapping[GroupVerdict, Callable[[GroupFindings], str]] = {
    GroupVerdict.LOST: lambda of: "; ".join(deleted_topic_text(each, of._times) for each in of.deleted_topics),
    GroupVerdict.REBALANCING: GroupFindings._rebalancing,
    GroupVerdict.UNKNOWN: lambda of: f"not known: {'; '.join(of.doubts)}",
    GroupVerdict.NO_MEMBERS: lambda of: of._sentences.no_members(of.summary, invalid=of.invalid),
}


_OF_PARTITION: Mapping[GroupVerdict, Callable[[GroupFindings, GroupPartition, GroupVerdict], tuple[str, Command]]] = {
    GroupVerdict.LOST: GroupFindings._lost,
    GroupVerdict.WILL_LOSE: GroupFindings._will_lose,
    GroupVerdict.BUFFERED: lambda of, partition, _: (of._sentences.buffered(partition), _IN_MEMORY),
    GroupVerdict.DAMAGED: GroupFindings._damaged,
    GroupVerdict.TOO_LARGE: lambda of, partition, _: (of._sentences.too_large(partition, of.bounds.fetch_bytes), NO_COMMAND),
    GroupVerdict.HELD: GroupFindings._held,
    GroupVerdict.BEYOND_END: GroupFindings._elsewhere,
    GroupVerdict.OTHER_HISTORY: GroupFindings._elsewhere,
    GroupVerdict.PENDING: GroupFindings._pending,
    GroupVerdict.STOPPED: GroupFindings._stopped,
    GroupVerdict.SKIPPED: GroupFindings._moved,
    GroupVerdict.WILL_EXPIRE: lambda of, partition, _: (of._sentences.will_expire(partition), NO_COMMAND),
    GroupVerdict.SLOWER: lambda of, partition, _: (of._sentences.slower(partition), NO_COMMAND),
    GroupVerdict.REWOUND: GroupFindings._moved,
    GroupVerdict.SKEWED: lambda of, partition, _: (of._sentences.skewed(partition, of.whole), NO_COMMAND),
    **dict.fromkeys((*_CALM, GroupVerdict.BETWEEN_RUNS, GroupVerdict.NOT_COMMITTED), GroupFindings._calm),
}


if _without_words := {*GroupVerdict} - {*_OF_GROUP, *_OF_PARTITION, GroupVerdict.NO_OFFSETS}:  # that one is said where nothing is judged
    raise TypeError(f"nothing says what {', '.join(each.name for each in _without_words)} means")


def with_damage(judged: JudgedPartition) -> JudgedPartition:
    """The partition; if its next batch was found damaged, with that judgement, and without what is said of a batch that is only large."""
    of, judgements = judged
    if of.batch is None or of.batch.sound:
        return judged
    others = [each for each in judgements if each.verdict.is_finding and each.verdict is not GroupVerdict.TOO_LARGE]
    as_stopped = (each.severity for each in others if each.verdict is GroupVerdict.STOPPED)  # that is what its alert reports
    return of, sorted([Judgement(next(as_stopped, SEVERITY[GroupVerdict.DAMAGED]), GroupVerdict.DAMAGED), *others])


def with_verdict(message: _Judged, worst: Judgement) -> _Judged:
    """A group or one of its partitions with the worst judgement about it."""
    return replace(message, verdict=worst.verdict.label, severity=worst.word, since_ms=worst.since_ms)


def without_offsets(summary: GroupSummary, *, shares_unread: bool) -> Judgement:
    """The judgement about a group without any partition. Of one with consumers no offset shows what they read, and
    whether one has offsets while its state is not known is not known either. Members of other protocols, such as connect, commit none.
    """
    reads = summary.members > 0 and summary.protocol == "consumer"
    unknown = reads or summary.state == GroupState.UNKNOWN or (shares_unread and summary.type == GroupType.SHARE)
    return Judgement(CALM, GroupVerdict.UNKNOWN if unknown else GroupVerdict.NO_OFFSETS)


def _without_repeats(findings: Sequence[GroupFinding]) -> list[GroupFinding]:
    """Each command once: a transaction is open in many partitions, and to end it twice ends the next one of the producer with its id."""
    seen: set[str] = set()
    found = []
    for each in findings:
        found.append(replace(each, command="", no_command=ABOVE) if each.command in seen else each)
        seen |= {each.command} - {""}
    return found


def _finding(judgement: Judgement, **fields: object) -> GroupFinding:
    return GroupFinding(verdict=judgement.verdict.label, severity=judgement.word, since_ms=judgement.since_ms, **fields)  # type: ignore[arg-type]


def _advised(text: str, remedy: Remedy) -> tuple[str, Command]:
    return f"{text}. {capitalized(remedy.advice)}", remedy.command


def _keep_longer(partition: GroupPartition, commands: GroupCommands, now_ms: int) -> Command:
    """A higher limit, of the two the one that deletes the next record. That may be stamped longer ago than twice the limit."""
    if partition.loss_by_size:
        return commands.keep_longer(partition.topic, "retention.bytes", partition.retention_bytes)
    due_ms = partition.loss_ms if partition.loss_ms >= 0 else now_ms  # what waits for a start is due by now
    age_ms = now_ms - (partition.next_timestamp_ms if partition.next_timestamp_ms >= 0 else due_ms - partition.retention_ms)
    hours = -(-(age_ms + partition.retention_ms) // _HOUR_MS)
    return commands.keep_longer(partition.topic, "retention.ms", partition.retention_ms, hours * _HOUR_MS)


def _without_deadline(partition: GroupPartition) -> GroupPartition:
    """The partition, of whose transaction an advice says when it ends."""
    holding = partition.held_by
    return partition if holding is None else replace(partition, held_by=replace(holding, deadline_ms=-1))


def _no_abort(holding: HoldingTransaction | None) -> Command:
    """Why there is no command for a transaction that does not hang."""
    if holding is None:
        return Command(reason="the transaction is not known")
    if holding.verdict in ("", "unknown", "unclaimed"):
        return Command(reason="whether a coordinator will end the transaction is not known here: see `segtail transactions`")
    return Command(reason=ENDED_BY_ITSELF.get(holding.verdict, ENDED_BY_ITSELF["open"]))
