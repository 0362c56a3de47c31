"""When series of a partition are absent: docs/troubleshooting.md has each case, and no series is absent that it does not name."""

import re
from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from streaming.cluster.view.table import Table
from streaming.common.catalog import UNREADABLE
from streaming.common.log_key import LogKey
from tests.exposition.reading import page, samples
from tests.view.rows import Row, new_table, states
from tests.worlds.retention import MS, NOW, facts, orders

_DOCUMENT = Path(__file__).parents[2] / "docs" / "troubleshooting.md"
_CONFIGS = '{"static":{},"topic":{"retention.ms":"3600000","retention.bytes":"1000000","cleanup.policy":"compact,delete"}}'
_LOG = LogKey(1, "orders", 0, "")


class Case(NamedTuple):
    """A row of the table; ``absent`` are patterns."""

    case: str
    absent: tuple[str, ...]
    until: str


def documented() -> Iterator[Case]:
    _, _, section = _DOCUMENT.read_text().partition("## When series of a partition are absent")
    for line in section.partition("\n## ")[0].splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| ") and cells[0] not in ("case", "---"):
            case, names, until = cells
            yield Case(case, tuple(re.findall("`([^`]+)`", names)), until)


def row(*, configs: str = _CONFIGS, isr: tuple[int, ...] | None = (1,), **values: Any) -> Row:
    """A log of which everything is known."""
    known = facts((0, 500, 7200), (50, 300, 10), configs=configs, cleaner_checkpoint=20, isr=isr, replicas=isr)
    counted = {"appended_bytes": 900, "appended_batches": 3, "appended_records": 5, "last_append_ms": MS - 1000, "max_timestamp_ms": MS}
    more = {"high_watermark": 100, "transactional": True, "active_producers": 1, "active_segment": 50, "judges_expiry": True}
    return orders(known, **{"topic_id": "", **counted, **more, **values})


def there(table: Table) -> set[str]:
    """The names of the series of the log, without what they all begin with."""
    found = samples(page(table, now=NOW))
    return {name.removeprefix("segtail_") for name, labels in found if dict(labels).get("topic") == "orders"}


def of(*rows: Row, counted: bool = True) -> set[str]:
    table = new_table()
    table.apply(states(*rows))
    if counted:
        table.set_records([_LOG], np.array([[98], [0], [2]]))
    return there(table)


CASES: dict[str, Callable[[], set[str]]] = {
    "the first backlog": lambda: of(row(settled=False)),
    "not counted the records": lambda: of(row(), counted=False),
    "no transactional batch": lambda: of(row(transactional=False)),
    "listed its files": lambda: of(row(facts=None)),
    "the leader is not": lambda: of(row(leader=-2, leader_epoch=-1, isr=None)),
    "the high watermark": lambda: of(row(high_watermark=UNREADABLE, isr=(1, 2))),
    "the limits": lambda: of(row(configs="")),
}
"""By words that the row of each has, and no other row."""


def test_each_case_is_documented_and_each_row_is_a_case() -> None:
    rows = [each.case for each in documented()]
    assert [sum(words in case for case in rows) for words in CASES] == [1] * len(rows)
    assert all(each.until for each in documented())


@pytest.mark.parametrize("words", CASES)
def test_just_what_is_documented_is_absent(words: str) -> None:
    (case,) = (each for each in documented() if words in each.case)
    absent = of(row()) - CASES[words]()
    assert absent == {name for name in of(row()) if any(fnmatchcase(name, pattern) for pattern in case.absent)}
    assert all(any(fnmatchcase(name, pattern) for name in absent) for pattern in case.absent)


def test_series_that_are_there_stay_while_nothing_happens() -> None:
    table = new_table()
    table.apply(states(row()))
    table.set_records([_LOG], np.array([[98], [0], [2]]))
    later = samples(page(table, now=NOW + 86_400))
    assert {name.removeprefix("segtail_") for name, labels in later if dict(labels).get("topic") == "orders"} == there(table)
