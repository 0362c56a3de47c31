"""The page: its text, checked against a golden file, other people's parsers and numbers that were put in."""

import re
import subprocess
from threading import Event, Thread

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from streaming.common.definitions.metric import Type
from streaming.common.definitions.sections import METRICS, Section, section_of
from tests.exposition.golden import GOLDEN, golden_page
from tests.exposition.reading import page, samples, series
from tests.tools import require_tool
from tests.view.rows import log, new_table, states


def test_the_page_is_the_golden_one() -> None:
    assert golden_page() == GOLDEN.read_text(encoding="utf-8")


@pytest.mark.programs
def test_promtool_finds_nothing_to_say_about_the_page() -> None:
    promtool = require_tool("promtool")
    text = golden_page()
    done = subprocess.run([promtool, "check", "metrics"], input=text, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr, done.returncode) == ("", "", 0)


def test_both_formats_have_the_same_series_and_values() -> None:
    text = golden_page()
    openmetrics = golden_page(openmetrics=True)
    assert samples(openmetrics, openmetrics=True) == samples(text)
    assert openmetrics.endswith("\n# EOF\n")
    assert "# EOF" not in text


def test_openmetrics_names_a_counter_without_its_suffix_and_nothing_shows_when_it_was_made() -> None:
    openmetrics = golden_page(openmetrics=True)
    families = re.findall(r"^# TYPE (\S+) counter$", openmetrics, re.MULTILINE)
    assert sorted(families) == sorted(
        metric.name.removesuffix("_total")
        for metric in METRICS
        if metric.type == Type.COUNTER and section_of(metric) != Section.TRANSACTIONS
    )
    assert "_created" not in openmetrics


def test_every_sample_belongs_to_a_metric_and_has_exactly_its_labels() -> None:
    by_name = {metric.name: metric for metric in METRICS}
    text = golden_page()
    for name, labels in samples(text):
        metric = by_name.get(name) or by_name[re.sub(r"_(bucket|sum|count)$", "", name)]
        more = {"le"} if name.endswith("_bucket") else set()
        assert {label for label, _ in labels} == set(metric.labels) | more


def test_help_and_type_come_once_and_stand_before_their_samples() -> None:
    lines = golden_page().splitlines()
    types = [line.split()[2] for line in lines if line.startswith("# TYPE")]
    assert len(types) == len(set(types))
    assert [line.split()[2] for line in lines if line.startswith("# HELP")] == types
    family = ""
    for line in lines:
        if line.startswith("# TYPE"):
            family = line.split()[2]
        elif not line.startswith("#"):
            assert line.startswith((f"{family} ", f"{family}{{", f"{family}_bucket{{", f"{family}_sum{{", f"{family}_count{{"))


def test_a_histogram_s_buckets_add_up() -> None:
    found = samples(golden_page())
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
    assert begun.wait(600)
    while writer.is_alive():
        assert (
            len(set(re.findall(r"^segtail_partition_(?:appended_bytes_total|log_end_offset)\{.*\} (\d+)$", page(table), re.MULTILINE))) == 1
        )
    writer.join()
    assert 'partition="49"} 299' in page(table)
