"""Looks at one checkpoint of a query again and again: its format, how far the query has read, and what nobody can say of it.

A micro-batch is planned by ``offsets/N`` before it runs, and ``commits/N`` says that its output is there. So the query has read up to where
the last N has both; what is planned and not committed is run again after a failure, and counts as unread. Spark keeps the last 100 of both.
"""

from __future__ import annotations

import json
import logging
import os
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Protocol

from streaming.errors import FormatError, QueryCheckpointError, TooLargeError, quoted

log = logging.getLogger(__name__)

LARGEST_BYTES = 32 << 20
"""A file of a checkpoint that is larger is not opened: a partition takes some ten bytes."""

_VERSION = re.compile(r"v(\d{1,9})")
_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")
_PARTITION = re.compile(r"\d{1,10}")
_VOID = "-"
_BY_NAME = 2
_NEWEST_OFFSETS, _NEWEST_COMMIT = 2, 3
_MOST_PARTITION, _MOST_OFFSET = 2**31 - 1, 2**63 - 1

_TRIES = 3
"""So many micro-batches are tried from the last one back, where files are torn or go while they are read."""

_KEPT_TIMES = 1000

_Times = Mapping[int, int]
"""When the file of each number was written, Unix milliseconds."""


class CheckpointReader:
    """For one thread at a time.

    Args:
        where: as users have written it.
    """

    def __init__(self, where: str, files: CheckpointFiles) -> None:
        self.where = where
        self._files = files
        self._query_id = ""
        self._last = -1  # the largest number of a commit
        self._generation = 0
        self._changed: tuple[str, ...] = ()
        self._read: tuple[int, int, int, tuple[SourceOffset, ...]] | None = None  # number, both times, and the sources

    def look(self) -> QueryLook:
        """What is there now.

        Raises:
            QueryCheckpointError: it is no checkpoint, or cannot be read.
        """
        query_id = self._id()
        # commits first: a number that is committed was planned before
        commits, offsets = self._times("commits"), self._times("offsets")
        last = max(commits, default=-1)
        self._compare(query_id, last)
        doubts: list[str] = []
        if offsets and last > max(offsets):  # Spark keeps the newest of both
            doubts.append(f"commits/{last} is there and offsets/{last} is not: it was copied in part, or while its query ran")
        batch, sources = self._committed(commits, offsets, doubts)
        planned = max((number for number in offsets if number not in commits), default=-1)
        if planned > batch:
            # say so if what is planned is torn: Spark does not start with it
            try:
                self._sources(planned)
            except QueryCheckpointError as error:
                doubts.append(f"the micro-batch that is planned next is not known: {error}")
        if batch < 0 and not doubts:
            doubts.append("no micro-batch is committed yet" if offsets else "no micro-batch is planned yet")
        return QueryLook(
            query_id=query_id,
            generation=self._generation,
            batch=batch,
            committed_ms=commits.get(batch, -1),
            positions=_positions(sources),
            planned_batch=planned if planned > batch else -1,
            planned_ms=offsets[planned] if planned > batch else -1,
            commit_times=tuple(commits[number] for number in sorted(commits)[-_KEPT_TIMES:]),
            doubts=tuple(doubts),
            notes=(*self._changed, *_foreign(sources)),
        )

    def _id(self) -> str:
        try:
            return parse_query_id(self._files.content("metadata"))
        except FileNotFoundError as error:
            raise QueryCheckpointError(f"{self.where} is no checkpoint of a streaming query: it has no file metadata") from error
        except (FormatError, OSError) as error:
            raise QueryCheckpointError(f"{self.where}/metadata cannot be read: {error}") from error

    def _times(self, folder: str) -> _Times:
        try:
            return {int(each.name): each.modified_ms for each in self._files.entries(folder) if each.name.isascii() and each.name.isdigit()}
        except OSError as error:
            raise QueryCheckpointError(f"{self.where}/{folder} cannot be listed: {error}") from error

    def _compare(self, query_id: str, last: int) -> None:
        """Notice that another checkpoint is in the same place."""
        why = ""
        if self._query_id and query_id != self._query_id:
            why = f"another checkpoint is in its place, that of query {query_id}; it was that of {self._query_id}"
        elif last < self._last:
            why = f"its micro-batches are numbered anew: the last one was {self._last}, and is {last} now"
        if why:
            log.warning("the checkpoint of a streaming query is another one", extra={"where": self.where, "why": why})
            self._changed = (f"{why}. What was known of it before does not count",)
            self._generation += 1
            self._read = None
        self._query_id, self._last = query_id, last

    def _committed(self, commits: _Times, offsets: _Times, doubts: list[str]) -> tuple[int, tuple[SourceOffset, ...]]:
        """The last micro-batch with both files, and its sources; one whose files are torn is passed over, and a doubt says so."""
        both = sorted(commits.keys() & offsets.keys(), reverse=True)[:_TRIES]
        for number in both:
            times = commits[number], offsets[number]
            if self._read is not None and self._read[:3] == (number, *times):
                return number, self._read[3]
            try:
                self._check_commit(number)
                sources = self._sources(number)
            except QueryCheckpointError as error:
                doubts.append(str(error))
                continue
            if not doubts:
                self._read = (number, *times, sources)
            else:
                doubts.append(f"it has read at least up to where micro-batch {number} has ended, which is the last one before")
            return number, sources
        if commits and not both:
            doubts.append("no micro-batch that is committed has its offsets any more")
        return -1, ()

    def _check_commit(self, number: int) -> None:
        try:
            check_commit(self._files.content(f"commits/{number}"))
        except (FormatError, OSError) as error:
            raise QueryCheckpointError(f"commits/{number} cannot be read: {error}") from error

    def _sources(self, number: int) -> tuple[SourceOffset, ...]:
        try:
            sources = parse_offsets(self._files.content(f"offsets/{number}"))
        except (FormatError, OSError) as error:
            raise QueryCheckpointError(f"offsets/{number} cannot be read: {error}") from error
        if self._read is not None and len(sources) < len(self._read[3]):  # Spark starts no query with fewer sources than before
            before = len(self._read[3])
            raise QueryCheckpointError(f"offsets/{number} has {len(sources)} sources, and the query has {before}: it is cut off")
        return sources


