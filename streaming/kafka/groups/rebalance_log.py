"""The rebalances of one group, in the order of the records that show them.

A classic group raises its generation once all of its members have joined (`ClassicGroup.initNextGeneration`), and stores it when the
leader's assignment is there (`GroupMetadataManager.classicGroupSync`), or at once if no member is left. If members come or go before that
assignment, the generation is raised again and the one before is never stored: `UNFINISHED`. A static member that comes back is stored with
the same generation. A newer group stores each of its epochs, in one batch with the records of members and regular expressions that raised
it, which stand before it; an epoch without any was raised by the metadata of its topics.

The log cleaner removes all records of a key but the last one of what it cleans. So two records of one key that are both there have nothing
between them that was removed: a difference of their generations is what happened. Generations before the first one are not known.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from sys import intern

from streaming.common.short_names import short_name
from streaming.kafka.formats.stored_groups import GroupMetadata

MOST_RECENT = 20
"""So many of a group's last rebalances are kept."""

RECENT_MS = 24 * 3_600_000
"""None is kept that was longer before the last one."""

MOST_CHANGED = 4
"""So many of those that joined, and of those that left, are named of each."""

MINUTE_MS = 60_000

STORM_MINUTES = 30
"""For so long rebalances are counted by the minute."""

STORM_PAUSE_MINUTES = 10
"""What comes after so long without a rebalance is no part of what was before. A container that crashes again and again is started after
five minutes at the latest.
"""

LEAST_OF_STORM = 10
"""Fewer in a row are no storm, however few members a group has: one of a single member that is stopped and started twice has as many as
six, for some clients join twice.
"""

GENERATIONS = 1 << 32
"""A generation is a Java int, which wraps: as a number without a sign it counts on."""

_NOT_KNOWN = -1

_ENTRY = struct.Struct("<8q")  # of a rebalance in its column

MOST_COMPARED = 1000
"""The most members that a group may have for it to be known who joined and left."""

PAUSE_MS = 60_000
"""A group that had no member for longer was stopped, and started again. One that crashes is back sooner."""

_FAR = GENERATIONS // 2

_FIRST_EPOCH = 2
"""A newer group's first one; 1 before Kafka 4.4."""


