"""When the segments of a partition are deleted, as the page of the partition has it."""

from streaming.broker.protocol.listing_json import PartitionDetail
from streaming.cluster.view.table import Table
from tests.api.looks import state
from tests.tables import each_row
from tests.view.rows import new_table
from tests.worlds.retention import HOUR, MS, NOW, SIZED, facts, orders

FOUR = ((0, 400, 7000), (40, 400, 3500), (70, 300, 1800), (90, 200, 10))


def detail(table: Table) -> PartitionDetail:
    found = state(table).partition("orders", 0)
    assert found is not None
    return found


def grown(configs: str) -> Table:
    return new_table(orders(facts(*FOUR, configs=configs), last_append_ms=MS - 10_000))


def test_the_first_segment_goes_at_the_next_deletion_of_its_partition_and_the_others_after_it() -> None:
    found = detail(grown(SIZED))
    times = [each.deletion_ms for each in found.segments]
    assert (times[0], found.row.next_deletion_by_size) == (found.row.next_deletion_ms, True)
    assert MS < times[0] < times[1] < times[2] < MS + 7 * 86_400_000
    assert [each.deletion_by_size for each in found.segments][:3] == [True] * 3


def test_without_a_size_limit_each_segment_goes_by_its_time() -> None:
    kept = detail(grown('{"topic":{"retention.ms":"7200000"}}'))
    times = [each.deletion_ms for each in kept.segments]
    assert times == [MS + (7200 - age) * 1000 + 1 for _, _, age in FOUR], "the active one too: whoever appends to it may stop"
    assert kept.segments[0].deletion_ms == kept.row.next_deletion_ms
    assert not any(each.deletion_by_size for each in kept.segments)
    due = detail(grown(HOUR))
    assert [each.deletable for each in due.segments] == [True, False, False, False]
    assert due.segments[0].deletion_ms == MS


@each_row("configs", [SIZED, '{"topic":{"retention.ms":"604800000"}}'])
def test_what_a_silent_agent_reported_goes_by_size_at_no_known_time(configs: str) -> None:
    table = grown(configs)
    table.mark_agent("a1", NOW - 9_000)
    found = detail(table)
    assert found.segments[0].deletion_ms == found.row.next_deletion_ms
    assert (found.segments[1].deletion_ms < 0) == (configs == SIZED)
