"""The page: its text, checked against a golden file, other people's parsers and numbers that were put in.

After a change that is meant, make the golden file anew: ``UPDATE_GOLDEN=1 pytest tests/metrics/test_render.py``, and read the diff.
"""

import os
import re
import subprocess
from dataclasses import replace
from pathlib import Path
from threading import Event, Thread

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from streaming.agent.messages import (
    AffectedPartition,
    BrokerStatus,
    CorruptBatch,
    CorruptLog,
    PartitionCounts,
    Registered,
    ScrubStatus,
    TopicCounts,
)
from streaming.metrics.definitions import METRICS, Section, Type
from streaming.metrics.observer import AgentStatus, Observer, Threshold, Versions
from streaming.metrics.table import Table
from streaming.pace.schedule import Pace, Reason
from tests.metrics.reading import page, samples, series
from tests.metrics.rows import departed, log, new_table, residue, states
from tests.tools import require_tool

GOLDEN = Path(__file__).parents[1] / "golden" / "metrics.prom"
NOW = 1_700_000_100.0


def golden_table() -> Table:
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
    }
    unclean = {
        "truncated_committed": 3,
        "unclean_elections": 1,
        "unclean_ms": 1_700_000_000_000,
        "unclean_from": 1,
        "unclean_lost_upper": 45,
        "unclean_lost_acknowledged": 40,
    }
    return new_table(
        log("orders", 0, **orders, **led, leader=1, log_end_offset=98_865),
        log("orders", 0, **orders, broker=2, agent="a2", leader=1, log_end_offset=98_860, truncations=1, truncated_bytes=5, **unclean),
        log("orders", 10, **orders, broker=2, agent="a2", leader=2, log_end_offset=100, truncations=2, truncated_bytes=4096),
        log("orders", 9, **orders, leader=2, log_end_offset=100, corrupt_batches=1, skipped_bytes=[0, 0, 77, 0, 0]),
        log("first-seen", 0, settled=False, log_end_offset=7, last_append_ms=1_600_000_000_000, appended_bytes=3),
        departed("moved", 3, share_codec_bytes=[5, 0, 0, 0, 0], skipped_bytes=[1, 0, 0, 0, 0]),
        log('quote" backslash\\ line\nend', 0, old_format_batches=4),
        residue(3, [20, 0, 0, 0, 0]),
    )


def golden_observer() -> Observer:
    observer = Observer(
        query="segtail",
        versions=Versions(segtail="0.1.0", spark="4.3.0", python="3.11.7"),
        thresholds=[
            Threshold(name="hanging_after", unit="seconds", value=900),
            Threshold(name="stale_after", unit="seconds", value=300),
            Threshold(name="journal_max_bytes", unit="bytes", value=2**30),
        ],
        pace=lambda: Pace(15.0, Reason.SCRAPE),
    )
    observer.sharded(4)
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
    observer.looked(1_700_000_099.5)
    observer.batch_took(0.3)
    observer.batch_took(7.0)
    observer.scraped(0.75)
    return observer


def test_the_page_is_the_golden_one() -> None:
    found = page(golden_table(), golden_observer(), now=NOW)
    if os.environ.get("UPDATE_GOLDEN"):
        GOLDEN.write_text(found)
    assert found == GOLDEN.read_text()


def test_promtool_finds_nothing_to_say_about_the_page() -> None:
    promtool = require_tool("promtool")
    text = page(golden_table(), golden_observer(), now=NOW)
    done = subprocess.run([promtool, "check", "metrics"], input=text, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr, done.returncode) == ("", "", 0)


def test_both_formats_have_the_same_series_and_values() -> None:
    text = page(golden_table(), golden_observer(), now=NOW)
    openmetrics = page(golden_table(), golden_observer(), now=NOW, openmetrics=True)
    assert samples(openmetrics, openmetrics=True) == samples(text)
    assert openmetrics.endswith("\n# EOF\n")
    assert "# EOF" not in text


def test_openmetrics_names_a_counter_without_its_suffix_and_nothing_tells_when_it_was_made() -> None:
    openmetrics = page(golden_table(), golden_observer(), now=NOW, openmetrics=True)
    families = re.findall(r"^# TYPE (\S+) counter$", openmetrics, re.MULTILINE)
    assert sorted(families) == sorted(
        metric.name.removesuffix("_total") for metric in METRICS if metric.type == Type.COUNTER and metric.section != Section.TRANSACTIONS
    )
    assert "_created" not in openmetrics


def test_every_sample_belongs_to_a_metric_and_has_exactly_its_labels() -> None:
    by_name = {metric.name: metric for metric in METRICS}
    text = page(golden_table(), golden_observer(), now=NOW)
    for name, labels in samples(text):
        metric = by_name.get(name) or by_name[re.sub(r"_(bucket|sum|count)$", "", name)]
        more = {"le"} if name.endswith("_bucket") else set()
        assert {label for label, _ in labels} == set(metric.labels) | more


