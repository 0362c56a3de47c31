"""How many replicas have to be in sync, and when a leader stands."""

import numpy as np
import pytest

from streaming.rules.config_values import ValueSource, broker_configs, topic_configs
from streaming.rules.limits import effective_limits, effective_min_isr, may_stand
from tests.tables import each_row

KAFKA_3_6, KAFKA_3_7, UNKNOWN = 14, 15, -1


@each_row(("version", "expected"), [(KAFKA_3_7, [1, 2]), (30, [1, 2]), (UNKNOWN, [2, 2]), (KAFKA_3_6, [2, 2])])
def test_fewer_replicas_than_are_asked_for_are_enough_since_kafka_3_7(version: int, expected: list[int]) -> None:
    found = effective_min_isr(np.array([2, 2]), np.array([1, 3]), np.array([version, version]))
    assert found.tolist() == expected


@each_row(
    ("stands", "isr", "replicas", "version"),
    [
        pytest.param(True, 1, 3, KAFKA_3_7, id="fewer than min.insync.replicas"),
        pytest.param(True, 1, 3, UNKNOWN, id="of a release that is not known"),
        pytest.param(False, 1, 3, KAFKA_3_6, id="before Kafka 3.7 it moves on"),
        pytest.param(False, 2, 3, KAFKA_3_7, id="just enough"),
        pytest.param(False, 1, 1, KAFKA_3_7, id="all there are"),
    ],
)
def test_a_leader_stands_below_min_isr(stands: bool, isr: int, replicas: int, version: int) -> None:
    limits = effective_limits("t", topic_configs([("min.insync.replicas", "2")]).over(broker_configs((), ValueSource.STATIC)))
    assert may_stand(limits, isr, replicas, version) is stands


def test_where_min_isr_is_not_known_it_may_stand() -> None:
    assert may_stand(effective_limits("t", topic_configs(())), 2, 3, KAFKA_3_7)
    assert not may_stand(effective_limits("t", topic_configs(())), 3, 3, KAFKA_3_7)
    assert not may_stand(effective_limits("t", topic_configs(()).over(broker_configs((), ValueSource.STATIC))), 1, 3, KAFKA_3_7)
