"""Partitions that are assigned and have no committed offset: they are there, with what is known of them, and never fine."""

from typing import Any

from streaming.terminal.cli.group_source import ended
from streaming.terminal.cli.source import NOT_KNOWN, NOTHING_FOUND
from tests.consumers.group_agents import GROUP, WAITING, Records
from tests.consumers.group_world import TOPIC_ID, GroupJob, opened, world
from tests.tables import each_row

BEGINS = "auto.offset.reset decides where its consumers begin"


def expanded(*assigned: str, **facts: Any) -> GroupJob:
    """A group that has read everything in a topic that has two partitions more since then, with 1,000 and 500 records, of a log of 700."""
    job = world(end=10, topic_id=TOPIC_ID)
    job.topics = {"__consumer_offsets": 1, "orders": 3}
    job.put(partition=1, end=1000, topic_id=TOPIC_ID)
    job.put(partition=2, end=700, topic_id=TOPIC_ID, log_start_offset=200)
    for partition, end in ((1, 1000), (2, 700)):
        job.agents["a1"].logs["orders", partition] = Records(["data"] * end)
    job.play("10")
    job.agents["a1"].groups_ = [GROUP | {"assigned": list(assigned)} | facts]
    job.play("+0")
    return job


@each_row("entry", ["0-2:orders", f"0-2#{TOPIC_ID}", "0,1,2,9:orders"])
def test_they_are_counted_apart_from_the_lag_and_the_group_is_not_known_to_be_fine(entry: str) -> None:
    group = expanded(entry).about()
    summary = group.summary
    assert (summary.partitions, summary.unknown, summary.uncommitted, summary.uncommitted_records) == (3, 2, 2, 1500)
    assert (summary.lag_records_read_committed, summary.lag_offsets, summary.verdict) == (0, 0, "not_committed")
    rows = {each.partition: each for each in group.partitions}
    assert [(rows[number].unknown, rows[number].uncommitted_records, rows[number].lag) for number in range(3)] == [
        ("", -1, 0),
        ("not_committed", 1000, -1),
        ("not_committed", 500, -1),
    ]
    assert (rows[2].broker, rows[2].log_start, rows[2].high_watermark, rows[2].committed) == (1, 200, 700, -1)
    assert [(each.partition, each.text) for each in group.findings if each.verdict == "not_committed"] == [
        (1, f"nothing committed; at most 1,000 records in the log; {BEGINS}"),
        (2, f"nothing committed; at most 500 records in the log; {BEGINS}"),
    ]


def test_they_stay_when_its_members_have_left() -> None:
    group = expanded(state="Empty", members=0, last_topics=["orders"]).about()
    assert (group.summary.partitions, group.summary.uncommitted, group.summary.uncommitted_records) == (3, 2, 1500)
    assert [each.partition for each in group.findings if each.verdict == "not_committed"] == [1, 2]


def test_a_commit_makes_an_ordinary_partition_of_it() -> None:
    job = expanded("0-2:orders")
    job.play("400/1 +1")
    summary = job.about().summary
    assert (summary.partitions, summary.uncommitted, summary.uncommitted_records, summary.lag) == (3, 1, 500, 600)


def test_one_that_grows_has_more_and_one_that_is_empty_leaves_nothing_to_do() -> None:
    job = expanded("0-2:orders")
    job.put(partition=1, end=1200, topic_id=TOPIC_ID)
    job.put(partition=2, end=700, topic_id=TOPIC_ID, log_start_offset=700)
    job.play("+1")
    group = job.about()
    assert group.summary.uncommitted_records == 1200
    empty = next(each for each in group.findings if each.partition == 2)
    assert (empty.verdict, empty.text) == ("fine", "nothing to do: nothing is committed, and there is no record in the log")


def test_an_open_transaction_may_hold_back_the_whole_log() -> None:
    job = expanded("0-2:orders")
    job.put(partition=1, end=1000, topic_id=TOPIC_ID, transactional=True, transactions=opened(0, 400))
    job.put(partition=2, end=700, topic_id=TOPIC_ID, log_start_offset=200, transactional=True, transactions=opened(300, 400))
    job.play("+1")
    held, free = (next(each.text for each in job.about().findings if each.partition == number) for number in (1, 2))
    assert held.endswith("; an open transaction holds all of it back from readers of committed data: see `segtail transactions`")
    assert "transaction" not in free


def test_of_a_log_that_nobody_reads_here_it_is_not_known_how_many_records_it_has() -> None:
    job = expanded("0-3:orders")
    job.topics = {"__consumer_offsets": 1, "orders": 4}
    job.play("+1")
    group = job.about()
    unread = next(each for each in group.findings if each.partition == 3)
    assert (unread.verdict, unread.text) == ("unknown", f"nothing committed; how many records are in the log is not known; {BEGINS}")
    assert (group.summary.uncommitted, group.summary.uncommitted_records) == (3, 1500)


def test_what_does_not_exist_is_not_assigned() -> None:
    for entry in ("0-2147483647:orders", "0-5:gone", "0-5#gone", "no entry"):
        group = expanded(entry).about()
        assert group.summary.partitions == (3 if "orders" in entry else 1), entry


def test_agents_of_an_earlier_version_say_nothing_of_assignments() -> None:
    job = expanded()
    job.agents["a1"].groups_ = [GROUP]
    assert GROUP["assigned"] is None
    job.play("+1")
    assert (job.about().summary.partitions, job.about().summary.verdict) == (1, "fine")


def test_where_a_share_group_begins_is_its_own() -> None:
    group = expanded("1:orders", type="Share", protocol="share").about()
    assert "its share.auto.offset.reset decides where the group begins" in {each.text.rpartition("; ")[2] for each in group.findings}


def test_commits_that_wait_for_a_transaction_and_assignments_are_one_partition() -> None:
    job = expanded("0-2:orders")
    job.agents["a1"].pending = [WAITING | {"partition": 1}]
    job.play("+1")
    group = job.about()
    assert (group.summary.uncommitted, group.summary.pending) == (2, 1)
    (waits,) = [each for each in group.partitions if each.pending]
    assert (waits.partition, waits.uncommitted_records) == (1, 1000)


def test_a_group_that_was_deleted_while_commits_of_it_wait_is_one_that_has_only_commits() -> None:
    """Before 4.0 its offsets expire, and it with them, though a transaction may still bring some."""
    job = world()
    job.agents["a1"].pending = [WAITING]
    job.play("+0")
    summary = job.about().summary
    assert (summary.type, summary.protocol, summary.state, summary.members) == ("Classic", "", "Empty", 0)
    assert (summary.partitions, summary.uncommitted, summary.pending, summary.verdict) == (1, 1, 1, "pending")


def test_it_ends_a_command_as_something_that_is_not_known_only_if_its_log_is_not_read() -> None:
    assert (ended(["fine", "not_committed"], (), total=2), ended(["not_committed", "unknown"], (), total=2)) == (NOTHING_FOUND, NOT_KNOWN)
