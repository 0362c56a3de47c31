"""Checkpoints of streaming queries, read by a command: those in directories of this machine, for no command starts a JVM."""

from collections.abc import Callable, Collection, Iterator
from functools import partial

from streaming.cluster.consumers.group_logs import TopicPartition
from streaming.cluster.consumers.query_groups import PREFIX, QueryGroups, plain_name
from streaming.common.query_checkpoints import QueryCheckpoint
from streaming.errors import QueryCheckpointError, UsageError
from streaming.queries.checkpoint_reader import CheckpointReader, LocalCheckpoint
from streaming.queries.query_looks import Found, QueryLook, QueryLooks

LOOK_SECONDS = 10.0
"""How long a command waits for a file system. What does not answer is not known."""


class OfflineQueries:
    """Looks at the checkpoints as often as logs are read on; the last look counts.

    Args:
        names: only the queries of groups with these names; none for all.
    """

    def __init__(self, checkpoints: Collection[QueryCheckpoint], names: Collection[str] = ()) -> None:
        self.checkpoints = [each for each in checkpoints if not names or f"{PREFIX}{each.name}" in {*map(plain_name, names)}]
        self._looks = QueryLooks({each.name: _look(each) for each in self.checkpoints})
        self._found: dict[str, Found] = {}

    def look(self) -> None:
        """Look at them now."""
        if self.checkpoints:
            silent = (QueryCheckpointError(f"{each.shown} does not answer") for each in self.checkpoints)
            self._found = {**dict(zip((each.name for each in self.checkpoints), silent, strict=True)), **self._looks.look(LOOK_SECONDS)}

    @property
    def places(self) -> Iterator[TopicPartition]:
        """The partitions that they read."""
        return (
            (position.topic, position.partition)
            for found in self._found.values()
            if isinstance(found, QueryLook)
            for position in found.positions
        )

    def put_into(self, queries: QueryGroups) -> None:
        """Pass on what was found last; nobody looks after that."""
        queries.take(self._found, 0)
        self._looks.close()


def refuse_remote(checkpoints: Collection[QueryCheckpoint]) -> None:
    """Check that no JVM is needed.

    Raises:
        UsageError: one of them is on a file system that only Spark's JVM reads.
    """
    for each in checkpoints:
        if each.local is None:
            raise UsageError(_needs_job(each))


def _look(checkpoint: QueryCheckpoint) -> Callable[[], QueryLook]:
    if checkpoint.local is None:
        return partial(_refuse, checkpoint)
    return CheckpointReader(checkpoint.shown, LocalCheckpoint(checkpoint.local)).look


def _refuse(checkpoint: QueryCheckpoint) -> QueryLook:
    raise QueryCheckpointError(_needs_job(checkpoint))


def _needs_job(checkpoint: QueryCheckpoint) -> str:
    return (
        f"the checkpoint {checkpoint.shown} is on a file system that only Spark's JVM reads, which no command starts: "
        "give it to a job (spark_checkpoints) and ask that with --job, or name a copy in a directory"
    )
