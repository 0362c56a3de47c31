"""Looks at one checkpoint again and again: how far its query has read, and what nobody can say of it.

A micro-batch is planned by ``offsets/N`` before it runs, and ``commits/N`` says that its output is there. So the query has read up to where
the last N has both; what is planned and not committed is run again after a failure, and counts as unread. Spark keeps the last 100 of both.
"""

import logging
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from streaming.errors import FormatError, QueryCheckpointError
from streaming.queries.formats import LARGEST_BYTES, SourceOffset, check_commit, parse_offsets, parse_query_id
from streaming.queries.query_looks import CheckpointFiles, FileEntry, QueryLook, QueryPosition

log = logging.getLogger(__name__)

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
            self._check_planned(planned, doubts)
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

    def _check_planned(self, number: int, doubts: list[str]) -> None:
        """Say so if what is planned is torn: Spark does not start with it."""
        try:
            self._sources(number)
        except QueryCheckpointError as error:
            doubts.append(f"the micro-batch that is planned next is not known: {error}")


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
