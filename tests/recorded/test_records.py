"""``relation=records`` of a stopped broker's disk, against what Kafka's own consumer got of it while it ran."""

from collections.abc import Mapping
from dataclasses import dataclass

import pytest

from tests.broker.install import KAFKA_VERSION
from tests.broker.kafka_tools import TopicPartition
from tests.recorded.recordings import Disk, replay
from tests.recorded.worlds.count import ISOLATIONS, TOPICS
from tests.source.record_reading import offsets_of, record_rows


@dataclass(frozen=True, slots=True)
class Consumed:
    """The disk, and all offsets that came to a consumer, by isolation."""

    disk: Disk
    offsets: Mapping[str, Mapping[TopicPartition, list[int]]]


@pytest.fixture(scope="module")
def consumed(tmp_path_factory: pytest.TempPathFactory) -> Consumed:
    replayed = replay("count", KAFKA_VERSION, tmp_path_factory.mktemp("records"))
    offsets = {isolation: {(topic, number): each for topic, number, each in replayed.json(isolation)} for isolation in ISOLATIONS}
    return Consumed(replayed.disk(), offsets)


@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_the_offsets_that_a_consumer_got(consumed: Consumed, isolation: str) -> None:
    rows = record_rows(*consumed.disk.log_dirs, topics=",".join(TOPICS), isolation=isolation)
    assert offsets_of(rows) == {place: offsets for place, offsets in consumed.offsets[isolation].items() if offsets}


def test_the_markers_in_the_log_do_where_the_indexes_of_aborted_transactions_are_gone(consumed: Consumed) -> None:
    for log_dir in consumed.disk.log_dirs:
        for index in log_dir.glob("*/*.txnindex"):
            index.unlink()
    rows = record_rows(*consumed.disk.log_dirs, topics=",".join(TOPICS))
    assert offsets_of(rows) == {place: offsets for place, offsets in consumed.offsets["read_committed"].items() if offsets}
