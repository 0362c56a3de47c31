"""Log dirs whose producers' clocks are wrong: a group is stopped, or fine, only where the times of the files show it."""

import random
from pathlib import Path
from uuid import UUID

import pytest

from streaming.broker.protocol.group_json import GroupDetail
from streaming.cluster.consumers.group_uncommitted import DEFAULT_MS
from streaming.kafka.formats.names import OFFSETS_TOPIC, TRANSACTION_TOPIC
from streaming.simulator.batch_writer import Batch
from streaming.simulator.coordinators import IdState, StoredTransaction, transaction_record
from streaming.simulator.metadata_writer import ReplicaSet, partition_record, topic_record
from tests.builders import NOW, batch, commit, partition
from tests.elections import MetadataCopy
from tests.file_times import written_at
from tests.group_answers import verdicts
from tests.offline.group_cluster import HOUR, Cluster

DAY = 24 * HOUR
MINUTE = 60_000
LIMIT = 10 * MINUTE


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    return Cluster(tmp_path)


def written(cluster: Cluster, at: int, *, stamped: int, records: int = 2, **options: object) -> None:
    """Records that were appended at a time and carry another one."""
    cluster.append(batch(records, timestamp=stamped, **options))  # type: ignore[arg-type]
    written_at(cluster.orders, at)


def only(cluster: Cluster) -> GroupDetail:
    (group,) = cluster.read().groups
    return group


@pytest.mark.parametrize("stamped", [NOW - 2 * DAY, NOW + HOUR, -1])
def test_a_group_is_neither_stopped_nor_fine_where_nothing_shows_when_its_next_record_was_appended(cluster: Cluster, stamped: int) -> None:
    written(cluster, NOW - HOUR, stamped=NOW - HOUR)
    cluster.commit(2)
    written(cluster, NOW - 1_000, stamped=stamped)
    group = only(cluster)
    (of,) = group.partitions
    assert (verdicts(group), group.summary.verdict, of.undated, of.unknown, of.lag, of.stopped_since_ms) == (
        ["unknown"],
        "unknown",
        True,
        "",
        2,
        -1,
    )
    assert "when its next record was appended is not on disk" in group.findings[0].text


@pytest.mark.parametrize("stamped", [NOW - 2 * DAY, NOW + HOUR, -1])
def test_it_is_stopped_if_the_log_was_last_written_longer_ago_than_the_limit(cluster: Cluster, stamped: int) -> None:
    written(cluster, NOW - 2 * LIMIT, stamped=stamped)
    cluster.commit(0)
    group = only(cluster)
    (of,) = group.partitions
    assert "stopped" in verdicts(group)
    assert of.stopped_since_ms - (NOW - 2 * LIMIT) in range(1_000)  # whole seconds may be rounded ones
    assert of.stopped_earlier


@pytest.mark.parametrize("stamped", [NOW - 2 * DAY, NOW + HOUR, -1])
def test_it_is_fine_if_the_segment_was_begun_within_the_limit_or_it_has_moved_or_read_all(cluster: Cluster, stamped: int) -> None:
    written(cluster, NOW - 5 * MINUTE, stamped=NOW - HOUR)
    cluster.commit(2)
    cluster.commit(0, "moved", at=NOW - MINUTE)
    cluster.orders.roll()
    written(cluster, NOW - 1_000, stamped=stamped)
    cluster.commit(4, "read")
    assert {group.summary.group: verdicts(group) for group in cluster.read().groups} == {
        "billing": ["fine"],
        "moved": ["fine"],
        "read": ["fine"],
    }


