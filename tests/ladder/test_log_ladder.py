"""A ladder that grows with its log, against a count of the whole log afterwards."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.broker.disk.scanning import scan_on, window
from streaming.broker.disk.segment_files import OpenSegment
from streaming.broker.ladder.counts import Counts
from streaming.broker.ladder.filling import count_segment, opened_at, read_on
from streaming.broker.ladder.log_ladder import ActiveLadder, LogLadder
from streaming.broker.ladder.positions import Position, PositionState, count_log, positions
from streaming.broker.ladder.segment_ladder import SegmentLadder
from streaming.kafka.scan.pieces import Piece, scan
from streaming.kafka.scan.transaction_steps import AppendTimes, steps_of
from streaming.simulator.log import Appendable, PartitionLog
from tests.builders import NOW, abort, batch, commit, log_dir, partition
from tests.ladder.logs import appends, listed

BUFFER = window()
SMALL = BUFFER[:256]
"""So that a segment is read in many pieces."""
SEEN = AppendTimes.seen(NOW, NOW)


@pytest.fixture(autouse=True)
def _small_stretches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streaming.broker.ladder.segment_ladder.RUNG_BYTES", 300)


def counts(position: Position) -> Counts:
    assert position.state is PositionState.KNOWN
    return Counts(position.data, position.aborted, position.control, position.bytes)


class Follower:
    """Reads a log as an agent does: it begins at the active segment, fills what is before it, and reads on."""

    def __init__(self, log: PartitionLog, *, knows_open: bool) -> None:
        self.log = log
        self.knows_open = knows_open
        self.began_anew = 0
        self._begin()

    def _begin(self) -> None:
        segment = listed(self.log)[-1]
        self.ladder = LogLadder(ActiveLadder(segment.base_offset, opened_at(segment) if self.knows_open else None))
        read_on(self.ladder, segment, self.log.active.size, SMALL)

    def read(self, cut: int) -> None:
        """Read to the end of the log, each segment in ranges of at most ``cut`` batches."""
        segments = listed(self.log)
        while True:
            view = self.ladder.view()
            number = next(n for n, one in enumerate(segments) if one.base_offset == view.segments[-1].base_offset)
            file = OpenSegment(segments[number].path, segments[number].base_offset)
            scanned = scan_on(file, view.segments[-1].totals.bytes, view.end_offset, BUFFER)
            file.close()
            if scanned.sums is not None:
                ends = scanned.batches.positions[cut - 1 :: cut] + scanned.batches.size[cut - 1 :: cut]
                piece = Piece(0, int(ends[0]) if len(ends) else scanned.end, view.end_offset)
                batches = scan(BUFFER, [piece])[0].batches
                base_offset, at = view.segments[-1].base_offset, view.segments[-1].totals.bytes
                if not self.ladder.append(base_offset, at, batches, -1, steps_of(batches, BUFFER, SEEN)):
                    self.began_anew += 1
                    self._begin()
            elif number + 1 < len(segments):
                self.ladder.roll(segments[number + 1].base_offset, NOW)
            else:
                return

    def fill(self) -> bool:
        """Count the next segment down."""
        segments = listed(self.log)
        numbers = [n for n, one in enumerate(segments) if one.base_offset < self.ladder.begin_offset]
        if numbers:
            self.ladder.add(count_segment(segments, numbers[-1], SMALL))
        return bool(numbers)

    def positions(self, offsets: Sequence[int]) -> tuple[str, list[Position]]:
        view = self.ladder.view()
        return view.edition, positions(listed(self.log), view, offsets, self.log.log_end_offset)


@given(
    st.lists(st.tuples(appends, st.integers(0, 9), st.integers(0, 3)), min_size=8, max_size=30),
    st.integers(0, 10),
    st.booleans(),
)
def test_it_grows_with_its_log(
    tmp_path_factory: pytest.TempPathFactory, content: list[tuple[Appendable, int, int]], begin: int, knows_open: bool
) -> None:
    log = partition(log_dir(tmp_path_factory.mktemp("log")), "orders")
    follower = None
    given_out: list[tuple[str, list[Position]]] = []
    for number, (item, what, cut) in enumerate(content):
        log.append(item)
        if what == 0:
            log.roll()
        if number < begin:
            continue
        if follower is None:
            follower = Follower(log, knows_open=knows_open)
        elif what > 3:
            follower.read(cut + 1)
        if what in (3, 4, 5):
            follower.fill()
        if what in (6, 7):
            first = follower.ladder.begin_offset
            stable = min(log.last_stable_offset(), follower.ladder.view().end_offset)
            given_out.append(follower.positions(range(first, stable + 1)))
    if follower is None:
        follower = Follower(log, knows_open=knows_open)
    follower.read(100)
    while follower.fill():
        pass
    every = range(log.log_end_offset + 1)
    edition, grown = follower.positions(every)
    afterwards = count_log(listed(log), 0, BUFFER).positions(every, log.log_end_offset)
    zero = counts(grown[0]) - counts(afterwards[0])
    assert [counts(one) - zero for one in grown] == [counts(one) for one in afterwards]
    assert [(one.next_offset, one.next_position, one.next_timestamp_ms) for one in grown] == [
        (one.next_offset, one.next_position, one.next_timestamp_ms) for one in afterwards
    ]
    for earlier, found in given_out:
        if earlier == edition:
            assert {one.offset: counts(one) for one in found} == {one.offset: counts(grown[one.offset]) for one in found}


def grown(tmp_path_factory: pytest.TempPathFactory) -> tuple[PartitionLog, Follower]:
    """A log in which a transaction began in a closed segment, followed from then on."""
    log = partition(log_dir(tmp_path_factory.mktemp("log")), "orders")
    log.append(batch(3), batch(2, producer=7, transactional=True))
    log.roll()
    log.append(batch(1))
    follower = Follower(log, knows_open=True)
    follower.fill()
    return log, follower


def test_data_below_the_zero_point_that_is_aborted_later_makes_another_edition(tmp_path_factory: pytest.TempPathFactory) -> None:
    log, follower = grown(tmp_path_factory)
    before, _ = follower.positions([])
    log.append(abort(7))
    follower.read(1)
    after, (first, last) = follower.positions([0, log.log_end_offset])
    assert after != before
    assert counts(last) - counts(first) == Counts(6, 2, 1, sum(segment.size for segment in log.segments))


def test_a_commit_keeps_the_edition_and_counts_nothing_as_aborted(tmp_path_factory: pytest.TempPathFactory) -> None:
    log, follower = grown(tmp_path_factory)
    before, _ = follower.positions([])
    log.append(commit(7), batch(1, producer=7, transactional=True), abort(7))
    follower.read(100)
    after, (first, last) = follower.positions([0, log.log_end_offset])
    assert after == before
    assert (counts(last) - counts(first)).aborted == 1


def test_a_marker_of_a_transaction_of_unknown_beginning_ends_the_ladder_only_if_data_pends(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    log = partition(log_dir(tmp_path_factory.mktemp("log")), "orders")
    log.append(batch(1, producer=7, transactional=True))
    log.roll()
    log.append(batch(1))
    unfilled = Follower(log, knows_open=False)
    filled = Follower(log, knows_open=False)
    filled.fill()
    log.append(abort(7))
    for follower, anew in ((unfilled, 0), (filled, 1)):
        follower.read(1)
        while follower.fill():
            pass
        assert follower.began_anew == anew
        _, (first, last) = follower.positions([0, 3])
        assert (counts(last) - counts(first)).aborted == 1


def test_data_that_was_committed_since_pends_no_more(tmp_path_factory: pytest.TempPathFactory) -> None:
    log = partition(log_dir(tmp_path_factory.mktemp("log")), "orders")
    log.append(batch(1, producer=7, transactional=True))
    log.roll()
    log.append(commit(7))
    follower = Follower(log, knows_open=True)
    follower.fill()
    assert follower.ladder.view().segments[0].pending == ()


def test_the_index_may_be_written_after_its_marker_was_read(tmp_path_factory: pytest.TempPathFactory) -> None:
    log = partition(log_dir(tmp_path_factory.mktemp("log")), "orders")
    log.append(batch(1, producer=7, transactional=True))
    log.roll()
    log.append(abort(7), batch(2, producer=7, transactional=True), abort(7))
    follower = Follower(log, knows_open=True)
    for index in log.directory.glob("*.txnindex"):
        index.unlink()
    follower.fill()
    assert [one.aborted for one in follower.positions(range(6))[1]] == [-1, 0, 0, 1, 2, 2]


def test_of_a_producer_only_the_data_since_its_last_marker_pends(tmp_path_factory: pytest.TempPathFactory) -> None:
    log = partition(log_dir(tmp_path_factory.mktemp("log")), "orders")
    one = batch(1, producer=7, transactional=True)
    emptied = replace(abort(7), records=(), last_offset_delta=0, max_timestamp=NOW, marker=None)
    log.append(one, commit(7), one, one, emptied)
    log.roll()
    log.append(batch(1))
    follower = Follower(log, knows_open=True)
    follower.fill()
    log.append(abort(7))
    follower.read(1)
    assert [position.aborted for position in follower.positions(range(6))[1]] == [0, 0, 0, 1, 2, 2]


def test_a_transaction_of_unknown_beginning_may_have_data_here_too(tmp_path_factory: pytest.TempPathFactory) -> None:
    one = batch(1, producer=7, transactional=True)
    for end, aborted in ((abort, [0, 1, 1, 2, 2]), (commit, [0, 0, 0, 0, 0])):
        log = partition(log_dir(tmp_path_factory.mktemp("log")), "orders")
        log.append(one)
        log.roll()
        log.append(batch(1))
        follower = Follower(log, knows_open=False)
        follower.fill()
        log.append(one)
        follower.read(1)
        log.append(end(7))
        follower.read(1)
        while follower.fill():
            pass
        assert follower.began_anew == (end is abort)
        found = follower.positions(range(5))[1]
        assert [position.aborted - found[0].aborted for position in found] == aborted
        log.append(one)
        log.roll()
        log.append(end(7))
        follower.read(1)  # from here on it is known where its transactions begin
        assert follower.began_anew == (end is abort)
        found = follower.positions([4, 6])[1]
        assert found[1].aborted - found[0].aborted == (end is abort)


def test_without_a_sound_snapshot_it_is_not_known_what_is_open(tmp_path_factory: pytest.TempPathFactory) -> None:
    log = partition(log_dir(tmp_path_factory.mktemp("log")), "orders")
    log.append(batch(2), batch(1, producer=7, transactional=True), batch(1, producer=8, transactional=True), commit(8))
    log.roll()
    first, second = listed(log)
    assert (opened_at(first), opened_at(second)) == ({}, {7: 2})
    snapshot = log.directory / f"{second.base_offset:020}.snapshot"
    snapshot.write_bytes(snapshot.read_bytes()[:-1])
    assert opened_at(second) is None
    snapshot.unlink()
    assert opened_at(second) is None


def test_a_range_that_does_not_follow_is_refused(tmp_path_factory: pytest.TempPathFactory) -> None:
    log, follower = grown(tmp_path_factory)
    view = follower.ladder.view()
    batches = scan(BUFFER, [Piece(0, int(view.segments[-1].totals.bytes), 0)])[0].batches
    assert not follower.ladder.append(log.active.base_offset, log.active.size + 1, batches)
    assert not follower.ladder.append(log.active.base_offset + 1, log.active.size, batches)


def test_deletion_keeps_what_was_given_out_and_compaction_does_not(tmp_path_factory: pytest.TempPathFactory) -> None:
    log = partition(log_dir(tmp_path_factory.mktemp("log")), "orders")
    for _ in range(3):
        log.append(batch(2))
        log.roll()
    follower = Follower(log, knows_open=True)
    while follower.fill():
        pass
    before = follower.positions(range(2, 7))
    follower.ladder.drop_below(2)
    assert follower.ladder.begin_offset == 2
    assert follower.positions(range(2, 7)) == before
    assert not follower.ladder.forget(lambda _: False)

    def second(ladder: SegmentLadder) -> bool:
        return ladder.base_offset == 2

    assert follower.ladder.forget(second)
    assert follower.ladder.begin_offset == 4
    edition, (below, filling, known) = follower.positions([2, 3, 4])
    assert edition != before[0]
    assert [below.state, filling.state, known.state] == [PositionState.FILLING, PositionState.FILLING, PositionState.KNOWN]