class RebalanceLog:
    """The rebalances of one group, since it was made.

    ``raised``: its generation or epoch without a sign, -1 while none is known. ``metadata``, ``unfinished``: how many of them are known to
    be of that kind. ``last_ms``: when the last one was raised, -1 not known. ``recent``: the last ones. ``minutes``: of each minute of
    half an hour with some by which members have interrupted each other: its number since 1970, how many, and the most members of the group
    then.
    """

    __slots__ = ("_count", "_ended", "_gap", "_members", "_stored", "last_ms", "metadata", "minutes", "raised", "recent", "unfinished")

    def __init__(self) -> None:
        self.raised = self.last_ms = -1
        self.metadata = self.unfinished = 0
        self.recent: deque[Rebalance] | None = None
        self.minutes: list[list[int]] = []
        self._members: dict[str, tuple[str, MemberName]] | None = None  # of a classic group, by instance id, else by member id
        self._count = 0
        self._ended: tuple[int, int, int] | None = None  # when its last members left, with how many generations, and how many there were
        self._gap = False
        self._stored: tuple[int, int] = (0, -1)  # of a newer group: what its last record has besides its epoch

    @property
    def flat_minutes(self) -> list[int]:
        """``minutes`` as a column has them, one after the other."""
        return [number for each in self.minutes for number in each]

    def generation(self, group: GroupMetadata, at_ms: int) -> None:
        """A record of a classic group; ``at_ms``: when it was written. A generation is as old as its state, where that is stored."""
        before, self._members = self._members, _members_of(group, self._members or {})
        raised, count = group.generation % GENERATIONS, len(group.members)
        by = self._difference(raised)
        if not by:
            for identity, (member_id, name) in (self._members or {}).items():
                if before is not None and identity in before and before[identity][0] != member_id:
                    self.returned(name, at_ms, self._count)
            return
        at_ms = group.current_state_timestamp if group.current_state_timestamp >= 0 else at_ms
        first, gap = self.raised < 0, self._gap
        self._gap = False
        if first and raised == 0:  # made for a first member, who has yet to join
            self.raised = 0
            return
        joined, left = _compared({} if first and raised == 1 else before, self._members)
        unfinished = 0 if first or gap else by - 1
        self._raise(raised, by, RebalanceKind.MEMBERS, at_ms, count, joined=joined, left=left, unfinished=unfinished)

    def not_understood(self) -> None:
        """A record of it says nothing: what the next one shows may have happened in between."""
        self._members, self._gap = None, True

    def epoch(self, epoch: int, metadata_hash: int, topology: int, at_ms: int, members: int, changes: MemberChanges) -> None:
        """A newer group's own record.

        Args:
            metadata_hash: of its topics, 0 where none shows what metadata has raised (before Kafka 4.1).
            topology: of a streams group the epoch of the topology that is validated, -1 of others.
            members: how many there are.
            changes: what members have done since the record before. They are taken over.
        """
        before, self._stored = self._stored, (metadata_hash, topology)
        by = self._difference(epoch % GENERATIONS)
        if by:
            changed = metadata_hash == 0 or metadata_hash != before[0]
            only_metadata = self.raised >= 0 and changes.none and changed and topology == before[1]
            first = self.raised < 0 and epoch > _FIRST_EPOCH
            kind = RebalanceKind.METADATA if only_metadata else RebalanceKind.MEMBERS
            joined, left = (None, None) if first else (changes.joined, changes.left)
            self._raise(epoch % GENERATIONS, by, kind, at_ms, members, joined=joined, left=left)
        changes.clear()

    def returned(self, name: MemberName, at_ms: int, members: int) -> None:
        """A static member has come back, and nothing was raised by that."""
        rejoined = Rebalance(raised=self.raised, at_ms=at_ms, kind=RebalanceKind.REJOINED, generations=0, members=members)
        self._note(replace(rejoined, joined=1, left=0, joined_names=(name,)))

    def _difference(self, raised: int) -> int:
        """By how much a generation is raised: by one at the first sight and where it falls, as of a group that was made again."""
        by = (raised - self.raised) % GENERATIONS
        if self.raised >= 0 and by < _FAR:
            return by
        if self.raised >= 0:
            self.metadata = self.unfinished = 0
        return 1

    def _raise(
        self,
        raised: int,
        by: int,
        kind: RebalanceKind,
        at_ms: int,
        members: int,
        *,
        joined: Mapping[str, MemberName] | None,
        left: Mapping[str, MemberName] | None,
        unfinished: int = 0,
    ) -> None:
        self.raised, self.last_ms = raised, at_ms
        self.unfinished += unfinished
        if kind is RebalanceKind.METADATA:
            self.metadata += by
        else:
            self._count_lately(at_ms, by, members)
        self._count = members
        self._note(
            Rebalance(
                raised=raised,
                at_ms=at_ms,
                kind=kind,
                generations=by,
                unfinished=unfinished,
                members=members,
                joined=-1 if joined is None else len(joined),
                left=-1 if left is None else len(left),
                joined_names=tuple((joined or {}).values())[:MOST_CHANGED],
                left_names=tuple((left or {}).values())[:MOST_CHANGED],
            )
        )

    def _count_lately(self, at_ms: int, by: int, members: int) -> None:
        """Count by the minute the generations by which members have interrupted each other.

        No member is interrupted when a group begins, or ends, or is started again after a pause, as a job that runs now and then is.
        """
        ended, self._ended = self._ended, None
        if not members:
            self._ended = (at_ms, by, self._count) if self._count or ended is None else (ended[0], ended[1] + by, ended[2])
        elif self._count:
            self._count_minute(at_ms, by, max(members, self._count))
        elif ended is not None and at_ms - ended[0] <= PAUSE_MS:
            self._count_minute(*ended)
            self._count_minute(at_ms, by, members)

    def _count_minute(self, at_ms: int, by: int, members: int) -> None:
        minute = at_ms // MINUTE_MS
        if self.minutes and self.minutes[-1][0] - minute > STORM_MINUTES:  # a clock was far ahead: what it has dated shows nothing
            self.minutes = [each for each in self.minutes if each[0] <= minute]
        if self.minutes and self.minutes[-1][0] >= minute:
            last = self.minutes[-1]
            last[1], last[2] = last[1] + by, max(last[2], members)
            return
        self.minutes = [each for each in self.minutes if each[0] > minute - STORM_MINUTES]
        self.minutes.append([minute, by, members])

    def _note(self, rebalance: Rebalance) -> None:
        if self.recent is None:
            self.recent = deque(maxlen=MOST_RECENT)
        while self.recent and rebalance.at_ms - self.recent[0].at_ms > RECENT_MS:
            self.recent.popleft()
        self.recent.append(rebalance)


class RebalanceKind(StrEnum):
    """Why a generation or an epoch was raised; `REJOINED` raised none: a static member came back, and its group did not rebalance."""

    MEMBERS = "members"
    METADATA = "metadata"
    UNFINISHED = "unfinished"
    REJOINED = "rejoined"


@dataclass(frozen=True, slots=True)
class MemberName:
    """Who a member is, with short names."""

    client: str
    host: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebalance:
    """One rebalance.

    ``raised``: the generation or epoch that it came to, without a sign; ``generations``: by how much it raised that, ``unfinished`` of
    them without an assignment. ``at_ms``: by the coordinator's clock, Unix milliseconds. ``members``: how many there were then.
    ``joined``, ``left``: how many, -1 where that is not on disk; ``joined_names`` and ``left_names`` are the first of them.
    """

    raised: int
    at_ms: int
    kind: RebalanceKind
    generations: int = 1
    unfinished: int = 0
    members: int = 0
    joined: int = _NOT_KNOWN
    left: int = _NOT_KNOWN
    joined_names: tuple[MemberName, ...] = ()
    left_names: tuple[MemberName, ...] = ()


