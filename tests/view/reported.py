"""A table that is told by one row both what happened to a log and what is decided of it: `TOLD` has more columns than `STATES`."""

import pickle
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from streaming.cluster.view.table import Table
from streaming.common.rows import SEGMENTS
from streaming.common.state_row import STATES
from tests.catalog.catalogs import Row, catalog

REPORTED = STATES
for _name, _type in (("leader", pa.int32()), ("leader_epoch", pa.int32()), ("facts", pa.binary())):
    REPORTED = REPORTED.append(pa.field(_name, _type))

_FOUND = ("local_log_start_offset", "oldest_timestamp", "active_first_timestamp", "active_created_ms")
_ASSIGNED = ("leader", "leader_epoch", "replicas", "adding_replicas", "isr", "leader_metadata_version", "eligible")
_OWN = ("leader", "leader_epoch", "high_watermark")


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What an agent knows of a log besides what was appended, of either road."""

    segments: NDArray[np.void] = field(default_factory=lambda: np.empty(0, SEGMENTS))
    local_log_start_offset: int = -1
    oldest_timestamp: int = -1
    active_first_timestamp: int = -1
    active_created_ms: int = -1
    cleaner_checkpoint: int = -1
    replicas: tuple[int, ...] | None = None
    isr: tuple[int, ...] | None = None
    eligible: tuple[int, ...] | None = None
    adding_replicas: tuple[int, ...] = ()
    leader_metadata_version: int = -1
    configs: str = ""
    epochs: bytes = b""

    def encode(self) -> bytes:
        """As the value of the column ``facts``."""
        return pickle.dumps(asdict(self))


def reported(rows: list[Row]) -> pa.Table:
    """Rows with those columns."""
    return pa.Table.from_pylist([{**row, **_found(row.get("facts"))} for row in rows], schema=REPORTED)


def _found(facts: bytes | None) -> Row:
    if facts is None:
        return {}
    values = pickle.loads(facts)
    return {"segments": values["segments"].tobytes(), **{name: values[name] for name in _FOUND}}


class ReportedTable(Table):
    """Each agent's catalog holds what was reported any of its logs so far, and speaks at once."""

    def apply(self, states: pa.Table) -> None:
        """Rows of `STATES` alone tell nothing of a catalog."""
        super().apply(states)
        catalogs: dict[str, dict[str, dict[tuple[Any, ...], Row]]] = self.__dict__.setdefault("_catalogs", {})
        if "facts" not in states.column_names:
            return
        rows = [row for row in states.to_pylist() if row["change"] == "log"]
        for agent in {row["agent"] for row in rows}:
            known = catalogs.setdefault(agent, {"topics": {}, "partitions": {}, "logs": {}})
            for row in rows:
                if row["agent"] == agent:
                    _take(known, row)
            self.take_catalog(agent, catalog(**{name: list(found.values()) for name, found in known.items()}))


def _take(known: dict[str, dict[tuple[Any, ...], Row]], row: Row) -> None:
    broker, topic, topic_id, partition = (row[name] for name in ("broker", "topic", "topic_id", "partition"))
    decided = ({} if row["facts"] is None else pickle.loads(row["facts"])) | {name: row[name] for name in _OWN}
    topics = {"broker": broker, "topic": topic, "topic_id": topic_id}
    partitions = {"topic": topic, "topic_id": topic_id, "partition": partition}
    logs = topics | {"partition": partition}
    for name, key, columns in (
        ("topics", topics, ("configs",)),
        ("partitions", partitions, _ASSIGNED),
        ("logs", logs, ("high_watermark", "cleaner_checkpoint", "epochs")),
    ):
        values = {column: decided[column] for column in columns if column in decided}
        place = tuple(key.values())
        known[name][place] = {**known[name].get(place, {}), **key, **values}
