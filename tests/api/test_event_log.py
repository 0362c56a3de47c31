"""The last changes that a job saw: in order, bounded, and not pushed out by what flickers."""

import re
from dataclasses import replace

import pytest

from streaming.broker.protocol.cluster_messages import MetadataChange, MetadataChanges
from streaming.broker.protocol.history_json import KeptChanges
from streaming.broker.protocol.status_json import ClusterEvent, EventKind
from streaming.cluster.verdicts.cluster_changes import SURE_MS
from streaming.cluster.view.family import EVERYTHING, Export
from streaming.errors import UsageError
from streaming.pages.api.event_log import MOST_EVENTS, EventLog
from streaming.pages.api.judged_look import JudgedLook
from tests.api.looks import fine, judged
from tests.tables import each_row
from tests.worlds.incidents import stuck
from tests.worlds.problems import CASES, MINUTE, NOW_MS, READING, agent, well

HOUR = 60 * MINUTE
_AGE = re.compile(r"\d[dhms]+ (ago|ahead)|\bin \d+(d|h|m|s|ms)\b")


def kinds(events: EventLog, query: str = "") -> list[tuple[str, int]]:
    return [(each.kind, each.times) for each in page(events, query)]


def page(events: EventLog, query: str = "") -> list[ClusterEvent]:
    return events.page(query, judged(fine())).rows


def test_what_was_there_at_the_first_look_is_no_change_but_the_start_is() -> None:
    events = EventLog()
    assert events.page("", judged(fine())).since_ms == -1
    starts = judged(stuck(0), started_ms=NOW_MS - MINUTE)
    events.notice(replace(starts, circumstances=replace(starts.circumstances, start=READING)))
    assert page(events) == []
    events.notice(judged(stuck(0), NOW_MS, started_ms=NOW_MS - MINUTE))
    events.notice(judged(stuck(0), NOW_MS + MINUTE))
    (started,) = page(events)
    assert (started.kind, started.at_ms) == ("job_started", NOW_MS - MINUTE)
    assert events.page("", judged(fine())).since_ms == NOW_MS


def test_the_newest_change_is_first_and_a_filter_finds_one() -> None:
    events = EventLog()
    events.notice(judged(fine(), NOW_MS))
    events.notice(judged(stuck(0), NOW_MS + MINUTE))
    events.notice(judged(fine(), NOW_MS + 2 * MINUTE))
    events.notice(judged(fine(), NOW_MS + 3 * MINUTE))
    assert [each for each, _ in kinds(events)] == ["problem_ended", "problem_began"]
    assert [each for each, _ in kinds(events, "filter=BEGAN")] == ["problem_began"]
    assert [each for each, _ in kinds(events, "filter=orders&limit=1&offset=1")] == ["problem_began"]
    with pytest.raises(UsageError, match="sort"):
        events.page("sort=at_ms", judged(fine()))


def by_admins(export: Export, *rows: MetadataChange) -> JudgedLook:
    packed = MetadataChanges(list(rows), 7, NOW_MS - HOUR).pack()
    look = judged(fine())
    agents = (agent(replace(well(), changes=packed, changes_name="a")),)
    return replace(look, circumstances=replace(look.circumstances, agents=agents, export=export))


def test_what_admins_did_is_between_the_others_once_however_often_it_is_asked_and_after_a_restart() -> None:
    made = MetadataChange(kind="topic_created", topic="orders", count=3, offset=9, at_ms=NOW_MS + MINUTE)
    set_to = MetadataChange(kind="config_changed", topic="hidden", name="retention.ms", now="5", offset=8, at_ms=NOW_MS - HOUR)
    everything, before, after = by_admins(EVERYTHING, made, set_to), EventLog(), EventLog()
    before.notice(judged(fine(), NOW_MS - HOUR))
    before.notice(judged(stuck(0), NOW_MS))
    kept = before.kept()
    assert kept is not None
    after.recall(kept)
    for events in (before, after):
        for _ in range(2):
            events.notice(everything)
            assert [each.kind for each in events.page("", everything).rows][:3] == ["topic_created", "problem_began", "config_changed"]
    page = before.page("admin=true&topic=orders", everything)
    assert ([each.offset for each in page.rows], page.admin_since_offset, page.admin_since_ms) == ([9], 7, NOW_MS - HOUR)
    assert [each.offset for each in before.page(f"admin=true&since_ms={NOW_MS}", everything).rows] == [9]
    for query in ("admin=yes", "since_ms=x"):
        with pytest.raises(UsageError):
            before.page(query, everything)


def test_what_admins_did_to_topics_that_are_not_exported_is_not_shown() -> None:
    made = MetadataChange(kind="topic_created", topic="hidden", count=3, offset=9, at_ms=NOW_MS)
    broker = MetadataChange(kind="broker_added", broker=2, offset=10, at_ms=NOW_MS)
    look = by_admins(replace(EVERYTHING, exclude=re.compile("hid.*")), made, broker)
    assert [each.kind for each in EventLog().page("", look).rows] == ["broker_added"]


