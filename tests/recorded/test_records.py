"""``relation=records`` of the disk of a broker at work, killed or stopped, against what consumers got of it while it ran."""

from collections.abc import Mapping
from dataclasses import dataclass

import pytest

from tests.broker.install import BROKER_VERSION, KAFKA_VERSION
from tests.broker.kafka_tools import TopicPartition
from tests.recorded.recordings import Disk, Replayed, replay
from tests.recorded.worlds import records
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


@pytest.fixture(scope="module")
def byte_for_byte(tmp_path_factory: pytest.TempPathFactory) -> Replayed:
    return replay("records", BROKER_VERSION, tmp_path_factory.mktemp("bytes"))


@pytest.mark.parametrize("state", ["at_work", "killed"])
@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_all_that_a_consumer_got_while_the_broker_runs_and_after_it_was_killed(byte_for_byte: Replayed, isolation: str, state: str) -> None:
    rows = record_rows(*byte_for_byte.disk(state).log_dirs, topics=",".join(records.TOPICS), isolation=isolation)
    found = []
    for row in rows:
        timestamp = round(row["timestamp"].timestamp() * 1000)
        headers = [[each["key"], records.shown(each["value"])] for each in row["headers"] or ()]
        content = records.shown(row["key"]), records.shown(row["value"])
        found.append([row["topic"], row["offset"], *content, timestamp, row["timestampType"], headers])
    expected = byte_for_byte.json(isolation)
    assert sorted(found, key=lambda row: row[:2]) == expected
    assert {row[5] for row in expected} == {-1, 0, 1}
