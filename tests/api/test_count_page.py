"""What a job says of logs whose records it has not counted."""

from dataclasses import replace

import numpy as np

from streaming.broker.protocol.status_messages import UnreadableLog
from streaming.cluster.verdicts.circumstances import Circumstances
from streaming.cluster.view.observer import AgentStatus
from streaming.cluster.view.table import Table, Uncounted
from streaming.cluster.view.view import view
from streaming.common.log_key import LogKey
from streaming.pages.api.judged_look import JudgedLook
from streaming.pages.api.look import Look
from streaming.pages.api.state import State
from tests.view.rows import log, new_table

NOW = 1_800_000_000_000
WAITS = "its agent a1 has not counted all of it yet"


def state(table: Table, *agents: AgentStatus, live: bool = True) -> State:
    snapshot = table.snapshot(NOW / 1000)
    shown = view(snapshot)
    circumstances = Circumstances(view=shown, topics=snapshot.topic_names, now_ms=NOW, agents=agents, live=live)
    return State(lambda: JudgedLook(look=Look(shown, snapshot), circumstances=circumstances, whole=False))


def counted(*topics: str, agent: str = "a1") -> Table:
    """A table with logs of these topics, of which those with "counted" in their name are counted."""
    table = new_table(*(log(topic, 0, agent=agent, log_dir="/d0", end_offset=7) for topic in topics))
    counted = [LogKey(1, topic, 0, "") for topic in topics if "counted" in topic]
    table.set_records(counted, np.array([[5], [1], [2]]).repeat(len(counted), axis=1))
    return table


def errors(of: State, query: str = "by=partition") -> dict[str, str]:
    page = of.count(query)
    assert len(page.doubts) >= len({row.error for row in page.rows if row.error})
    assert all((row.data < 0) == bool(row.error) for row in page.rows)
    return {row.topic: row.error for row in page.rows}


def test_each_row_without_counts_has_its_reason() -> None:
    up = AgentStatus(name="a1", up=True)
    table = counted("counted", "orders", "damaged", "unread")
    table.set_uncounted(Uncounted(errors={LogKey(1, "damaged", 0, ""): "/d0/damaged-0/0.log: bad CRC"}))
    unread = UnreadableLog(1, "unread", 0, "", "/d0/unread-0/0.log", "Permission denied")
    found = errors(state(table, replace(up, unreadable_logs=(unread,))))
    assert found == {
        "counted": "",
        "orders": WAITS,
        "damaged": "/d0/damaged-0/0.log: bad CRC",
        "unread": "/d0/unread-0/0.log: Permission denied",
    }
    table.set_unread_dirs([(1, "/d0")])
    assert errors(state(table, up))["orders"] == "log dir /d0 cannot be read now"
    table.set_unread_dirs([])
    assert errors(state(table, replace(up, up=False)))["orders"] == "its agent a1 does not answer"
    table.set_uncounted(Uncounted(idle=frozenset({"a1"})))
    assert errors(state(table, up))["orders"] == "its agent a1 counts no records: see its option ladder_rate"
    assert errors(state(table, up, live=False))["orders"].startswith("a reading of log dirs does not count records")


def test_one_partition_has_the_same_reason() -> None:
    of = state(counted("counted", "orders"))
    details = [of.partition(topic, 0) for topic in ("counted", "orders")]
    assert [detail and detail.records_why for detail in details] == ["", WAITS]


def test_what_waits_for_the_same_is_one_doubt_and_a_topic_has_the_first_reason() -> None:
    table = new_table(*(log("orders", number, agent="a1", end_offset=7) for number in range(9)))
    table.set_records([LogKey(1, "orders", 0, "")], np.array([[5], [1], [2]]))
    page = state(table).count("")
    assert page.doubts == [f"8 partitions are not counted: orders-1, orders-2, orders-3, orders-4, orders-5 and 3 more: {WAITS}"]
    assert [(row.topic, row.data, row.error) for row in page.rows] == [("orders", -1, WAITS)]
    assert state(table).count("by=partition&filter=orders-1").doubts == [f"orders-1 of broker 1 is not counted: {WAITS}"]
    assert state(table).count("by=partition&filter=orders-0").doubts == []


def test_the_metadata_log_is_counted_by_nobody_and_is_listed_if_it_is_named() -> None:
    of = state(counted("counted", "__cluster_metadata"))
    assert errors(of) == {"counted": ""}
    assert of.count("").doubts == []
    named = errors(of, "by=partition&topic=__cluster_metadata")
    assert named["__cluster_metadata"].startswith("agents do not count the metadata log")