def _members_of(group: GroupMetadata, before: Mapping[str, tuple[str, MemberName]]) -> dict[str, tuple[str, MemberName]] | None:
    """Members by instance id, else by member id; those that were there before are the same values: many generations take little memory."""
    if len(group.members) > MOST_COMPARED:
        return None
    found = {}
    for each in group.members:
        identity, member_id = short_name(each.group_instance_id or each.member_id), short_name(each.member_id)
        client, host, known = short_name(each.client_id), short_name(each.client_host), before.get(identity)
        if known is None or (known[0], known[1].client, known[1].host) != (member_id, client, host):
            known = member_id, MemberName(intern(client), intern(host))
        found[identity] = known
    return found


def _compared(
    before: Mapping[str, tuple[str, MemberName]] | None, after: Mapping[str, tuple[str, MemberName]] | None
) -> tuple[dict[str, MemberName] | None, dict[str, MemberName] | None]:
    """Who has joined and left; None where that is not known."""
    if before is None or after is None:
        return None, None
    joined = {identity: name for identity, (_, name) in after.items() if identity not in before}
    return joined, {identity: name for identity, (_, name) in before.items() if identity not in after}


@dataclass(slots=True)
class MemberChanges:
    """Who has joined and left a newer group since its last epoch, by instance ids where members have one, else by member ids.

    Rebalances of a group as values, and as the columns in which they go from an agent to the job: `GROUPS` in `group_rows`.

    ``returned``: static members that came back. ``subscribed``: something else that members do has changed, or it is not known what.
    """

    joined: dict[str, MemberName] = field(default_factory=dict)
    left: dict[str, MemberName] = field(default_factory=dict)
    returned: dict[str, MemberName] = field(default_factory=dict)
    subscribed: bool = False

    def join(self, identity: str, name: MemberName) -> None:
        """A member has joined."""
        self._move(identity, name, self.left, self.joined)

    def leave(self, identity: str, name: MemberName) -> None:
        """A member has left."""
        self._move(identity, name, self.joined, self.left)

    @property
    def none(self) -> bool:
        """Whether members have done nothing that raises an epoch."""
        return not (self.joined or self.left or self.subscribed)

    def clear(self) -> None:
        """An epoch begins."""
        self.joined, self.left, self.returned, self.subscribed = {}, {}, {}, False

    def _move(self, identity: str, name: MemberName, here: dict[str, MemberName], there: dict[str, MemberName]) -> None:
        if here.pop(identity, None) is not None:
            self.returned[identity] = name
        elif len(there) < MOST_COMPARED:
            there[identity] = name
        else:
            self.subscribed = True


COUNTED = (RebalanceKind.MEMBERS, RebalanceKind.METADATA, RebalanceKind.UNFINISHED)
"""The kinds that are counted: together they are a group's generation, or its epoch."""


def packed_rebalances(rebalances: Iterable[Rebalance]) -> tuple[bytes, list[str], list[str]]:
    """Their numbers, which no job reads before a user asks for the group, and the client ids and hosts of those that are named."""
    numbers: list[bytes] = []
    names: list[MemberName] = []
    for each in rebalances:
        counts = each.generations, each.unfinished, each.members, each.joined, each.left
        numbers.append(_ENTRY.pack(each.raised, each.at_ms, _KINDS.index(each.kind), *counts))
        names += (*each.joined_names, *each.left_names)
    return b"".join(numbers), [each.client for each in names], [each.host for each in names]


_KINDS = tuple(RebalanceKind)


def unpacked_rebalances(numbers: bytes, clients: Sequence[str], hosts: Sequence[str]) -> tuple[Rebalance, ...]:
    """The rebalances of these columns; those of a kind that is not known here, and what is behind, are left out."""
    return tuple(_unpacked(numbers, [MemberName(*each) for each in zip(clients, hosts, strict=False)]))


def _unpacked(numbers: bytes, names: Sequence[MemberName]) -> Iterator[Rebalance]:
    whole = len(numbers) - len(numbers) % _ENTRY.size
    for raised, at_ms, kind, generations, unfinished, members, joined, left in _ENTRY.iter_unpack(numbers[:whole]):
        if not 0 <= kind < len(_KINDS):
            return
        come, gone = (min(max(count, 0), MOST_CHANGED) for count in (joined, left))
        yield Rebalance(
            raised=raised,
            at_ms=at_ms,
            kind=_KINDS[kind],
            generations=generations,
            unfinished=unfinished,
            members=members,
            joined=joined,
            left=left,
            joined_names=tuple(names[:come]),
            left_names=tuple(names[come : come + gone]),
        )
        names = names[come + gone :]
