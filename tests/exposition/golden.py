"""The golden page, made from fixed numbers: ``python -m tests.exposition.golden`` writes it anew."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from streaming.broker.protocol.cluster_messages import AffectedPartition, PartitionCounts, Registered, TopicCounts
from streaming.broker.protocol.status_messages import BrokerStatus, CorruptBatch, CorruptLog, ScrubStatus
from streaming.cluster.consumers.group_snapshot import GroupBoard
from streaming.cluster.view.observer import AgentStatus, Observer, Threshold, Versions
from streaming.cluster.view.table import Table
from streaming.common.log_key import LogKey
from streaming.common.pace import Pace, PaceReason
from streaming.common.web.places import ServerCounts
from streaming.kafka.groups.group_rows import PENDING
from streaming.kafka.groups.offset_moves import GroupPresence
from tests.consumers.group_agents import COMMIT, GROUP
from tests.consumers.group_world import world
from tests.exposition.reading import page
from tests.view.rows import Row, departed, log, new_table, residue

GOLDEN = Path(__file__).parents[1] / "golden" / "metrics.prom"
NOW = 1_700_000_100.0


def golden_page(*, openmetrics: bool = False) -> str:
    return page(golden_table(), golden_observer(), now=NOW, openmetrics=openmetrics, groups=golden_groups())


def golden_table() -> Table:
    table = new_table(*golden_rows())
    table.set_records([LogKey(1, "orders", 0, "AAAAAAAAAAAAAAAAAAAAAQ")], np.array([[98_700], [50], [15]]))
    return table


def golden_rows() -> list[Row]:
    """Two brokers with a replicated topic, one that is read for the first time, one that moved away, and a name that needs escapes."""
    orders = {"topic_id": "AAAAAAAAAAAAAAAAAAAAAQ", "leader_epoch": 5, "log_start_offset": 100, "max_timestamp_ms": 1_700_000_000_001}
    led = {
        "last_append_ms": 1_700_000_099_250,
        "appended_bytes": 1_234_567_890_123,
        "appended_batches": 321,
        "appended_records": 98_765,
        "share_codec_bytes": [1000, 0, 200, 30, 4],
        "share_batch_bytes_buckets": [1, 2, 3, 4, 5, 6, 7, 8, 9],
        "share_batch_records_buckets": [9, 8, 7, 6, 5, 4, 3, 2, 1],
        "share_records": 4321,
        "share_append_delay_buckets": [300, 10, 5, 3, 2, 1, 0, 0],
        "share_append_delay_ms": 123_456,
        "share_ahead_batches": 2,
        "judges_expiry": True,
        "share_expired_batches": 1,
        "share_expired_records": 55,
        "share_expired_bytes": 1234,
    }
    unclean = {
        "truncated_committed": 3,
        "unclean_elections": 1,
        "unclean_ms": 1_700_000_000_000,
        "unclean_from": 1,
        "unclean_lost_upper": 45,
        "unclean_lost_acknowledged": 40,
    }
    return [
        log("orders", 0, **orders, **led, leader=1, log_end_offset=98_865),
        log("orders", 0, **orders, broker=2, agent="a2", leader=1, log_end_offset=98_860, truncations=1, truncated_bytes=5, **unclean),
        log("orders", 10, **orders, broker=2, agent="a2", leader=2, log_end_offset=100, truncations=2, truncated_bytes=4096),
        log("orders", 9, **orders, leader=2, log_end_offset=100, corrupt_batches=1, skipped_bytes=[0, 77, 0]),
        log("first-seen", 0, settled=False, log_end_offset=7, last_append_ms=1_600_000_000_000, appended_bytes=3),
        departed("moved", 3, share_codec_bytes=[5, 0, 0, 0, 0], skipped_bytes=[1, 0, 0]),
        log('quote" backslash\\ line\nend', 0, old_format_batches=4),
        residue(3, [20, 0, 0]),
    ]


def golden_groups() -> GroupBoard:
    """A group that is late, lost something and waits for a transaction, one that only has commits, and a share group."""
    job = world(kinds=["data", "aborted", "control", *["data"] * 7], topic_id="AAAAAAAAAAAAAAAAAAAAAQ")
    job.put("__share_group_state", end=1000)
    job.now, agent = NOW - 15, job.agents["a1"]
    agent.logs["orders", 0].times = {offset: 1_700_000_000_000 - 1_000_000 + offset for offset in range(10)}
    agent.commit(0, commit_ms=1_699_999_000_000)
    agent.commit(10, commit_ms=1_699_999_500_250, group='quote" backslash\\ line\nend')
    agent.commit(-2, group="later")
    agent.commit(5, group="shared", share=True, delivered=2, topic="", topic_id="AAAAAAAAAAAAAAAAAAAAAQ")
    agent.groups_ = [
        GROUP
        | {
            "group": "g",
            "raised": 57,
            "raised_by_metadata": 5,
            "raised_unfinished": 0,
            "rebalance_ms": 1_700_000_050_000,
            "rebalance_minutes": [28_333_329, 9, 3, 28_333_334, 1, 2],
        },
        GROUP
        | {"group": "shared", "type": "Share", "protocol": "share", "members": 0, "state": "Empty"}
        | {"raised": 4, "raised_by_metadata": 0, "raised_unfinished": 0, "rebalance_ms": 1_699_990_000_000},
    ]
    agent.upto = 900
    agent.pending = [{name: COMMIT[name] for name in PENDING.names if name in COMMIT} | {"producer_id": 7, "offset": 5}]
    job.round()
    moved = [_moved(950, 5, 9), _moved(960, 9, 6, commits=2)]
    agent.groups_ = [agent.groups_[0] | {"effective_offset": 970, "moves": moved}, *agent.groups_[1:]]
    agent.upto = 1000
    agent.commit(0, commit_ms=1_699_999_000_000)
    job.put(end=10, log_start_offset=4, topic_id="AAAAAAAAAAAAAAAAAAAAAQ")
    job.round(15)
    return job.board


def _moved(record_offset: int, before: int, offset: int, commits: int = 1) -> dict[str, object]:
    """A move by hand of partition 0 of ``orders``."""
    facts = {"topic": "orders", "topic_id": "", "partition": 0, "record_offset": record_offset, "effective_offset": record_offset}
    times = {"before_ms": 1_699_998_000_000, "at_ms": 1_699_999_000_000}
    return facts | times | {"before": before, "offset": offset, "presence": GroupPresence.LEFT, "commits": commits, "step": 0}


def golden_observer() -> Observer:
    observer = Observer(
        query="segtail",
        versions=Versions(segtail="0.1.0", spark="4.3.0", python="3.11.7"),
        thresholds=[
            Threshold(name="hanging_after", unit="seconds", value=900),
            Threshold(name="stale_after", unit="seconds", value=300),
        ],
        pace=lambda: Pace(15.0, PaceReason.SCRAPE),
    )
    observer.sharded(4)
    observer.serves(lambda: ServerCounts(cuts=3, refusals=2, wrong=4, failures=1), "http://127.0.0.1:9712")
    first = AgentStatus(
        name="a1",
        up=True,
        brokers=(1,),
        cluster_id="AAECAwQFBgcICQoLDA0ODw",
        metadata_brokers=frozenset({1}),
        doubts=(("time_index", 1),),
        logs=11,
    )
    counts = PartitionCounts(
        [
            TopicCounts(topic="orders", partitions=3, offline=1, under_min_isr=1, under_replicated=2),
            TopicCounts(topic="moved", partitions=4),
        ],
        [AffectedPartition(topic="orders", partition=2, problem="offline", leader=-1, in_sync=[3], out_of_sync=[1, 2], electable=[3])],
    )
    status = BrokerStatus(
        broker=1,
        readable=True,
        metadata_offset=5,
        appended_ms=1_700_000_099_000,
        registered=[
            Registered(1, False, epoch=3, phase="running", since_ms=1_700_000_000_000),
            Registered(2, True, epoch=4, phase="down", since_ms=1_700_000_050_000),
        ],
        controller=-1,
        led=[],
        transaction_partitions=None,
        counts=counts.pack(),
        counts_name="c",
    )
    scrub = ScrubStatus(
        broker=1,
        log_dir="/d0",
        began_ms=1_699_999_000_000,
        ended_ms=1_699_000_000_500,
        logs=8,
        logs_checked=3,
        checked=123_456_789_012,
        corrupt=1,
        unreadable=0,
        waits_at="/d0/orders-1/00000000000000000000.log",
        waits_seconds=7.5,
        corrupt_batches=[CorruptBatch("orders", 9, "/d0/orders-9/00000000000000000100.log", 4096, 117, "crc")],
        corrupt_logs=[CorruptLog("orders", 9, 1)],
    )
    first = replace(first, broker_statuses=(status,), scrubs=(scrub,))
    second = AgentStatus(name="a2", up=True, brokers=(2,), cluster_id="AAECAwQFBgcICQoLDA0ODw", catching_up=True)
    observer.know([first, second, AgentStatus(name="a3", up=False)])
    observer.published("a1", "j", 5000, NOW - 2.5)
    observer.processed("a1", "j", 4000)
    observer.checked(1_700_000_099.5)
    observer.batch_took(0.3)
    observer.batch_took(7.0)
    observer.scraped(0.75)
    return observer


if __name__ == "__main__":
    GOLDEN.write_text(golden_page(), encoding="utf-8")
