"""The listing of partitions: one row for each log that is exported."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streaming.broker.protocol.listing_json import PartitionPage, PartitionRow
from streaming.cluster.verdicts.cases import RowVerdicts
from streaming.pages.api.judged_look import with_verdicts
from streaming.pages.api.look import Look
from streaming.pages.api.paging import PageRequest, Sheet, cut, natural_order, worst_first
from streaming.pages.api.rates import NO_RATES, RateColumns
from streaming.pages.listings.partition_list import PARTITIONS
from streaming.rules.retention_rule import BLOCKED


def partition_page(look: Look, request: PageRequest, verdicts: RowVerdicts, rates: RateColumns = NO_RATES) -> PartitionPage:
    """A page of partitions."""
    columns = partition_columns(look, rates)
    natural = natural_order(look.topics, look.partitions, look.brokers)
    worst = worst_first(verdicts.place, natural, -columns["bytes_rate"])
    sheet = Sheet(columns=columns | {"kind": worst}, texts=look.texts, natural=natural, topics=look.topics)
    some = cut(sheet, request)
    rows = with_verdicts(partition_rows(look, columns, some.items, rates), verdicts.of_rows(some.items))
    return some.page(PartitionPage, look.now_ms, rows)


def partition_columns(look: Look, rates: RateColumns = NO_RATES) -> dict[str, NDArray[Any]]:
    """All numbers of the listing, by field: a column for each that the list can be sorted by, but the topic."""
    logs, columns = look.view.logs, look.columns_of(PARTITIONS)
    for name in ("appended_bytes", "appended_records"):  # they are exported once the backlog is read
        columns[name] = np.where((logs["settled"] == 1) & rates.counts, columns[name], -1)
    columns["retention_blocked"] = logs["retention_blocked"]
    columns["records_data"], columns["records_aborted"], columns["records_control"] = look.view.records[:, logs.columns["slot"]]
    columns["bytes_rate"], columns["records_rate"] = rates.bytes_rate(look), rates.records_rate(look)
    return columns


def partition_rows(look: Look, columns: dict[str, NDArray[Any]], items: Sequence[int], rates: RateColumns = NO_RATES) -> list[PartitionRow]:
    """Some of the rows."""
    numbers = {name: column[list(items)].tolist() for name, column in columns.items() if name != "retention_blocked"}
    blocked = columns["retention_blocked"][list(items)].tolist()
    hours = rates.hours(look, items)
    return [
        PartitionRow(
            **{name: values[place] for name, values in numbers.items()},
            topic=look.topics[item],
            retention_blocked=BLOCKED[blocked[place]] if blocked[place] >= 0 else "",
            rates=hours[place],
        )
        for place, item in enumerate(items)
    ]
