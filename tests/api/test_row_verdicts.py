"""Rows of every list say what is wrong with them, as the problems do."""

from tests.api.looks import state
from tests.view.rows import new_table
from tests.worlds.retention import BELOW, facts
from tests.worlds.retention import orders as kept
from tests.worlds.transactions import MS, transaction
from tests.worlds.transactions import orders as opened


def test_partitions_and_retention_have_the_worst_of_their_own() -> None:
    overdue = facts((0, 500, 9600), (50, 300, 10), configs=BELOW)
    of = state(new_table(kept(overdue, corrupt_batches=1), kept(overdue, partition=1)))
    partitions = {row.partition: (row.kind, row.severity, row.since_ms) for row in of.partitions().rows}
    late = ("retention_overdue", "warning", MS - 6_000_000)
    assert partitions == {0: ("log_corrupt", "critical", -1), 1: late}
    assert {(row.kind, row.severity, row.since_ms) for row in of.retention().rows} == {late}
    detail = of.partition("orders", 0)
    assert detail is not None
    assert (detail.row.kind, detail.retention.kind) == ("log_corrupt", "retention_overdue")


def test_a_transaction_has_its_own() -> None:
    of = state(new_table(opened(transaction(7, 40, age=1300), transaction(8, 50, age=100)), coordinator_partitions=None))
    rows = {row.producer_id: (row.kind, row.severity, row.since_ms) for row in of.transactions().rows}
    assert rows == {7: ("transaction_stuck", "critical", MS - 1_300_000), 8: ("", "", -1)}
    advice = {row.producer_id: row.advice for row in of.transactions().rows}
    (stuck,) = (each for each in of.problems().rows if each.kind == "transaction_stuck")
    assert advice[8] == ""
    assert advice[7]
    assert advice[7] in stuck.what, "decided once"


def test_what_is_wrong_with_a_row_is_among_the_problems_of_its_partition() -> None:
    for configs, kinds in (("{}", ["limits_assumed"]), (BELOW, [])):
        detail = state(new_table(kept(facts((0, 500, 10), configs=configs)))).partition("orders", 0)
        assert detail is not None
        assert [each.kind for each in detail.problems] == [kind for kind in [detail.row.kind] if kind] == kinds


def test_open_transactions_that_are_too_young_for_the_list_are_counted() -> None:
    young = [transaction(8, 50, age=20), transaction(9, 60, age=60)]
    of = state(new_table(opened(transaction(7, 40, age=61), *young), opened(*young, partition=1), coordinator_partitions=None))
    page = of.transactions()
    assert ([row.producer_id for row in page.rows], page.young, page.omitted) == ([7], 4, 0)
    for number, listed in ((0, [7]), (1, [])):
        detail = of.partition("orders", number)
        assert detail is not None
        assert [row.producer_id for row in detail.transactions] == listed
        assert (detail.young_transactions, len(listed) + detail.young_transactions) == (2, detail.row.open_transactions)
        assert detail.late_after_ms == page.late_after_ms == 60_000
