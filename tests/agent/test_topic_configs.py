from collections.abc import Mapping

import pytest

from streaming.broker.agent.topic_configs import TopicConfigs
from streaming.kafka.formats.cluster_image import ClusterImage
from streaming.rules.config_values import ValueSource, broker_configs
from streaming.rules.limits import effective_limits, limits_of
from streaming.simulator.batch_writer import Batch, Record, encode
from streaming.simulator.metadata_writer import ConfigResource, config_record


class Metadata:
    """A metadata log in which configurations are set, None for removed, and the image of it."""

    def __init__(self) -> None:
        self.image = ClusterImage()

    def topic(self, name: str, **pairs: object) -> "Metadata":
        return self._set(ConfigResource.TOPIC, name, pairs)

    def broker(self, name: str, **pairs: object) -> "Metadata":
        return self._set(ConfigResource.BROKER, name, pairs)

    def _set(self, resource: ConfigResource, name: str, pairs: Mapping[str, object]) -> "Metadata":
        values = [(key.replace("_", "."), None if value is None else str(value)) for key, value in pairs.items()]
        records = tuple(Record(None, config_record(resource, name, key, value), 0) for key, value in values)
        self.image.apply(memoryview(encode(Batch(records=records), self.image.next_offset)))
        return self


def retention(configs: TopicConfigs, topic: str = "t") -> tuple[int, ValueSource]:
    limits = limits_of(topic, configs.text(topic))
    assert limits == effective_limits(topic, configs.of(topic))
    return limits.retention_ms, limits.source


@pytest.fixture
def metadata() -> Metadata:
    return Metadata()


def test_a_broker_sees_its_topics_then_itself_then_all_brokers_then_its_file(metadata: Metadata) -> None:
    metadata.topic("t", retention_ms=1).broker("7", log_retention_ms=2).broker("", log_retention_minutes=3)
    of_seven, of_eight = (TopicConfigs(broker, broker_configs([("log.retention.hours", "4")], ValueSource.STATIC)) for broker in (7, 8))
    for configs in (of_seven, of_eight):
        configs.refresh(metadata.image)
    assert retention(of_seven) == (1, ValueSource.TOPIC)
    assert retention(of_seven, "other") == (2, ValueSource.DYNAMIC)
    assert retention(of_eight, "other") == (180_000, ValueSource.DYNAMIC)
    metadata.broker("", log_retention_minutes=None)
    of_eight.refresh(metadata.image)
    assert retention(of_eight, "other") == (4 * 3_600_000, ValueSource.STATIC)


def test_a_change_counts_from_the_next_look(metadata: Metadata) -> None:
    configs = TopicConfigs(1, None)
    configs.refresh(metadata.image)
    assert retention(configs)[1] is ValueSource.ASSUMED
    metadata.topic("t", retention_ms=5)
    configs.refresh(metadata.image)
    assert retention(configs) == (5, ValueSource.TOPIC)
    metadata.topic("t", retention_ms=None)
    configs.refresh(metadata.image)
    assert retention(configs)[1] is ValueSource.ASSUMED


def test_a_value_that_cannot_be_read_is_counted_and_named_once(metadata: Metadata, caplog: pytest.LogCaptureFixture) -> None:
    metadata.topic("t", retention_ms="long").broker("", log_retention_bytes="much")
    configs = TopicConfigs(1, None)
    for _ in range(2):
        configs.refresh(metadata.image)
        configs.of("t")
        configs.refresh(None)
    assert configs.rejected == 2
    assert [vars(record)["config"] for record in caplog.records] == ["log.retention.bytes", "retention.ms"]


def test_a_variable_in_the_file_that_a_broker_was_started_with_is_counted_and_named_once(caplog: pytest.LogCaptureFixture) -> None:
    started = broker_configs([("log.retention.hours", "${env:HOURS}")], ValueSource.STATIC)
    configs = TopicConfigs(1, None, running=lambda: started)
    for _ in range(2):
        configs.refresh(None)
    assert configs.rejected == 1
    assert [vars(record)["config"] for record in caplog.records] == ["log.retention.hours"]


def test_what_the_broker_was_started_with_counts_below_all_that_is_set_dynamically_and_may_change() -> None:
    found: list[dict[str, str]] = [{}]

    def running() -> object:
        return broker_configs(found[0].items(), ValueSource.STATIC) if found[0] else None

    metadata = Metadata().topic("own", retention_ms=1)
    configs = TopicConfigs(1, None, running=running)  # type: ignore[arg-type]

    def limits(topic: str) -> tuple[int, ValueSource]:
        configs.refresh(metadata.image)
        of = limits_of(topic, configs.text(topic))
        return of.retention_ms, of.source

    assert limits("t")[1] is ValueSource.ASSUMED
    for hours in ("2", "3"):
        found[0] = {"log.retention.hours": hours}
        assert limits("t") == (int(hours) * 3_600_000, ValueSource.STATIC)
    assert limits("own") == (1, ValueSource.TOPIC)
    found[0] = {}
    assert limits("t") == (3 * 3_600_000, ValueSource.STATIC)
