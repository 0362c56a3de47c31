"""The options of ``format("segtail")``, parsed once and checked against each other. No secret is among them: they are visible in plans."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from difflib import get_close_matches
from enum import StrEnum
from pathlib import Path
from typing import TypeVar

from streaming.broker.protocol.consumer_messages import Selection, check_pattern
from streaming.common.query_checkpoints import Isolation as Isolation
from streaming.common.start_from import StartFrom
from streaming.common.targets import FORM, Target
from streaming.common.units import SIZE_FORM, format_list, parse_size
from streaming.errors import UsageError
from streaming.spark.client.address_lookup import ClientFiles, addresses
from streaming.spark.source.kafka_options import EARLIEST, LATEST, Offsets, own_options, parse_offsets
from streaming.spark.source.relations import SCHEMAS, Relation

AGENT_FILES = ("agent_ca", "agent_cert", "agent_key", "agent_token_file")
AGENT_OPTIONS = ("agents", "cluster_id", *AGENT_FILES)
RECORDS_OPTIONS = ("isolation", "mode", "until", "failOnDataLoss", "startingOffsets", "endingOffsets")
STREAM_OPTIONS = ("maxBytesPerTrigger",)
WITH_COLUMNS = (Relation.RECORDS, Relation.BATCHES)
KNOWN = (
    *("relation", "log_dirs", "topics", "topicsPattern", "partitions", "startingPosition", "startingTimestamp", "maxBytesPerTrigger"),
    *("columns", *RECORDS_OPTIONS, *AGENT_OPTIONS),
)
_BY_LOWER = {name.lower(): name for name in KNOWN}

_Name = TypeVar("_Name", bound=StrEnum)

_NAMED = 5
_PARTITIONS = "numbers of partitions such as 0,1,4-7"


def parse_public_options(options: Mapping[str, str], *, at_once: bool | None = None) -> PublicOptions:
    """Read the options that Spark passes, whose names have no case.

    Args:
        at_once: whether it is read at once, or as a stream: what goes with the other one alone is refused. None: not known yet.

    Raises:
        UsageError: one is unknown, not valid, or contradicts another one; the message names it.
    """
    named = own_options(options)
    given = {name.lower(): value for name, value in named.items()}
    for name in named:
        if name.lower() not in _BY_LOWER:
            near = [_BY_LOWER[each] for each in get_close_matches(name.lower(), _BY_LOWER, n=1)]
            mean = f", did you mean {near[0]}?" if near else f"; it knows {', '.join(KNOWN)}"
            raise UsageError(f"the data source segtail has no option {name!r}{mean}")
    relation = _one_of(given, "relation", Relation, Relation.RANGES)
    _check_together(given, relation)
    if at_once:
        _refuse(given, STREAM_OPTIONS, "goes with readStream, and this is read at once")
        if given.get("startingposition", "").strip().lower() == StartFrom.LATEST:
            raise UsageError("option startingPosition: at latest begins a stream, and this is read at once; give earliest, or a time")
    elif at_once is not None:
        _refuse(given, ("endingOffsets",), "goes with read, and a stream has no end")
    return PublicOptions(
        relation=relation,
        agents=tuple(_each(given, "agents", Target.parse, f"{FORM}, separated by commas")),
        files=ClientFiles(**{name.removeprefix("agent_"): Path(given[name]) for name in AGENT_FILES if name in given}),
        cluster_id=given.get("cluster_id", ""),
        log_dirs=tuple(_each(given, "log_dirs", _absolute, "absolute paths of log dirs, separated by commas")),
        selection=_selection(given),
        starting_position=_one_of(given, "startingposition", StartFrom, None) if "startingposition" in given else None,
        starting_timestamp=_time(given, "startingtimestamp"),
        starting_offsets=_offsets(given, "startingOffsets", (EARLIEST,) if at_once else (EARLIEST, LATEST)),
        ending_offsets=_offsets(given, "endingOffsets", (LATEST,)),
        max_bytes=_size(given, "maxbytespertrigger", 2 << 30),
        columns=tuple(_each(given, "columns", _column_of(relation), f"names of columns of {relation}, separated by commas")),
        isolation=_one_of(given, "isolation", Isolation, Isolation.READ_COMMITTED),
        mode=_one_of(given, "mode", Mode, Mode.PERMISSIVE),
        until=_one_of(given, "until", Until, Until.HIGH_WATERMARK),
        fails_on_loss=_one_of(given, "failondataloss", _Truth, _Truth.TRUE) is _Truth.TRUE,
    )


class Mode(StrEnum):
    """What is done with a batch that is damaged, as in Spark's file sources."""

    PERMISSIVE = "PERMISSIVE"  # what is whole of it is read, and the rest is logged
    DROPMALFORMED = "DROPMALFORMED"  # the batch is left out, and logged
    FAILFAST = "FAILFAST"  # the query fails


