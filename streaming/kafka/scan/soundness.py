"""Finds damaged batches of a closed segment: by their framing, by their CRC, and by checking the fields that the CRC does not cover.

The CRC does not cover base offset and leader epoch, because the leader writes them in place. So they are compared with their surroundings:
batches follow each other, end before the next segment begins, and have the leader epochs of ``leader-epoch-checkpoint``.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from streaming.kafka.formats.checkpoint_files import EpochEntry
from streaming.kafka.formats.layout import CURRENT_MAGIC
from streaming.kafka.scan.crc_check import wrong_crcs
from streaming.kafka.scan.headers import Batches, first_broken, read_headers
from streaming.kafka.scan.walk import Bytes, Positions, Stop, walk

NO_EPOCH = -1


class Fault(StrEnum):
    """The kind of damage at a position in a segment."""

    FRAMING = "framing"  # no batch begins here, or it does not end within the file
    CRC = "crc"
    OFFSET = "offset"  # the CRC is right, but the base offset does not fit between its neighbours
    EPOCH = "epoch"  # the CRC is right, but the leader epoch is not that of its offset


@dataclass(frozen=True, slots=True)
class Damage:
    """One damaged position: bytes from the beginning of the segment, and the offset in the header (without a batch, the expected one)."""

    fault: Fault
    position: int
    offset: int


@dataclass(frozen=True, slots=True)
class SegmentFacts:
    """The known facts about a closed segment besides its bytes; ``end_offset`` is the base offset of the next segment."""

    base_offset: int
    end_offset: int
    epochs: Sequence[EpochEntry] = ()


@dataclass(frozen=True, slots=True)
class _Batch:
    """A batch that fits: its position, the smallest offset that it was allowed to have, and the number of its offsets."""

    position: int
    offset: int
    floor: int
    span: int
    epoch: int


@dataclass(frozen=True, slots=True)
class CheckPosition:
    """How far a segment has been checked: the next byte, the smallest offset that may be there, the last leader epoch."""

    position: int
    next_offset: int
    leader_epoch: int = NO_EPOCH
    last: _Batch | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Checked:
    """The end of a check, why it ended there, and the damages that it found, in the order of the segment."""

    reached: CheckPosition
    stop: Stop
    damages: tuple[Damage, ...]


def check_batches(buffer: Bytes, at: CheckPosition, around: SegmentFacts, seeds: Positions | None = None) -> Checked:
    """Check all complete batches of ``buffer``, which begins at the position ``at`` of a segment.

    Args:
        buffer: is written to, and is unchanged when this returns.
        seeds: positions in ``buffer`` where batches begin according to an index, see `walk`.
    """
    walked = walk(buffer, 0, len(buffer), seeds)
    batches, end, stop = read_headers(buffer, walked.positions), walked.end, walked.stop
    if (broken := first_broken(batches.headers)) is not None:
        batches, end, stop = batches.take(slice(0, broken)), int(batches.positions[broken]), Stop.BAD_LENGTH
    wrong = wrong_crcs(buffer, batches)
    damages = [_damage(Fault.CRC, batches, item, at) for item in wrong.tolist()]
    if len(wrong):
        sound = np.ones(len(batches), np.bool_)
        sound[wrong] = False
        batches = batches.take(sound)
    reached, misplaced = check_order(batches, at, around)
    damages += misplaced
    reached = CheckPosition(at.position + end, reached.next_offset, reached.leader_epoch, reached.last)
    return Checked(reached, stop, tuple(sorted(damages, key=lambda damage: damage.position)))


def check_order(batches: Batches, at: CheckPosition, around: SegmentFacts) -> tuple[CheckPosition, list[Damage]]:
    """Compare offsets and leader epochs of batches with right CRCs with their surroundings; positions count from ``at``."""
    if not len(batches):
        return at, []
    wrong = _suspected(batches, at, around)
    if not wrong:
        return _after(batches, at), []
    return _one_by_one(batches, at, around)


def _suspected(batches: Batches, at: CheckPosition, around: SegmentFacts) -> bool:
    """Whether anything is wrong at all, computed for all batches at once."""
    floors = np.append(at.next_offset, batches.last_offset[:-1] + 1)
    misplaced = (batches.base_offset < floors) | (batches.last_offset < batches.base_offset) | (batches.last_offset >= around.end_offset)
    epochs = _stored_epochs(batches)
    before = np.append(at.leader_epoch, epochs[:-1])
    return bool(misplaced.any() or ((epochs < before) & (batches.magic == CURRENT_MAGIC)).any() or _other_epochs(batches, around).any())


def _stored_epochs(batches: Batches) -> NDArray[np.int64]:
    return np.where(batches.magic == CURRENT_MAGIC, batches.leader_epoch, NO_EPOCH)


def _other_epochs(batches: Batches, around: SegmentFacts) -> NDArray[np.bool_]:
    """Which batches have another leader epoch than the checkpoint names for their offset.

    The file may lag behind the log, so after the start of the last epoch that it names, a higher epoch may be right.
    """
    if not around.epochs:
        return np.zeros(len(batches), np.bool_)
    starts = np.array([entry.start_offset for entry in around.epochs], np.int64)
    named = np.array([entry.epoch for entry in around.epochs], np.int64)
    at = np.searchsorted(starts, batches.base_offset, side="right") - 1
    other: NDArray[np.bool_] = (batches.magic == CURRENT_MAGIC) & (at >= 0) & (batches.leader_epoch != named[at])
    return other & ((at < len(starts) - 1) | (batches.leader_epoch < named[at]))


def _after(batches: Batches, at: CheckPosition) -> CheckPosition:
    """The position after batches that all fit."""
    epochs = _stored_epochs(batches)
    floor = at.next_offset if len(batches) == 1 else int(batches.last_offset[-2]) + 1
    last = _batch(batches, len(batches) - 1, at, floor)
    return CheckPosition(
        at.position + int(batches.positions[-1] + batches.size[-1]), int(batches.last_offset[-1]) + 1, int(epochs[-1]), last
    )


def _batch(batches: Batches, item: int, at: CheckPosition, floor: int) -> _Batch:
    base, last = int(batches.base_offset[item]), int(batches.last_offset[item])
    epoch = int(batches.leader_epoch[item]) if batches.magic[item] == CURRENT_MAGIC else NO_EPOCH
    return _Batch(at.position + int(batches.positions[item]), base, floor, last - base + 1, epoch)


def _one_by_one(batches: Batches, at: CheckPosition, around: SegmentFacts) -> tuple[CheckPosition, list[Damage]]:
    """Find the batches that do not fit. If two neighbours contradict each other, it is the one without which the others agree."""
    damages: list[Damage] = []
    floor, epoch, last = at.next_offset, at.leader_epoch, at.last
    following = [*_stored_epochs(batches)[1:].tolist(), NO_EPOCH]
    for item, other in enumerate(_other_epochs(batches, around).tolist()):
        batch = _batch(batches, item, at, floor)
        if batch.span < 1 or batch.offset + batch.span > around.end_offset:
            damages.append(Damage(Fault.OFFSET, batch.position, batch.offset))
            continue
        if batch.offset < floor:
            if last is None or batch.offset < last.floor + last.span:
                damages.append(Damage(Fault.OFFSET, batch.position, batch.offset))
                continue
            damages.append(Damage(Fault.OFFSET, last.position, last.offset))
        if other or batch.epoch < NO_EPOCH:
            damages.append(Damage(Fault.EPOCH, batch.position, batch.offset))
        elif NO_EPOCH < batch.epoch < epoch:
            blamed = batch if last is None or following[item] >= epoch else last
            damages.append(Damage(Fault.EPOCH, blamed.position, blamed.offset))
            epoch = epoch if blamed is batch else batch.epoch
        else:
            epoch = batch.epoch
        floor, last = batch.offset + batch.span, batch
    end = at.position + int(batches.positions[-1] + batches.size[-1])
    return CheckPosition(end, floor, epoch, last), damages


def check_end(at: CheckPosition, following_epoch: int) -> tuple[Damage, ...]:
    """Compare the last batch of a segment with the first one of the next segment; -1 if that has no leader epoch."""
    if at.last is not None and NO_EPOCH < following_epoch < at.leader_epoch:
        return (Damage(Fault.EPOCH, at.last.position, at.last.offset),)
    return ()


def _damage(fault: Fault, batches: Batches, item: int, at: CheckPosition) -> Damage:
    return Damage(fault, at.position + int(batches.positions[item]), int(batches.headers["base_offset"][item]))
