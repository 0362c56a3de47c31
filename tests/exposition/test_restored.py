"""A job that starts again: what of its state is not restored yet is absent from the page, and never a smaller number than before."""

from collections.abc import Mapping

from streaming.common.definitions.metric import Type
from streaming.common.definitions.observer_metrics import SERIES_DROPPED
from streaming.common.definitions.sections import METRICS
from tests.exposition.golden import NOW, golden_groups, golden_observer, golden_rows
from tests.exposition.reading import Series, page, samples
from tests.tables import each_row
from tests.view.rows import log, new_table, recalled, states

FEW = 30
"""So few series that topics' sums replace those of partitions."""

COUNTED = tuple(metric.name for metric in METRICS if metric.type is not Type.GAUGE)

WITHOUT_STATE = {
    "segtail_agent_": "an agent's answer",
    "segtail_broker_": "an agent's answer",
    "segtail_unreadable_logs": "agents' answers",
    "segtail_topic_": "the newest copy of the metadata log, by an agent's answer",
    "segtail_affected_partition_info": "the same",
    "segtail_scrub_": "a scrub's own report: the agent stores it",
    "segtail_tail_lag_": "what agents have published, and what the page has of it",
    "segtail_group": "what agents read of the coordinators' logs; counters from when the job's process began, or as its history has them",
    "segtail_build_info": "the process",
    "segtail_config_threshold_seconds": "the process",
    "segtail_http_": "the process: counters from when it began",
    "segtail_web_": "the process: counters from when it began",
    "segtail_query_": "the process: counters from when it began",
    "segtail_scrape_": "the process: counters from when it began",
    "segtail_series_dropped_total": "the process: counters from when it began",
    "segtail_late_transactions_omitted": "the page itself",
    "segtail_page_info": "the page itself",
}
"""Why a family may be shown while nothing of a job's state is restored: where it is from, by the beginning of its name."""


def counters(shown: Mapping[Series, float]) -> dict[Series, float]:
    return {series: value for series, value in shown.items() if series[0].startswith(COUNTED) and series[0] != SERIES_DROPPED.name}


@each_row("limit", [1_000_000, FEW])
def test_no_counter_is_shown_smaller_than_it_was_in_whichever_order_shards_are_restored(limit: int) -> None:
    rows = [*golden_rows(), log("orders", 3, unclean_elections=2, unclean_ms=1_700_000_000_000)]
    before = counters(samples(page(new_table(*rows, series_limit=limit), golden_observer(), now=NOW, groups=golden_groups())))
    for first in range(len(rows)):
        table = new_table(series_limit=limit)
        table.recalls(len(rows))
        for shard, row in enumerate([*rows[first:], *rows[:first]]):
            shown = counters(samples(page(table, golden_observer(), now=NOW, groups=golden_groups())))
            assert {series: value for series, value in shown.items() if before.get(series, value) != value} == {}
            table.apply(states(row, recalled(shard)))
        assert counters(samples(page(table, golden_observer(), now=NOW, groups=golden_groups()))) == before


def test_before_anything_is_restored_only_what_needs_no_state_is_shown() -> None:
    table = new_table()
    table.recalls(None)
    shown = {name for name, _ in samples(page(table, golden_observer(), now=NOW, groups=golden_groups()))}
    families = {metric.name for metric in METRICS if any(name.startswith(metric.name) for name in shown)}
    assert {name for name in families if not name.startswith(tuple(WITHOUT_STATE))} == set()
    assert [start for start in WITHOUT_STATE if not any(name.startswith(start) for name in families)] == []
