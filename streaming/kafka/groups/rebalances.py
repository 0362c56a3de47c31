"""Rebalances of a group as values, and as the columns in which they go from an agent to the job: `GROUPS` in `group_rows`."""

import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum


class RebalanceKind(StrEnum):
    """Why a generation or an epoch was raised; `REJOINED` raised none: a static member came back, and its group did not rebalance."""

    MEMBERS = "members"
    METADATA = "metadata"
    UNFINISHED = "unfinished"
    REJOINED = "rejoined"


COUNTED = (RebalanceKind.MEMBERS, RebalanceKind.METADATA, RebalanceKind.UNFINISHED)
"""The kinds that are counted: together they are a group's generation, or its epoch."""

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
_KINDS = tuple(RebalanceKind)
_ENTRY = struct.Struct("<8q")  # of a rebalance in its column


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


def packed_rebalances(rebalances: Iterable[Rebalance]) -> tuple[bytes, list[str], list[str]]:
    """Their numbers, which nobody reads before somebody looks at the group, and the client ids and hosts of those that are named."""
    numbers: list[bytes] = []
    names: list[MemberName] = []
    for each in rebalances:
        counts = each.generations, each.unfinished, each.members, each.joined, each.left
        numbers.append(_ENTRY.pack(each.raised, each.at_ms, _KINDS.index(each.kind), *counts))
        names += (*each.joined_names, *each.left_names)
    return b"".join(numbers), [each.client for each in names], [each.host for each in names]


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
