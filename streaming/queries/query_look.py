"""What one look at the checkpoint of a query has shown, and what such a look needs of a file system."""

from dataclasses import dataclass
from typing import Protocol


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


@dataclass(frozen=True, slots=True)
class FileEntry:
    """A file of a folder, and when it was last written, Unix milliseconds."""

    name: str
    modified_ms: int


class CheckpointFiles(Protocol):
    """The files of one checkpoint, wherever it is. Paths are relative to it. Calls may take long."""

    def entries(self, folder: str) -> list[FileEntry]:
        """The files of a folder; none of one that is not there.

        Raises:
            OSError: it cannot be listed.
        """

    def content(self, path: str) -> bytes:
        """The bytes of a file, `streaming.queries.formats.LARGEST_BYTES` and one more at most.

        Raises:
            FileNotFoundError: it is not there.
            OSError: it cannot be read.
        """
