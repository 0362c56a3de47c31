"""How many series and megabytes a scrape has, by partitions and by what is exported; the values are made up, as of a healthy cluster.

Every partition has had transactions and has a limit of retention, which is the most that one can have.

Left out: consumer groups, followers, what problems add, and a second broker, which has its own series of a topic.
"""

import re

from bench.healthy_table import NO_LIMIT, NOW_MS, new_observer, new_table, publish, series_in, states
from bench.measuring import Bounds, show
from streaming.cluster.view.family import Export
from streaming.common.settings import Settings
from streaming.pages.exposition.kept_lines import KeptLines
from streaming.pages.exposition.render import render, render_packed

PARTITIONS = (1_000, 10_000, 50_000, 200_000)
PARTITIONS_A_TOPIC = 10

CASES = {
    "everything, series_limit: none": (Export(), NO_LIMIT),
    "everything, series_limit: the default": (Export(), Settings().series_limit),
    "export.groups: [throughput]": (Export(groups={"throughput"}), NO_LIMIT),
    "export.groups: [transactions, retention]": (Export(groups={"transactions", "retention"}), NO_LIMIT),
    "export.topics: one topic in ten": (Export(topics=re.compile(".*0")), NO_LIMIT),
    "export.granularity: topic": (Export(partitions=False), NO_LIMIT),
}


def run(_: Bounds) -> None:
    """Print a table: of each case and each number of partitions the series, the MB, and the MB packed."""
    rows = [[name] for name in CASES]
    for partitions in PARTITIONS:
        logs = states(partitions, PARTITIONS_A_TOPIC)
        for row, (export, limit) in zip(rows, CASES.values(), strict=True):
            table = new_table(series_limit=limit, export=export)
            publish(table, logs)
            page = render(table, new_observer(), NOW_MS / 1000)
            packed = render_packed(KeptLines(), table, new_observer(), NOW_MS / 1000)
            row.append(f"{series_in(page):,} / {len(page) / 1e6:.1f} / {len(packed) / 1e6:.1f}")
    heads = ("", *(f"{partitions:,} partitions" for partitions in PARTITIONS))
    show(f"series / MB / MB packed of a scrape; {PARTITIONS_A_TOPIC} partitions a topic", heads, rows)
