"""Where a reader goes on: held against two histories that are known whole."""

from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from streaming.common.log_positions import MOST_EPOCHS, KnownEnd, Position
from streaming.rules.position_rule import Resumed, epochs_below, goes_on_at, resume
from tests.tables import each_row


class Epoch(NamedTuple):
    epoch: int
    start_offset: int


def at(next_offset: int, *epochs: tuple[int, int]) -> Position:
    return Position("id", next_offset, epochs)


@each_row(
    ("position", "epochs", "start", "end", "expected"),
    [
        (at(100, (3, 0)), [(3, 0)], 0, 150, Resumed(100)),  # it has grown
        (at(100, (3, 0)), [(3, 0), (4, 100)], 0, 150, Resumed(100)),  # under the next leader
        (at(100, (3, 0)), [(3, 0)], 0, 80, Resumed(80, cut_off=20)),
        (at(100, (3, 0)), [(3, 0), (4, 80)], 0, 150, Resumed(80, cut_off=20)),  # and it has grown past the position again
        (at(100, (3, 0)), [(3, 0), (4, 80), (6, 90)], 0, 150, Resumed(80, cut_off=20)),
        (at(100, (3, 0), (5, 80)), [(3, 0), (6, 60)], 0, 150, Resumed(60, cut_off=40)),  # it has nothing of the reader's epoch any more
        (at(100, (3, 0), (5, 50)), [(3, 0), (6, 60)], 0, 150, Resumed(50, cut_off=50)),  # and what it has there is of another one
        (at(20, (3, 0), (5, 10)), [(3, 0), (7, 15)], 0, 30, Resumed(10, cut_off=10)),
        (at(20, (3, 0), (5, 15)), [(3, 0), (7, 15)], 0, 30, Resumed(15, cut_off=5)),
        (at(20, (3, 0), (4, 8), (5, 10)), [(3, 0), (4, 8), (7, 12)], 0, 30, Resumed(10, cut_off=10)),
        (at(20, (5, 10)), [(6, 4)], 4, 30, Resumed(4, cut_off=16)),  # it began at offset 10, and the log anew further down
        (at(100, (3, 0)), [(3, 0)], 120, 150, Resumed(120, deleted=20)),
        (at(100, (3, 0)), [(5, 130)], 130, 150, Resumed(130, deleted=30)),
        (at(100, (3, 0)), [(4, 80)], 90, 150, Resumed(90, cut_off=20, deleted=10)),
        (at(100, (3, 0)), [], 0, 150, Resumed(100)),  # nothing says otherwise
        (at(100, (3, 0)), [], 0, 80, Resumed(80, cut_off=20)),
        (at(100), [(3, 100)], 0, 150, Resumed(100)),  # what it has read is older than epochs
        (at(100), [(3, 80)], 80, 150, Resumed(80, cut_off=20)),  # it began at 100 with nothing, and then anew at 80
        (at(0), [(3, 0)], 0, 0, Resumed(0)),
        (at(100, (3, 0)), [(3, 0)], 100, 100, Resumed(100)),  # all of it was deleted after it was read
    ],
)
def test_where_a_reader_goes_on(position: Position, epochs: list[tuple[int, int]], start: int, end: int, expected: Resumed) -> None:
    assert resume(position, [Epoch(*each) for each in epochs], start, end) == expected


def test_the_epochs_of_what_lies_below_an_offset() -> None:
    epochs = [Epoch(1, 0), Epoch(4, 10)]
    assert [epochs_below(epochs, offset) for offset in (0, 1, 10, 11)] == [(), ((1, 0),), ((1, 0),), ((1, 0), (4, 10))]
    many = [Epoch(each, 10 * each) for each in range(20)]
    assert epochs_below(many, 185) == tuple((each, 10 * each) for each in range(19 - MOST_EPOCHS, 19))


def test_of_more_epochs_than_a_position_has_the_log_decides() -> None:
    read = tuple((each, 10 * each) for each in range(10, 10 + MOST_EPOCHS))
    assert resume(at(200, *read), [Epoch(3, 0), Epoch(30, 70)], 0, 300) == Resumed(70, cut_off=130)


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
    position = at(len(read), *epochs_below([Epoch(each, read.index(each)) for each in sorted({*read})], len(read)))
    found = resume(position, epochs, 0, len(log))
    if read_after < len(steps):
        assert (found.offset, found.cut_off) == (common, len(read) - common)


@each_row(
    ("end", "epochs", "start", "expected"),
    [
        (KnownEnd(100, 3), [(3, 0)], 0, 100),
        (KnownEnd(100, 3), [(3, 0), (4, 100)], 0, 100),  # under the next leader
        (KnownEnd(100, 3), [(3, 0), (4, 80)], 0, 80),  # cut off, and it may have grown past that again
        (KnownEnd(100, 3), [(3, 0), (4, 120)], 0, 100),
        (KnownEnd(100, 5), [(3, 0), (6, 60)], 0, None),  # they parted somewhere
        (KnownEnd(100, -1), [(3, 0)], 0, None),
        (KnownEnd(100, 3), [(3, 100)], 0, None),  # of its epoch the log has nothing that was counted
        (KnownEnd(100, 3), [(5, 130)], 130, 130),  # what lay between is deleted
        (KnownEnd(130, 3), [(5, 130)], 130, 130),
        (KnownEnd(100, -1), [], 0, 100),  # nothing says otherwise
        (KnownEnd(100, -1), [], 120, 120),
    ],
)
def test_where_somebody_goes_on_who_sees_by_epochs_what_was_overwritten(
    end: KnownEnd, epochs: list[tuple[int, int]], start: int, expected: int | None
) -> None:
    assert goes_on_at(end, [Epoch(*each) for each in epochs], start) == expected


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 6)), max_size=20), st.integers(0, 20), st.integers(0, 12))
def test_below_where_it_goes_on_the_log_has_nothing_that_was_not_counted(
    steps: list[tuple[bool, int]], read_after: int, deleted: int
) -> None:
    """Each step appends in the present epoch, or cuts off some offsets, after which there is another leader."""
    log: list[tuple[int, int]] = []  # the epoch of each offset, and which of its batches that is
    epoch, read = 0, list[tuple[int, int]]()
    for number, (cuts, count) in enumerate(steps):
        if number == read_after:
            read = log.copy()
        if cuts:
            del log[max(0, len(log) - count) :]
            epoch += 1
        else:
            log += [(epoch, number)] * count
    start = min(deleted, len(log))
    kept = [(max(start, log.index(each)), each[0]) for each in dict.fromkeys(log[start:])]
    first = {epoch: offset for offset, epoch in reversed(kept)}
    epochs = [Epoch(each, offset) for each, offset in sorted(first.items())]
    found = goes_on_at(KnownEnd(len(read), read[-1][0] if read else -1), epochs, start)
    if found is not None and epochs and found > start:
        assert log[start:found] == read[start:found]
