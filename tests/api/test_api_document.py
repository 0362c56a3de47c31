"""docs/api.md names every path and every field, and no other."""

import dataclasses
import re
import typing
from pathlib import Path

import pytest

from streaming.api import partition_rows, retention_rows, transaction_rows
from streaming.protocol.cost_json import COST_PATH, Cost
from streaming.protocol.disk_json import DISK_PATH, DiskAnswer
from streaming.protocol.group_json import GROUPS_PATH, GroupDetail, GroupPage
from streaming.protocol.json_message import Message
from streaming.protocol.listing_json import (
    PARTITIONS_PATH,
    RETENTION_PATH,
    TRANSACTIONS_PATH,
    PartitionPage,
    PartitionRow,
    RetentionPage,
    RetentionRow,
    TransactionPage,
    TransactionRow,
)
from streaming.protocol.partition_json import PartitionDetail
from streaming.protocol.problem_json import PROBLEMS_PATH, ProblemPage
from streaming.protocol.status_json import STATUS_PATH, Status
from tests.tables import each_row

TEXT = (Path(__file__).parents[2] / "docs" / "api.md").read_text()
ANSWERS: dict[str, type[Message]] = {
    STATUS_PATH: Status,
    PROBLEMS_PATH: ProblemPage,
    PARTITIONS_PATH: PartitionPage,
    f"{PARTITIONS_PATH}/TOPIC/NUMBER": PartitionDetail,
    TRANSACTIONS_PATH: TransactionPage,
    RETENTION_PATH: RetentionPage,
    COST_PATH: Cost,
    DISK_PATH: DiskAnswer,
    GROUPS_PATH: GroupPage,
    f"{GROUPS_PATH}/NAME": GroupDetail,
}
ELSEWHERE = (GroupPage, GroupDetail)


def held(kind: type[Message]) -> set[type[Message]]:
    """A message and all that are in it."""
    hints = [each for hint in typing.get_type_hints(kind).values() for each in (hint, *typing.get_args(hint))]
    return {kind}.union(*(held(each) for each in hints if isinstance(each, type) and issubclass(each, Message)))


MESSAGES = sorted({each for kind in ANSWERS.values() if kind not in ELSEWHERE for each in held(kind)}, key=lambda kind: kind.__name__)


def section(title: str) -> str:
    return TEXT.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def test_every_path_is_there_with_its_message() -> None:
    rows = re.findall(r"^\| `(/api/v1/[^`]+)` \| `(\w+)` \|", TEXT, re.MULTILINE)
    assert dict(rows) == {path: kind.__name__ for path, kind in ANSWERS.items()}


@each_row("kind", MESSAGES)
def test_every_field_of_a_message_is_there_and_no_other(kind: type[Message]) -> None:
    heads = re.findall(r"^\| (`[^|]+`) \|", section(kind.__name__), re.MULTILINE)
    named = [name for head in heads for name in re.findall(r"`(\w+)`", head)]
    assert sorted(named) == sorted(each.name for each in dataclasses.fields(kind))


def test_there_is_a_section_for_each_message_and_none_more() -> None:
    assert sorted(re.findall(r"^## (\w+)$", TEXT, re.MULTILINE)) == [kind.__name__ for kind in MESSAGES]


@pytest.mark.parametrize(
    ("rows", "kind"), [(partition_rows, PartitionRow), (transaction_rows, TransactionRow), (retention_rows, RetentionRow)]
)
def test_a_listing_can_be_sorted_by_fields_of_its_rows(rows: typing.Any, kind: type[Message]) -> None:
    assert set(rows.SORTABLE) <= {each.name for each in dataclasses.fields(kind)}
    assert rows.DEFAULT_SORT in rows.SORTABLE
