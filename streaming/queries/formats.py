"""The files of a Structured Streaming checkpoint: ``metadata``, ``offsets/N`` and ``commits/N``.

They are text (`HDFSMetadataLog`, `OffsetSeqLog`, `CommitLog`, `StreamMetadata` of Spark). A file of offsets has a line with its version,
one with the settings of the query, and one for each source: what the source calls its offset, as JSON, or ``-`` for none yet. In version 2,
an option of Spark 4.3, the name of the source and a colon stand before that. The offset of Spark's Kafka source is
``{"topic": {"partition": offset}}`` (`JsonUtils.partitionOffsets`), and the offset is the next one that it reads.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from streaming.errors import FormatError, TooLargeError, quoted

LARGEST_BYTES = 32 << 20
"""A file of a checkpoint that is larger is not opened: a partition takes some ten bytes."""

_VERSION = re.compile(r"v(\d{1,9})")
_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")
_PARTITION = re.compile(r"\d{1,10}")
_VOID = "-"
_BY_NAME = 2
_NEWEST_OFFSETS, _NEWEST_COMMIT = 2, 3
_MOST_PARTITION, _MOST_OFFSET = 2**31 - 1, 2**63 - 1


@dataclass(frozen=True, slots=True)
class SourceOffset:
    """Where one source of a query is. ``offsets``: of a Kafka source, by topic and partition, the next that it reads; None of another one.

    ``shown``: what the file has, cut; "" where the source has no offset yet.
    """

    source: str
    offsets: Mapping[tuple[str, int], int] | None
    shown: str


def parse_offsets(content: bytes) -> tuple[SourceOffset, ...]:
    """The sources of a file of offsets, in its order.

    Raises:
        FormatError: it is cut off, damaged, or of a later version.
    """
    version, *lines = _lines(content, _NEWEST_OFFSETS, "offsets")
    if not lines:
        raise FormatError("the file of offsets ends before its settings")
    _json(lines[0] or "{}", "settings")
    named = _named(lines[1:]) if int(version) >= _BY_NAME else enumerate(lines[1:])
    sources = tuple(_source(str(name), offset) for name, offset in named)
    if not sources:
        raise FormatError("the file of offsets ends before its first source")
    return sources


def check_commit(content: bytes) -> None:
    """Check that a file of commits is whole.

    Raises:
        FormatError: it is cut off, damaged, or of a later version.
    """
    _, *lines = _lines(content, _NEWEST_COMMIT, "commits")
    if not lines:
        raise FormatError("the file of commits ends after its version")
    _json(lines[0], "commit")


def parse_query_id(content: bytes) -> str:
    """The id of the query that a checkpoint belongs to, by its file ``metadata``.

    Raises:
        FormatError: it is cut off or damaged.
    """
    found = _json(_text(content), "metadata")
    query_id = found.get("id") if isinstance(found, dict) else None
    if not isinstance(query_id, str) or not query_id:
        raise FormatError("metadata names no query")
    return query_id


def _lines(content: bytes, newest: int, kind: str) -> Iterator[str]:
    """The number of the version, and the lines that follow."""
    first, *rest = _text(content).split("\n")
    version = _VERSION.fullmatch(first.strip())
    if version is None:
        raise FormatError(f"the file of {kind} begins with no version: {quoted(first)}")
    if int(version[1]) > newest:
        raise FormatError(f"the file of {kind} is of version {version[1]}, which a later Spark writes")
    yield version[1]
    yield from rest


def _named(lines: list[str]) -> Iterator[tuple[str, str]]:
    for line in lines:
        name, colon, offset = line.partition(":")
        if not colon:
            raise FormatError(f"a source has no offset: {quoted(line)}")
        yield name, offset


def _source(name: str, offset: str) -> SourceOffset:
    if offset == _VOID:
        return SourceOffset(name, {}, "")
    found = _json(offset, f"offset of source {name}")
    return SourceOffset(name, _kafka_offsets(found), quoted(offset))


def _kafka_offsets(content: object) -> Mapping[tuple[str, int], int] | None:
    """The offsets, None if they are not of a Kafka source: a file source has ``{"logOffset": 3}``, a rate source ``12``."""
    if not isinstance(content, dict):
        return None
    offsets: dict[tuple[str, int], int] = {}
    for topic, partitions in content.items():
        if not isinstance(partitions, dict) or _TOPIC.fullmatch(topic) is None:
            return None
        for partition, offset in partitions.items():
            number = int(partition) if _PARTITION.fullmatch(partition) else -1
            if not 0 <= number <= _MOST_PARTITION or type(offset) is not int or not 0 <= offset <= _MOST_OFFSET:
                return None
            offsets[topic, number] = offset
    return offsets


def _text(content: bytes) -> str:
    if len(content) > LARGEST_BYTES:
        raise TooLargeError(f"it has more than {LARGEST_BYTES} bytes")
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise FormatError("it is no text", error.start) from error


def _json(text: str, what: str) -> object:
    try:
        found: object = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise FormatError(f"the {what} is cut off or damaged: {quoted(text)}") from error
    return found
