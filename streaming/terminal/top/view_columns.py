"""The columns of each view, the most important first: that is the order in which narrow terminals keep them. How severe its rows look."""

from streaming.pages.listings.group_list import GROUPS
from streaming.pages.listings.list_cells import Times
from streaming.pages.listings.listing import Field, severity_of
from streaming.pages.listings.partition_list import PARTITIONS, RETENTION
from streaming.pages.listings.problem_list import EVENTS, PROBLEMS
from streaming.pages.listings.transaction_list import TRANSACTIONS
from streaming.terminal.top.questions import ListName, Row

COLUMNS: dict[ListName, tuple[Field, ...]] = {
    ListName.PROBLEMS: PROBLEMS.text_columns,
    ListName.PARTITIONS: PARTITIONS.text_columns,
    ListName.TRANSACTIONS: TRANSACTIONS.text_columns,
    ListName.RETENTION: RETENTION.text_columns,
    ListName.GROUPS: GROUPS.text_columns,
    ListName.EVENTS: EVENTS.text_columns,
}


def alarm(row: Row, times: Times) -> str:
    """How severe a row is, "" for what needs no look. Its words say the same without a colour."""
    return severity_of(row)
