"""What a job has counted, as its driver tells the process that plans: a file that is written again after each micro-batch.

It says how far each log is counted, and up to where the rows of each agent are in the states. It is of one run of the query, and only there
once it holds everything that the states do. Where it is missing nothing is planned: an older one could tell agents to read on too early,
and one of a query that failed, too late.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from streaming.common.arrays import Longs
from streaming.common.log_key import KEY_COLUMNS, LogKey, key_arrays, keys_in
from streaming.common.log_positions import KnownEnd
from streaming.common.whole_files import write_whole

log = logging.getLogger(__name__)

_SCHEMA = pa.schema([*KEY_COLUMNS, ("next_offset", pa.int64()), ("epoch", pa.int32())])
_HEAD = b"segtail"  # in the metadata of the schema


def read_counted(path: Path) -> Counted | None:
    """What the file says; None where it is missing, or cannot be read. One that is damaged is removed, so that it is written again."""
    try:
        logs = pa.ipc.open_stream(path.read_bytes()).read_all()
        logs.validate(full=True)
        head = json.loads(logs.schema.metadata[_HEAD])
        found = Counted(
            {agent: Arrived(str(journal), int(seq)) for agent, (journal, seq) in head["arrived"].items()},
            frozenset(map(int, head["brokers"])),
            logs,
        )
        if logs.schema != _SCHEMA or len(logs) != head["logs"]:
            raise ValueError(f"it has {len(logs)} rows of {logs.schema.names}")
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, pa.ArrowException) as error:
        log.error("what the job has counted cannot be read", extra={"path": str(path), "error": str(error)})
        with suppress(OSError):  # it stays, and is found damaged again
            path.unlink()
        return None
    return found


class Arrived(NamedTuple):
    """All rows of an agent up to ``seq`` of ``journal`` are in the states."""

    journal: str
    seq: int


@dataclass(frozen=True, slots=True, eq=False)
class Counted:
    """``arrived``: by agent; ``brokers``: those of which anything is in the states; ``logs``: a row of `_SCHEMA` for each log."""

    arrived: Mapping[str, Arrived]
    brokers: frozenset[int]
    logs: pa.Table

    def ends(self, brokers: Collection[int]) -> dict[LogKey, KnownEnd]:
        """How far the logs of some brokers are counted."""
        rows = self.logs.filter(pc.is_in(self.logs["broker"], pa.array(brokers, pa.int32())))
        return dict(zip(keys_in(rows), map(KnownEnd, rows["next_offset"].to_pylist(), rows["epoch"].to_pylist()), strict=True))


NOT_ARRIVED = Arrived("", -1)


NOTHING_COUNTED = Counted({}, frozenset(), pa.Table.from_batches([], _SCHEMA))  # `empty_table` imports pandas if it is there


class LogColumns:
    """The keys of some logs as columns, which are made once for many files."""

    def __init__(self, keys: Iterable[LogKey]) -> None:
        self._arrays = key_arrays(keys)

    def rows(self, next_offsets: Longs, epochs: Longs) -> pa.RecordBatch:
        """These logs, with how far each is counted."""
        return pa.RecordBatch.from_arrays([*self._arrays, pa.array(next_offsets), pa.array(epochs).cast(pa.int32())], schema=_SCHEMA)


def write_counted(path: Path, arrived: Mapping[str, Arrived], brokers: Iterable[int], logs: pa.RecordBatch) -> None:
    """Write the whole file. Raises OSError: it cannot be written; an older one is still there."""
    head = json.dumps({"logs": len(logs), "brokers": sorted(brokers), "arrived": arrived}).encode()
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, logs.schema.with_metadata({_HEAD: head})) as writer:
        writer.write_batch(logs)
    write_whole(path, sink.getvalue().to_pybytes(), lasting=False)
