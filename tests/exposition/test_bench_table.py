"""The made-up table that benches measure pages with is one that can be shown."""

from bench.healthy_table import NOW_MS, new_observer, new_table, publish, series_in, states
from streaming.pages.exposition.render import render


def test_it_has_the_series_of_its_partitions() -> None:
    table = new_table()
    publish(table, states(20, 10))
    assert series_in(render(table, new_observer(), NOW_MS / 1000)) > 20 * 40
