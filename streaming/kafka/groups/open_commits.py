"""Offsets that were committed in transactions which are open: they wait for the marker of their producer."""

from collections.abc import Iterator, Mapping

from streaming.kafka.groups.held_commits import Held


class OpenCommits:
    """The pending commits of one coordinator's log, by producer and row."""

    def __init__(self) -> None:
        self._by_producer: dict[int, dict[int, Held]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._by_producer.values()))

    def __iter__(self) -> Iterator[tuple[int, int, Held]]:
        """Producer, row and commit, in the order of the transactions."""
        for producer_id, commits in self._by_producer.items():
            for row, held in commits.items():
                yield producer_id, row, held

    def put(self, producer_id: int, row: int, held: Held) -> bool:
        """Whether the producer had no commit for the row yet."""
        commits = self._by_producer.setdefault(producer_id, {})
        new = row not in commits
        commits[row] = held
        return new

    def drop_row(self, row: int) -> int:
        """A tombstone also deletes what is pending, for all producers; returns for how many."""
        return sum(commits.pop(row, None) is not None for commits in self._by_producer.values())

    def end(self, producer_id: int) -> dict[int, Held]:
        """The transaction of a producer ends: its commits no longer wait."""
        return self._by_producer.pop(producer_id, {})

    def move(self, rows: Mapping[int, int]) -> None:
        """The rows have got other numbers."""
        self._by_producer = {
            producer_id: {rows[row]: held for row, held in commits.items()} for producer_id, commits in self._by_producer.items()
        }
