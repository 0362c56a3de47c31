"""Where a reader goes on: held against two histories that are known whole."""

from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from streaming.common.log_positions import NOT_KNOWN, Position
from streaming.rules.position_rule import Resumed, epoch_before, resume
from tests.tables import each_row


class Epoch(NamedTuple):
    epoch: int
    start_offset: int


def at(next_offset: int, leader_epoch: int) -> Position:
    return Position("id", next_offset, leader_epoch)


@each_row(
    ("position", "epochs", "start", "end", "expected"),
    [
        (at(100, 3), [(3, 0)], 0, 150, Resumed(100)),  # it has grown
        (at(100, 3), [(3, 0), (4, 100)], 0, 150, Resumed(100)),  # under the next leader
        (at(100, 3), [(3, 0)], 0, 80, Resumed(80, cut_off=20)),
        (at(100, 3), [(3, 0), (4, 80)], 0, 150, Resumed(80, cut_off=20)),  # and it has grown past the position again
        (at(100, 3), [(3, 0), (4, 80), (6, 90)], 0, 150, Resumed(80, cut_off=20)),
        (at(100, 5), [(3, 0), (6, 60)], 0, 150, Resumed(60, cut_off=40)),  # it has nothing of the reader's epoch any more
        (at(100, 3), [(3, 0)], 120, 150, Resumed(120, deleted=20)),
        (at(100, 3), [(5, 130)], 130, 150, Resumed(130, deleted=30)),
        (at(100, 3), [(4, 80)], 90, 150, Resumed(90, cut_off=20, deleted=10)),
        (at(100, 3), [], 0, 150, Resumed(100)),  # nothing says otherwise
        (at(100, 3), [], 0, 80, Resumed(80, cut_off=20)),
        (at(100, NOT_KNOWN), [(3, 0), (4, 80)], 0, 150, Resumed(100)),
        (at(0, NOT_KNOWN), [(3, 0)], 0, 0, Resumed(0)),
        (at(100, 3), [(3, 0)], 100, 100, Resumed(100)),  # all of it was deleted after it was read
    ],
)
def test_where_a_reader_goes_on(position: Position, epochs: list[tuple[int, int]], start: int, end: int, expected: Resumed) -> None:
    assert resume(position, [Epoch(*each) for each in epochs], start, end) == expected


def test_the_epoch_of_what_lies_before_an_offset() -> None:
    epochs = [Epoch(1, 0), Epoch(4, 10)]
    assert [epoch_before(epochs, offset) for offset in (0, 1, 10, 11)] == [NOT_KNOWN, 1, 1, 4]
    assert epoch_before([], 7) == NOT_KNOWN


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 6)), max_size=20), st.integers(0, 20))
def test_a_reader_goes_on_where_its_history_and_that_of_the_log_part(steps: list[tuple[bool, int]], read_after: int) -> None:
    """Each step appends in the present epoch, or cuts off some offsets, after which there is another leader."""
    log: list[int] = []  # the epoch of each offset
    epoch, read, common = 0, list[int](), 0
    for number, (cuts, count) in enumerate(steps):
        if number == read_after:
            read, common = log.copy(), len(log)
        if cuts:
            del log[max(0, len(log) - count) :]
            epoch, common = epoch + 1, min(common, len(log))
        else:
            log += [epoch] * count
    epochs = [Epoch(each, log.index(each)) for each in sorted({*log})]
    position = at(len(read), epoch_before([Epoch(each, read.index(each)) for each in sorted({*read})], len(read)))
    found = resume(position, epochs, 0, len(log))
    if read_after < len(steps):
        assert (found.offset, found.cut_off) == (common, len(read) - common)
