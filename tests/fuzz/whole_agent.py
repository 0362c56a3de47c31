"""An agent on a small log dir in which any file may be damaged: what it may not do is end, or lose what is whole."""

import random
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from streaming.broker.protocol.status_messages import Status
from streaming.common.event_row import EventRow
from streaming.common.rows import Kind
from streaming.simulator.log import LogDir
from tests.agents import Agent, Reader
from tests.builders import batch, commit, log_dir, partition
from tests.events import Shard
from tests.frozen import unpack
from tests.fuzz.mutation import mutated

WHOLE = "whole"
"""The topic that nothing is done to."""

_LOGS = Path(__file__).parents[1] / "data" / "logs"
_RESCANS = 3


@cache
def template() -> Path:
    """A log dir with data of all formats, transactions, several segments, a metadata log, checkpoints and snapshots."""
    directory = Path(_held().name)
    disk = log_dir(directory)
    for name in ("transactions_v2", "deletions"):
        source = unpack(name, directory / name).log_dirs[0] if name != "deletions" else _LOGS.parent / "log_dirs" / name / "n1" / "d0"
        for each in sorted(source.iterdir()):
            if each.is_dir() and not (disk.path / each.name).exists():
                shutil.copytree(each, disk.path / each.name)
    for each in sorted((_LOGS / "old_formats").iterdir()):
        shutil.copytree(each, disk.path / each.name, dirs_exist_ok=True, ignore=shutil.ignore_patterns("*.txt"))
    _write(disk)
    disk.write_high_watermarks()
    disk.write_log_starts()
    disk.write_cleaner_offsets()
    disk.write_recovery_points()
    disk.release()
    return disk.path


@cache
def _held() -> TemporaryDirectory[str]:
    return TemporaryDirectory()


def _write(disk: LogDir) -> None:
    for number, topic in enumerate((WHOLE, "made")):
        log = partition(disk, topic, topic_id=900 + number)
        for count in range(1, 4):
            log.append(batch(count), batch(2, producer=count, transactional=True), leader_epoch=count)
            log.append(commit(count), leader_epoch=count)
            log.roll()
        log.append(batch(5), leader_epoch=4)
        log.close()


@contextmanager
def agent_on(disk: Path, directory: Path) -> Iterator[Agent]:
    agent = Agent(disk)
    try:
        yield agent
    finally:
        agent.close()


def damage(disk: Path, chance: random.Random) -> list[Path]:
    """Change some files, keep others of the topic `WHOLE` and what makes the directory a log dir; returns which."""
    files = sorted(path for path in disk.rglob("*") if path.is_file() and not path.parent.name.startswith(WHOLE))
    files = [path for path in files if path.name not in ("meta.properties", ".lock")]
    chosen = [path for path in files if chance.random() < 0.3]
    for path in chosen:
        data = path.read_bytes()
        path.write_bytes(mutated(data, chance.choice(files).read_bytes()[: 64 << 10], chance) if chance.random() < 0.9 else b"")
    return chosen


def run(directory: Path, seed: int) -> Status:
    """One damaged log dir, read from the beginning, grown, damaged again while it is watched, and taken up by a second process.

    Raises:
        AssertionError: a whole log was not counted whole.
        Exception: whatever ended the agent.
    """
    chance = random.Random(seed)
    disk = directory / "d0"
    shutil.copytree(template(), disk)
    if chance.random() < 0.8:
        damage(disk, chance)
    rows: list[EventRow] = []
    with agent_on(disk, directory) as agent:
        reader = Reader(agent, start_from=chance.choice(["earliest", "earliest", "active", "latest"])).begin()
        rows += _turn(agent, reader)
        damage(disk, chance)
        rows += _turn(agent, reader)
        agent.restart()
        rows += _turn(agent, reader)
        status = agent.service.status()
        assert status.caught_up
    if reader.start_from == "earliest":
        size = sum(path.stat().st_size for path in (disk / f"{WHOLE}-0").glob("*.log"))
        assert sum(row.bytes for row in rows if row.topic == WHOLE and row.kind == Kind.APPENDED) == size
    _fold(rows)
    return status


def _turn(agent: Agent, reader: Reader) -> list[EventRow]:
    rows = []
    for _ in range(_RESCANS):
        agent.look()
        rows += reader.step()
    return rows


def _fold(rows: list[EventRow]) -> None:
    shard = Shard()
    shard.fold(*rows)
