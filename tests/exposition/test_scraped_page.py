"""A real Prometheus scrapes pages that are put together of pieces."""

from pathlib import Path

import pytest

from streaming.common.web.messages import OPENMETRICS_TYPE
from streaming.pages.exposition.kept_lines import PIECE_SERIES, KeptLines
from streaming.pages.exposition.render import render_packed
from tests.dashboards.prometheus import Prometheus, running
from tests.processes import until
from tests.serving import answering
from tests.tools import require_tool
from tests.view.rows import log, new_observer, new_table, states

pytestmark = [pytest.mark.programs, pytest.mark.slow]

PARTITIONS = 2 * PIECE_SERIES + 10
CONFIGURATION = """\
scrape_configs:
- job_name: segtail
  scrape_interval: 1s
  static_configs:
  - targets: ["{address}"]
"""


def values(prometheus: Prometheus) -> dict[int, float]:
    """What Prometheus has last read, by partition."""
    found = prometheus.ask("query", query="segtail_partition_appended_bytes_total")["result"]
    return {int(each["metric"]["partition"]): float(each["value"][1]) for each in found}


def test_prometheus_has_every_value_of_pages_of_which_parts_were_kept(tmp_path: Path) -> None:
    server = require_tool("prometheus")
    table = new_table(*(log(partition=number, appended_bytes=number) for number in range(PARTITIONS)))
    observer, kept, now = new_observer(), KeptLines(), 1_700_000_000.0

    def page(path: str) -> tuple[int, bytes]:
        return 200, render_packed(kept, table, observer, now, openmetrics=True)  # whatever is accepted: only packed pages are read here

    expected = {number: float(number) for number in range(PARTITIONS)}
    with (
        answering(page, headers={"Content-Type": OPENMETRICS_TYPE, "Content-Encoding": "gzip"}) as url,
        running(server, tmp_path, CONFIGURATION.format(address=url.removeprefix("http://"))) as prometheus,
    ):
        until("the first page is read", lambda: values(prometheus) == expected, saw=lambda: prometheus.ask("targets"))
        for changed in (PARTITIONS - 1, 0):
            table.apply(states(log(partition=changed, appended_bytes=1_000_000)))
            expected[changed] = 1_000_000.0
            until("the next is", lambda: values(prometheus) == expected, saw=lambda: prometheus.ask("targets"))
