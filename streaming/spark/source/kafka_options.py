"""The options of Spark's Kafka source and of Spark's tables, as segtail has them: the same under another name, or refused with a reason.

Names and meanings: Spark's "Structured Streaming + Kafka Integration Guide"; what a table hands over: `CatalogV2Util` of Spark.
"""

import json
from collections.abc import Iterator, Mapping, Sequence

from streaming.errors import UsageError

Offsets = Mapping[tuple[str, int], int]
"""Of topics and partitions, as ``startingOffsets`` and ``endingOffsets`` have them in JSON."""

_SAME = {
    "path": "log_dirs",
    "subscribe": "topics",
    "subscribepattern": "topicsPattern",
    "kafka.isolation.level": "isolation",
}

_REFUSED = {
    "startingoffsetsbytimestamp": "startingTimestamp is one time for all partitions",
    "endingoffsetsbytimestamp": "leave out later records by a filter on timestamp",
    "startingoffsetsbytimestampstrategy": "a partition without a record of startingTimestamp or later has no row",
    "endingtimestamp": "leave out later records by a filter on timestamp",
    "maxoffsetspertrigger": "maxBytesPerTrigger bounds a micro-batch, in bytes",
    "minoffsetspertrigger": "a micro-batch has what is there",
    "maxtriggerdelay": "a micro-batch has what is there",
    "fetchoffset.numretries": "offsets are read from disk; leave it out",
    "fetchoffset.retryintervalms": "offsets are read from disk; leave it out",
    "kafkaconsumer.polltimeoutms": "records are read from disk; leave it out",
    "minpartitions": "a task reads whole segments; repartition the result",
    "maxrecordsperpartition": "a task reads whole segments; repartition the result",
    "groupidprefix": "segtail joins no group; leave it out",
    "kafka.group.id": "segtail joins no group; leave it out",
    "kafka.bootstrap.servers": "segtail asks no broker; log_dirs or agents say where it reads",
}

EARLIEST, LATEST = -2, -1
"""Kafka's numbers for the ends of a log."""

_OF_TABLE = ("provider", "owner", "location", "external", "comment", "collation", "is_managed_location", "table_type")
"""What Spark's catalog adds to the options of a table."""


def own_options(options: Mapping[str, str]) -> dict[str, str]:
    """The same in segtail's names, those of a table without what its catalog adds.

    Raises:
        UsageError: one cannot be had here, or says the same as another one; names it.
    """
    given = {name: value for name, value in options.items() if not name.lower().startswith("option.")}
    if "provider" in given:
        given = {name: value for name, value in given.items() if name.lower() not in _OF_TABLE}
    found: dict[str, tuple[str, str]] = {}
    for name, value in given.items():
        for own, said in _translated(name, value):
            if own.lower() in found:
                raise UsageError(f"options {found[own.lower()][0]} and {name}: give one of them")
            found[own.lower()] = name, said
    return {own: said for own, (_, said) in found.items()}


def _translated(name: str, value: str) -> Iterator[tuple[str, str]]:
    """An option in segtail's names, nothing if it says what is so anyway."""
    lower, word = name.lower(), value.strip().lower()
    if lower in _REFUSED:
        raise UsageError(f"option {name}: {_REFUSED[lower]}")
    if lower == "paths":
        yield "log_dirs", ",".join(json.loads(value))
    elif lower == "assign":
        yield from _assigned(name, value)
    elif lower == "startingoffsets" and word in ("earliest", "latest"):
        yield "startingPosition", word
    elif lower == "includeheaders":
        if word != "true":
            raise UsageError(f"option {name}: records have their headers; columns leaves them out")
    elif lower != "endingoffsets" or word != "latest":
        if lower.startswith("kafka.") and lower not in _SAME:
            raise UsageError(f"option {name}: segtail has no Kafka client; leave it out")
        yield _SAME.get(lower, name), value


def _assigned(name: str, value: str) -> Iterator[tuple[str, str]]:
    """``{"orders": [0, 2]}`` as topics and partitions."""
    try:
        partitions = {topic: sorted({*map(int, numbers)}) for topic, numbers in json.loads(value).items()}
    except (ValueError, AttributeError, TypeError) as error:
        raise UsageError(f'option {name}: {value!r} is not JSON such as {{"orders": [0, 1]}}') from error
    first, *others = partitions.values() or [[]]
    if not first or any(each != first for each in others):
        raise UsageError(f"option {name}: {value!r} has to name the same partitions, one at least, of each topic; read others apart")
    yield "topics", ",".join(partitions)
    yield "partitions", ",".join(map(str, first))


def parse_offsets(name: str, written: str, unbounded: Sequence[int]) -> Offsets:
    """Offsets as Spark's Kafka source has them: ``{"orders": {"0": 23, "1": -2}}``.

    Args:
        unbounded: the ends of a log that can be given as numbers, `EARLIEST` or `LATEST` or both.

    Raises:
        UsageError: it is not that.
    """
    words = {EARLIEST: "earliest", LATEST: "latest"}
    ends = " or ".join(words[each] for each in unbounded)
    numbers = ", ".join(f"{each} is {words[each]}" for each in unbounded)
    form = f'{ends}, or as JSON an offset for each partition, such as {{"orders": {{"0": 23}}}}; {numbers}'
    try:
        offsets = {(topic, int(number)): offset for topic, each in json.loads(written).items() for number, offset in each.items()}
    except (ValueError, AttributeError) as error:
        raise UsageError(f"option {name}: {written!r} is not {form}") from error
    if not offsets or any(type(offset) is not int or (offset < 0 and offset not in unbounded) for offset in offsets.values()):
        raise UsageError(f"option {name}: {written!r} is not {form}")
    return offsets
