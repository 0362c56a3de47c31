"""The tables of an agent's answer to a reader as rows of its relation: what was asked for, and events that say what is missing."""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streaming.common.rows import BATCHES, SEGMENTS, Kind
from streaming.errors import AgentError
from streaming.spark.client.column_versions import as_events
from streaming.spark.source.public_rows import ARROW, one_batch, public_batches, public_ranges, public_transactions, skipped_row
from streaming.spark.source.public_values import known, known_text, times
from streaming.spark.source.relations import Relation


def public_rows(relation: Relation, table: pa.Table) -> pa.Table:
    """The rows of one table of an answer.

    Raises:
        AgentError: it is none that an agent sends for this relation.
    """
    if "kind" in table.schema.names:
        events = as_events(table)
        return _ranges(events) if relation is Relation.RANGES else _skips(relation, events)
    if relation is Relation.BATCHES and set(BATCHES.names) <= set(table.schema.names):
        return pa.Table.from_batches([public_batches(table.select(BATCHES.names).cast(BATCHES))])
    if relation is Relation.TRANSACTIONS:
        return pa.Table.from_batches([public_transactions(table)])
    raise AgentError(f"its rows are none of {relation}: are the agent and this Spark of the same version?", "protocol")


def lost_rows(relation: Relation, agent: str, journal: str) -> pa.Table:
    """The row that says that a reader had to begin anew at an agent: how much it misses is not known."""
    reason = f"agent_lost: agent {agent} has another journal, or has forgotten this query: what it published before is not known"
    values: Mapping[str, object] = {"reason": reason} | ({"agent": agent, "journal": journal} if relation is Relation.RANGES else {})
    return pa.Table.from_batches([skipped_row(relation, values)])


def _ranges(events: pa.Table) -> pa.Table:
    found = [public_ranges(events)]
    listed = events.filter(pc.equal(events["kind"], str(Kind.FOUND)))
    if listed.num_rows:
        found += [_of_segments(listed, "rolled"), _of_segments(listed, "deleted")]
    return pa.Table.from_batches(found)


def _of_segments(events: pa.Table, name: str) -> pa.RecordBatch:
    """A row for each segment in a column of `SEGMENTS`: of kind ``rolled`` or ``deleted``, as the column is called."""
    rows = one_batch(events.filter(events[name].is_valid()))
    packed = rows[name].to_pylist()
    segments = np.frombuffer(b"".join(packed), SEGMENTS)
    owners = rows.take(pa.array(np.repeat(np.arange(len(packed)), [len(each) // SEGMENTS.itemsize for each in packed])))
    schema, count = ARROW[Relation.RANGES], len(segments)
    bases, zero = pa.array(segments["base_offset"]), pa.repeat(pa.scalar(0, pa.int64()), count)
    deleted = name == "deleted"
    columns: dict[str, pa.Array] = {field.name: pa.nulls(count, field.type) for field in schema}
    columns |= {field.name: pa.array([[]] * count, field.type) for field in schema if pa.types.is_nested(field.type)}
    columns |= dict.fromkeys(("bytes", "batches", "records", "old_format_batches"), zero)
    columns |= {column: known(owners[column]) for column in ("broker", "partition", "seq")}
    columns |= {column: known_text(owners[column]) for column in ("log_dir", "topic", "topic_id", "agent", "journal")}
    columns |= {
        "kind": pa.repeat(name, count),
        "segment": bases,
        "base_offset": bases,
        "seen_at": times(owners["seen_at"]),
        "missing_bytes": pa.array(segments["size"]) if deleted else zero,
    }
    if deleted:
        columns |= {"end_position": pa.array(segments["size"]), "max_timestamp": times(pa.array(segments["largest_timestamp"]))}
    return pa.RecordBatch.from_arrays([columns[each] for each in schema.names], schema=schema)


def _skips(relation: Relation, events: pa.Table) -> pa.Table:
    """The rows of kind ``skipped`` among events; others are none of this relation."""
    rows = one_batch(events.filter(pc.equal(events["kind"], str(Kind.SKIPPED))))
    schema, count = ARROW[relation], rows.num_rows
    columns: dict[str, pa.Array] = {field.name: pa.nulls(count, field.type) for field in schema}
    columns |= {column: known_text(rows[column]) for column in ("log_dir", "topic", "topic_id", "reason")}
    columns |= {column: known(rows[column]) for column in ("broker", "partition")}
    columns |= {"kind": pa.repeat("skipped", count), "missing_bytes": rows["bytes"]}
    if relation is Relation.BATCHES:
        last = known(pc.subtract(rows["next_offset"], 1))
        columns |= {"segment": known(rows["segment"]), "base_offset": known(rows["base_offset"]), "last_offset": last}
    else:
        columns["first_offset"] = known(rows["base_offset"])
    return pa.Table.from_batches([pa.RecordBatch.from_arrays([columns[each] for each in schema.names], schema=schema)])
