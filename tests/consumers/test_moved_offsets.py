"""Committed offsets that were moved: counted once, in records, and said for a day."""

import threading
from dataclasses import fields
from typing import Any

import pyarrow as pa
import pytest

from streaming.broker.protocol.group_json import GroupFinding, MovedOffset
from streaming.cluster.consumers.group_uncommitted import LOG_START_MS
from streaming.kafka.groups.offset_moves import GroupPresence
from tests.consumers.group_agents import GROUP, FakeAgent
from tests.consumers.group_world import GroupJob, opened, world
from tests.limits import SECONDS
from tests.processes import until

EMPTY = {"state": "Empty", "members": 0, "clients": [], "hosts": [], "state_ms": 900_000}
KINDS = [*["data"] * 10, "control", *["aborted"] * 5, "control", *["data"] * 13]
"""30 offsets: of 23 data records 10 come before the first marker."""


def moved(before: int, offset: int, presence: GroupPresence = GroupPresence.LEFT, **values: Any) -> dict[str, Any]:
    facts = {"topic": "orders", "topic_id": "", "partition": 0, "before_ms": 900_000, "at_ms": 1_000_000, "record_offset": 0}
    return facts | {"effective_offset": 0, "before": before, "offset": offset, "presence": presence, "commits": 1, "step": 0} | values


def say(job: GroupJob, *moves: dict[str, Any], offset: int, **facts: Any) -> None:
    """The agent has read these moves, of which the last one was to ``offset``."""
    agent = job.agents["a1"]
    at = agent.upto = agent.upto + 10
    moves = tuple(each | ({"record_offset": at - 1, "effective_offset": at - 1} if not each["record_offset"] else {}) for each in moves)
    before = agent.groups_[0]["moves"] if agent.groups_ else []
    agent.groups_ = [GROUP | {"effective_offset": at - 1, "moves": [*before, *moves]} | facts]
    agent.commit(offset, effective_offset=at - 1, record_offset=at - 1)
    job.put("__consumer_offsets", end=at)


def job_of(committed: int, *, kinds: list[str] = KINDS, **facts: Any) -> GroupJob:
    job = world(kinds=kinds, end=len(kinds))
    job.agents["a1"].upto = 100
    say(job, offset=committed, **facts)
    job.play("+0")
    return job


def by_hand(job: GroupJob, before: int, offset: int, seconds: int, **values: Any) -> GroupJob:
    """A group without members is set from one offset to another one, and a round comes so long after."""
    say(job, moved(before, offset, **values), offset=offset, **EMPTY)
    job.round(seconds)
    return job


def series(job: GroupJob, *, named: str) -> dict[str, float]:
    return {name: value for name, value in job.page().items() if named in name}


def counted(*, records: int, offsets: int = 0) -> dict[str, float]:
    return {"group_skipped_records_total{g,admin,orders}": records, "group_skipped_offsets_total{g,admin,orders}": offsets}


def findings(job: GroupJob, *verdicts: str) -> list[GroupFinding]:
    detail = job.about()
    return [each for each in detail.findings if each.verdict in (verdicts or {"skipped", "rewound"})]


def moves(job: GroupJob) -> list[MovedOffset]:
    detail = job.about()
    return detail.partitions[0].moves


def test_records_that_a_hand_has_skipped_are_counted_and_reported_with_the_command_that_sets_it_back() -> None:
    job = by_hand(job_of(5, **EMPTY), 5, 30, 15)
    assert series(job, named="skipped") == counted(records=0)
    (finding,) = findings(job)
    assert (finding.verdict, finding.severity, finding.since_ms) == ("skipped", "info", 1_000_000)
    assert finding.text == (
        "skipped: the committed offset went from 5 to 30 at 1970-01-01T00:16:40Z (15s ago) by hand, as kafka-consumer-groups.sh "
        "--reset-offsets does: the group had no members, and the log does not say who it was. Left unread: 18 records"
    )
    assert (
        finding.command
        == "kafka-consumer-groups.sh --bootstrap-server HOST:PORT --group g --topic orders:0 --reset-offsets --to-offset 5 --execute"
    )
    job.play("+180")
    assert series(job, named="skip") == {
        "group_skipped_records_total{g,admin,orders}": 18,
        "group_skipped_offsets_total{g,admin,orders}": 0,
        "group_last_skip_timestamp_seconds{g,orders}": 1000.0,
    }
    assert [(each.verdict, each.severity) for each in findings(job)] == [("skipped", "warning")]
    job.round(86_400 - 195)
    assert findings(job)
    job.play("+1")
    assert not findings(job)
    assert [each.text for each in findings(job, "fine")] == ["fine: nothing is left to read"]
    assert series(job, named="skip")["group_skipped_records_total{g,admin,orders}"] == 18
    assert len(series(job, named="skip")) == 2


