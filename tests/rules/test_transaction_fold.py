"""The transactions of one log, range after range."""

from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.common.rows import TRANSACTION_SECONDS_BOUNDS, TRANSACTION_STEPS, StartSource, Step
from streaming.kafka.scan.transaction_steps import steps_from
from streaming.rules.transaction_fold import (
    NO_TRANSACTIONS,
    NOTHING_ENDED,
    Steps,
    TransactionOutcome,
    Transactions,
    advance,
    open_ones,
    replicated,
    resumed,
    truncated,
)
from tests.rules.outcomes import together
from tests.tables import each_row

Row = tuple[Step, int, int]
"""Kind, producer and offset of a batch of one record."""

BYTES = 100


def steps(*rows: Row, at_ms: int = 0, source: StartSource = StartSource.SEEN, epoch: int = 0, first: int | None = None) -> Steps:
    """A range of batches of `BYTES` bytes each, an offset each, that begins at the first of them (or at ``first``)."""
    begin = rows[0][2] if first is None and rows else first or 0
    made = np.zeros(len(rows), TRANSACTION_STEPS)
    for item, (kind, producer, offset) in enumerate(rows):
        ongoing = kind is Step.ONGOING
        made[item] = (
            kind,
            0 if kind in (Step.COMMIT, Step.ABORT) else source,
            epoch,
            producer,
            offset,
            offset + 1,
            0 if ongoing else BYTES,
            -1 if ongoing else (offset - begin) * BYTES,
            at_ms,
            at_ms,
        )
    return made


def after(*ranges: Steps) -> tuple[Transactions, TransactionOutcome]:
    """What a log comes to by ranges that follow each other."""
    transactions, outcome = NO_TRANSACTIONS, NOTHING_ENDED
    for one in ranges:
        transactions, ended = advance(transactions, one, 0)
        outcome = together(outcome, ended)
    return transactions, outcome


def column(transactions: Transactions, name: str) -> list[int]:
    values: list[int] = transactions[name].tolist()
    return values


DATA, COMMIT, ABORT, ONGOING = Step.DATA, Step.COMMIT, Step.ABORT, Step.ONGOING


@each_row(
    ("rows", "opened", "closed", "counts"),
    [
        pytest.param([(DATA, 7, 5)], [(7, 5)], [], (0, 0, 0), id="data opens"),
        pytest.param([(DATA, 7, 5), (DATA, 7, 6)], [(7, 5)], [], (0, 0, 0), id="data goes on"),
        pytest.param([(DATA, 7, 5), (COMMIT, 7, 6)], [], [(7, 5, 6)], (1, 0, 0), id="a marker closes"),
        pytest.param([(DATA, 7, 5), (ABORT, 7, 6)], [], [(7, 5, 6)], (0, 1, 0), id="an abort closes"),
        pytest.param([(COMMIT, 7, 5)], [], [], (0, 0, 1), id="a marker without data is empty"),
        pytest.param([(DATA, 7, 5), (COMMIT, 7, 6), (COMMIT, 7, 7)], [], [(7, 5, 6)], (1, 0, 1), id="a marker told twice closes once"),
        pytest.param([(DATA, 7, 5), (COMMIT, 8, 6)], [(7, 5)], [], (0, 0, 1), id="the marker of another producer closes nothing"),
        pytest.param(
            [(DATA, 7, 5), (COMMIT, 7, 6), (DATA, 7, 7), (ABORT, 7, 8), (DATA, 7, 9)],
            [(7, 9)],
            [(7, 5, 6), (7, 7, 8)],
            (1, 1, 0),
            id="several of one producer",
        ),
        pytest.param([(ONGOING, 7, 2), (DATA, 7, 5), (COMMIT, 7, 6)], [], [(7, 2, 6)], (1, 0, 0), id="open before the first byte read"),
    ],
)
def test_the_table(
    rows: list[Row], opened: list[tuple[int, int]], closed: list[tuple[int, int, int]], counts: tuple[int, int, int]
) -> None:
    together = after(steps(*rows))
    one_by_one = after(*(steps(row) for row in rows))
    for transactions, outcome in (together, one_by_one):
        still = open_ones(transactions)
        assert list(zip(column(still, "producer_id"), column(still, "first_offset"), strict=True)) == opened
        done = transactions[transactions["committed"] >= 0]
        assert list(zip(*(column(done, name) for name in ("producer_id", "first_offset", "marker_offset")), strict=True)) == closed
        assert (outcome.committed, outcome.aborted, outcome.empty_markers) == counts


def test_a_range_without_transactions_changes_nothing() -> None:
    transactions, _ = after(steps((DATA, 7, 5)))
    assert advance(transactions, steps(), 1000) == (transactions, NOTHING_ENDED)


