"""Since when the committed offsets of a coordinator's log have not moved. A transaction moves them when it is committed."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from streaming.kafka.formats.consumer_offsets import OffsetCommit
from streaming.kafka.scan.group_records import Commit, EndMarker, GroupRecord

CommitKey = tuple[str, str, int]
"""Group, topic, partition."""


class _Held(NamedTuple):
    offset: int
    since_ms: int
    record_offset: int  # of the last commit of it


@dataclass(slots=True)
class UnmovedOffsets:
    """Takes the records of a log in the order of their offsets."""

    _held: dict[CommitKey, _Held] = field(default_factory=dict)
    _open: dict[int, dict[CommitKey, _Held]] = field(default_factory=dict)

    def note(self, records: Iterable[Commit | GroupRecord | EndMarker]) -> None:
        """Take the next records."""
        for each in records:
            if isinstance(each, Commit):
                self._note_commit(each)
            elif isinstance(each, EndMarker):
                self._end(each)

    def since(self) -> dict[CommitKey, tuple[int, int]]:
        """The offset that counts, and since when, Unix milliseconds: the first commit of it in a row, or the end of its transaction."""
        return {key: (held.offset, held.since_ms) for key, held in self._held.items()}

    def _note_commit(self, commit: Commit) -> None:
        key, value = (commit.group, commit.topic, commit.partition), commit.value
        if not isinstance(value, OffsetCommit):  # a tombstone also deletes what waits; a damaged value shows nothing
            for waiting in (self._held, *self._open.values()):
                waiting.pop(key, None)
            return
        held = _Held(value.offset, value.commit_timestamp, commit.record_offset)
        if commit.producer_id < 0:
            self._put(key, held)
        else:
            self._open.setdefault(commit.producer_id, {})[key] = held

    def _end(self, marker: EndMarker) -> None:
        for key, held in self._open.pop(marker.producer_id, {}).items():
            before = self._held.get(key)
            if marker.committed and (before is None or before.record_offset < held.record_offset):  # as in Kafka, a later commit wins
                self._put(key, held._replace(since_ms=max(held.since_ms, marker.at_ms)))

    def _put(self, key: CommitKey, held: _Held) -> None:
        before = self._held.get(key)
        unmoved = before is not None and before.offset == held.offset
        self._held[key] = held._replace(since_ms=before.since_ms) if before is not None and unmoved else held
