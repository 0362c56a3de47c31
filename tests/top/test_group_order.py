"""The order of groups: by their verdicts unless another one is asked for, and what is not known last."""

from streaming.protocol.group_json import GroupSummary
from streaming.top.group_order import group_rows, kind_of
from streaming.top.questions import Listing, View
from streaming.verdicts.group_verdicts import Kind
from tests.tables import each_row

MINUTE = 60_000

GROUPS = [
    GroupSummary(group="reads", partitions=1, lag_records_read_committed=900),
    GroupSummary(group="held", partitions=1, lag_records_read_committed=0, held=1),
    GroupSummary(group="lost", partitions=1, lag_records_read_committed=3, below_start=1),
    GroupSummary(group="unknown", partitions=1, unknown=1),
    GroupSummary(group="Idle", partitions=1, lag_records_read_committed=0),
]


@each_row(
    ("sort", "descending", "names"),
    [
        ("", False, ["lost", "held", "unknown", "reads", "Idle"]),
        ("verdict", True, ["reads", "Idle", "unknown", "held", "lost"]),
        ("lag_records_read_committed", True, ["reads", "lost", "Idle", "held", "unknown"]),
        ("lag_records_read_committed", False, ["Idle", "held", "lost", "reads", "unknown"]),
        ("group", False, ["Idle", "held", "lost", "reads", "unknown"]),
    ],
)
def test_groups_are_in_the_order_that_is_asked_for(sort: str, descending: bool, names: list[str]) -> None:
    rows = group_rows(Listing(view=View.GROUPS, sort=sort, descending=descending), GROUPS, 0, ())
    assert [each.group for each in rows.rows if isinstance(each, GroupSummary)] == names


@each_row(
    ("loss_ms", "oldest_ms", "kind"),
    [
        (MINUTE, -1, Kind.WILL_LOSE),
        (MINUTE, -2 * MINUTE, Kind.WILL_LOSE),
        (3 * MINUTE, -2 * MINUTE, Kind.FINE),  # more time is left than its oldest record is old: it keeps up
        (-1, -2 * MINUTE, Kind.FINE),
        (2 * 1440 * MINUTE, -3 * 1440 * MINUTE, Kind.FINE),
    ],
)
def test_a_group_that_will_lose_records_soon_is_no_fine_one_in_a_list(loss_ms: int, oldest_ms: int, kind: Kind) -> None:
    now = 10_000 * MINUTE
    oldest = now + oldest_ms if oldest_ms < -1 else -1
    group = GroupSummary(
        group="g", partitions=1, lag_records_read_committed=9, loss_ms=now + loss_ms if loss_ms > 0 else -1, oldest_append_ms=oldest
    )
    assert kind_of(group, now) == kind


def test_groups_are_filtered_by_their_names_and_cut_to_a_page() -> None:
    rows = group_rows(Listing(view=View.GROUPS, filter="L", offset=1, limit=1), GROUPS, 7, ("a note",))
    assert [each.group for each in rows.rows if isinstance(each, GroupSummary)] == ["held"]
    assert (rows.total, rows.matched, rows.offset, rows.at_ms, rows.notes) == (5, 3, 1, 7, ("a note",))