class CheckpointFiles(Protocol):
    """The files of one checkpoint, wherever it is. Paths are relative to it. Calls may take long."""

    def entries(self, folder: str) -> list[FileEntry]:
        """The files of a folder; none of one that is not there.

        Raises:
            OSError: it cannot be listed.
        """

    def content(self, path: str) -> bytes:
        """The bytes of a file, `streaming.queries.LARGEST_BYTES` and one more at most.

        Raises:
            FileNotFoundError: it is not there.
            OSError: it cannot be read.
        """


@dataclass(frozen=True, slots=True)
class FileEntry:
    """A file of a folder, and when it was last written, Unix milliseconds."""

    name: str
    modified_ms: int


@dataclass(frozen=True, slots=True)
class SourceOffset:
    """Where one source of a query is. ``offsets``: of a Kafka source, by topic and partition, the next that it reads; None of another one.

    ``shown``: what the file has, cut; "" where the source has no offset yet.
    """

    source: str
    offsets: Mapping[tuple[str, int], int] | None
    shown: str


@dataclass(frozen=True, slots=True)
class QueryPosition:
    """The next offset that a query reads of a partition; of several sources that read it, the lowest."""

    topic: str
    partition: int
    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryLook:
    """Times are Unix milliseconds, those of files; -1 is "none".

    ``generation``: rises when the place has another checkpoint than in the look before, so that nothing of that one counts any more.
    ``batch``: the last micro-batch that is planned and committed, and ``positions``: where it has ended. ``planned_batch``: one after it
    that is planned and not committed, -1 for none. ``commit_times``: of the commits that are still there, in the order of their numbers.
    ``doubts``: what is not known of it, in sentences; ``notes``: what is known, and worth saying.
    """

    query_id: str
    generation: int = 0
    batch: int = -1
    committed_ms: int = -1
    positions: tuple[QueryPosition, ...] = ()
    planned_batch: int = -1
    planned_ms: int = -1
    commit_times: tuple[int, ...] = ()
    doubts: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def _positions(sources: Sequence[SourceOffset]) -> tuple[QueryPosition, ...]:
    lowest: dict[tuple[str, int], int] = {}
    for each in sources:
        for place, offset in (each.offsets or {}).items():
            lowest[place] = min(offset, lowest.get(place, offset))
    return tuple(QueryPosition(*place, offset) for place, offset in sorted(lowest.items()))


def _foreign(sources: Sequence[SourceOffset]) -> tuple[str, ...]:
    """What is said of sources that read something else than Kafka."""
    foreign = [each for each in sources if each.offsets is None]
    return tuple(f"its source {each.source} reads no Kafka, as its offset {each.shown} shows, and is left out" for each in foreign)


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


