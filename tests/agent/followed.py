"""An agent that follows the groups of its log dirs, and batches of commits."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from streaming.broker.agent.group_following import GroupFollowing
from streaming.broker.disk.availability import LogDirs, open_log_dirs
from streaming.simulator.batch_writer import Batch
from streaming.simulator.coordinators import offset_commit_record
from tests.agents import Agent, Reader
from tests.builders import NOW

OFFSETS = "__consumer_offsets"


def committed(group: str, offset: int | None, *, producer: int = -1, number: int = 0, metadata: int = 0) -> Batch:
    """A batch with one commit, or with the tombstone of one. ``metadata``: bytes by which it is larger."""
    record = offset_commit_record(group, "orders", number, offset or 0, NOW)
    record = replace(record, value=None) if offset is None else replace(record, headers=(("m", bytes(metadata)),) if metadata else ())
    return Batch(
        records=(record,),
        producer_id=producer,
        producer_epoch=min(producer, 0),
        base_sequence=min(producer, 0),
        transactional=producer >= 0,
    )


TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAAQ"


@dataclass
class Beside:
    """An agent beside one or two log dirs that follows groups."""

    agent: Agent
    log_dirs: LogDirs
    following: GroupFollowing
    paths: tuple[Path, ...]
    now: float = 0.0

    def settle(self) -> None:
        """Let the watcher read what there is, and then follow it."""
        self.agent.look()
        self.follow()

    def follow(self) -> None:
        for path in self.paths:
            while self.following.step(path) < 0.9:  # it has more
                pass


@contextmanager
def beside(tmp_path: Path, *paths: Path, groups_limit: int = 100) -> Iterator[Beside]:
    agent = Agent(*paths)
    Reader(agent).begin()
    log_dirs = open_log_dirs(paths)
    made = Beside(agent, log_dirs, None, paths)  # type: ignore[arg-type]
    made.following = GroupFollowing(
        log_dirs, lambda: agent.watcher.tails(), rate=1 << 60, groups_limit=groups_limit, cpu_share=1e9, clock=lambda: made.now
    )
    yield made
    agent.close()
