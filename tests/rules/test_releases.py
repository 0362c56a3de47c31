"""What a broker's release decides of its limits."""

from streaming.rules.config_levels import broker_configs
from streaming.rules.config_values import Source
from streaming.rules.limits import effective_limits
from streaming.rules.releases import producer_expiration
from tests.tables import each_row


@each_row(("metadata_version", "expected"), [(7, 9000), (8, 4000), (30, 4000), (-1, 4000)])
def test_up_to_kafka_3_3_a_producer_lives_as_long_as_a_transactional_id(metadata_version: int, expected: int) -> None:
    pairs = [("producer.id.expiration.ms", "4000"), ("transactional.id.expiration.ms", "9000")]
    limits = effective_limits("t", broker_configs(pairs, Source.STATIC))
    assert producer_expiration(limits, metadata_version) == expected


def test_kafkas_defaults_are_a_day_and_a_week() -> None:
    limits = effective_limits("t", broker_configs((), Source.STATIC))
    assert (producer_expiration(limits, 8), producer_expiration(limits, 7)) == (86_400_000, 604_800_000)
