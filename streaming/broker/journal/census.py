"""A census: the keys of all logs that an agent has, as one event of the journal.

It is published when a job begins, and by another watcher. If a job has a log in the log dirs of this agent that the census lacks, this log
is gone, whatever events the job has missed, and whichever agent watched these log dirs before. The census contains the keys of that moment:
later events show which logs appear and leave. A log dir that cannot be listed at that moment is left out: once it can be, another census is
published, because its logs may have left while no agent knew them.
"""

import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import pyarrow as pa

from streaming.common.event_row import Event
from streaming.common.log_key import KEY_COLUMNS, LogKey, key_arrays
from streaming.common.rows import Kind, pack_rows, unpack_rows

_MEMBERS = pa.schema([*KEY_COLUMNS, ("log_dir", pa.string())])


def census(logs: Mapping[LogKey, Path | None], places: Iterable[str], unseen: Iterable[Path], topics: bytes | None) -> Event:
    """Make the event.

    Args:
        logs: all logs of the agent with the log dir of each, None if it is not known.
        places: the log dirs that these logs are all of, each with its broker (`streaming.rules.whereabouts.place`).
        unseen: log dirs whose logs are not known now: a new journal does not even know which logs should be there.
        topics: which topics there are (`streaming.rules.whereabouts.topic_numbers`), None if that is not known.
    """
    keys = sorted(logs)
    arrays = [*key_arrays(keys), pa.array([str(logs[key] or "") for key in keys], pa.string())]
    members = pack_rows(pa.RecordBatch.from_arrays(arrays, schema=_MEMBERS))
    return Event(
        kind=Kind.CENSUS,
        log_dir="\n".join(sorted(places)),
        reason="\n".join(sorted(map(str, unseen))),
        detail=zlib.compress(members, 1),
        topics=topics,
    )


def members(event: Event) -> Iterator[Event]:
    """A row for every log of a census."""
    if event.detail is None:
        return
    rows = unpack_rows(zlib.decompress(event.detail), _MEMBERS)
    for *key, log_dir in zip(*(column.to_pylist() for column in rows.columns), strict=True):
        yield Event(kind=Kind.CENSUS, **LogKey(*key)._asdict(), log_dir=log_dir)


def expanded(event: Event) -> Sequence[Event]:
    """Expand an event into the events that are sent.

    A census becomes one row for each log and a closing row, which names the log dirs that the census covers and those that it does not.
    """
    if event.kind is not Kind.CENSUS:
        return [event]
    return [*members(event), Event(kind=Kind.CENSUS_END, log_dir=event.log_dir, reason=event.reason, topics=event.topics)]