@pytest.mark.parametrize(("minutes", "verdict"), [(29, "stopped"), (1, "unknown")])
def test_the_clock_of_a_marker_decides_too(cluster: Cluster, minutes: int, verdict: str) -> None:
    """It is the broker's: what lies before it was there by then, and what follows it was not."""
    late = {"timestamp": NOW - 2 * DAY, "producer": 9, "transactional": True}
    cluster.append(batch(2, **late), commit(9, timestamp=NOW - 30 * MINUTE))  # type: ignore[arg-type]
    cluster.append(batch(2, epoch=1, **late), commit(9, epoch=1, timestamp=NOW - minutes * MINUTE))  # type: ignore[arg-type]
    written_at(cluster.orders, NOW - 1_000)
    cluster.commit(0)
    cluster.commit(3, "later")
    stopped, later = cluster.read().groups
    assert (verdicts(stopped)[-1], stopped.partitions[0].stopped_since_ms) == ("stopped", NOW - 30 * MINUTE)
    assert verdicts(later) == [verdict]


def test_timestamps_count_where_they_agree_with_the_files(cluster: Cluster) -> None:
    """As on ordinary clusters, whatever the file is older than."""
    written(cluster, NOW - 40 * MINUTE, stamped=NOW - 40 * MINUTE - 500)
    written(cluster, NOW - 5 * MINUTE, stamped=NOW - 5 * MINUTE - 500)
    cluster.commit(0)
    cluster.commit(2, "keeps up")
    stopped, fine = cluster.read().groups
    assert (verdicts(stopped)[-1], stopped.partitions[0].stopped_since_ms, stopped.partitions[0].stopped_earlier) == (
        "stopped",
        NOW - 40 * MINUTE - 500,
        False,
    )
    assert (verdicts(fine), fine.partitions[0].undated) == (["fine"], False)


@pytest.mark.parametrize("stamped", [NOW - 2 * DAY, NOW + HOUR, -1])
@pytest.mark.parametrize(("minutes", "severity"), [(16, "warning"), (14, "")])
def test_a_group_is_held_up_for_as_long_as_the_file_was_not_written(cluster: Cluster, stamped: int, minutes: int, severity: str) -> None:
    """Nothing above the last stable offset was ever readable."""
    written(cluster, NOW - HOUR, stamped=NOW - HOUR)
    written(cluster, NOW - minutes * MINUTE, stamped=stamped, producer=9, transactional=True)
    cluster.commit(2)
    group = only(cluster)
    assert (group.summary.verdict, group.summary.severity) == ("held", severity)
    assert group.summary.since_ms - (NOW - minutes * MINUTE) in range(1_000)


def coordinated(cluster: Cluster, *transactions: StoredTransaction) -> None:
    """The cluster has a coordinator of transactions, which has stored these, and is read to its end."""
    ids = {OFFSETS_TOPIC: UUID(int=7), "orders": UUID(int=8), TRANSACTION_TOPIC: UUID(int=9)}
    led = [ReplicaSet(partition=0, topic_id=each, replicas=(1,), isr=(1,), leader=1) for each in ids.values()]
    records = [topic_record(name, topic_id) for name, topic_id in ids.items()]
    MetadataCopy(cluster.disk.path).write([*records, *map(partition_record, led)], NOW - DAY)
    coordinator = partition(cluster.disk, TRANSACTION_TOPIC, topic_id=9)
    for each in transactions:
        coordinator.append(Batch(records=(transaction_record(each),)))


def ongoing(start_ms: int) -> StoredTransaction:
    return StoredTransaction(
        transactional_id="loader",
        producer_id=9,
        epoch=0,
        timeout_ms=HOUR,
        state=IdState.ONGOING,
        partitions=(("orders", 0),),
        updated=start_ms,
        started=start_ms,
    )


