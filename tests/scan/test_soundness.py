"""Damage in a closed segment: what is whole passes, every flipped bit shows, and nothing that may stand there ends the check."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from streaming.broker.disk.segment_files import list_segments, read_leader_epochs
from streaming.kafka.formats.checkpoint_files import EpochEntry
from streaming.kafka.scan.soundness import Checked, CheckPosition, Damage, Fault, SegmentFacts, check_batches, check_end
from streaming.kafka.scan.walk import Stop, walk
from tests.builders import batch
from tests.formats.segments import Content, any_batch, contents, tails, written

BASE = 100
LOGS = Path(__file__).parents[1] / "data/log_dirs/deletions/n1/d1"


def around(content: Content, *, epochs: bool = True, end_offset: int | None = None) -> SegmentFacts:
    """What a broker has beside these bytes."""
    named: dict[int, int] = {}
    for entry, epoch in zip(content.entries, content.epochs, strict=True):
        named.setdefault(epoch, entry.base_offset)
    base = content.entries[0].base_offset if content.entries else 0
    reported = tuple(EpochEntry(epoch, start) for epoch, start in named.items()) if epochs else ()
    return SegmentFacts(base, content.next_offset if end_offset is None else end_offset, reported)


def check(data: bytes, surroundings: SegmentFacts, cuts: Sequence[int] = ()) -> Checked:
    """Check the bytes, window by window where windows are to end at ``cuts``."""
    reached, damages, checked = CheckPosition(0, surroundings.base_offset), [], None
    for cut in [*sorted(cuts), len(data)]:
        window = np.frombuffer(data, np.uint8)[reached.position : max(reached.position, cut)].copy()
        checked = check_batches(window, reached, surroundings)
        reached, damages = checked.reached, [*damages, *checked.damages]
    assert checked is not None
    return replace(checked, damages=tuple(damages))


def flipped(data: bytes, bit: int) -> bytes:
    changed = bytearray(data)
    changed[bit >> 3] ^= 1 << (bit & 7)
    return bytes(changed)


@given(contents, st.lists(st.integers(0, 4000), max_size=4))
def test_what_a_broker_wrote_passes_however_it_is_cut(content: Content, cuts: list[int]) -> None:
    found = check(content.data, around(content), [min(cut, len(content.data)) for cut in cuts])
    assert (found.damages, found.reached.position, found.stop) == ((), len(content.data), Stop.END)
    assert check_end(found.reached, max(content.epochs, default=0)) == ()


contiguous = st.builds(
    written,
    st.lists(any_batch, min_size=1, max_size=6),
    base_offset=st.integers(0, 2**40),
    epochs=st.lists(st.integers(0, 9), min_size=6, max_size=6).map(sorted),
)


@given(contiguous, st.integers(0, 1 << 20), st.booleans())
@example(written([batch(), batch()], base_offset=7), 5, False)  # in the base offset
@example(written([batch(), batch(), batch()], epochs=[3, 3, 4]), 15 * 8, True)
def test_every_flipped_bit_of_a_log_without_gaps_is_found(content: Content, reached: int, seeded: bool) -> None:
    surroundings = around(content)
    found = check(flipped(content.data, reached % (8 * len(content.data))), surroundings, [len(content.data) // 2] if seeded else [])
    stopped = found.reached.position < len(content.data)
    assert found.damages or stopped or check_end(found.reached, content.epochs[-1])


@given(contents, tails, st.integers(0, 1 << 20), st.binary(max_size=40))
def test_anything_may_stand_there(content: Content, tail: bytes, reached: int, new: bytes) -> None:
    at = reached % (len(content.data) + 1)
    data = content.data[:at] + new + content.data[at + len(new) :] + tail
    found = check(data, around(content))
    assert 0 <= found.reached.position <= len(data)
    assert all(0 <= damage.position < len(data) for damage in found.damages)


def flips_missed(directory: Path) -> set[int]:
    """Where in a batch a flipped bit of the first segment of a real broker's log is not found: bytes from the batch's beginning."""
    segment, following = list_segments(directory)[:2]
    data = np.fromfile(segment.path, np.uint8)
    starts = walk(data, 0, len(data)).positions
    surroundings = SegmentFacts(segment.base_offset, following.base_offset, read_leader_epochs(directory))
    with following.path.open("rb") as file:
        following_epoch = int.from_bytes(file.read(16)[12:], "big", signed=True)
    missed = set()
    for bit in range(8 * len(data)):
        data[bit >> 3] ^= 1 << (bit & 7)
        found = check_batches(data, CheckPosition(0, segment.base_offset), surroundings)
        if found.reached.position == len(data) and not found.damages and not check_end(found.reached, following_epoch):
            missed.add((bit >> 3) - int(starts[np.searchsorted(starts, bit >> 3, side="right") - 1]))
        data[bit >> 3] ^= 1 << (bit & 7)
    return missed


def test_every_flipped_bit_of_a_real_segment_is_found() -> None:
    assert flips_missed(LOGS / "byms-A-0") == set()


def test_between_gaps_of_compaction_every_flipped_bit_is_found_but_of_base_offsets() -> None:
    """Within a gap any base offset may be right: Kafka does not cover it by the CRC."""
    assert flips_missed(LOGS / "ctxn-A-0") == {7}


@pytest.fixture
def four() -> Content:
    """Four batches of two records each, in epochs 3, 3, 5 and 5."""
    return written([batch(2)] * 4, base_offset=BASE, epochs=[3, 3, 5, 5])


def restamped(content: Content, item: int, *, base_offset: int | None = None, epoch: int | None = None) -> bytes:
    """The same with another offset or leader epoch in the header of one batch: its CRC stays right."""
    data, at = bytearray(content.data), content.positions[item]
    if base_offset is not None:
        data[at : at + 8] = base_offset.to_bytes(8, "big")
    if epoch is not None:
        data[at + 12 : at + 16] = epoch.to_bytes(4, "big", signed=True)
    return bytes(data)


@pytest.mark.parametrize("item", range(4))
@pytest.mark.parametrize("offset", [0, BASE + 1024, 2**62, 2**63 - 1])
def test_an_offset_that_does_not_fit_is_reported_the_batch_that_has_it(four: Content, item: int, offset: int) -> None:
    found = check(restamped(four, item, base_offset=offset), around(four))
    assert found.damages == (Damage(Fault.OFFSET, four.positions[item], offset),)


@pytest.mark.parametrize(("offset", "blamed"), [(BASE + 4, 3), (BASE + 6, 2)], ids=["fits nowhere", "fits behind the one before that"])
def test_of_two_batches_that_contradict_each_other_the_one_without_which_the_others_agree_is_blamed(
    four: Content, offset: int, blamed: int
) -> None:
    """The third one begins later than it may, and the last one earlier than the third one ends."""
    moved = restamped(replace(four, data=restamped(four, 2, base_offset=BASE + 5)), 3, base_offset=offset)
    found = check(moved, replace(around(four, epochs=False), end_offset=2**40))
    assert found.damages == (Damage(Fault.OFFSET, four.positions[blamed], BASE + 5 if blamed == 2 else offset),)


def test_of_two_batches_that_contradict_each_other_the_one_before_is_blamed_over_the_end_of_a_window(four: Content) -> None:
    surroundings = replace(around(four, epochs=False), end_offset=2**40)
    found = check(restamped(four, 1, base_offset=BASE + 1000), surroundings, [four.positions[2]])
    assert found.damages == (Damage(Fault.OFFSET, four.positions[1], BASE + 1000),)


@pytest.mark.parametrize("reported", [True, False], ids=["with the checkpoint", "by the neighbours alone"])
@pytest.mark.parametrize(("item", "epoch"), [(1, 2), (1, 7), (2, 7), (2, -8)])
def test_a_leader_epoch_that_does_not_fit_is_reported_the_batch_that_has_it(four: Content, item: int, epoch: int, reported: bool) -> None:
    found = check(restamped(four, item, epoch=epoch), around(four, epochs=reported))
    assert found.damages == (Damage(Fault.EPOCH, four.positions[item], BASE + 2 * item),)


def test_the_last_leader_epoch_is_held_against_that_of_the_next_segment(four: Content) -> None:
    found = check(restamped(four, 3, epoch=7), around(four))
    assert found.damages == ()  # the checkpoint may lag behind the log
    assert check_end(found.reached, 5) == (Damage(Fault.EPOCH, four.positions[3], BASE + 6),)
    assert check_end(found.reached, -1) == ()


def test_a_checkpoint_that_lags_behind_the_log_is_no_damage(four: Content) -> None:
    surroundings = SegmentFacts(BASE, four.next_offset, (EpochEntry(3, BASE),))
    assert check(four.data, surroundings).damages == ()


def test_gaps_of_compaction_and_a_log_start_within_a_batch_are_no_damage() -> None:
    content = written([batch(2)] * 3, base_offset=BASE, epochs=[1, 1, 2], gaps=[5, 0, 9])
    surroundings = SegmentFacts(BASE, 1000, (EpochEntry(1, BASE + 6), EpochEntry(2, BASE + 12)))
    assert check(content.data, surroundings).damages == ()


def test_two_damaged_batches_are_two(four: Content) -> None:
    data = flipped(flipped(four.data, 8 * (four.positions[1] + 70)), 8 * (four.positions[3] + 70))
    assert check(data, around(four)).damages == (
        Damage(Fault.CRC, four.positions[1], BASE + 2),
        Damage(Fault.CRC, four.positions[3], BASE + 6),
    )
