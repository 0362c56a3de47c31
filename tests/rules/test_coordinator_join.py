"""What all transaction coordinators hold together."""

import numpy as np
import pyarrow as pa

from streaming.common.rows import COORDINATOR
from streaming.rules.coordinator_state import ONGOING, STATES, Coordinators, all_read, count_states, newest
from tests.tables import each_row
from tests.worlds.entries import entry, table


def ids(rows: pa.Table) -> list[tuple[str, int]]:
    return sorted(zip(rows["transactional_id"].to_pylist(), rows["offset"].to_pylist(), strict=True))


def test_the_newest_entry_of_each_id_counts_and_the_expired_are_gone() -> None:
    found = newest(
        [
            table(entry("a", 1), entry("b", 2), entry("c", 3)),
            table(entry("b", 9, "CompleteCommit"), entry("a", 0), entry("c", 11, "")),
            table(entry("d", 5, "?")),
        ]
    )
    assert ids(found) == [("a", 1), ("b", 9), ("d", 5)]
    assert newest([]).schema == COORDINATOR
    assert ids(newest([table(entry("a", 4, ""))])) == []


def test_entries_by_state() -> None:
    rows = table(entry("a"), entry("b", state="Empty"), entry("c"), entry("d", state="?"), entry("e", state="CompleteAbort"))
    assert dict(zip(STATES, count_states(rows), strict=True)) == {
        "Empty": 1,
        "Ongoing": 2,
        "PrepareCommit": 0,
        "PrepareAbort": 0,
        "CompleteCommit": 0,
        "CompleteAbort": 1,
    }
    assert count_states(table()) == (0,) * 6


@each_row(
    ("partitions", "read", "unreadable", "expected"),
    [(50, 50, 0, True), (50, 49, 0, False), (0, 0, 0, True), (None, 0, 0, False), (None, 50, 0, False), (50, 50, 1, False)],
)
def test_only_what_was_asked_everywhere_is_known_not_to_exist(partitions: int | None, read: int, unreadable: int, expected: bool) -> None:
    assert all_read(partitions, read, unreadable) is expected


def test_an_entry_is_found_by_its_producer() -> None:
    rows = table(entry("a", producer=30), entry("b", producer=10, start_ms=5, timeout_ms=9), entry("c", producer=20, state="Empty"))
    coordinators = Coordinators.of(rows, complete=True)
    found = coordinators.find(np.array([10, 15, 30, 99]))
    assert (found >= 0).tolist() == [True, False, True, False]
    assert coordinators.names(found, np.array([-1] * len(found))) == ["b", "", "a", ""]
    first = int(found[0])
    assert (coordinators.start_ms[first], coordinators.timeout_ms[first], coordinators.state[first]) == (5, 9, ONGOING)


def test_of_two_ids_with_one_producer_the_one_updated_last_counts() -> None:
    coordinators = Coordinators.of(table(entry("a", updated=7), entry("b", updated=9), entry("c", updated=8)), complete=True)
    assert coordinators.names(coordinators.find(np.array([7])), np.array([7])) == ["b"]


def test_a_producer_id_whose_epochs_are_used_up_is_named_after_the_id_that_went_on() -> None:
    rows = table(entry("a", producer=8, state="CompleteCommit") | {"previous_producer_id": 7}, entry("b", producer=9))
    coordinators = Coordinators.of(rows, complete=True)
    asked = np.array([7, 8, 6])
    assert coordinators.names(coordinators.find(asked), asked) == ["a", "a", ""]
    assert coordinators.find(asked).tolist()[0] == -1  # it is named, and nobody will end it all the same


def test_who_takes_part_is_reported_by_topic_and_partition() -> None:
    rows = table(
        entry("a", producer=1, partitions=("foo-0", "bar-1")),
        entry("b", producer=2, partitions=("foo-1",)),
        entry("c", producer=3) | {"partitions": None},
    )
    coordinators = Coordinators.of(rows, complete=True)
    items = coordinators.find(np.array([1, 1, 2, 3, 4]))
    assert coordinators.takes_part(items, ["bar-1", "foo-1", "foo-1", "foo-0", "foo-0"]).tolist() == [True, False, True, False, False]


def test_an_entry_that_is_not_understood_may_be_anybodys() -> None:
    assert Coordinators.of(table(entry("a")), complete=True).complete
    assert not Coordinators.of(table(entry("a")), complete=False).complete
    unclear = Coordinators.of(table(entry("a"), entry("b", state="?", producer=-1)), complete=True)
    assert not unclear.complete
    assert unclear.find(np.array([-1, 7])).tolist() == [-1, 0]


def test_without_entries_nobody_is_found() -> None:
    coordinators = Coordinators.of(table(), complete=True)
    assert coordinators.find(np.array([1])).tolist() == [-1]
    assert coordinators.names(np.array([-1]), np.array([7])) == [""]
    assert coordinators.takes_part(np.array([-1]), ["foo-0"]).tolist() == [False]