def test_a_transaction_knows_its_data_and_its_place() -> None:
    first = steps((DATA, 7, 5), (DATA, 8, 6), (DATA, 7, 8), at_ms=1000, epoch=3)
    later = steps((DATA, 7, 9), at_ms=2000, epoch=4)
    transactions, _ = advance(advance(NO_TRANSACTIONS, first, 10_000)[0], later, 99_999)
    seven = transactions[0]
    assert {name: int(seven[name]) for name in ("first_offset", "next_offset", "bytes", "bytes_at", "start_ms", "last_ms")} == {
        "first_offset": 5,
        "next_offset": 10,
        "bytes": 3 * BYTES,
        "bytes_at": 10_000,
        "start_ms": 1000,
        "last_ms": 2000,
    }
    assert (int(seven["producer_epoch"]), int(seven["source"])) == (4, StartSource.SEEN)
    assert int(transactions[1]["bytes_at"]) == 10_000 + BYTES


def test_bytes_count_as_aborted_when_their_transaction_ends_so() -> None:
    _, outcome = after(steps((DATA, 7, 5), (DATA, 8, 6), (DATA, 7, 7)), steps((ABORT, 7, 8), (COMMIT, 8, 9)))
    assert outcome.aborted_bytes == 2 * BYTES


def test_durations_go_from_the_first_batch_to_the_marker() -> None:
    bounds = TRANSACTION_SECONDS_BOUNDS
    _, outcome = after(
        steps((DATA, 7, 1), (DATA, 8, 2), at_ms=10_000),
        steps((COMMIT, 7, 3), at_ms=20_000),
        steps((ABORT, 8, 4), at_ms=9_000),  # two clocks
        steps((DATA, 9, 5), at_ms=0),
        steps((COMMIT, 9, 6), at_ms=10**9),
    )
    expected = [0] * (len(bounds) + 1)
    expected[bounds.index(10.0)] = 1
    expected[0] = 1
    expected[-1] = 1
    assert outcome.duration_buckets == tuple(expected)
    assert outcome.duration_ms == 10_000 + 0 + 10**9


def test_the_duration_of_what_began_before_the_first_byte_read_is_observed_only_if_its_batch_was_found() -> None:
    for source, observed in ((StartSource.SNAPSHOT, 0), (StartSource.RECORDED, 1)):
        _, outcome = after(steps((ONGOING, 7, 1), source=source), steps((DATA, 7, 5), (COMMIT, 7, 6), at_ms=50))
        assert (outcome.committed, sum(outcome.duration_buckets)) == (1, observed)


def test_what_a_snapshot_shows_again_is_known() -> None:
    known, _ = after(steps((DATA, 7, 5), at_ms=1000))
    again, _ = advance(known, steps((ONGOING, 7, 5), source=StartSource.SNAPSHOT), 0)
    assert again.tolist() == known.tolist()


def test_what_a_snapshot_shows_may_have_begun_before_what_is_known() -> None:
    transactions, _ = after(steps((DATA, 7, 5)), steps((ONGOING, 8, 2)))
    assert column(transactions, "first_offset") == [2, 5]
    assert column(transactions, "bytes_at") == [-1, 0]


def test_truncation_takes_back_what_was_cut() -> None:
    transactions, _ = after(steps((DATA, 7, 0), (DATA, 8, 1), (DATA, 9, 2), (DATA, 7, 3), (COMMIT, 8, 4), (ABORT, 9, 5), (DATA, 5, 6)))
    cut = truncated(transactions, 5, 2 * BYTES)
    assert column(cut, "producer_id") == [7, 8, 9]
    assert column(cut, "committed") == [-1, 1, -1]
    assert column(cut, "marker_offset") == [-1, 4, -1]
    assert column(cut, "bytes_at") == [200, 300, 400]  # what is cut will be appended, and counted, once more
    deeper = truncated(cut, 2, 3 * BYTES)
    assert column(deeper, "producer_id") == [7, 8]
    assert column(deeper, "next_offset") == [2, 2]
    assert column(deeper, "committed") == [-1, -1]
    assert column(deeper, "bytes")[0] == 2 * BYTES * 2 // 4  # an estimate: by offsets
    assert (
        transactions.tolist()
        == after(steps((DATA, 7, 0), (DATA, 8, 1), (DATA, 9, 2), (DATA, 7, 3), (COMMIT, 8, 4), (ABORT, 9, 5), (DATA, 5, 6)))[0].tolist()
    )


def test_behind_a_hole_the_files_show_what_is_open() -> None:
    known, _ = after(steps((DATA, 7, 0), (DATA, 8, 1), (DATA, 9, 2), (COMMIT, 9, 3), at_ms=1000))
    reported = steps((ONGOING, 7, 0), (ONGOING, 8, 50), (ONGOING, 6, 40), source=StartSource.RECORDED, at_ms=5)
    found = resumed(known, reported)
    assert list(zip(column(found, "producer_id"), column(found, "first_offset"), column(found, "committed"), strict=True)) == [
        (7, 0, -1),
        (9, 2, 1),
        (6, 40, -1),
        (8, 50, -1),
    ]
    assert column(found, "start_ms") == [1000, 1000, 5, 5]
    assert open_ones(resumed(known, steps())).tolist() == []