class Until(StrEnum):
    """Where the log of a broker that does not run ends."""

    HIGH_WATERMARK = "high_watermark"
    END = "end"


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicOptions:
    """What to read, and from where: ``agents``, or ``log_dirs`` that this Spark can open itself.

    ``starting_position``: None where it is not given (a stream begins at the latest, a read at the earliest). ``starting_timestamp``: Unix
    milliseconds, -1 none. ``starting_offsets``, ``ending_offsets``: of each partition of records, below 0 for that end of the log; {} for
    none. ``max_bytes``: of logs in one micro-batch. ``columns``: those that are wanted, () for all. ``fails_on_loss``: whether a query of
    records fails if what it has planned is deleted before it is read.
    """

    relation: Relation
    agents: tuple[Target, ...]
    files: ClientFiles
    cluster_id: str
    log_dirs: tuple[Path, ...]
    selection: Selection
    starting_position: StartFrom | None
    starting_timestamp: int
    starting_offsets: Offsets
    ending_offsets: Offsets
    max_bytes: int
    columns: tuple[str, ...]
    isolation: Isolation
    mode: Mode
    until: Until
    fails_on_loss: bool

    def addresses(self) -> tuple[str, ...]:
        """The present addresses of the agents."""
        return addresses(self.agents, tls=self.files.ca is not None)


def _one_of(given: Mapping[str, str], name: str, values: type[_Name], default: _Name | None) -> _Name:
    value = given.get(name)
    for each in values:
        if (value is None and each is default) or (value is not None and value.lower() == each.lower()):
            return each
    raise UsageError(f"option {_BY_LOWER[name]}: {value!r} is none of {', '.join(values)}")


def _check_together(given: Mapping[str, str], relation: Relation) -> None:
    """Raise a UsageError for the first two options that contradict each other."""
    from_dirs, from_agents = bool(given.get("log_dirs", "").strip()), bool(given.get("agents", "").strip())
    if from_dirs and from_agents:
        raise UsageError("options agents and log_dirs: give one of them; agents read on their hosts, log_dirs are read by this Spark")
    if relation is Relation.RECORDS and not from_dirs:
        raise UsageError("option relation: records are read of log_dirs alone, because keys and values never go over an agent")
    if not from_dirs and not from_agents:
        table = "" if given else "; a table gets its options only if CREATE TABLE names no columns"
        raise UsageError(f"the data source segtail needs the option agents ({FORM}, separated by commas) or log_dirs{table}")
    if from_dirs:
        _refuse(given, AGENT_OPTIONS, "goes with agents, and log_dirs are given")
    if relation is not Relation.RECORDS:
        _refuse(given, RECORDS_OPTIONS, f"goes with the relation records, and {relation} is read")
    if relation not in WITH_COLUMNS:
        _refuse(given, ("columns",), f"goes with the relations {' and '.join(WITH_COLUMNS)}, and {relation} is read")
    begins = [name for name in ("startingPosition", "startingTimestamp", "startingOffsets") if name.lower() in given]
    if len(begins) > 1:
        raise UsageError(f"options {begins[0]} and {begins[1]}: give one of them")
    if "topics" in given and "topicspattern" in given:
        raise UsageError("options topics and topicsPattern: give one of them")


def _refuse(given: Mapping[str, str], names: tuple[str, ...], why: str) -> None:
    for name in names:
        if name.lower() in given:
            raise UsageError(f"option {name}: it {why}")