def test_what_was_seen_later_and_ended_before_is_below() -> None:
    events = EventLog()
    events._add([ClusterEvent(kind=EventKind.BROKER_RESTARTED, at_ms=NOW_MS, what="Broker 1 was started again")])
    events._add([ClusterEvent(kind=EventKind.PROBLEM_ENDED, at_ms=NOW_MS - 1, what="Broker 1 is down")])
    assert [each for each, _ in kinds(events)] == ["broker_restarted", "problem_ended"]


def test_looks_a_moment_apart_are_not_compared() -> None:
    events = EventLog()
    events.notice(judged(fine(), NOW_MS))
    events.notice(judged(stuck(0), NOW_MS + 2_000))
    assert page(events) == []
    events.notice(judged(stuck(0), NOW_MS + 12_000))
    assert [each for each, _ in kinds(events)] == ["problem_began"]


def test_what_comes_and_goes_is_one_event_with_a_number() -> None:
    events, at = EventLog(), NOW_MS
    for minute in range(13):
        at = NOW_MS + minute * MINUTE
        events.notice(judged(stuck(0) if minute % 3 == 0 else fine(), at))
    assert kinds(events) == [("problem_began", 4), ("problem_ended", 4)]
    began, ended = page(events)
    assert (ended.first_ms, began.at_ms) == (NOW_MS + MINUTE, at)
    for hours in (2, 3, 4):
        events.notice(judged(stuck(0) if hours == 4 else fine(), at + hours * HOUR))
    assert kinds(events)[0] == ("problem_began", 1)


@pytest.mark.slow
def test_only_the_newest_are_kept_and_it_is_known_since_when() -> None:
    events = EventLog()
    for number in range(3 * (MOST_EVENTS // 2 + 5)):
        events.notice(judged(fine() if number % 3 else stuck(0), NOW_MS + number * 2 * HOUR))
    found = events.page("limit=1000", judged(fine()))
    assert (found.total, len(found.rows)) == (MOST_EVENTS, MOST_EVENTS)
    assert found.since_ms == found.rows[-1].at_ms


@each_row("kind", CASES)
def test_an_event_is_read_later_and_has_no_age(kind: str) -> None:
    events = EventLog()
    events.notice(judged(fine(), NOW_MS - MINUTE))
    events.notice(replace(judged(fine(), NOW_MS), circumstances=CASES[kind]()))
    began = [each.what for each in page(events) if each.kind == "problem_began"]
    assert began
    assert [each for each in began if _AGE.search(each)] == []


def test_an_event_has_points_in_time_instead_of_ages() -> None:
    events = EventLog()
    events.notice(judged(fine(), NOW_MS - MINUTE))
    events.notice(replace(judged(fine()), circumstances=CASES["group_will_lose"]()))
    (began,) = (each for each in page(events, "filter=will+lose+records") if each.because)
    assert began.what == (
        "Group billing will lose records of topic orders: partition 3, its oldest unread records will be deleted at 2023-11-14T23:13:20Z "
        "unless they are read before, which follows from: Group billing has stopped in topic orders"
    )


def test_the_next_job_goes_on_where_one_has_ended() -> None:
    before = EventLog()
    assert before.kept() is None
    before.notice(judged(fine(), NOW_MS - 3 * MINUTE))
    before.notice(judged(stuck(0), NOW_MS - 2 * MINUTE))
    kept = before.kept()
    assert kept is not None
    after = EventLog()
    after.recall(KeptChanges.decode(kept.encode()))
    assert after.kept() == kept
    after.notice(judged(stuck(0), NOW_MS - SURE_MS, started_ms=NOW_MS - MINUTE))
    assert kinds(after) == [("problem_began", 1)], "it may lack what comes in a moment"
    after.notice(judged(fine(), NOW_MS, started_ms=NOW_MS - MINUTE))
    assert kinds(after) == [("job_started", 1), ("problem_began", 1)]
    assert after.page("", judged(fine())).since_ms == NOW_MS - 3 * MINUTE
    after.notice(judged(fine(), NOW_MS + MINUTE, started_ms=NOW_MS - MINUTE))
    ended, *_ = page(after)
    assert (ended.kind, ended.at_ms) == ("problem_ended", NOW_MS)
    assert ended.what == "Stuck transactions in topic orders, partition 0"


@pytest.mark.parametrize("kind", ["log_dir_full", "client_aborts"])
def test_what_a_job_finds_after_a_while_has_not_ended_because_it_is_young(kind: str) -> None:
    def found(at_ms: int) -> JudgedLook:
        look = judged(fine(), at_ms, started_ms=NOW_MS - 5 * MINUTE)
        return replace(look, circumstances=replace(CASES[kind](), now_ms=at_ms))

    before = EventLog()
    before.notice(judged(fine(), NOW_MS - 12 * MINUTE))
    before.notice(found(NOW_MS - 10 * MINUTE))
    kept = before.kept()
    assert kept is not None
    after = EventLog()
    after.recall(kept)
    for minutes in range(-4, 10):
        after.notice(judged(fine(), NOW_MS + minutes * MINUTE, started_ms=NOW_MS - 5 * MINUTE))
    assert "problem_ended" not in dict(kinds(after))
    for minutes in (10, 11, 12):
        after.notice(judged(fine(), NOW_MS + minutes * MINUTE, started_ms=NOW_MS - 5 * MINUTE))
    assert "problem_ended" in dict(kinds(after))