def test_a_closed_one_stays_until_the_high_watermark_has_passed_its_marker() -> None:
    transactions, _ = after(steps((DATA, 7, 0), (DATA, 8, 1), (COMMIT, 7, 2)))
    assert column(replicated(transactions, 2), "producer_id") == [7, 8]
    assert column(replicated(transactions, 3), "producer_id") == [8]


@dataclass
class Log:
    """A log, and what the rules made of the ranges it was read in."""

    rows: list[Row] = field(default_factory=list)
    transactions: Transactions = field(default_factory=lambda: NO_TRANSACTIONS)
    outcome: TransactionOutcome = NOTHING_ENDED
    counted: TransactionOutcome = NOTHING_ENDED
    high_watermark: int = 0
    appended: int = 0

    def append(self, rows: list[tuple[Step, int]], reported_again: int) -> None:
        begin = len(self.rows)
        reported_again = min(reported_again, begin)
        new = [(kind, producer, begin + place) for place, (kind, producer) in enumerate(rows)]
        before = scanned(self.rows)
        self.rows += new
        after_it = scanned(self.rows)
        self.counted = together(
            self.counted,
            TransactionOutcome(
                committed=after_it.committed - before.committed,
                aborted=after_it.aborted - before.aborted,
                empty_markers=after_it.empty_markers - before.empty_markers,
            ),
        )
        again = begin - reported_again  # a range that was reported before, with more behind it, is cut where the log was counted up to
        reported = steps(*self.rows[again:], first=again)
        cut = steps_from(reported, begin, (begin - again) * BYTES) if reported_again else reported
        self.transactions, ended = advance(self.transactions, cut, self.appended)
        self.outcome = together(self.outcome, ended)
        self.appended += BYTES * len(rows)

    def truncate(self, offset: int) -> None:
        cut = len(self.rows) - offset
        del self.rows[offset:]
        self.transactions = truncated(self.transactions, offset, cut * BYTES)

    def move(self, high_watermark: int) -> None:
        self.high_watermark = high_watermark
        self.transactions = replicated(self.transactions, high_watermark)


@dataclass
class Scanned:
    """What one look at a whole log shows: who is open since which offset, and (producer, first, marker) of what is closed."""

    opened: dict[int, int] = field(default_factory=dict)
    closed: list[tuple[int, int, int]] = field(default_factory=list)
    committed: int = 0
    aborted: int = 0
    empty_markers: int = 0


def scanned(rows: list[Row]) -> Scanned:
    found = Scanned()
    for kind, producer, offset in rows:
        if kind is DATA:
            found.opened.setdefault(producer, offset)
        elif producer in found.opened:
            found.closed.append((producer, found.opened.pop(producer), offset))
            found.committed += kind is COMMIT
            found.aborted += kind is ABORT
        else:
            found.empty_markers += 1
    return found


KINDS = st.tuples(st.sampled_from([DATA, DATA, COMMIT, ABORT]), st.integers(1, 5))
ACTIONS = st.lists(
    st.one_of(st.lists(KINDS, min_size=1, max_size=8), st.tuples(st.sampled_from(["truncate", "move"]), st.floats(0, 1))), max_size=20
)


@given(ACTIONS, st.data())
def test_range_after_range_it_is_what_a_look_at_the_whole_log_shows(
    actions: list[list[tuple[Step, int]] | tuple[str, float]], draw: st.DataObject
) -> None:
    log = Log()
    for action in actions:
        if isinstance(action, list):
            log.append(action, reported_again=draw.draw(st.integers(0, 5)))
        else:
            what, where = action
            offset = log.high_watermark + round(where * (len(log.rows) - log.high_watermark))
            log.truncate(offset) if what == "truncate" else log.move(offset)
        reported = scanned(log.rows)
        still = open_ones(log.transactions)
        assert dict(zip(column(still, "producer_id"), column(still, "first_offset"), strict=True)) == reported.opened
        done = log.transactions[log.transactions["committed"] >= 0]
        assert sorted(zip(*(column(done, name) for name in ("producer_id", "first_offset", "marker_offset")), strict=True)) == sorted(
            one for one in reported.closed if one[2] >= log.high_watermark
        )
        assert column(log.transactions, "first_offset") == sorted(column(log.transactions, "first_offset"))
        # what was appended since a transaction began, less what was cut, is what stands in the log from there on
        assert [log.appended - at for at in column(log.transactions, "bytes_at")] == [
            (len(log.rows) - first) * BYTES for first in column(log.transactions, "first_offset")
        ]
        assert (log.outcome.committed, log.outcome.aborted, log.outcome.empty_markers) == (
            log.counted.committed,
            log.counted.aborted,
            log.counted.empty_markers,
        )
