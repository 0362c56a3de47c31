"""The records that logs have on disk, from agents to the page."""

from dataclasses import replace

import pyarrow as pa

from streaming.broker.protocol.group_messages import RECORDS
from streaming.broker.protocol.group_stream import RecordsAnswer
from streaming.cluster.consumers.group_rounds import CountedRecords
from streaming.cluster.view.family import Export
from streaming.cluster.view.table import Table
from streaming.common.log_key import LogKey
from tests.exposition.reading import named
from tests.view.rows import log, new_table, removed, states

NAME = "segtail_partition_records"


def answer(*rows: tuple[str, int, int, int, int], number: int = 1, whole: bool = False, end: int = 9) -> RecordsAnswer:
    """Rows of topic, partition, data, aborted, control."""
    values = [
        {"broker": 1, "topic": topic, "topic_id": "", "partition": partition, "log_start": 0, "next_offset": end}
        | {"data": data, "aborted": aborted, "control": control}
        for topic, partition, data, aborted, control in rows
    ]
    return RecordsAnswer(process="p", number=number, whole=whole, rows=pa.Table.from_pylist(values, RECORDS))


def counts(table: Table) -> dict[str, dict[str, float]]:
    """By partition (or topic), the records by their kind."""
    found: dict[str, dict[str, float]] = {}
    for series, value in named(table, NAME).items():
        of = dict(series)
        found.setdefault(of.get("partition", of["topic"]), {})[of["kind"]] = value
    return found


def test_what_agents_count_is_on_the_page() -> None:
    table = new_table(log("orders", 0), log("orders", 1))
    records = CountedRecords(table)
    assert (records.request("a1").process, records.request("a1").number) == ("", 0)
    records.take("a1", answer(("orders", 0, 10, 3, 2), whole=True))
    assert counts(table) == {"0": {"data": 10, "aborted": 3, "control": 2}}
    assert (records.request("a1").process, records.request("a1").number) == ("p", 1)
    records.take("a1", answer(("orders", 1, 0, 0, 0), number=2))
    assert counts(table) == {"0": {"data": 10, "aborted": 3, "control": 2}, "1": {"data": 0, "aborted": 0, "control": 0}}


def test_what_is_not_known_any_more_is_gone() -> None:
    table = new_table(log("orders", 0), log("orders", 1))
    records = CountedRecords(table)
    records.take("a1", answer(("orders", 0, 10, 3, 2), ("orders", 1, 1, 0, 0), whole=True))
    records.take("a1", answer(("orders", 0, 0, 0, 0), end=-1))
    assert counts(table).keys() == {"1"}
    records.take("a1", answer(("orders", 0, 5, 0, 0), whole=True))  # its process is another one
    assert counts(table).keys() == {"0"}
    records.forget({"a1"})
    assert counts(table) == {}


def test_why_others_are_not_counted_is_known_until_they_are_or_their_agent_is_gone() -> None:
    table = new_table(log("orders", 0), log("orders", 1))
    records, key = CountedRecords(table), LogKey(1, "orders", 0, "")

    def published() -> tuple[dict[LogKey, str], set[str]]:
        uncounted = table.snapshot(1.0).uncounted
        return dict(uncounted.errors), {*uncounted.idle}

    def damaged() -> RecordsAnswer:
        found = answer(("orders", 0, 0, 0, 0), end=-1)
        place = found.rows.schema.get_field_index("error")
        return replace(found, rows=found.rows.set_column(place, RECORDS.field("error"), pa.array(["bad CRC"])))

    records.take("a1", damaged())
    assert published() == ({key: "bad CRC"}, set())
    records.take("a1", answer(("orders", 1, 1, 0, 0)))
    assert published() == ({key: "bad CRC"}, set())
    records.take("a1", answer(("orders", 0, 5, 0, 0)))
    assert published() == ({}, set())
    for whole in (answer(("orders", 1, 1, 0, 0), whole=True), replace(answer(whole=True), process="")):
        records.take("a1", damaged())
        records.take("a1", whole)
        assert published() == ({}, set() if whole.process else {"a1"})
    records.take("a1", damaged())
    records.forget({"a1"})
    assert published() == ({}, set())


def test_counts_of_a_log_that_is_not_in_the_table_yet_wait_for_it_and_go_with_it() -> None:
    table = new_table()
    records = CountedRecords(table)
    records.take("a1", answer(("orders", 0, 10, 3, 2), whole=True))
    table.apply(states(log("orders", 0)))
    assert counts(table) == {}
    records.settle()
    assert counts(table).keys() == {"0"}
    table.apply(states(removed("orders", 0), log("other", 0)))
    assert counts(table) == {}


def test_counts_that_wait_are_those_of_the_last_answer_of_an_agent_that_takes_part() -> None:
    table = new_table(log("other", 0))
    records = CountedRecords(table)
    records.take("a1", answer(*((topic, 0, 1, 0, 0) for topic in ("lost", "left", "orders")), whole=True))
    records.take("a2", answer(("gone", 0, 1, 0, 0), whole=True))
    records.take("a1", answer(("lost", 0, 0, 0, 0), end=-1))
    records.take("a1", answer(("orders", 0, 7, 0, 0), ("other", 0, 5, 0, 0), whole=True))
    records.forget({"a2"})
    table.apply(states(*(log(topic, 0) for topic in ("lost", "left", "gone", "orders"))))
    records.settle()
    assert table.snapshot(1.0).records[0].tolist() == [5, -1, -1, -1, 7]
    records.settle()
    assert table.snapshot(1.0).records[0].tolist() == [5, -1, -1, -1, 7]


def test_topics_have_the_sums_of_their_partitions() -> None:
    table = new_table(log("orders", 0), log("orders", 1), log("other", 0), export=Export(partitions=False))
    CountedRecords(table).take("a1", answer(("orders", 0, 10, 3, 2), ("orders", 1, 1, 1, 1), whole=True))
    assert counts(table) == {"orders": {"data": 11, "aborted": 4, "control": 3}}


def test_the_counts_of_many_logs_stay_with_them() -> None:
    table = new_table(*(log("orders", partition) for partition in range(3000)))
    CountedRecords(table).take("a1", answer(*(("orders", partition, partition, 0, 0) for partition in range(3000)), whole=True))
    assert {int(partition): of["data"] for partition, of in counts(table).items()} == {partition: partition for partition in range(3000)}
