"""Plans and commits of Spark's that are cut off."""

from pathlib import Path

import pytest

from streaming.errors import CheckpointError
from streaming.spark.job.checkpoint import repair

PLAN = 'v1\n{"batchWatermarkMs":0,"conf":{}}\n{"local":["j",3,100,0]}'
COMMIT = 'v1\n{"nextBatchWatermarkMs":0}'


@pytest.fixture
def spark(tmp_path: Path) -> Path:
    """Three micro-batches, the last of which is not committed."""
    for folder, count, text in (("offsets", 3, PLAN), ("commits", 2, COMMIT)):
        (tmp_path / "spark" / folder).mkdir(parents=True)
        for number in range(count):
            (tmp_path / "spark" / folder / str(number)).write_text(text)
    (tmp_path / "spark" / "offsets" / ".2.abc.tmp").touch()
    return tmp_path / "spark"


def files(spark: Path) -> set[str]:
    return {str(path.relative_to(spark)) for path in spark.rglob("*") if path.name.isdigit()}


def test_nothing_is_done_where_all_is_well(spark: Path) -> None:
    before = files(spark)
    (spark / "offsets" / "2").write_text("v1\n{}\n-")
    repair(spark)
    assert files(spark) == before


def test_a_new_checkpoint_has_nothing_to_repair(tmp_path: Path) -> None:
    repair(tmp_path / "spark")
    (tmp_path / "spark" / "offsets").mkdir(parents=True)
    repair(tmp_path / "spark")


@pytest.mark.parametrize("text", [PLAN[: len(PLAN) // 2], PLAN[:2], "v1\n", "", "\0" * 80, "{}"])
def test_the_last_plan_goes_if_it_is_cut_off_and_not_committed(spark: Path, text: str) -> None:
    (spark / "offsets" / "2").write_text(text)
    (spark / "offsets" / ".2.crc").touch()
    repair(spark)
    assert files(spark) == {"offsets/0", "offsets/1", "commits/0", "commits/1"}
    assert not (spark / "offsets" / ".2.crc").exists()


@pytest.mark.parametrize("text", ["", "v1", COMMIT[:-1]])
def test_the_last_commit_goes_if_it_is_cut_off(spark: Path, text: str) -> None:
    (spark / "commits" / "1").write_text(text)
    repair(spark)
    assert files(spark) == {"offsets/0", "offsets/1", "offsets/2", "commits/0"}


def test_a_plan_that_is_cut_off_though_it_is_committed_is_named(spark: Path) -> None:
    (spark / "commits" / "2").write_text(COMMIT)
    (spark / "offsets" / "2").write_text("")
    before = files(spark)
    with pytest.raises(CheckpointError, match=rf"{spark}/offsets/2 is damaged.*restore the checkpoint, or delete {spark.parent} to begin"):
        repair(spark)
    assert files(spark) == before
