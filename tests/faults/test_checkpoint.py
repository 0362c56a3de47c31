"""A checkpoint that is damaged, cut off or partly deleted: a job that says at which file, or the numbers of an undisturbed one."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.faults.writing import WritingBroker, writing_broker, written
from tests.jobs import Ended, run_once
from tests.processes import exported

pytestmark = pytest.mark.spark


def newest(directory: Path) -> Path:
    return max((path for path in directory.iterdir() if path.name.isdigit()), key=lambda path: int(path.name))


def cut_off(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def last_commit_cut_off(checkpoint: Path) -> None:
    cut_off(newest(checkpoint / "spark" / "commits"))


def last_plan_cut_off_before_its_commit(checkpoint: Path) -> None:
    newest(checkpoint / "spark" / "commits").unlink()
    cut_off(newest(checkpoint / "spark" / "offsets"))


def sparks_part_deleted(checkpoint: Path) -> None:
    shutil.rmtree(checkpoint / "spark")


def state_cut_off(checkpoint: Path) -> None:
    files = sorted((checkpoint / "spark" / "state").rglob("*.*"), key=lambda path: path.stat().st_mtime)
    for path in [path for path in files if path.suffix in (".zip", ".changelog")][-2:]:
        path.write_bytes(path.read_bytes()[:10])


def run(session: SparkSession, broker: WritingBroker, checkpoint: Path) -> Ended:
    """A job that counts what is there and ends."""
    ended = run_once(session, checkpoint, *map(Path, broker.log_dirs.split(",")))
    assert ended.status != 0 or exported(ended.page) == written(broker)
    return ended


@pytest.fixture(scope="module")
def world(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[WritingBroker, Path]:
    """A broker that rests, and the checkpoint of a job that has counted all but the last of what it wrote."""
    directory = tmp_path_factory.mktemp("checkpoint")
    with writing_broker(directory / "broker") as broker:
        for _ in range(2):
            ended = run(spark, broker, directory / "checkpoint")
            assert ended.status == 0, ended.error
            broker.write_on(300)
        return broker, directory / "checkpoint"


@pytest.mark.parametrize(
    "damage", [last_commit_cut_off, last_plan_cut_off_before_its_commit, sparks_part_deleted], ids=lambda damage: damage.__name__
)
def test_what_can_be_made_good_is(
    spark: SparkSession, world: tuple[WritingBroker, Path], tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    broker, whole = world
    checkpoint = tmp_path / "checkpoint"  # elsewhere: Spark has nothing of it in memory
    shutil.copytree(whole, checkpoint)
    damage(checkpoint)
    ended = run(spark, broker, checkpoint)
    assert ended.status == 0, ended.error


def test_what_cannot_be_made_good_is_reported(spark: SparkSession, world: tuple[WritingBroker, Path], tmp_path: Path) -> None:
    broker, whole = world
    checkpoint = tmp_path / "checkpoint"
    shutil.copytree(whole, checkpoint)
    state_cut_off(checkpoint)
    ended = run(spark, broker, checkpoint)
    assert ended.status == 1
    assert "[CANNOT_LOAD_STATE_STORE" in ended.error
    assert "\n" not in ended.error