def test_a_record_of_the_log_counts_once() -> None:
    job = by_hand(job_of(5, **EMPTY), 5, 30, 15)
    agent = job.agents["a1"]
    agent.edition = "c2"  # the agent was restarted
    job.play("+15")
    job.agents["a2"] = agent  # another broker leads
    job.put("__consumer_offsets", agent="a2", end=agent.upto)
    job.reach("a2")
    job.play("+180")
    agent.edition = "c3"
    job.play("+300")
    assert series(job, named="skipped_records") == {"group_skipped_records_total{g,admin,orders}": 18}
    later = GroupJob(job.table, {"a2": agent}, now=job.now)  # the job is started anew
    later.round()
    later.round(300)
    assert series(later, named="skipped_records") == {}, "it has not seen it happen"
    assert findings(later), "but it knows that it did"


def test_what_is_set_back_was_not_skipped() -> None:
    job = by_hand(job_of(5, **EMPTY), 5, 30, 200)
    assert findings(job)
    by_hand(job, 30, 5, 15, commits=2)
    assert not findings(job)
    assert not series(job, named="last_skip")
    job.play("+200")
    assert series(job, named="records_total{g,admin") == {
        "group_skipped_records_total{g,admin,orders}": 18,
        "group_rewound_records_total{g,admin,orders}": 18,
    }


def test_a_skip_that_is_set_back_in_part_is_shown_by_what_is_left_of_it() -> None:
    job = by_hand(job_of(5, **EMPTY), 5, 30, 200)
    by_hand(job, 30, 20, 200, at_ms=1_200_000)
    (one,) = moves(job)
    assert (one.from_offset, one.to_offset, one.records, one.at_ms) == (5, 20, 8, 1_200_000)
    assert [(each.verdict, each.command.partition("--to-offset ")[2]) for each in findings(job)] == [("skipped", "5 --execute")]
    by_hand(job, 20, 2, 200, at_ms=1_400_000)
    (one,) = moves(job)
    assert (one.from_offset, one.to_offset, one.records) == (5, 2, 3), "it is a step back now"
    assert [each.verdict for each in findings(job)] == ["rewound"]


def test_what_was_read_between_two_moves_keeps_them_apart() -> None:
    job = by_hand(job_of(5, **EMPTY), 5, 20, 200)
    by_hand(job, 25, 22, 200, at_ms=1_200_000)
    assert [(each.from_offset, each.to_offset) for each in moves(job)] == [(5, 20), (25, 22)]


def test_no_command_moves_a_group_forwards_that_was_set_back() -> None:
    job = by_hand(job_of(20, **EMPTY), 20, 5, 200)
    for offset in (5, 19, 26):
        say(job, offset=offset)
        job.play("+15")
        (finding,) = findings(job)
        assert (finding.command, finding.no_command) == ("", "it reads on from there, and a reset forwards might skip what it has not read")
        assert finding.text.endswith("Between both: 8 records"), "and nobody has to stop its consumers"


def test_to_set_back_what_was_skipped_reads_once_more_what_was_read_since() -> None:
    job = by_hand(job_of(5, **EMPTY), 5, 12, 200)
    assert findings(job)[0].text.endswith("Left unread: 5 records"), "nothing was read since"
    say(job, offset=26)
    job.play("+15")
    (finding,) = findings(job)
    assert finding.text.endswith(
        "Left unread: 5 records. Once it is set back it reads them, and once more all that it has read since, up to offset 26. "
        "Its consumers have to be stopped before an offset is reset"
    )
    assert finding.command.endswith("--to-offset 5 --execute")


def test_what_was_skipped_and_is_deleted_by_now_comes_back_by_no_command() -> None:
    job = by_hand(job_of(5, **EMPTY), 5, 12, 200)
    for start, command in ((11, True), (12, False)):
        job.put(end=30, log_start_offset=start)
        job.play("+15")
        (finding,) = findings(job)
        assert (bool(finding.command), finding.no_command) == (command, "" if command else "what was skipped is deleted by now")


def test_a_program_goes_on_with_it() -> None:
    job = by_hand(job_of(5, **EMPTY), 5, 8, 15)
    assert findings(job)
    agent = job.agents["a1"]
    agent.groups_ = [agent.groups_[0] | {"moves": [each | {"commits": 4} for each in agent.groups_[0]["moves"]]}]
    job.play("9 +200 +200")
    assert not findings(job)
    assert series(job, named="skipped") == counted(records=0), "it does not count, whatever it seemed to be"


def test_members_go_back_a_little_and_far() -> None:
    job = job_of(29)
    say(job, moved(29, 27, GroupPresence.THERE, step=1), offset=27)
    job.play("+15")
    assert not findings(job)
    say(job, moved(27, 8, GroupPresence.THERE, step=1), offset=8)
    job.play("+15")
    (finding,) = findings(job)
    assert (finding.verdict, finding.severity) == ("rewound", "info")
    assert "by one of its own consumers" in finding.text
    assert finding.text.endswith("Between both: 12 records")
    assert finding.command == ""
    job.play("+200")
    assert series(job, named="_records_total{g,consumer") == {"group_rewound_records_total{g,consumer,orders}": 14}


