"""A job on the disks of three brokers at once, held against what Kafka's own tools said of them."""

import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.broker.group_comparing import page_at
from tests.broker.install import KAFKA_VERSION
from tests.jobs import serving
from tests.limits import SECONDS
from tests.processes import Counts, exported, until
from tests.recorded.recordings import replay
from tests.recorded.worlds.replicated import NODES, PARTITIONS, TOPIC

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

METADATA = "__cluster_metadata"
"""Grows while we look at it, and no client can ask for its end."""


@pytest.mark.first
def test_disks_of_three_brokers_one_of_which_was_killed_export_each_partition_once(spark: "SparkSession", tmp_path: Path) -> None:
    replayed = replay("replicated", KAFKA_VERSION, tmp_path / "recorded")
    ends = {(topic, partition): end for topic, partition, end in replayed.json("ends")}
    totals = {(topic, partition): found for topic, partition, found in replayed.json("totals") if topic != METADATA}
    assert {place: found["next_offset"] for place, found in totals.items() if found["next_offset"]} == {
        place: end for place, end in ends.items() if end
    }
    log_dirs = replayed.disk().log_dirs
    assert len(log_dirs) == 2 * NODES

    expected = {place: Counts(found["bytes"], found["data_batches"], found["data_records"], ends[place]) for place, found in totals.items()}
    with serving(spark, tmp_path / "checkpoint", *log_dirs) as url:

        def counts() -> dict[tuple[str, int], Counts]:
            return {place: counts for place, counts in exported(page_at(url)).items() if place[0] != METADATA}

        until("the job exports what Kafka's tools counted", lambda: counts() == expected, saw=counts)
        page = page_at(url)
        with urllib.request.urlopen(f"{url}/topics", timeout=SECONDS) as topics:
            assert TOPIC in topics.read().decode()
    of_topic = [dict(series.labels) for series in page if series.name == "segtail_partition_log_end_offset"]
    found = {(int(each["partition"]), int(each["broker"])) for each in of_topic if each["topic"] == TOPIC}
    assert found == {(number, leader) for number, leader in replayed.json("leaders")}
    assert len(found) == PARTITIONS
