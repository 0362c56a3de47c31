"""Stations on one log dir and on two."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from streaming.simulator.log import LogDir
from tests.builders import log_dir
from tests.watcher.scene import Scene, scene
from tests.watcher.station import Station


@pytest.fixture
def world() -> Iterator[Scene]:
    with scene() as made:
        yield made


@pytest.fixture
def worlds() -> Iterator[Scene]:
    """With two log dirs."""
    with scene(2) as made:
        yield made


@pytest.fixture
def disk(tmp_path: Path) -> LogDir:
    return log_dir(tmp_path)


@pytest.fixture
def station(disk: LogDir, tmp_path: Path) -> Iterator[Station]:
    """A station whose first reader wants everything."""
    made = Station(disk.path)
    made.begin("earliest")
    yield made
    made.close()


@pytest.fixture
def two(tmp_path: Path) -> tuple[LogDir, LogDir]:
    return log_dir(tmp_path, "d0"), log_dir(tmp_path, "d1")


@pytest.fixture
def station_of_two(two: tuple[LogDir, LogDir], tmp_path: Path) -> Station:
    made = Station(*[disk.path for disk in two])
    made.begin("earliest")
    return made
