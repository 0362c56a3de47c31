"""What a job asks of Spark whatever its user sets."""

from streaming.job.spark import DEFAULTS, FIXED


def test_of_a_task_or_a_stage_there_is_one_attempt_at_a_time() -> None:
    assert (FIXED["spark.speculation"], FIXED["spark.stage.maxConsecutiveAttempts"]) == ("false", "1")
    assert not FIXED.keys() & DEFAULTS.keys()
