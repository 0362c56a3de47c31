"""Kafka's own Java clients in one process: batches as they are asked for, groups of every kind, and what is really consumed."""

import json
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from tests.broker.install import compiled, java_command
from tests.limits import SECONDS

_SOURCES = Path(__file__).parent / "java"

Record = tuple[str | None, int, int | None]
"""Key, bytes of the value (-1: a tombstone), timestamp (None: now)."""

Offset = tuple[str, int, int]
"""Topic, partition, offset."""


class Commit(NamedTuple):
    """What the coordinator says of a group and a partition. ``lag`` is known of share groups alone, else -1."""

    group: str
    topic: str
    partition: int
    offset: int
    lag: int


class Ends(NamedTuple):
    """What the leader of a partition says."""

    log_start: int
    high_watermark: int
    last_stable: int


class Consumed(NamedTuple):
    """What came from an offset on, up to the end that the isolation allows; ``records`` is -1 where no such offset is to be read from."""

    records: int
    first_offset: int
    first_ms: int


class Lab:
    """The process. Requests that fail raise an AssertionError with the client's complaint."""

    def __init__(self, bootstrap: str, said: Path) -> None:
        command = java_command("Lab", bootstrap, classes=compiled(_SOURCES), heap_mb=512)
        with said.open("wb") as stderr:
            self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr, text=True)

    def close(self) -> None:
        """Ends it as if it were killed: transactions stay open, and members leave no group."""
        self._process.communicate(timeout=SECONDS)

    def ask(self, do: str, **request: object) -> Any:
        """The answer to one request of `Lab.java`."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps({"do": do, **request}) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        assert "error" not in answer, f"{do}: {answer['error']}"
        return answer["answer"]

    def produce(
        self, topic: str, partition: int, batches: Sequence[Sequence[Record]], codec: str = "none", transaction: str | None = None
    ) -> list[int]:
        """One batch each; returns their first offsets."""
        answer: list[int] = self.ask("produce", topic=topic, partition=partition, batches=batches, codec=codec, transaction=transaction)
        return answer

    @contextmanager
    def transaction(self, name: str, *, commit: bool) -> Iterator[None]:
        """What is produced and committed inside with this transactional id is one transaction."""
        self.ask("begin", transaction=name)
        yield
        self.ask("end", transaction=name, commit=commit)

    def commit(self, group: str, kind: str, offsets: Iterable[Offset]) -> None:
        """Kinds are those of `Committing.java`: assign, classic, consumer."""
        self.ask("commit", group=group, kind=kind, offsets=list(offsets))

    def commits(self) -> list[Commit]:
        """Of all groups."""
        return sorted(Commit(*row) for row in self.ask("commits"))

    def ends(self) -> dict[tuple[str, int], Ends]:
        """Of all partitions that have a leader."""
        return {(topic, partition): Ends(*ends) for topic, partition, *ends in self.ask("ends")}

    def consume(self, isolation: str, offsets: Iterable[Offset]) -> list[Consumed]:
        """Consumes from each of these; one that is before the log start from there on."""
        return [Consumed(*row) for row in self.ask("consume", isolation=isolation, **{"from": list(offsets)})]


@contextmanager
def lab(bootstrap: str, said: Path) -> Iterator[Lab]:
    """One that does not outlive the block."""
    started = Lab(bootstrap, said)
    try:
        yield started
    finally:
        started.close()
