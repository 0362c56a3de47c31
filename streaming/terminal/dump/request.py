"""The request for a dump."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from streaming.kafka.scan.headers import Batches
from streaming.terminal.dump.batch_table import producer_column, transactional

if TYPE_CHECKING:
    from streaming.kafka.formats.records import Record


class Format(StrEnum):
    """Formats of output; all except the first two contain one kind of rows."""

    TEXT = "text"
    JSON = "json"
    CSV = "csv"
    ARROW = "arrow"
    PARQUET = "parquet"


class Payload(StrEnum):
    """How keys and values are shown. NATURAL depends on the topic's name, and is text for other topics."""

    NATURAL = "natural"
    TEXT = "text"
    JSON = "json"
    HEX = "hex"
    NONE = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """The wanted batches and records; offsets and the time (Unix milliseconds) are inclusive, None means no filter."""

    from_offset: int | None = None
    to_offset: int | None = None
    from_time: int | None = None
    producer_id: int | None = None
    transactional: bool = False

    def keep(self, batches: Batches) -> NDArray[np.bool_] | None:
        """The batches that are wanted or may contain wanted records; None for all."""
        tests = []
        if self.from_offset is not None:
            tests.append(batches.last_offset >= self.from_offset)
        if self.to_offset is not None:
            tests.append(batches.base_offset <= self.to_offset)
        if self.from_time is not None:
            tests.append(batches.max_timestamp >= self.from_time)
        if self.producer_id is not None:
            tests.append(producer_column(batches, "producer_id") == self.producer_id)
        if self.transactional:
            tests.append(transactional(batches))
        if not tests:
            return None
        kept: NDArray[np.bool_] = np.logical_and.reduce(tests)
        return kept

    def wants(self, record: "Record") -> bool:
        """Whether a record of a batch that was kept is wanted."""
        return (
            (self.from_offset is None or record.offset >= self.from_offset)
            and (self.to_offset is None or record.offset <= self.to_offset)
            and (self.from_time is None or record.timestamp >= self.from_time)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """The request for a dump of some paths. ``rows``: whether they are shown; else only what ``verify`` finds."""

    paths: tuple[Path, ...]
    records: bool = False
    payload: Payload = Payload.NATURAL
    verify: bool = False
    summary: bool = False
    format: Format = Format.TEXT
    filters: Filters = Filters()
    rows: bool = True
