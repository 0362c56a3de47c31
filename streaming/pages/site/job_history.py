"""What a job has seen, in a file under its checkpoint: it is read once, at the start, and written whole every minute and at the end."""

import logging
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path

from streaming.broker.protocol.history_json import KeptCommit, KeptHistory
from streaming.cluster.view.transaction_columns import TransactionJudge
from streaming.common.whole_files import write_whole
from streaming.errors import AgentError
from streaming.pages.site.judged_looks import JudgedLooks

log = logging.getLogger(__name__)

SAVE_SECONDS = 60.0
"""What was seen within the last minute before a kill is not kept."""

_MOST_BYTES = 256 << 20
"""Of the file, unpacked."""


class JobHistory:
    """For one thread; what is kept is asked from it.

    Args:
        path: the file.
        looks, transactions: what remembers changes and transactions.
        commits: what rounds over groups have to keep.
    """

    def __init__(
        self,
        path: Path,
        looks: JudgedLooks,
        transactions: TransactionJudge,
        commits: Callable[[], list[KeptCommit]],
        monotonic: Callable[[], float],
    ) -> None:
        self._path, self._looks, self._transactions, self._commits = path, looks, transactions, commits
        self._monotonic = monotonic
        self._saved_at = monotonic()

    def recall(self, recall_commits: Callable[[Sequence[KeptCommit]], None]) -> None:
        """Go on with what is in the file. One that is damaged is said and left: nothing that is counted is in it."""
        try:
            kept = self._read()
            if kept is None:
                return
            if kept.changes is not None:
                self._looks.events.recall(kept.changes)
        except (OSError, ValueError, zlib.error, AgentError) as error:
            log.warning(
                "what the job had seen before its start cannot be read: it begins anew", extra={"path": self._path, "error": str(error)}
            )
            return
        self._transactions.recall(kept.transactions)
        recall_commits(kept.commits)

    def _read(self) -> KeptHistory | None:
        try:
            packed = self._path.read_bytes()
        except FileNotFoundError:
            return None
        unpacker = zlib.decompressobj()
        body = unpacker.decompress(packed, _MOST_BYTES)
        if not unpacker.eof:
            raise ValueError("it is cut off, or too large")
        return KeptHistory.decode(body)

    def save_sometimes(self) -> None:
        """Write the file if that was long ago."""
        if self._monotonic() - self._saved_at >= SAVE_SECONDS:
            self.save()

    def save(self) -> None:
        """Write the file. If that fails it is said, and the job goes on."""
        self._saved_at = self._monotonic()
        kept = KeptHistory(
            changes=self._looks.events.kept(),
            transactions=self._transactions.kept(),
            commits=self._commits(),
        )
        try:
            write_whole(self._path, zlib.compress(kept.encode(), 1), lasting=False)
        except OSError as error:
            log.warning("what the job has seen cannot be kept for its next start", extra={"path": self._path, "error": str(error)})
