"""The logs of a real broker's coordinators, and what Kafka's own tools printed at the same moment."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from streaming.common.log_key import LogKey
from streaming.kafka.groups.commit_table import Commits
from streaming.kafka.groups.log_replay import GroupLimit
from streaming.kafka.groups.replays import Replay, new_replay
from tests.formats.dumped import columns
from tests.groups.coordinator_model import Key

DATA = Path(__file__).parents[1] / "data" / "groups"


def stated(name: str) -> list[list[Any]]:
    """What a tool printed, a row each."""
    return [json.loads(line) for line in (DATA / f"{name}.jsonl").read_text().splitlines()]


def segments(topic: str) -> dict[int, bytes]:
    """The only segment of each partition of a coordinator's topic."""
    return {int(path.parent.name.rsplit("-", 1)[1]): path.read_bytes() for path in sorted(DATA.glob(f"{topic}-*/*.log"))}


def dumped(topic: str, partition: int) -> list[str]:
    """The lines that Kafka printed about it."""
    return (DATA / f"{topic}-{partition}" / f"{0:020}.log.txt").read_text().splitlines()


def replayed(topic: str, partition: int, data: bytes, limit: GroupLimit) -> Replay:
    """The replay of a segment."""
    log = new_replay(LogKey(1, topic, partition, "id"), f"{topic}-{partition}", limit)
    log.read(columns(data), np.frombuffer(data, np.uint8))()
    return log


def reported(commits: Commits) -> dict[Key, int]:
    rows = commits.rows
    columns = (each.tolist() for each in (rows.group, rows.topic, rows.partition, rows.offset))
    return {
        (rows.group_names[group], rows.topic_names[topic], partition): offset
        for group, topic, partition, offset in zip(*columns, strict=True)
    }
