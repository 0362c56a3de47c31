"""Lists of log dirs, as the commands read them."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from streaming.broker.disk.logdirs import open_log_dirs
from streaming.broker.protocol.listing_json import ALL_ROWS, RETENTION_PATH, TRANSACTIONS_PATH, RetentionPage, TransactionRow
from streaming.common.settings import Settings
from streaming.terminal.offline.everything import read_list


@dataclass(frozen=True, slots=True)
class Opened:
    """Open transactions, and what could not be reported them."""

    transactions: list[TransactionRow]
    doubts: list[str]

    @property
    def hanging(self) -> list[TransactionRow]:
        return [one for one in self.transactions if one.verdict == "hanging"]


def opened(log_dirs: Sequence[Path], settings: Settings, now_ms: int, *topics: str) -> Opened:
    """The open transactions of topics, or of all."""
    query = "&".join([f"limit={ALL_ROWS}", *(f"topic={topic}" for topic in topics)])
    page = read_list(TRANSACTIONS_PATH, open_log_dirs(log_dirs), topics, settings, now_ms).transactions(query)
    return Opened(page.rows, page.doubts)


def kept(log_dirs: Sequence[Path], settings: Settings, now_ms: int, *topics: str) -> RetentionPage:
    """What is kept of topics, or of all."""
    return read_list(RETENTION_PATH, open_log_dirs(log_dirs), topics, settings, now_ms).retention(f"limit={ALL_ROWS}&sort=topic")
