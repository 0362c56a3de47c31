"""The messages about the state of a cluster, for whoever shows it: `/api/v1/`, the page and the terminal."""

from collections.abc import Callable

from streaming.api import partition_rows, retention_rows, transaction_rows
from streaming.api.judged import Judged
from streaming.api.paging import asked_of
from streaming.api.partition_detail import partition_detail
from streaming.api.problem_page import problem_page
from streaming.api.status_message import status_message
from streaming.metrics.disk_message import disk_message
from streaming.protocol.disk_json import DiskAnswer
from streaming.protocol.listing_json import PartitionPage, RetentionPage, TransactionPage
from streaming.protocol.partition_json import PartitionDetail
from streaming.protocol.problem_json import ProblemPage
from streaming.protocol.status_json import Status


class State:
    """Makes messages from looks at a table. Queries are those of the paths of `/api/v1/`, without "?".

    Args:
        look: returns a look that is young enough to be shown.

    Raises (all methods with a query):
        UsageError: a parameter is not understood; the sentence names it.
    """

    def __init__(self, look: Callable[[], Judged]) -> None:
        self._look = look

    def status(self) -> Status:
        """What is wrong all in all, how fresh that is, and every agent."""
        judged = self._look()
        return status_message(
            judged.of,
            judged.problems,
            ready=judged.ready,
            newest_ms=judged.newest_ms,
            started_ms=judged.started_ms,
            more_unknown=judged.unknown,
        )

    def problems(self, query: str = "") -> ProblemPage:
        """Problems, the most severe first."""
        judged = self._look()
        return problem_page(judged.problems, query, judged.seen.now_ms)

    def partitions(self, query: str = "") -> PartitionPage:
        """Partitions."""
        asked = asked_of(query, partition_rows.SORTABLE, partition_rows.DEFAULT_SORT)
        judged = self._look()
        return partition_rows.partition_page(judged.seen, asked, judged.rates)

    def transactions(self, query: str = "") -> TransactionPage:
        """Open transactions."""
        asked = asked_of(query, transaction_rows.SORTABLE, transaction_rows.DEFAULT_SORT)
        judged = self._look()
        return transaction_rows.transaction_page(judged.seen, judged.of, asked)

    def retention(self, query: str = "") -> RetentionPage:
        """What is kept of partitions."""
        asked = asked_of(query, retention_rows.SORTABLE, retention_rows.DEFAULT_SORT)
        return retention_rows.retention_page(self._look().seen, asked)

    def disk(self, query: str = "") -> DiskAnswer:
        """What fills log dirs, and when they are full."""
        judged = self._look()
        return disk_message(query, judged.seen.shown, judged.of.agents, judged.seen.now_ms)

    def partition(self, topic: str, partition: int) -> PartitionDetail | None:
        """One partition, None if there is none with this name and number."""
        judged = self._look()
        return partition_detail(judged.seen, judged.of, judged.problems, topic, partition, judged.rates)
