"""A table that is told by one row both what happened to a log and what is decided of it: by `TOLD`, its columns besides `STATES`."""

from typing import Any

import pyarrow as pa

from streaming.facts import decode
from streaming.metrics.table import Table
from streaming.rows import STATES
from tests.catalog.catalogs import Row, catalog

TOLD = STATES
_DECIDED = {"topics": ("configs",), "logs": ("high_watermark", "cleaner_checkpoint")}
_ASSIGNED = ("leader", "leader_epoch", "replicas", "adding_replicas", "isr", "leader_metadata_version")


class ToldTable(Table):
    """Each agent's catalog holds what was told of any of its logs so far, and speaks at once."""

    _catalogs: dict[str, dict[str, dict[tuple[Any, ...], Row]]]

    def apply(self, states: pa.Table) -> None:
        """Rows without an agent's name tell nothing of a catalog."""
        super().apply(states)
        self.__dict__.setdefault("_catalogs", {})
        rows = [row for row in states.to_pylist() if row["change"] in ("log", "picture")]
        for agent in {row["agent"] for row in rows}:
            known = self._catalogs.setdefault(agent, {"topics": {}, "partitions": {}, "logs": {}})
            for row in rows:
                if row["agent"] == agent and row["change"] == "log":
                    _take(known, row)
            self.take_catalog(agent, catalog(**{name: list(found.values()) for name, found in known.items()}))


def _take(known: dict[str, dict[tuple[Any, ...], Row]], row: Row) -> None:
    broker, topic, topic_id, partition = (row[name] for name in ("broker", "topic", "topic_id", "partition"))
    facts = None if row["facts"] is None else decode(row["facts"])
    decided = {name: getattr(facts, name) for name in ("configs", "cleaner_checkpoint", *_ASSIGNED[2:])} if facts is not None else {}
    decided |= {name: row[name] for name in ("leader", "leader_epoch", "high_watermark")}
    topics = {"broker": broker, "topic": topic, "topic_id": topic_id}
    partitions = {"topic": topic, "topic_id": topic_id, "partition": partition}
    logs = topics | {"partition": partition}
    for name, key, columns in (
        ("topics", topics, _DECIDED["topics"]),
        ("partitions", partitions, _ASSIGNED),
        ("logs", logs, _DECIDED["logs"]),
    ):
        values = {column: decided[column] for column in columns if column in decided}
        place = tuple(key.values())
        known[name][place] = {**known[name].get(place, {}), **key, **values}
