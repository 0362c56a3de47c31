"""How far logs have been read: a position of each, as a Kafka follower has it; arithmetic on them, and how an offset of Spark holds them.

A few logs are written as Spark's Kafka source writes them, ``{"orders": {"0": 23}}``, beside their leader epochs and topic ids; more than
`READABLE` packed. Spark compares offsets as text, so what is equal is written alike.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterable, Mapping
from functools import lru_cache
from itertools import groupby
from typing import Any, NamedTuple, TypeVar

from streaming.common.arrow_streams import inflate
from streaming.errors import UsageError

_T = TypeVar("_T")

VERSION = 1

READABLE = 1000
"""So many logs at most are written in words."""

MOST_EPOCHS = 8
"""So many leader epochs has a position at most: a log has to lose more of them between two plans before one is missed."""

MOST_LOGS = 1 << 20
"""The most logs of packed positions, unless fewer are taken."""

NOT_KNOWN = -1

Epochs = tuple[tuple[int, int], ...]
"""The leader epochs of a log up to an offset, each with its first offset, ascending; of many the last `MOST_EPOCHS`."""

_MOST_WORDS = 40 * MOST_EPOCHS

_LEVEL = 6
_VALUES_A_LOG = 5  # its topic, and its id, if it has one of its own, are among them
_MOST_BYTES_A_LOG = 512
_MOST_NUMBER = (1 << 63) - 1


class Position(NamedTuple):
    """Everything below ``next_offset`` of a log was read, or left out with a reason.

    ``topic_id``: "" for a log that has none. ``epochs``: those of what lies below ``next_offset``, () if nothing says them. ``begin``:
    where the log was read first, if that is since the position before; else `NOT_KNOWN`.
    """

    topic_id: str
    next_offset: int
    epochs: Epochs = ()
    begin: int = NOT_KNOWN

    @property
    def leader_epoch(self) -> int:
        """The leader epoch of the offset right before ``next_offset``, `NOT_KNOWN` if nothing says it."""
        return self.epochs[-1][0] if self.epochs else NOT_KNOWN


class KnownEnd(NamedTuple):
    """Everything of a log below ``next_offset`` is counted; right before it lies leader epoch ``epoch``, `NOT_KNOWN` if nothing says it.

    Unlike one with a `Position`, its reader sees by the epochs of what it gets where a log was overwritten.
    """

    next_offset: int
    epoch: int


def without_begins(positions: Positions) -> dict[LogName, Position]:
    """The same for who goes on from there."""
    return {name: at if at.begin == NOT_KNOWN else at._replace(begin=NOT_KNOWN) for name, at in positions.items()}


class LogName(NamedTuple):
    """A log among those of one agent or broker."""

    topic: str
    partition: int


Positions = Mapping[LogName, Position]


def reached(positions: Positions, targets: Positions) -> bool:
    """Whether each log was read up to its target. One of another topic id was deleted and made again: its target is gone."""
    for name, target in targets.items():
        at = positions.get(name)
        if at is None or (at.topic_id == target.topic_id and at.next_offset < target.next_offset):
            return False
    return True


def encode(positions: Positions) -> dict[str, Any]:
    """The positions as JSON of `VERSION`, with ``offsets``, ``epochs``, ``topic_ids`` and ``begins``, or ``logs`` and ``packed``.

    Equal positions make equal JSON.
    """
    names = sorted(positions)
    ids = {name.topic: positions[name].topic_id for name in names}
    if len(names) > READABLE or any(ids[name.topic] != positions[name].topic_id for name in names):
        return {"version": VERSION, "logs": len(names), "packed": pack(positions)}
    return {
        "version": VERSION,
        "offsets": _by_topic((name, positions[name].next_offset) for name in names),
        "epochs": _by_topic((name, _in_words(positions[name].epochs)) for name in names if positions[name].epochs),
        "topic_ids": {topic: each for topic, each in ids.items() if each},
        "begins": _by_topic((name, positions[name].begin) for name in names if positions[name].begin != NOT_KNOWN),
    }


def pack(positions: Positions) -> str:
    """The positions as a text; "" for none. Equal positions make equal texts."""
    if not positions:
        return ""
    groups = []
    for (topic, topic_id), own in groupby(sorted(positions.items()), lambda each: (each[0].topic, each[1].topic_id)):
        logs = list(own)
        begins = [at.begin for _, at in logs]
        groups.append(
            [
                *(topic, topic_id),
                [name.partition for name, _ in logs],
                [at.next_offset for _, at in logs],
                [_in_words(at.epochs) for _, at in logs],
                begins if any(each != NOT_KNOWN for each in begins) else [],
            ]
        )
    return base64.b64encode(zlib.compress(json.dumps(groups, separators=(",", ":")).encode(), _LEVEL)).decode()


def _in_words(epochs: Epochs) -> str:
    """Epochs with their first offsets: ``3@0 5@120``."""
    return " ".join(f"{epoch}@{start}" for epoch, start in epochs)


def _by_topic(values: Iterable[tuple[LogName, _T]]) -> dict[str, dict[str, _T]]:
    found: dict[str, dict[str, _T]] = {}
    for name, value in values:
        found.setdefault(name.topic, {})[str(name.partition)] = value
    return found


def decode(encoded: object) -> dict[LogName, Position]:
    """The positions that `encode` wrote.

    Raises:
        UsageError: it is of another version, or damaged; says what to do.
    """
    if not isinstance(encoded, dict) or encoded.get("version") != VERSION:
        version = encoded.get("version") if isinstance(encoded, dict) else None
        what = "is of no version of positions" if version is None else f"is of version {version!r:.40}, and this one reads {VERSION}"
        raise UsageError(f"the checkpoint's offset {what}: begin the query with a new checkpointLocation")
    try:
        found = unpack(encoded["packed"]) if "packed" in encoded else _read(encoded)
        if "packed" in encoded and len(found) != encoded["logs"]:
            raise ValueError("logs are missing")
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UsageError(f"the checkpoint's offset is damaged ({error!r:.100}): begin the query with a new checkpointLocation") from error
    return found


def unpack(packed: str, most: int = MOST_LOGS) -> dict[LogName, Position]:
    """The positions that `pack` wrote.

    Many logs: by topic and topic id, as JSON that is packed. An agent gets it of whoever has a token, so its size is bounded before
    it is unpacked, and each value is checked.

    Args:
        most: logs.

    Raises:
        ValueError: it is nothing that `pack` writes, or has more logs.
    """
    if not packed:
        return {}
    written = inflate(base64.b64decode(packed, validate=True), _MOST_BYTES_A_LOG * most)
    if written.count(b",") + written.count(b"[") > 2 * _VALUES_A_LOG * most:
        raise ValueError(f"it has more than {most} logs")
    found: dict[LogName, Position] = {}
    try:
        for topic, topic_id, partitions, offsets, epochs, begins in json.loads(written):
            _check([topic, topic_id, *epochs], str)
            _check([*partitions, *offsets, *begins], int)
            names = [LogName(topic, each) for each in partitions]
            begins = begins or [NOT_KNOWN] * len(names)
            rows = zip(offsets, map(_epochs, epochs), begins, strict=True)
            found |= dict(zip(names, (Position(topic_id, *each) for each in rows), strict=True))
    except (TypeError, RecursionError) as error:
        raise ValueError(f"it has another form: {error}") from error
    if len(found) > most:
        raise ValueError(f"it has more than {most} logs")
    return found


def _check(values: list[Any], kind: type) -> None:
    if any(type(each) is not kind for each in values) or (kind is int and values and not min(values) >= -1 <= max(values) <= _MOST_NUMBER):
        raise ValueError("a value of it has another form")


@lru_cache(maxsize=1 << 12)  # most logs have had one leader
def _epochs(words: str) -> Epochs:
    if len(words) > _MOST_WORDS:
        raise ValueError("a log has too many leader epochs")
    return tuple((int(epoch), int(start)) for epoch, start in (each.split("@") for each in words.split()))


def _read(encoded: Mapping[str, Any]) -> dict[LogName, Position]:
    epochs, ids, begins = encoded["epochs"], encoded["topic_ids"], encoded["begins"]
    return {
        LogName(topic, int(partition)): Position(
            ids.get(topic, ""),
            _number(offset),
            _epochs(epochs.get(topic, {}).get(partition, "")),
            _number(begins.get(topic, {}).get(partition, NOT_KNOWN)),
        )
        for topic, offsets in encoded["offsets"].items()
        for partition, offset in offsets.items()
    }


def _number(value: object) -> int:
    if type(value) is not int:
        raise TypeError(f"{value!r:.40} is no number")
    return value
