import re
from collections.abc import Iterator

import pytest

from streaming.agent.topic_configs import TopicConfigs
from streaming.kafka.metadata import ClusterImage
from streaming.rules.limits import Source, TopicPattern, broker_configs, effective_limits, limits_of, topic_configs

Pairs = tuple[tuple[str, str], ...]


class Image(ClusterImage):
    """An image in which a test sets configurations by hand."""

    def set(self, resource_type: int, resource: str, **pairs: object) -> "Image":
        self._configs[(resource_type, resource)] = {name.replace("_", "."): str(value) for name, value in pairs.items()}
        return self

    def topic(self, name: str, **pairs: object) -> "Image":
        return self.set(2, name, **pairs)

    def broker(self, name: str, **pairs: object) -> "Image":
        return self.set(4, name, **pairs)


def retention(configs: TopicConfigs, topic: str = "t") -> tuple[int, Source]:
    limits = limits_of(topic, configs.text(topic))
    assert limits == effective_limits(topic, configs.of(topic))
    return limits.retention_ms, limits.source


@pytest.fixture
def image() -> Iterator[Image]:
    return Image()


def test_a_broker_sees_its_topics_then_itself_then_all_brokers_then_its_file(image: Image) -> None:
    image.topic("t", retention_ms=1).broker("7", log_retention_ms=2).broker("", log_retention_minutes=3)
    of_seven, of_eight = (TopicConfigs(broker, broker_configs([("log.retention.hours", "4")], Source.STATIC)) for broker in (7, 8))
    for configs in (of_seven, of_eight):
        configs.refresh(image)
    assert retention(of_seven) == (1, Source.TOPIC)
    assert retention(of_seven, "other") == (2, Source.DYNAMIC)
    assert retention(of_eight, "other") == (180_000, Source.DYNAMIC)
    image.broker("")
    of_eight.refresh(image)
    assert retention(of_eight, "other") == (4 * 3_600_000, Source.STATIC)


def test_a_change_counts_from_the_next_look(image: Image) -> None:
    configs = TopicConfigs(1, None)
    configs.refresh(image)
    assert retention(configs)[1] is Source.ASSUMED
    image.topic("t", retention_ms=5)
    configs.refresh(image)
    assert retention(configs) == (5, Source.TOPIC)
    image.topic("t")
    configs.refresh(image)
    assert retention(configs)[1] is Source.ASSUMED


def test_patterns_stand_in_while_there_is_no_metadata_log(image: Image) -> None:
    configs = TopicConfigs(1, None, [TopicPattern(re.compile("audit-.*"), topic_configs([("retention.ms", "9")]))])
    configs.refresh(None)
    assert retention(configs, "audit-x") == (9, Source.TOPIC)
    configs.refresh(image)
    assert retention(configs, "audit-x")[1] is Source.ASSUMED


def test_a_value_that_cannot_be_read_is_counted_and_named_once(image: Image, caplog: pytest.LogCaptureFixture) -> None:
    image.topic("t", retention_ms="long").broker("", log_retention_bytes="much")
    configs = TopicConfigs(1, None)
    for _ in range(2):
        configs.refresh(image)
        configs.of("t")
        configs.refresh(None)
    assert configs.rejected == 2
    assert [vars(record)["config"] for record in caplog.records] == ["log.retention.bytes", "retention.ms"]