@pytest.mark.parametrize("stamped", [NOW - DAY, NOW - 2_000_000])
@pytest.mark.parametrize("claims", ["nobody", "nobody knows", "minutes", "seconds"])
def test_a_group_is_held_up_by_what_is_no_brief_transaction_whatever_its_records_are_stamped(
    cluster: Cluster, stamped: int, claims: str
) -> None:
    """No coordinator knows the one of nobody, so it hangs; of others the coordinator has the start. Where coordinators are not read,
    nothing shows how long it is open: other records are appended all the time.
    """
    written(cluster, NOW - 30 * MINUTE, stamped=NOW - 30 * MINUTE)
    cluster.commit(2)
    cluster.append(batch(2, timestamp=stamped, producer=9, transactional=True))
    written(cluster, NOW - 500, stamped=NOW - 500)
    if claims != "nobody knows":
        coordinated(cluster, *{"minutes": [ongoing(NOW - 4 * MINUTE)], "seconds": [ongoing(NOW - 4_000)]}.get(claims, []))
    group = only(cluster)
    (of,), (finding, *_) = group.partitions, group.findings
    assert (of.held, of.undated) == (True, True)
    verdict = {"nobody": "held", "minutes": "held", "seconds": "fine", "nobody knows": "unknown"}[claims]
    assert (group.summary.verdict, group.summary.severity, finding.verdict) == (verdict, "", verdict)
    assert of.held_by is not None
    if claims == "nobody":
        assert (of.held_by.verdict, group.summary.since_ms) == ("hanging", -1)
        assert "--start-offset 2" in finding.command
    if verdict == "unknown":
        assert "not known whether it is held up: 4 offsets from 2 on are behind a transaction of producer 9" in finding.text


@pytest.mark.parametrize(("minutes", "verdict"), [(60, "unknown"), (5, "fine")])
def test_a_commit_that_is_stamped_ahead_shows_nothing_and_expires_by_its_stamp(cluster: Cluster, minutes: int, verdict: str) -> None:
    """What came within the limit was not left for longer, whenever the commit was made."""
    written(cluster, NOW - minutes * MINUTE, stamped=NOW - minutes * MINUTE)
    cluster.commit(0, at=NOW + 5 * HOUR)
    group = only(cluster)
    (of,) = group.partitions
    assert (verdicts(group), of.stopped_since_ms, of.expiration_ms) == ([verdict], -1, NOW + 5 * HOUR + DEFAULT_MS)
    assert group.summary.use == "unknown"
    assert ("coordinator's clock is ahead" in group.findings[0].text) == (verdict == "unknown")


def test_a_commit_of_a_transaction_that_is_stamped_ahead_waits_since_it_is_not_known_when(cluster: Cluster) -> None:
    written(cluster, NOW - MINUTE, stamped=NOW - MINUTE)
    cluster.commit(2)
    cluster.commit(2, at=NOW + 5 * HOUR, producer=7)
    written_at(cluster.coordinator, NOW - MINUTE)
    ((waits,),) = (of.pending for of in only(cluster).partitions)
    assert waits.since_ms <= NOW


@pytest.mark.parametrize("seed", range(30))
def test_wrong_clocks_never_stop_a_group_nor_hide_one(tmp_path: Path, seed: int) -> None:
    """A model that knows when each record was appended, with producers' clocks that are right, late, ahead, or each in its turn."""
    chance, cluster, appended = random.Random(seed), Cluster(tmp_path), list[int]()
    clocks = chance.choice([(0,), (-DAY,), (DAY,), (0, -DAY), (0, DAY), (-DAY, 0, DAY)])
    at = NOW - 3 * HOUR
    for _ in range(chance.randrange(1, 8)):
        at = min(at + chance.randrange(1_000, 40 * MINUTE), NOW - 1)
        if appended and chance.random() < 0.4:
            cluster.orders.roll()
        written(cluster, at, stamped=at + chance.choice(clocks), records=1)
        appended.append(at)
    for offset in range(len(appended) + 1):
        cluster.commit(offset, f"g{offset}", at=NOW - HOUR)
    for group in cluster.read().groups:
        (of,) = group.partitions
        verdict = group.summary.verdict
        stands_ms = NOW - max(NOW - HOUR, appended[of.committed]) if of.committed < len(appended) else 0
        if stands_ms >= LIMIT + 1_000:
            assert verdict in ("stopped", "unknown"), (seed, of, stands_ms)
        else:
            assert verdict in ("fine", "unknown"), (seed, of, stands_ms)
        if clocks == (0,) or of.committed == len(appended):
            assert verdict != "unknown", (seed, of)
