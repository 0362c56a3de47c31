"""What is open on the disks of real clusters, beside what their brokers said."""

import logging
import re
import shutil
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from streaming.broker.disk.segment_files import list_segments
from streaming.cluster.verdicts.commands import ANY_SERVER
from streaming.common.logs import TextFormatter
from streaming.common.settings import Settings
from streaming.kafka.formats.metadata_records import server_of
from streaming.kafka.scan.transaction_steps import AppendTimes, steps_of
from streaming.kafka.scan.walk import walk
from streaming.rules.transaction_fold import NO_TRANSACTIONS, NOTHING_ENDED, advance, open_ones
from streaming.rules.transaction_verdicts import GRACE_MS
from streaming.simulator.batch_writer import Batch, Record
from streaming.simulator.coordinators import IdState, StoredTransaction, offset_commit_record, transaction_record
from tests.builders import NOW, batch
from tests.formats.dumped import columns
from tests.formats.segments import written
from tests.frozen import NAMES, Frozen, unpack
from tests.offline.lists import Opened
from tests.offline.lists import opened as read_opened
from tests.rules.outcomes import together
from tests.tables import each_row

AFTER_GRACE_MS = GRACE_MS + 10_000


def find(log_dirs: Sequence[Path], now_ms: int, *, topic: str | None = None, hanging_after_ms: int = 1) -> Opened:
    settings = Settings(
        hanging_after=timedelta(milliseconds=hanging_after_ms),
        stuck_after=timedelta(milliseconds=1_200_000),
        broker_config={"log.retention.hours": "168"},  # what else a broker has is known to be Kafka's default
    )
    return read_opened(log_dirs, settings, now_ms, *([topic] if topic else []))