def test_only_from_beyond_the_end_a_reset_is_certain() -> None:
    job = job_of(50)
    job.play("+60")
    assert [each.verdict for each in findings(job, "beyond_end")] == ["beyond_end"]
    say(job, moved(50, 10, GroupPresence.THERE), offset=10)
    job.play("+15")
    (finding,) = findings(job)
    assert "from beyond the end of the log" in finding.text
    assert (finding.command, finding.no_command) == ("", "it reads on from there, and a reset forwards might skip what it has not read")
    assert moves(job) == [MovedOffset(kind="reset", from_offset=50, to_offset=10, from_ms=900_000, at_ms=1_000_000, records=13)]
    job.play("+200")
    assert series(job, named="records_total{g,reset") == {"group_rewound_records_total{g,reset,orders}": 13}


def test_without_a_group_of_its_own_it_is_a_program() -> None:
    job = job_of(20)
    say(job, moved(20, 2, GroupPresence.NEVER), offset=2, type="Classic", protocol="", state="Empty", members=0, epoch=0)
    job.play("+15 +200")
    assert not findings(job)
    assert series(job, named="records_total{g,external") == {"group_rewound_records_total{g,external,orders}": 8 + 3}


def test_what_was_deleted_was_not_skipped() -> None:
    job = job_of(0, **EMPTY)
    job.play("end=30 start=20")
    by_hand(job, 0, 30, 15)
    assert [each.records for each in moves(job)] == [10]


def test_who_reads_uncommitted_skips_aborted_records_too() -> None:
    job = job_of(5, **EMPTY)
    job.put(end=30, transactional=True, transactions=opened(3, 400))
    job.play("+15")
    job.round(LOG_START_MS / 1000)
    by_hand(job, 5, 30, 15)
    assert [each.records for each in moves(job)] == [23]


def test_where_records_are_not_counted_offsets_are() -> None:
    job = job_of(5, **EMPTY)
    job.agents["a1"].logs["orders", 0].edition = ""
    by_hand(job, 5, 30, 15)
    assert [(each.records, each.offsets) for each in moves(job)] == [(-1, 25)]
    assert "Left unread: up to 25 records" in findings(job)[0].text
    job.play("+590")
    assert series(job, named="skipped") == counted(records=0)
    job.play("+15")
    assert series(job, named="skipped") == counted(records=0, offsets=25)


def test_an_agent_of_an_earlier_version_says_nothing_of_moves() -> None:
    job = job_of(5, moves=None, **EMPTY)
    assert (moves(job), series(job, named="skip")) == ([], {})


def test_a_log_that_has_lost_its_end_says_anew_what_comes_after() -> None:
    job = by_hand(job_of(5, **EMPTY), 5, 30, 200)
    agent = job.agents["a1"]
    agent.upto, agent.edition, agent.groups_ = 80, "c2", []
    job.put("__consumer_offsets", end=80)
    job.play("+15")
    say(job, moved(5, 11), offset=11, **EMPTY)
    job.play("+15 +200")
    assert series(job, named="skipped_records") == {"group_skipped_records_total{g,admin,orders}": 18 + 5}


def test_what_is_remembered_of_groups_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streaming.cluster.consumers.group_moves.MOST_GROUPS", 0)
    job = by_hand(job_of(5, **EMPTY), 5, 30, 15)
    job.agents["a1"].edition = "c2"
    job.play("+200 +300")
    assert series(job, named="skipped_records") == {"group_skipped_records_total{g,admin,orders}": 18}


class SlowOnce(FakeAgent):
    """Its first answer about where a move began comes when it may."""

    go_on: threading.Event

    def positions(self, asked: pa.Table) -> pa.Table:
        if 5 in asked["offset"].to_pylist():
            self.go_on.wait(SECONDS)
        return super().positions(asked)


def test_an_agent_that_needs_longer_than_a_round_is_asked_about_the_next_move_too() -> None:
    job = job_of(5, **EMPTY)
    before = job.agents["a1"]
    slow = job.agents["a1"] = SlowOnce(**{each.name: getattr(before, each.name) for each in fields(FakeAgent)})
    slow.go_on = threading.Event()
    say(job, moved(5, 30), offset=30, **EMPTY)
    job.round(15, places_seconds=0.0)
    job.round(15, places_seconds=0.0)
    assert not slow.go_on.is_set()
    slow.go_on.set()
    until("the agent has answered and is asked again", lambda: job.round(1) and records_of_moves(job) == [18])
    say(job, moved(30, 25, before_ms=1_040_000, at_ms=1_050_000), offset=25, **EMPTY)
    until("the second move is counted too", lambda: job.round(1) and records_of_moves(job) == [13])


def records_of_moves(job: GroupJob) -> list[int]:
    return [each.records for each in moves(job)]