def _json(text: str, what: str) -> object:
    try:
        found: object = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise FormatError(f"the {what} is cut off or damaged: {quoted(text)}") from error
    return found


def _text(content: bytes) -> str:
    if len(content) > LARGEST_BYTES:
        raise TooLargeError(f"it has more than {LARGEST_BYTES} bytes")
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise FormatError("it is no text", error.start) from error


def check_commit(content: bytes) -> None:
    """Check that a file of commits is whole.

    Raises:
        FormatError: it is cut off, damaged, or of a later version.
    """
    _, *lines = _lines(content, _NEWEST_COMMIT, "commits")
    if not lines:
        raise FormatError("the file of commits ends after its version")
    _json(lines[0], "commit")


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


def parse_offsets(content: bytes) -> tuple[SourceOffset, ...]:
    """The sources of a file of offsets, in its order.

    The files of a Structured Streaming checkpoint: ``metadata``, ``offsets/N`` and ``commits/N``. They are text (`HDFSMetadataLog`,
    `OffsetSeqLog`, `CommitLog`, `StreamMetadata` of Spark). A file of offsets has a line with its version, one with the settings of
    the query, and one for each source: what the source calls its offset, as JSON, or ``-`` for none yet. In version 2, an option of
    Spark 4.3, the name of the source and a colon stand before that. The offset of Spark's Kafka source is ``{"topic": {"partition":
    offset}}`` (`JsonUtils.partitionOffsets`), and the offset is the next one that it reads.

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


class QueryLooks:
    """At most one look at each checkpoint at a time. For one thread, until `close`.

    Looks at several checkpoints, each on a thread of its own: a file system that does not answer holds up nobody, not even the end.

    Args:
        looks: what looks at each checkpoint, by the name of its query. Each is called by the same thread again and again.
    """

    def __init__(self, looks: Mapping[str, Callable[[], QueryLook]]) -> None:
        self._looks = looks
        self._due: dict[str, SimpleQueue[bool]] = {}
        self._running: set[str] = set()
        self._found: dict[str, Found] = {}
        self._ended = threading.Condition()  # protects what is found

    def look(self, seconds: float) -> dict[str, Found]:
        """Look at all that is not still being looked at, and wait for these so long at most.

        Returns:
            what has been found since the last call, that of earlier looks too.
        """
        begun = {name for name in self._looks if name not in self._running}
        for name in begun:
            self._running.add(name)
            self._thread_of(name).put(True)
        with self._ended:
            self._ended.wait_for(lambda: self._found.keys() >= begun, seconds)
            found, self._found = self._found, {}
        self._running -= found.keys()
        return found

    def close(self) -> None:
        """End the threads; one whose look hangs is left alone."""
        for due in self._due.values():
            due.put(False)

    def _thread_of(self, name: str) -> SimpleQueue[bool]:
        if name not in self._due:
            due = self._due[name] = SimpleQueue()
            # a daemon: nothing ends a call that hangs in a kernel or a JVM
            threading.Thread(target=self._run, args=(name, due), name=f"look-{name}", daemon=True).start()
        return self._due[name]

    def _run(self, name: str, due: SimpleQueue[bool]) -> None:
        while due.get():
            found = self._look(name)
            with self._ended:
                self._found[name] = found
                self._ended.notify_all()

    def _look(self, name: str) -> Found:
        try:
            return self._looks[name]()
        except QueryCheckpointError as error:
            return error
        except Exception as error:  # of one checkpoint: the others count
            log.exception("the checkpoint of a streaming query is not understood", extra={"query": name})
            return QueryCheckpointError(f"the checkpoint of query {name} is not understood: {error}")


Found = QueryLook | QueryCheckpointError
"""What a look has shown, or why it has shown nothing."""


class LocalCheckpoint:
    """As `CheckpointFiles`. Nothing in the directory is written or locked."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def entries(self, folder: str) -> list[FileEntry]:
        """As `CheckpointFiles.entries`. What goes while it is listed is left out."""
        found = []
        try:
            with os.scandir(self._directory / folder) as entries:
                for entry in entries:
                    try:
                        found.append(FileEntry(entry.name, entry.stat().st_mtime_ns // 1_000_000))
                    except FileNotFoundError:
                        continue
        except FileNotFoundError:
            return []
        return found

    def content(self, path: str) -> bytes:
        """As `CheckpointFiles.content`."""
        with (self._directory / path).open("rb") as file:
            return file.read(LARGEST_BYTES + 1)
