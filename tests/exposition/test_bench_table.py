"""The table that benches of pages are measured on is one that a page can be made of: a bench that ends with an error measures nothing."""

from streaming.pages.exposition.render import render
from tests.bench.render import NOW_MS, new_observer, new_table, publish, series_in, states


def test_a_page_of_the_table_has_its_partitions() -> None:
    table = new_table()
    publish(table, states(12))
    page = render(table, new_observer(), NOW_MS / 1000)
    assert page.count(b"\nsegtail_partition_size_bytes{") == 12
    assert series_in(page) > 100