def doubts(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What was reported what could not be read."""
    return [TextFormatter().format(record) for record in caplog.records if record.levelno >= logging.WARNING]


@pytest.fixture(params=NAMES)
def cluster(request: pytest.FixtureRequest, tmp_path: Path) -> Frozen:
    return unpack(request.param, tmp_path)


def test_it_is_what_describe_producers_stated(cluster: Frozen, caplog: pytest.LogCaptureFixture) -> None:
    """The time of a last append, too, but where that is before the coordinator's start: its producer has dated it."""
    answer = find(cluster.log_dirs, cluster.frozen_ms)
    found = {
        (one.topic, *map(str, (one.partition, one.producer_id, one.producer_epoch, one.first_offset))): one for one in answer.transactions
    }
    stated = {tuple(row[:-1]): int(row[-1]) for row in cluster.of("open")}
    assert found.keys() == stated.keys()
    assert {key: one.last_append_ms for key, one in found.items()} == {
        key: max(last_ms, found[key].start_ms) if found[key].verdict == "open" else last_ms for key, last_ms in stated.items()
    }
    assert (doubts(caplog), answer.doubts) == ([], [])


def test_hanging_is_what_find_hanging_stated(cluster: Frozen) -> None:
    answer = find(cluster.log_dirs, cluster.frozen_ms + AFTER_GRACE_MS)
    hanging = sorted((one.topic, *map(str, (one.partition, one.producer_id, one.first_offset))) for one in answer.hanging)
    assert hanging == sorted(cluster.of("hanging"))
    assert all((" abort " in one.command) == (one.verdict == "hanging") for one in answer.transactions)


def test_the_oldest_one_holds_readers_back_as_far_as_the_broker_stated(cluster: Frozen) -> None:
    answer = find(cluster.log_dirs, cluster.frozen_ms)
    lags = {(topic, int(partition)): int(high_watermark) - int(lso) for topic, partition, high_watermark, lso in cluster.of("offsets")}
    for (topic, partition), lag in lags.items():
        held = [max(0, one.holds_offsets) for one in answer.transactions if (one.topic, one.partition) == (topic, partition)]
        # the checkpoint may be some seconds older than the broker's answer where not all that are in sync were there
        assert max(held, default=0) == lag


def test_the_coordinator_is_named_with_its_state_and_its_start(cluster: Frozen) -> None:
    reported = {int(producer): (name, state, start) for name, producer, state, start in cluster.of("coordinator")}
    for one in find(cluster.log_dirs, cluster.frozen_ms).transactions:
        name, state, start = reported.get(one.producer_id, ("", "", ""))
        assert (one.transactional_id, one.coordinator_state) == (name, state)
        if state == "Ongoing":
            assert one.start_ms == int(start)


def test_read_from_the_first_byte_every_replica_has_the_transactions_and_markers_that_it_has(cluster: Frozen) -> None:
    for name, directory, end, lso, commits, aborts, opened in cluster.of("replica"):
        path = next(log_dir for log_dir in cluster.log_dirs if str(log_dir).endswith(name)) / directory
        transactions, outcome, appended = NO_TRANSACTIONS, NOTHING_ENDED, 0
        for segment in list_segments(path):
            data = segment.path.read_bytes()
            buffer = np.frombuffer(data, np.uint8)
            batches = columns(data[: walk(buffer, 0, len(buffer)).end])
            transactions, ended = advance(transactions, steps_of(batches, buffer, AppendTimes.seen(NOW, NOW)), appended)
            outcome, appended = together(outcome, ended), appended + int(batches.size.sum())
        still = open_ones(transactions)
        firsts = still["first_offset"].tolist()
        found = ";".join(f"{producer}@{first}" for producer, first in zip(still["producer_id"].tolist(), firsts, strict=True))
        assert sorted(found.split(";")) == sorted(opened.split(";"))
        assert min(firsts, default=int(end)) == int(lso)
        assert outcome.committed + outcome.aborted + outcome.empty_markers == int(commits) + int(aborts)


@each_row(
    ("listeners", "server"),
    [
        (["REPLICATION", "EXTERNAL"], "h1:9001"),
        (["CONTROLLER", "internal", "PLAINTEXT"], "h2:9002"),
        (["INTERNAL"], "h0:9000"),
        ([], "HOST:PORT"),
    ],
)
def test_the_command_that_aborts_goes_to_a_listener_for_clients_where_there_is_one(listeners: list[str], server: str) -> None:
    endpoints = [SimpleNamespace(name=name, host=f"h{place}", port=9000 + place) for place, name in enumerate(listeners)]
    assert (server_of(SimpleNamespace(endpoints=endpoints)) or ANY_SERVER) == server  # type: ignore[arg-type]


def test_a_transaction_that_hangs_in_the_offsets_names_the_groups_that_wait(tmp_path: Path) -> None:
    cluster = unpack("transactions_v2", tmp_path)
    (directory, *_) = (path for log_dir in cluster.log_dirs for path in sorted(log_dir.glob("__consumer_offsets-*")))
    records = tuple(offset_commit_record(group, "orders", 0, 7, cluster.frozen_ms) for group in ("billing", "stock"))
    append(directory, Batch(records=records, producer_id=88_888, producer_epoch=0, base_sequence=0, transactional=True))
    (found,) = (one for one in find(cluster.log_dirs, cluster.frozen_ms + AFTER_GRACE_MS).transactions if one.producer_id == 88_888)
    assert (found.verdict, found.groups) == ("hanging", ["billing", "stock"])


def test_what_it_holds_back_is_not_known_where_no_high_watermark_is(tmp_path: Path) -> None:
    cluster = unpack("transactions_v2", tmp_path)
    assert any(one.holds_offsets > 0 for one in find(cluster.log_dirs, cluster.frozen_ms).transactions)
    for log_dir in cluster.log_dirs:
        shutil.rmtree(log_dir / "__cluster_metadata-0", ignore_errors=True)
        (log_dir / "replication-offset-checkpoint").write_text("what?")
    unknown = {one.holds_offsets for one in find(cluster.log_dirs, cluster.frozen_ms).transactions}
    assert unknown == {-1}


def test_of_several_brokers_one_replica_speaks(tmp_path: Path) -> None:
    cluster = unpack("replica_down", tmp_path)
    together = find(cluster.log_dirs, cluster.frozen_ms)
    assert sorted((one.partition, one.broker) for one in together.transactions) == sorted(
        (one.partition, one.broker) for one in find(tuple(reversed(cluster.log_dirs)), cluster.frozen_ms).transactions
    )
    assert len(together.transactions) == 2
    # the broker that was down has none of it on its disk, and does not know that it is behind
    alone = find([path for path in cluster.log_dirs if path.parent.name == "n3"], cluster.frozen_ms)
    assert alone.transactions == []


def test_the_disk_of_a_broker_that_is_down_does_not_show_what_others_know(tmp_path: Path) -> None:
    cluster = unpack("replica_down", tmp_path)
    of_brokers = {name: [path for path in cluster.log_dirs if path.parent.name == name] for name in ("n1", "n2")}
    for log_dirs in of_brokers.values():  # a transaction that no coordinator knows
        (directory,) = (path for log_dir in log_dirs for path in log_dir.glob("rep-2"))
        append(directory, batch(1, producer=77, transactional=True))

    assert find(of_brokers["n1"], cluster.frozen_ms + 50_000).doubts == []
    assert find(of_brokers["n1"], cluster.frozen_ms + 70_000).doubts != []

    def verdict(log_dirs: Sequence[Path], seconds: int) -> set[str]:
        answer = find(log_dirs, cluster.frozen_ms + seconds * 1000)
        return {one.verdict for one in answer.transactions if one.producer_id == 77}

    assert verdict(of_brokers["n1"], 50) == {"hanging"}  # the broker has only just written to its metadata log
    assert verdict(of_brokers["n1"], 70) == {"unknown"}
    assert verdict(of_brokers["n1"] + of_brokers["n2"], 70) == {"hanging"}  # these two alone were in sync


def test_without_all_coordinators_nobody_is_stated_to_hang(tmp_path: Path) -> None:
    cluster = unpack("transactions_v2", tmp_path)
    for some in cluster.log_dirs:
        answer = find([some], cluster.frozen_ms + AFTER_GRACE_MS)
        assert answer.transactions
        assert answer.hanging == []
        assert answer.doubts
    others = (
        r"\d of 4 partitions of __transaction_state are not read to the end from a current replica: \d.*; name the log dirs of the brokers"
    )
    assert any(re.search(others, doubt) for doubt in find([cluster.log_dirs[0]], cluster.frozen_ms + AFTER_GRACE_MS).doubts)
    # what one of the coordinators that can be read knows, is known
    (metadata_is_here, _) = cluster.log_dirs
    verdicts = {one.transactional_id: one.verdict for one in find([metadata_is_here], cluster.frozen_ms).transactions}
    assert "unknown" in verdicts.values()


def test_a_live_transaction_becomes_overdue(tmp_path: Path) -> None:
    cluster = unpack("upgraded", tmp_path)
    minutes = 60_000
    assert {one.verdict for one in find(cluster.log_dirs, cluster.frozen_ms).transactions} == {"open"}
    assert {one.verdict for one in find(cluster.log_dirs, cluster.frozen_ms + 17 * minutes).transactions} == {"overdue"}


def test_only_what_was_silent_for_long_enough_is_hanging(tmp_path: Path) -> None:
    cluster = unpack("transactions_v2", tmp_path)
    answer = find(cluster.log_dirs, cluster.frozen_ms + AFTER_GRACE_MS, hanging_after_ms=15 * 60_000)
    assert sorted((one.topic, one.partition) for one in answer.hanging) == [("ghost", 0), ("ghost", 1), ("ghost", 2)]


def test_one_topic_alone(tmp_path: Path) -> None:
    cluster = unpack("transactions_v2", tmp_path)
    answer = find(cluster.log_dirs, cluster.frozen_ms + AFTER_GRACE_MS, topic="pay")
    assert [(one.topic, one.partition, one.verdict) for one in answer.transactions] == [("pay", 1, "open"), ("pay", 0, "open")]
    assert not answer.doubts


def coordinator_log(cluster: Frozen, number: int) -> Path:
    (directory,) = (path for log_dir in cluster.log_dirs for path in log_dir.glob(f"__transaction_state-{number}"))
    return directory


def append(directory: Path, one: Batch) -> None:
    """Append a batch to a log."""
    segment = list_segments(directory)[-1].path
    data = segment.read_bytes()
    end = int(columns(data).last_offset[-1]) + 1 if data else 0
    with segment.open("ab") as log:
        log.write(written([one], base_offset=end).data)


def test_an_entry_of_a_later_version_makes_what_nobody_knows_unknown(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    cluster = unpack("transactions_v2", tmp_path)
    append(coordinator_log(cluster, 0), Batch(records=(Record(b"\x00\x00\x00\x05later", b"\x00\x09" + bytes(30), NOW),)))
    answer = find(cluster.log_dirs, cluster.frozen_ms + AFTER_GRACE_MS)
    assert {one.verdict for one in answer.transactions if one.topic == "ghost"} == {"unknown"}
    assert {one.verdict for one in answer.transactions if one.topic == "pay"} == {"open"}
    assert answer.doubts
    assert f"path={coordinator_log(cluster, 0)}" in doubts(caplog)[0]


def test_what_is_decided_is_completing_and_may_be_stuck(tmp_path: Path) -> None:
    cluster = unpack("upgraded", tmp_path)
    decided = StoredTransaction(
        transactional_id="tv2-open",
        producer_id=9,
        epoch=1,
        timeout_ms=900_000,
        state=IdState.PREPARE_COMMIT,
        partitions=(("upg", 0),),
        updated=cluster.frozen_ms,
        started=cluster.frozen_ms - 500,
    )
    where = next(number for number in range(4) if b"tv2-open" in list_segments(coordinator_log(cluster, number))[-1].path.read_bytes())
    append(coordinator_log(cluster, where), Batch(records=(transaction_record(decided),)))
    for minutes, stuck in ((19, False), (21, True)):
        (found,) = (one for one in find(cluster.log_dirs, cluster.frozen_ms + minutes * 60_000).transactions if one.producer_id == 9)
        assert (found.verdict, found.coordinator_state, found.stuck) == ("completing", "PrepareCommit", stuck)


def test_a_damaged_coordinators_log_is_not_taken_for_an_empty_one(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    cluster = unpack("transactions_v2", tmp_path)
    segment = list_segments(coordinator_log(cluster, 1))[0].path
    content = bytearray(segment.read_bytes())
    content[16] = 9  # the magic byte of its first batch
    segment.write_bytes(content)
    answer = find(cluster.log_dirs, cluster.frozen_ms + AFTER_GRACE_MS)
    assert answer.hanging == []
    assert any(f"{segment.parent} is not understood from offset 0 on" in doubt for doubt in answer.doubts)
    assert any(doubt.startswith("1 of 4 partitions of __transaction_state is not read to the end") for doubt in answer.doubts)
    assert any(str(segment.parent) in doubt for doubt in doubts(caplog))


def test_a_damaged_snapshot_is_reported_and_changes_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    cluster = unpack("transactions_v2", tmp_path)
    expected = find(cluster.log_dirs, cluster.frozen_ms)
    (snapshot,) = (path for log_dir in cluster.log_dirs for path in log_dir.glob("pay-0/*.snapshot"))
    snapshot.write_bytes(snapshot.read_bytes()[:20])
    assert find(cluster.log_dirs, cluster.frozen_ms).transactions == expected.transactions
    assert len(doubts(caplog)) == 1
    assert str(snapshot) in doubts(caplog)[0]


def test_a_topic_that_is_deleted_in_the_metadata_is_not_asked(tmp_path: Path) -> None:
    cluster = unpack("transactions_v2", tmp_path)
    ghost = next(path for log_dir in cluster.log_dirs for path in log_dir.glob("ghost-0"))
    metadata = ghost / "partition.metadata"
    metadata.write_text(metadata.read_text()[:-22] + "AAECAwQFBgcICQoLDA0ODw")
    answer = find(cluster.log_dirs, cluster.frozen_ms + AFTER_GRACE_MS)
    assert answer.doubts == [f"1 log left out, because the topic is not in the metadata: {ghost}"]
    assert ("ghost", 0) not in {(one.topic, one.partition) for one in answer.transactions}


def test_a_directory_without_a_segment_leaves_a_doubt(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    cluster = unpack("transactions_v2", tmp_path)
    pay = next(path for log_dir in cluster.log_dirs for path in log_dir.glob("pay-0"))
    for path in pay.glob("*.log"):
        path.unlink()
    answer = find(cluster.log_dirs, cluster.frozen_ms)
    assert answer.doubts == [f"{pay}: no segment of it can be read"]
    assert any(str(pay) in doubt for doubt in doubts(caplog))


def test_without_metadata_nothing_is_stated_to_hang(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    cluster = unpack("kafka_3_9", tmp_path)
    for log_dir in cluster.log_dirs:
        shutil.rmtree(log_dir / "__cluster_metadata-0", ignore_errors=True)
    answer = find(cluster.log_dirs, cluster.frozen_ms + AFTER_GRACE_MS)
    assert [one.verdict for one in answer.transactions] == ["unknown"] * 3
    assert [doubt for doubt in answer.doubts if doubt.startswith("no metadata log can be read here")]
    assert any("metadata" in doubt for doubt in doubts(caplog))
