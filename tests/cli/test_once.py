"""What `segtail run --once` writes of logs that are sound, damaged, cut off, or not there at all."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.builders import batch, log_dir, partition
from tests.commands import into
from tests.jobs import run_once
from tests.processes import Page, Sample, counted, differences, read_page, segtail, values

pytestmark = pytest.mark.spark

AT = 1_700_000_100


def of_topics(page: Page, name: str) -> dict[str, float]:
    return {topic: value for (topic, _), value in values(page, f"segtail_partition_{name}").items()}


def but_this_machine(page: Page) -> Page:
    """Without how long it took and what the disk holds beside, of which an agent that has just started has not seen all."""
    others = (
        "segtail_query_batch_duration",
        "segtail_log_dir_free_bytes",
        "segtail_log_dir_other_bytes",
        "segtail_start_timestamp_seconds",
    )
    return {series: value for series, value in page.items() if not series.name.startswith(others)}


def test_a_log_that_is_not_understood_is_counted_and_the_others_go_on(
    tmp_path: Path, spark: SparkSession, capfd: pytest.CaptureFixture[str]
) -> None:
    disk = log_dir(tmp_path)
    logs = {topic: partition(disk, topic, topic_id=number) for number, topic in enumerate(("good", "length", "magic", "shrinks"), 1)}
    for log in logs.values():
        log.append(batch(3), batch(2))
    files = {topic: next((disk.path / f"{topic}-0").glob("*.log")) for topic in logs}
    sound = {topic: file.stat().st_size for topic, file in files.items()}
    for log in logs.values():
        log.append(batch(4))
    damage(files["length"], sound["length"] + 8, b"\xff\xff\xff\xf0")
    damage(files["magic"], sound["magic"] + 16, b"\x09")
    whole = float(files["good"].stat().st_size)

    first = run_once(spark, tmp_path / "c", disk.path, clock=lambda: AT)
    assert (first.status, first.error) == (0, "")
    page = first.page
    assert of_topics(page, "corrupt_batches_total") == {"good": 0, "length": 1, "magic": 1, "shrinks": 0}
    assert of_topics(page, "appended_records_total") == {"good": 9, "length": 5, "magic": 5, "shrinks": 9}
    assert of_topics(page, "log_end_offset") == {"good": 9, "length": 5, "magic": 5, "shrinks": 9}
    assert of_topics(page, "appended_bytes_total") == {"good": whole, "length": sound["length"], "magic": sound["magic"], "shrinks": whole}
    assert (
        page[series("segtail_skipped_bytes_total", broker=1, reason="corrupt", copy="exported")]
        == 2 * whole - sound["length"] - sound["magic"]
    )
    stated = capfd.readouterr().err
    assert all(f"path={files[topic]} position={sound[topic]}" in stated for topic in ("length", "magic"))
    assert page[series("segtail_tail_lag_bytes", broker=1)] == page[series("segtail_tail_lag_seconds", broker=1)] == 0
    assert page[series("segtail_query_last_look_timestamp_seconds", query="segtail")] == AT

    again = run_once(spark, tmp_path / "c", disk.path, clock=lambda: AT)
    assert differences(but_this_machine(again.page), but_this_machine(page)) == []

    with files["shrinks"].open("r+b") as file:
        file.truncate(sound["shrinks"] - 10)
    ended = run_once(spark, tmp_path / "c", disk.path)
    assert (ended.status, ended.error) == (0, "")
    last = ended.page
    assert of_topics(last, "truncations_total") == {"good": 0, "length": 0, "magic": 0, "shrinks": 1}
    assert of_topics(last, "log_end_offset") == {"good": 9, "length": 5, "magic": 5, "shrinks": 3}
    assert of_topics(last, "appended_records_total") == of_topics(page, "appended_records_total")


def test_all_replicas_and_an_empty_log_dir_by_the_command_itself(tmp_path: Path) -> None:
    one, two, empty = log_dir(tmp_path, "one", broker=1), log_dir(tmp_path, "two", broker=2), log_dir(tmp_path, "three", broker=3)
    partition(one, "orders").append(batch(3), batch(2))
    partition(two, "orders").append(batch(3))
    out = tmp_path / "page.prom"
    arguments = ("--log-dirs", f"{one.path},{two.path},{empty.path}", "--replicas", "all", "--checkpoint", tmp_path / "c")
    with segtail("run", *arguments, "--from", "earliest", "--once", "--at", AT, stated=tmp_path / "said", before=into(out)) as started:
        assert started.wait() == 0, started.stated
    page = read_page(out.read_text())
    records = "segtail_partition_appended_records_total"
    assert {key: value for key, value in page.items() if key.name == records} == {of_broker(records, 1): 5, of_broker(records, 2): 3}
    assert page[series("segtail_agent_up", broker=3, agent="local")] == 1
    assert page[series("segtail_query_last_look_timestamp_seconds", query="segtail")] == AT


def test_new_log_dir_without_partitions(tmp_path: Path, spark: SparkSession) -> None:
    ended = run_once(spark, tmp_path / "c", log_dir(tmp_path).path)
    assert (ended.status, ended.error) == (0, "")
    page = ended.page
    assert page[series("segtail_agent_up", broker=1, agent="local")] == 1
    assert {key.name for key in counted(page)} == {"segtail_skipped_bytes_total"}


def series(name: str, **labels: object) -> Sample:
    return Sample(name, frozenset((label, str(value)) for label, value in labels.items()))


def of_broker(name: str, broker: int) -> Sample:
    return series(name, broker=broker, topic="orders", partition=0)


def damage(path: Path, position: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(position)
        file.write(data)