def _each(given: Mapping[str, str], name: str, parse: Callable[[str], object], form: str) -> list:  # type: ignore[type-arg]
    written = given.get(name, "")
    parts = [each.strip() for each in written.split(",")] if name in given else []
    if name in given and not all(parts):
        raise UsageError(f"option {_BY_LOWER[name]}: {written!r} is not {form}")
    try:
        return [parse(each) for each in parts]
    except ValueError as error:
        raise UsageError(f"option {_BY_LOWER[name]}: {written!r} is not {form}") from error


def _absolute(written: str) -> Path:
    path = Path(re.sub("^file:(//)?", "", written))
    if not path.is_absolute():
        raise ValueError(written)
    return path


def _selection(given: Mapping[str, str]) -> Selection:
    pattern = given.get("topicspattern", "")
    try:
        check_pattern(pattern)
    except ValueError as error:
        raise UsageError(f"option topicsPattern: {pattern!r} is no regular expression: {error}") from error
    return Selection(
        topics=tuple(_each(given, "topics", str, "names of topics, separated by commas")),
        pattern=pattern,
        partitions=tuple(sorted({number for part in _each(given, "partitions", _numbers, _PARTITIONS) for number in part})),
    )


def _numbers(written: str) -> range:
    first, dash, last = written.partition("-")
    if not (first.isascii() and first.isdigit()) or (dash and not (last.isascii() and last.isdigit())):
        raise ValueError(written)
    found = range(int(first), int(last or first) + 1)
    if not 0 < len(found) <= 1 << 16:
        raise ValueError(written)
    return found


def _time(given: Mapping[str, str], name: str) -> int:
    value = given.get(name)
    if value is None:
        return -1
    if value.isascii() and value.isdigit() and len(value) <= 18:
        return int(value)
    try:
        moment = datetime.fromisoformat(value.strip())
    except ValueError as error:
        form = "milliseconds since 1970 or ISO 8601 (UTC unless it says otherwise), such as 2026-11-20T06:00:00Z"
        raise UsageError(f"option {_BY_LOWER[name]}: {value!r} is neither {form}") from error
    return round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)


def _offsets(given: Mapping[str, str], name: str, unbounded: tuple[int, ...]) -> Offsets:
    written = given.get(name.lower())
    return {} if written is None else parse_offsets(name, written, unbounded)


def _size(given: Mapping[str, str], name: str, default: int) -> int:
    value = given.get(name)
    if value is None:
        return default
    short = re.fullmatch(r"([0-9]+) ?([kmgtKMGT])[bB]?", value.strip())  # as Spark writes sizes: 10g
    try:
        size = parse_size(f"{short[1]}{short[2].upper()}iB" if short else value.strip())
    except ValueError as error:
        raise UsageError(f"option {_BY_LOWER[name]}: {value!r} is not {SIZE_FORM} or 10g") from error
    if size < 1:
        raise UsageError(f"option {_BY_LOWER[name]}: {value!r} is less than a byte")
    return size


def _column_of(relation: Relation) -> Callable[[str], str]:
    known = SCHEMAS[relation].names

    def column(name: str) -> str:
        if name not in known:
            raise UsageError(f"option columns: {relation} has no column {name!r}; it has {', '.join(known)}")
        return name

    return column


class _Truth(StrEnum):
    TRUE = "true"
    FALSE = "false"


def nothing_fits(selection: Selection, topics: Iterable[str]) -> UsageError:
    """The error of a selection of which there is no partition; ``topics``: those that are there, of which the nearest are named."""
    every = sorted(topics)
    near = dict.fromkeys(each for name in {*selection.topics} - {*every} for each in get_close_matches(name, every, n=_NAMED))
    there = f"there are {format_list(every, _NAMED)}" if every else "there are no partitions at all"
    there = f"did you mean {format_list(sorted(near), _NAMED)}?" if near else there
    given = {"topics": selection.topics, "topicsPattern": selection.pattern, "partitions": selection.partitions}
    options = [name for name, value in given.items() if value]
    return UsageError(f"option{'s' if len(options) > 1 else ''} {' and '.join(options)}: no partition fits; {there}")
