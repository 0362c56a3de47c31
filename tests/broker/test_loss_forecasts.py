"""A hundred losses that were foretold: by time and by size, in segments that roll and do not, of stamps that are late or ahead."""

from tests.broker.kafka import Kafka
from tests.broker.loss_experiment import TOPICS, Outcome, experiment

_FORECASTS = 100
_STILL = ("size-still",)
"""Whose only deletion may come before anything is foretold."""


def test_no_record_goes_before_it_was_foretold_and_each_goes_at_the_first_check_after_it(kafka_that_deletes: Kafka) -> None:
    def enough(outcome: Outcome) -> bool:
        return len(outcome.judged) >= _FORECASTS and outcome.by_topic().keys() >= TOPICS.keys() - _STILL

    outcome = experiment(kafka_that_deletes, enough)
    assert outcome.wrong == []
