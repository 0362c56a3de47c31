"""A census: the keys of all logs that an agent has, as one event of the journal.

It is written with a beginning, and where a reader has missed a part of the journal: what such a reader holds of this agent and the census
lacks is gone, whatever it was not told. The keys are kept as they are at that moment: behind it the journal tells what comes and goes.
"""

import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import pyarrow as pa

from streaming.rows import Kind, pack_rows, unpack_rows
from streaming.watcher.events import Event, LogId

_MEMBERS = pa.schema(
    [("broker", pa.int32()), ("topic", pa.string()), ("partition", pa.int32()), ("topic_id", pa.string()), ("log_dir", pa.string())]
)


def census(logs: Mapping[LogId, Path | None], unseen: Iterable[Path]) -> Event:
    """The event.

    Args:
        logs: all that there are, and the log dir of each, None where it is not known.
        unseen: log dirs of which is not known what lies in them: a new journal does not even know the logs that should.
    """
    keys = [(log.broker, log.topic, log.partition, log.topic_id, str(path or "")) for log, path in sorted(logs.items())]
    columns = zip(*keys, strict=True) if keys else [()] * len(_MEMBERS)
    arrays = [pa.array(column, each.type) for column, each in zip(columns, _MEMBERS, strict=True)]
    members = pack_rows(pa.RecordBatch.from_arrays(arrays, schema=_MEMBERS))
    return Event(kind=Kind.CENSUS, reason="\n".join(sorted(map(str, unseen))), detail=zlib.compress(members, 1))


def members(event: Event) -> Iterator[Event]:
    """A row for every log of a census."""
    if event.detail is None:
        return
    rows = unpack_rows(zlib.decompress(event.detail), _MEMBERS)
    for broker, topic, partition, topic_id, log_dir in zip(*(column.to_pylist() for column in rows.columns), strict=True):
        yield Event(kind=Kind.CENSUS, broker=broker, topic=topic, partition=partition, topic_id=topic_id, log_dir=log_dir)
