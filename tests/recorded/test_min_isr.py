"""High watermarks on the disks of brokers that have lost their followers, held against the leaders' own answers."""

import pytest

from streaming.broker.protocol.listing_json import RetentionRow
from streaming.common.settings import Settings
from tests.broker.install import KAFKA_VERSION
from tests.offline.lists import kept
from tests.recorded.recordings import Disk, Replayed, replay
from tests.recorded.worlds.min_isr import FIRST, THEN, TOPICS

SETTINGS = Settings(broker_config={"log.retention.hours": "168"})  # what else a broker has is known to be Kafka's default
MARKS = {
    "replicated": dict.fromkeys(TOPICS, FIRST),
    "below": {"strict": FIRST, "lax": FIRST + THEN, "alone": FIRST + THEN},
    "back": dict.fromkeys(TOPICS, FIRST + THEN),
}


@pytest.fixture(scope="module")
def replayed(tmp_path_factory: pytest.TempPathFactory) -> Replayed:
    """Three brokers before two of them were killed, the one that was left, and all three again."""
    return replay("min_isr", KAFKA_VERSION, tmp_path_factory.mktemp("min-isr"))


def seen(disk: Disk, topic: str) -> RetentionRow:
    """The log that speaks for the partition, from the disks of all brokers."""
    (found,) = kept(disk.log_dirs, SETTINGS, disk.now_ms, topic).rows
    return found


@pytest.mark.parametrize("state", MARKS)
def test_what_is_replicated_is_what_the_leader_says(replayed: Replayed, state: str) -> None:
    """Below min ISR a leader stands, and what is appended with one ack is not replicated; with the others back it goes on."""
    assert replayed.json(f"{state}_uncommitted") == replayed.json(f"{state}_committed") == MARKS[state]
    found = {topic: seen(replayed.disk(state), topic) for topic in TOPICS}
    assert {topic: row.high_watermark for topic, row in found.items()} == MARKS[state]
    assert {row.log_end_offset for row in found.values()} == {FIRST if state == "replicated" else FIRST + THEN}
