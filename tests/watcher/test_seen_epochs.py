"""Where a log parts from the leader epochs that were read of it."""

from hypothesis import given
from hypothesis import strategies as st

from streaming.broker.watcher.cursors import MOST_EPOCHS, pack, parted_at, unpack, with_epoch
from streaming.kafka.formats.checkpoint_files import EpochEntry
from tests.tables import each_row


def entries(*pairs: tuple[int, int]) -> list[EpochEntry]:
    return [EpochEntry(*pair) for pair in pairs]


@each_row(
    ("read", "reported", "parted"),
    [
        ([(0, 0)], [(0, 0)], None),
        ([(0, 0)], [(0, 0), (1, 100)], None),
        ([(0, 0)], [(0, 0), (1, 90)], 90),
        ([(0, 0), (5, 50)], [(0, 0), (4, 50), (6, 80)], 50),
        ([(0, 0), (5, 50)], [(0, 0), (4, 30), (6, 80)], 30),
        ([(0, 0), (5, 50)], [(0, 0), (4, 60), (6, 80)], 50),
        ([(0, 0), (5, 50)], [(0, 0), (6, 70)], 50),
        ([(0, 0), (5, 50)], [(0, 0)], 50),
        ([(0, 0), (2, 60)], [(0, 0), (1, 20), (2, 40)], None),
        ([(0, 0), (2, 60)], [(2, 55)], None),
        ([(2, 60)], [(0, 0), (2, 40), (3, 90)], 90),
        ([(0, 0), (1, 20)], [(3, 100)], None),
        ([(0, 0), (1, 20)], [(3, 70)], 70),
        ([(5, 70)], [(4, 50), (6, 80)], 70),
        ([(0, 0), (5, 50)], [(4, 40), (6, 80)], 40),
        ([(5, 70)], [(0, 0), (4, 60), (6, 80)], 70),
        ([(0, 50)], [(3, 20)], 20),
        ([(0, 0)], [], None),
    ],
)
def test_a_log_parts_where_another_epoch_stands(read: list[tuple[int, int]], reported: list[tuple[int, int]], parted: int | None) -> None:
    assert parted_at(entries(*read), entries(*reported), 100) == parted


def test_epochs_are_kept_with_the_first_offset_that_was_read_of_each() -> None:
    packed = b""
    for epoch, offset in ((-1, 0), (2, 5), (2, 9), (3, 12), (-1, 15), (1, 20)):
        packed = with_epoch(packed, epoch, offset)
    assert unpack(packed) == entries((2, 5), (3, 12))
    for epoch in range(4, 4 + MOST_EPOCHS):
        packed = with_epoch(packed, epoch, epoch * 10)
    assert unpack(packed) == unpack(pack(unpack(packed))) == entries(*((epoch, epoch * 10) for epoch in range(4, 4 + MOST_EPOCHS)))


@given(st.data())
def test_a_replica_that_followed_parts_nowhere_and_one_that_was_cut_parts_there(data: st.DataObject) -> None:
    """Two lines of epochs that share a beginning, as leaders with different epochs have written them."""
    starts = sorted(data.draw(st.sets(st.integers(1, 99), max_size=6)))
    line = [(0, 0), *((2 * n + 2, start) for n, start in enumerate(starts))]
    cut = data.draw(st.integers(1, 100))
    kept = [(epoch, start) for epoch, start in line if start < cut]
    odd = data.draw(st.integers(0, 3)) * 2 + 1 + kept[-1][0]
    other = [*kept, (odd, cut), (odd + 20, 120)]
    assert parted_at(entries(*line), entries(*line), 100) is None
    later = [start for _, start in line if start >= cut]
    assert parted_at(entries(*line), entries(*other), 100) == (None if cut == 100 and not later else cut)
