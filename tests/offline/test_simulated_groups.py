"""The groups of the simulated broker, read from its disk: what the demo has to show of consumer groups."""

from pathlib import Path

import pytest

from streaming.broker.disk.logdirs import open_log_dirs
from streaming.broker.protocol.group_json import GroupDetail, GroupPartition
from streaming.common.settings import Settings
from streaming.kafka.formats.consumer_offsets import OffsetCommitKey, read_offset_commit, read_offsets_key
from streaming.kafka.formats.entries import read_entry_records
from streaming.simulator.broker import COMMIT_MS, SimulatedBroker
from streaming.terminal.offline.group_reading import read_groups
from tests.facts import Facts, facts_of_all
from tests.formats.dumped import columns
from tests.group_answers import detailed

pytestmark = pytest.mark.xdist_group("offline/test_simulated_groups")  # one process makes the broker, not each

START = 1_700_000_000_000
MINUTE = START + 60_000
TRANSACTIONAL = "payment-processor"
"""The group that commits in transactions."""


class SimulatedGroups:
    """The broker at a time, and what its disk shows."""

    def __init__(self, broker: SimulatedBroker, now_ms: int) -> None:
        self.now_ms = now_ms
        self._facts = {(facts.topic, facts.partition): facts for facts in facts_of_all(broker)}
        found = detailed(read_groups(open_log_dirs(broker.log_dirs), (), Settings(), now_ms))
        self.count, _ = commits(broker)
        self.doubts = found.doubts
        self.groups = {each.summary.group: each for each in found.groups}

    def partitions(self, group: str) -> list[tuple[GroupPartition, Facts]]:
        """Each partition of a group, beside the truth about its log."""
        return [(of, self._facts[of.topic, of.partition]) for of in self.groups[group].partitions]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> SimulatedGroups:
    """More than a minute, and then until offsets that come last in their log do not count."""
    directory: Path = tmp_path_factory.mktemp("simulated")
    broker = SimulatedBroker(directory, seed=7, clock=lambda: START, rate_bytes_per_second=600_000)
    broker.step(now := MINUTE)
    count = last = commits(broker)[0]
    while count == last:
        broker.step(now := now + 50)
        count, last = commits(broker)
    broker.close()
    return SimulatedGroups(broker, now)


def commits(broker: SimulatedBroker) -> tuple[dict[int, int], dict[int, int]]:
    """The offsets of `TRANSACTIONAL` that a COMMIT marker made count, and those that came last, by partition of its topic."""
    directories = [facts.directory for facts in facts_of_all(broker) if facts.topic == "__consumer_offsets"]
    (found,) = (pair for directory in directories if (pair := counted(directory / f"{0:020}.log"))[0])
    return found


def counted(segment: Path) -> tuple[dict[int, int], dict[int, int]]:
    """The same of one log, by the markers in it."""
    data = segment.read_bytes()
    headers = columns(data)
    count: dict[int, int] = {}
    last: dict[int, int] = {}
    open_in: dict[int, dict[int, int]] = {}
    for position in headers.positions.tolist():
        producer = int.from_bytes(data[position + 43 : position + 51], signed=True)
        for record in read_entry_records(memoryview(data), position) or ():
            assert record.key is not None
            if record.key[:2] == b"\0\0":  # a marker, whose kind follows
                count |= open_in.pop(producer, {}) if record.key[2:] == b"\0\1" else {}
                open_in.pop(producer, None)
            elif isinstance(key := read_offsets_key(record.key), OffsetCommitKey) and key.group == TRANSACTIONAL:
                assert record.value is not None
                last[key.partition] = open_in.setdefault(producer, {})[key.partition] = read_offset_commit(record.value).offset
    return count, last


def summary(group: GroupDetail) -> tuple[str, str, int]:
    return group.summary.type, group.summary.state, group.summary.members


def test_every_group_is_there_with_its_members(world: SimulatedGroups) -> None:
    assert world.doubts == ()
    assert {name: summary(group) for name, group in world.groups.items()} == {
        "audit-export": ("Consumer", "Stable", 1),
        "click-counter": ("Consumer", "Stable", 2),
        "invoice-mailer": ("Consumer", "Stable", 2),
        "ledger": ("Classic", "Stable", 3),
        "log-search": ("Classic", "Stable", 1),
        "payment-processor": ("Classic", "Stable", 1),
    }


def test_where_each_log_ends_and_what_is_left_follow_from_the_offsets(world: SimulatedGroups) -> None:
    for name in world.groups:
        for of, facts in world.partitions(name):
            assert (of.unknown, of.high_watermark, of.last_stable_offset) == ("", facts.log_end_offset, facts.last_stable_offset)
            assert of.lag_offsets == facts.log_end_offset - of.committed
            assert of.commit_ms > world.now_ms - 2 * COMMIT_MS
    for name in ("click-counter", "log-search", "audit-export"):  # no transactions there: each offset is a record
        assert all(of.lag_records_read_committed == of.lag_offsets for of, _ in world.partitions(name))


def test_one_keeps_up_one_is_slow_and_one_stands_still(world: SimulatedGroups) -> None:
    share = {
        name: max(of.lag_offsets / facts.log_end_offset for of, facts in world.partitions(name))
        for name in ("click-counter", "log-search", "audit-export")
    }
    assert share["click-counter"] < 0.15 < share["log-search"] < 0.35 < share["audit-export"]


def test_one_is_held_up_by_the_transaction_that_nobody_ends(world: SimulatedGroups) -> None:
    held = {of.partition: of for of, _ in world.partitions("ledger")}
    assert held[2].held
    assert held[2].held_by is not None
    assert held[2].held_by.transactional_id == "billing-batch"
    assert held[2].lag_records_read_committed == 0
    assert held[2].lag_records_read_uncommitted > 100


def test_offsets_of_a_transaction_count_from_its_commit_marker_on(world: SimulatedGroups) -> None:
    assert {of.partition: of.committed for of, _ in world.partitions(TRANSACTIONAL)} == world.count