def test_help_and_type_come_once_and_stand_before_their_samples() -> None:
    lines = page(golden_table(), golden_observer(), now=NOW).splitlines()
    types = [line.split()[2] for line in lines if line.startswith("# TYPE")]
    assert len(types) == len(set(types))
    assert [line.split()[2] for line in lines if line.startswith("# HELP")] == types
    family = ""
    for line in lines:
        if line.startswith("# TYPE"):
            family = line.split()[2]
        elif not line.startswith("#"):
            assert line.startswith((f"{family}{{", f"{family}_bucket{{", f"{family}_sum{{", f"{family}_count{{"))


def test_a_histogram_s_buckets_add_up() -> None:
    found = samples(page(golden_table(), golden_observer(), now=NOW))
    name, topic = "segtail_topic_batch_size_bytes", {"broker": 1, "topic": "orders"}
    bounds = ("256.0", "1024.0", "4096.0", "16384.0", "65536.0", "262144.0", "1048576.0", "4194304.0", "+Inf")
    assert [found[series(f"{name}_bucket", **topic, le=bound)] for bound in bounds] == [1, 3, 6, 10, 15, 21, 28, 36, 45]
    assert found[series(f"{name}_count", **topic)] == 45
    assert found[series(f"{name}_sum", **topic)] == 1234
    assert found[series("segtail_topic_batch_records_sum", **topic)] == 4321


def test_a_gauge_without_a_value_is_absent() -> None:
    text = page(new_table(log(log_start_offset=-1, log_end_offset=-1)))
    for name in ("log_start_offset", "log_end_offset", "leader_epoch", "last_append_timestamp_seconds", "max_record_timestamp_seconds"):
        assert f"segtail_partition_{name}" not in text
    assert not re.search(r"(NaN|} -)", text)


def test_partitions_are_in_the_order_of_their_numbers() -> None:
    text = page(new_table(*(log(partition=number, leader=1, leader_epoch=0) for number in (10, 9, 2, 0))))
    assert re.findall(r'segtail_partition_leader\{.*partition="(\d+)"', text) == ["0", "2", "9", "10"]


TEXTS = st.text(st.characters(exclude_categories=("Cs",)))
LARGEST = 2**63 - 1


@pytest.mark.parametrize("openmetrics", [False, True])
@given(topics=st.lists(TEXTS, min_size=1, max_size=4, unique=True))
@example(topics=["\\", '"', "\n", "\\n", '\\"', "\r", "\u2028", "{}, =#"])
def test_any_label_value_comes_back_from_the_parser(openmetrics: bool, topics: list[str]) -> None:
    table = new_table(*(log(topic, log_end_offset=number) for number, topic in enumerate(topics)))
    found = samples(page(table, openmetrics=openmetrics), openmetrics=openmetrics)
    for number, topic in enumerate(topics):
        assert found[series("segtail_partition_log_end_offset", broker=1, topic=topic, partition=0)] == number


@given(values=st.lists(st.integers(0, LARGEST), min_size=1, max_size=5))
@example(values=[0, 9, 10, 2**53 + 1, LARGEST])
def test_whole_numbers_are_written_in_full(values: list[int]) -> None:
    text = page(new_table(*(log(partition=number, appended_bytes=value) for number, value in enumerate(values))))
    assert [int(value) for value in re.findall(r"^segtail_partition_appended_bytes_total\{.*\} (\d+)$", text, re.MULTILINE)] == values
    found = samples(text)
    for number, value in enumerate(values):
        assert found[series("segtail_partition_appended_bytes_total", broker=1, topic="orders", partition=number)] == value


@given(values=st.lists(st.integers(0, LARGEST), min_size=1, max_size=5))
@example(values=[0, 1, 999, 1000, 1_700_000_000_123, LARGEST])
def test_times_are_seconds_to_the_millisecond(values: list[int]) -> None:
    found = samples(page(new_table(*(log(partition=number, last_append_ms=value) for number, value in enumerate(values)))))
    for number, value in enumerate(values):
        of = series("segtail_partition_last_append_timestamp_seconds", broker=1, topic="orders", partition=number)
        assert found[of] == value / 1000


def test_fifty_thousand_series_are_all_there_with_their_own_values() -> None:
    rows = [
        log(
            f"topic-{number // 20}", number % 20, broker=broker, topic_id=f"{number // 20}", leader=1, leader_epoch=0, appended_bytes=number
        )
        for number in range(3200)
        for broker in (1, 2)
    ]
    found = samples(page(new_table(*rows, replicas="all")))
    partitions = {labels: value for (name, labels), value in found.items() if name == "segtail_partition_appended_bytes_total"}
    assert len(found) > 50_000
    assert len(partitions) == len(rows)
    assert all(value == 20 * int(dict(labels)["topic"][6:]) + int(dict(labels)["partition"]) for labels, value in partitions.items())


def test_a_page_shows_a_micro_batch_whole_or_not_at_all() -> None:
    table = new_table()
    begun = Event()

    def put_in() -> None:
        for version in range(300):
            table.apply(states(*(log(partition=number, appended_bytes=version, log_end_offset=version) for number in range(50))))
            begun.set()

    writer = Thread(target=put_in)
    writer.start()
    begun.wait(60)
    while writer.is_alive():
        assert (
            len(set(re.findall(r"^segtail_partition_(?:appended_bytes_total|log_end_offset)\{.*\} (\d+)$", page(table), re.MULTILINE))) == 1
        )
    writer.join()
    assert 'partition="49"} 299' in page(table)
