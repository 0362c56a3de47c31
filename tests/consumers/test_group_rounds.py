"""Rounds over consumer groups: what agents say of commits and positions, held against the table, and what a page shows of it."""

import threading
from dataclasses import replace

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from streaming.broker.protocol.group_messages import FollowedLog, Following, GroupsRequest, RecordsRequest
from streaming.broker.protocol.group_stream import GroupsAnswer, RecordsAnswer
from streaming.cluster.consumers.group_lag import REASONS, RETRIED_ROUNDS, LagReason
from streaming.cluster.consumers.group_questions import CHECKED_ROUNDS
from streaming.cluster.consumers.group_rounds import FIRST_ASKED, HEARD_SECONDS, KEPT_SECONDS
from streaming.cluster.consumers.group_snapshot import GroupSnapshot
from streaming.cluster.consumers.group_tracker import UNREAD_MS
from streaming.cluster.view.exported import RetentionResults
from tests.consumers.group_agents import GROUP, WAITING, FakeAgent, Records
from tests.consumers.group_world import MIXED, STOPPED_MS, TOPIC_ID, GroupJob, world
from tests.exposition.reading import named
from tests.limits import SECONDS
from tests.processes import until
from tests.tables import each_row

HEARD, UNREAD = int(HEARD_SECONDS), UNREAD_MS // 1000 + 1


def reasons(snapshot: GroupSnapshot) -> list[str]:
    return ["" if code < 0 else str(REASONS[code]) for code in snapshot.found.lags.reason.tolist()]


def records(snapshot: GroupSnapshot) -> list[int]:
    return snapshot.found.lags.read_committed.tolist()


def since(snapshot: GroupSnapshot) -> list[int]:
    return snapshot.progress.stopped_since_ms.tolist()


def test_the_lag_of_a_group_is_on_the_page() -> None:
    job = world("2@900", kinds=MIXED)
    job.agents["a1"].groups_ = [GROUP]
    job.agents["a1"].pending = [WAITING]
    job.round()
    found = job.page()
    expected = {
        "lag_offsets{g,orders}": 8,
        "lag_records{g,read_committed,orders}": 5,
        "lag_records{g,read_uncommitted,orders}": 5,
        "lag_bytes{g,orders}": 700,
        "lag_seconds{record,g,orders}": 1000 - 3,
        "lag_seconds{append,g,orders}": None,
        "last_commit_timestamp_seconds{g,orders}": 900,
        "members{g}": 2,
        "info{g,consumer,Consumer}": 1,
        "state{g,Stable}": 1,
        "pending_transactional_commits{g,orders}": 1,
        "partition_lag_records{g,read_committed,0,orders}": 5,
    }
    assert {name: found.get(f"group_{name}") for name in expected} == expected
    assert not [name for name in found if name.startswith("group_lag_unknown")]
    job.now += 100
    assert job.page() == {}, "a page is of no round of long ago"


def test_a_commit_counts_when_the_data_that_it_is_held_against_has_arrived() -> None:
    job = world("2 +0 9")
    agent = job.agents["a1"]
    agent.seq = 2
    assert job.round(1).rows.offset.tolist() == [2]
    job.reach(seq=2)
    job.play("10")
    agent.seq = 3
    assert job.round(1).rows.offset.tolist() == [9]
    job.reach(seq=3)
    assert job.round(1).rows.offset.tolist() == [10]


def test_positions_are_asked_once_and_then_only_for_what_has_moved() -> None:
    job = world("2 4/1")
    agent = job.agents["a1"]
    agent.logs["orders", 1] = Records(["data"] * 10)
    job.put("orders", 1, end=10)
    job.round()
    assert [set(asked) for asked in agent.asked] == [{("orders", 0, 10), ("orders", 1, 10)}, {("orders", 0, 2), ("orders", 1, 4)}]
    job.round(1)
    agent.asked.clear()
    job.play("3 +1")
    assert [("orders", 0, 3)] in [[one for one in asked if one[2] < 10] for asked in agent.asked]


def test_the_records_of_logs_are_of_the_round_though_an_agent_needs_a_moment_for_them() -> None:
    class Slow(FakeAgent):
        def records(self, request: RecordsRequest | None = None) -> RecordsAnswer:
            threading.Event().wait(0.02)
            return super().records(request)

    job = world()
    key = {"broker": 1, "topic": "orders", "topic_id": "", "partition": 0, "log_start": 0, "next_offset": 10}
    job.agents["a1"] = Slow(logs=job.agents["a1"].logs, counted=[key | {"data": 9, "aborted": 2, "control": 1}])
    job.round()
    found = named(job.table, "segtail_partition_records")
    assert {dict(series)["kind"]: value for series, value in found.items()} == {"data": 9, "aborted": 2, "control": 1}


def test_an_answer_that_comes_a_round_later_still_says_where_a_commit_is() -> None:
    job = world("3 +0 5")
    job.rounds.take_groups(job.agents, job.now)
    job.tracker.begin(job.rounds.view(job.now))
    (late,) = job.tracker.ask()
    job.tracker.begin(job.rounds.view(job.now))
    job.tracker.answer(late, job.agents["a1"].positions(late.asked))
    assert records(job.tracker.finish()) == [5]
    job.tracker.begin(job.rounds.view(job.now))
    assert job.tracker.ask() == []


def test_a_log_that_was_compacted_is_counted_anew_in_the_same_round_if_it_grows_and_now_and_then_if_not() -> None:
    job = world("3 +0", kinds=["data"] * 20)
    log = job.agents["a1"].logs["orders", 0]
    log.kinds[4:8] = ["gone"] * 4
    assert [records(each) for each in job.play("edition=e2 end=11 +15")] == [[4]]
    job = world("3 +0")
    agent, log = job.agents["a1"], job.agents["a1"].logs["orders", 0]
    agent.asked.clear()
    assert [records(each) for each in job.play(f"+1*{2 * CHECKED_ROUNDS}")] == [[7]] * 2 * CHECKED_ROUNDS
    assert [{offset for _, _, offset in asked} for asked in agent.asked] == [{10}, {10}]
    log.kinds[4:8] = ["gone"] * 4
    assert records(job.play(f"edition=e2 +1*{CHECKED_ROUNDS}")[-1]) == [3]


def test_an_agent_is_asked_for_no_more_at_once_than_it_answers_in_a_moment() -> None:
    job = world(" ".join(f"{number}:{number}" for number in range(2000)), end=3000)
    known = [(int((job.round(2).found.lags.reason < 0).sum()), job.tracker.left) for _ in range(3)]
    assert known == [(FIRST_ASKED, 2000 - FIRST_ASKED), (2000, 0), (2000, 0)]
    assert [len(asked) for asked in job.agents["a1"].asked if len(asked) > 2] == [FIRST_ASKED, 2000 - FIRST_ASKED]


def test_a_group_at_the_end_asks_for_nothing_but_the_end() -> None:
    job = world("10")
    assert records(job.round()) == [0]
    assert {offset for asked in job.agents["a1"].asked for _, _, offset in asked} == {10}
    assert job.page()["group_lag_seconds{append,g,orders}"] == 0


def coordinator(job: GroupJob, end: int, upto: int | None = None, **values: int) -> GroupJob:
    """Where the coordinator's log ends, and up to where its agent has read it."""
    job.put("__consumer_offsets", end=end, **values)
    if upto is not None:
        job.agents["a1"].upto = upto
    return job


@each_row(
    ("why", "ends", "script", "expected"),
    [
        ("its agent does not answer for long", {}, f"3 +0 away +5 +{HEARD} back +5", ["", "", LagReason.NOT_OBSERVED, ""]),
        ("not counted yet: asked for now and then", {}, f"state=FILLING 3 +1*{RETRIED_ROUNDS}", [LagReason.FILLING] * RETRIED_ROUNDS),
        (
            "known before, and not for a moment, whichever round it is: a file is deleted while its agent looks",
            {},
            "3 +0 " + " ".join(f"state=FILLING {offset} +1 state=KNOWN +1" for offset in range(4, 4 + RETRIED_ROUNDS)),
            ["", *[LagReason.FILLING, ""] * RETRIED_ROUNDS],
        ),
        ("its agent is behind for a while", {"end": 1000, "upto": 999}, f"3 +0 +{UNREAD}", ["", LagReason.UNREAD]),
        (
            "the coordinator's log has lost its end: its broker writes the high watermark anew within seconds, unless it is gone",
            {"end": 900, "upto": 900, "high_watermark": 1000},
            f"3 +0 +{UNREAD}",
            ["", LagReason.UNREAD],
        ),
    ],
)
def test_what_is_known_round_by_round(why: str, ends: dict[str, int], script: str, expected: list[str]) -> None:
    job = coordinator(world(), **ends) if ends else world()
    assert [reasons(each) for each in job.play(script)] == [[str(each)] for each in expected], why
    page = job.page()
    assert ("group_lag_records{g,read_committed,orders}" in page) == (expected[-1] == "")
    assert page["group_coordinators_unread{__consumer_offsets}"] == (expected[-1] == LagReason.UNREAD)
    if "coordinator's log" in why:
        coordinator(job, 900, high_watermark=900)
        assert reasons(job.round(1)) == [""]


@each_row(
    ("reason", "script"),
    [
        (LagReason.NOT_UNDERSTOOD, "-2"),
        (LagReason.LEADER, "1/7"),
        (LagReason.TOPIC_GONE, ""),
        (LagReason.FILLING, "3 state=FILLING"),
        (LagReason.DAMAGED, "3 state=DAMAGED"),
    ],
)
def test_what_is_not_known_has_its_reason(reason: LagReason, script: str) -> None:
    job = world(script)
    job.topics = {"orders": 10}
    if reason is LagReason.TOPIC_GONE:
        job.agents["a1"].commit(3, topic="gone")
        job.topics = {"orders": 0}
    assert reasons(job.round()) == [str(reason)]
    found = job.page()
    (name,) = [name for name in found if name.startswith("group_lag_unknown_partitions")]
    assert str(reason) in name
    assert not [name for name in found if name.startswith(("group_lag_records", "group_lag_bytes", "group_lag_seconds"))]


def test_a_position_that_is_not_counted_yet_is_asked_for_now_and_then_until_it_is() -> None:
    job = world(f"state=FILLING 3 +1*{1 + 2 * RETRIED_ROUNDS}")
    assert sum(offset == 3 for asked in job.agents["a1"].asked for _, _, offset in asked) == 1 + 2
    assert reasons(job.play(f"state=KNOWN +1*{RETRIED_ROUNDS}")[-1]) == [""]


def test_a_group_stands_still_at_the_earliest_since_it_is_known_that_a_record_is_readable() -> None:
    job = world("state=FILLING 3@900")
    assert since(job.round()) == [-1]
    snapshots = job.play(f"state=KNOWN +1*{RETRIED_ROUNDS}")
    first = next(each for each in snapshots if reasons(each) == [""])
    assert since(first) == [first.at_ms] == since(snapshots[-1])


def test_a_topic_made_anew_is_reported_by_its_id() -> None:
    job = world(topic_id=TOPIC_ID)
    for topic_id, reason in (("other", str(LagReason.MADE_ANEW)), (TOPIC_ID, "")):
        job.agents["a1"].commit(3, topic_id=topic_id)
        assert reasons(job.round(1)) == [reason]


def test_since_when_a_group_stands_is_known_over_the_absence_of_its_agent() -> None:
    job = world("3")
    before = since(job.round())
    away = job.agents.pop("a1")
    assert [reasons(job.round(HEARD)) for _ in range(3)] == [[str(LagReason.NOT_OBSERVED)]] * 3
    job.agents["a1"] = away
    found = job.round(5)
    assert (reasons(found), since(found)) == ([""], before)


def test_what_an_agent_has_sent_is_forgotten_when_it_is_away_for_good() -> None:
    job = world("3 +0")
    del job.agents["a1"]
    assert [len(job.round(seconds).rows) for seconds in (KEPT_SECONDS - 1, 1)] == [1, 0]


def test_an_agent_that_the_job_has_no_client_of_is_not_asked_and_the_others_are() -> None:
    job = world("3 +0")
    gone = job.agents.pop("a1")
    job.put(end=12)
    gone.asked.clear()
    assert (reasons(job.round(5)), gone.asked) == ([str(LagReason.LEADER)], [])


def test_what_an_agent_does_not_answer_about_is_not_being_counted() -> None:
    class Stopped(FakeAgent):
        def groups(self, request: GroupsRequest | None = None) -> GroupsAnswer:
            go_on.wait(SECONDS)
            return super().groups(request)

        def positions(self, asked: pa.Table) -> pa.Table:
            go_on.wait(SECONDS)
            return super().positions(asked)

    go_on, job = threading.Event(), world("3", kinds=["data"] * 12)
    agent = job.agents["a1"]
    before = reasons(job.round())
    job.agents["a1"] = Stopped(logs=agent.logs, commits=agent.commits, _version=1)
    job.put(end=12)
    found = [reasons(job.round(5, places_seconds=0.0, seconds_of_others=0.0)) for _ in range(2)]
    offsets = job.page()["group_lag_offsets{g,orders}"]
    go_on.set()
    assert (before, found) == ([""], [[str(LagReason.LEADER)]] * 2)
    assert offsets == 9, "that needs no counting"
    until("the agent's answers count again", lambda: reasons(job.round(1)) == [""])


@each_row(
    ("following", "coordinator", "reason"),
    [(Following.READ, 0, ""), (Following.READING, 1, ""), (Following.READING, 0, str(LagReason.NOT_OBSERVED))],
)
def test_commits_of_a_log_that_its_agent_reads_again_are_not_known_now(following: Following, coordinator: int, reason: str) -> None:
    job, log = world("3"), FollowedLog(broker=1, topic="__consumer_offsets", topic_id="", coordinator=coordinator, following=following)
    for others, expected in (([], ""), ([log], reason), ([], "")):
        job.agents["a1"].others = others
        assert reasons(job.round(1)) == [expected]


def test_an_agent_that_follows_a_coordinator_s_log_which_grows_all_the_time_is_not_behind() -> None:
    job = world("3")
    for end in range(1000, 1500, 100):
        assert reasons(coordinator(job, end, end - 100).round(UNREAD)) == [""], "it has read up to the high watermark of the round before"
    assert job.page()["group_coordinators_unread{__consumer_offsets}"] == 0
    found = [reasons(coordinator(job, end).round(UNREAD_MS / 2000)) for end in range(1500, 1800, 100)]
    assert found[-1] == [str(LagReason.UNREAD)], "it stands still, and the log does not"


COUNTS = ("committed_records", "lost_records", "lost_offsets")


@each_row(
    ("why", "kinds", "script", "counts"),
    [
        ("deleted before they are read: once", ["data", "control", *["data"] * 4], "1 +0 start=4 +15*2", (0, 2, 0)),
        ("and then more of them", ["data", "control", *["data"] * 4], "1 +0 start=4 +15 start=5 +15", (0, 3, 0)),
        ("what cannot be counted in records is in offsets", ["data"] * 10, "1 +0 edition=e2 start=4 +15*10", (0, 0, 3)),
        ("read", MIXED, "0 +0 3 +5 6 +5 6 +5 10 +5", (6, 0, 0)),
        ("set back, and read again", MIXED, "0 +0 3 +5 6 +5 6 +5 10 +5 3 +5 10 +5", (6 + 5, 0, 0)),
    ],
)
def test_what_a_group_passes_or_loses_is_counted(why: str, kinds: list[str], script: str, counts: tuple[int, int, int]) -> None:
    job = world(kinds=kinds, end=len(kinds))
    found = job.play(script)
    assert tuple(int(job.page()[f"group_{name}_total{{g,orders}}"]) for name in COUNTS) == counts, why
    assert counts[0] or all(each.progress.rate.tolist() == [0] for each in found[1:]), "nobody has read them"


def test_groups_and_partitions_that_come_and_go_leave_the_counts_of_the_others() -> None:
    job = world("0 +0 3 +5")
    agent = job.agents["a1"]
    agent.logs["orders", 1] = Records(["data"] * 10)
    job.put(partition=1, end=10)

    def totals() -> dict[str, float]:
        name = "group_committed_records_total"
        return {each.removeprefix(name): value for each, value in job.page().items() if each.startswith(name)}

    job.play("5/1 a:1 z:1 +5")
    assert totals() == {"{a,orders}": 0, "{g,orders}": 3, "{z,orders}": 0}
    job.play("4 7/1 z:9")
    agent.commits = [row for row in agent.commits if row["group"] != "a"]
    agent.edition = "c2"
    job.round(5)
    assert totals() == {"{g,orders}": 6, "{z,orders}": 8}


def stopped(job: GroupJob) -> float:
    return job.page()["group_stopped_partitions{g,orders}"]


def test_a_group_has_stopped_when_its_offset_stays_although_a_record_is_readable() -> None:
    job = world("3@1000 +0")
    for _ in range(20):
        job.agents["a1"].commit(3, commit_ms=round(job.now * 1000))  # auto-commit repeats one offset
        job.round(STOPPED_MS / 1000 / 20 - 0.01)
    found = [stopped(job)]
    for script in ("+1", "4 +1"):
        job.play(script)
        found.append(stopped(job))
    assert found == [0, 1, 0]
    job = world("2 +600*3", kinds=["data", "data", "control", "control"], end=4)
    assert stopped(job) == 0, "without a readable record"


def test_a_group_that_has_stopped_has_while_a_compacted_log_is_counted_anew() -> None:
    """The records that are left change with each compaction, and are not known until they are counted. It stands since the same time."""
    job = world("3@1000 +0")
    found = []
    for number in range(4):
        job.agents["a1"].logs["orders", 0].kinds[3 + number] = "gone"
        for script in (f"state=FILLING edition=e{number + 2}", f"state=KNOWN end={11 + number}"):
            snapshot = job.play(f"{script} end={11 + number} +600*{RETRIED_ROUNDS}")[-1]
            found.append((reasons(snapshot)[0], bool(snapshot.found.stopped[0]), since(snapshot)))
    assert found == [("filling", True, [1_000_000]), ("", True, [1_000_000])] * 4


def test_a_group_that_has_moved_since_it_was_counted_has_not_stopped_while_a_log_is_counted_anew() -> None:
    job = world("3@1000 +0")
    assert [since(each) for each in job.play("state=FILLING edition=e2 9@1001 +600*3")] == [[-1]] * 3


def test_offsets_of_a_group_that_nobody_uses_expire() -> None:
    job = world("3")
    job.agents["a1"].groups_ = [GROUP | {"state": "Empty", "topics": [], "members": 0}]
    job.round()
    assert job.page()["group_offset_expiration_timestamp_seconds{g,orders}"] == 1 + 7 * 86_400
    job.agents["a1"].edition = "c2"
    job.agents["a1"].groups_ = [GROUP]
    job.round()
    assert "group_offset_expiration_timestamp_seconds{g,orders}" not in job.page()


def test_a_share_group_has_no_isolation_and_what_it_is_done_with_is_not_left_and_what_is_not_understood_has_its_topic() -> None:
    job = world(topic_id=TOPIC_ID)
    job.put("__share_group_state", end=1000)
    job.agents["a1"].unreadable = 3
    job.agents["a1"].commit(4, group="s", share=True, topic="", topic_id=TOPIC_ID, delivered=2)
    job.round()
    found = job.page()
    assert found["group_lag_records{s,,orders}"] == 4
    assert found["group_lag_offsets{s,orders}"] == 4, "what kafka-share-groups calls LAG"
    assert not [name for name in found if "read_committed" in name]
    assert found["group_coordinators_unread{__share_group_state}"] == 0
    name = "group_records_not_understood"
    assert (found[f"{name}{{__consumer_offsets}}"], found[f"{name}{{__share_group_state}}"]) == (3, 0)


KINDS = st.sampled_from(["data", "data", "aborted", "control", "gone"])
STEPS = st.lists(st.tuples(st.lists(KINDS, max_size=4), st.integers(0, 30), st.integers(0, 30)), min_size=1, max_size=8)
"""In each round: what is appended, the committed offset, and the log start, as far as they are possible."""


@settings(max_examples=25, deadline=None)
@given(st.lists(KINDS, max_size=10), STEPS)
def test_lag_and_counters_are_what_a_count_of_single_records_gives(kinds: list[str], steps: list[tuple[list[str], int, int]]) -> None:
    job = world(kinds=kinds or ["gone"], end=len(kinds))
    log, log_start, before = job.agents["a1"].logs["orders", 0], 0, -1
    log.kinds = [*kinds]
    job.agents["a1"].groups_ = [GROUP | {"members": 0, "state": "Empty"}]  # nobody has fetched what is deleted
    passed = lost = lost_offsets = 0
    for appended, offset, begin in steps:
        log.kinds += appended
        end = len(log.kinds)
        committed, log_start = min(offset, end), max(log_start, min(begin, end))
        job.put(end=end, log_start_offset=log_start)
        job.agents["a1"].commit(committed)
        snapshot = job.round(15)
        start = max(committed, log_start)
        between = log.count(start, "data") - log.count(max(before, 0), "data")
        if 0 <= before < start and committed < log_start:
            read, plain = max(committed - before, 0), between == start - before
            passed += read if plain else 0
            lost += between - read if plain or not read else 0
            lost_offsets += start - committed if read and between and not plain else 0
        elif 0 <= before < start:
            passed += between
        before = start
        lags = snapshot.found.lags
        assert records(snapshot) == [log.count(end, "data") - log.count(start, "data")]
        assert lags.read_uncommitted.tolist() == [log.count(end, "data", "aborted") - log.count(start, "data", "aborted")]
        assert lags.offsets.tolist() == [end - committed]
        assert [int(getattr(snapshot.counters, name)[0]) for name in COUNTS] == [passed, lost, lost_offsets]


def test_commits_that_wait_are_counted_of_groups_without_any_other_offset() -> None:
    job = world("other:3")
    job.agents["a1"].pending = [WAITING, WAITING | {"partition": 4}]
    job.round()
    page = job.page()
    assert [page[f"group_pending_transactional_commits{{{group},orders}}"] for group in ("g", "other")] == [2, 0]


@each_row("step", [-3600.0, 3600.0])
def test_what_an_agent_has_sent_counts_for_as_long_whatever_the_clock_is_set_to(step: float) -> None:
    job = world("3 +0 away")
    job.ahead = step
    assert [reasons(each) for each in job.play(f"+5 +{HEARD}")] == [[""], [str(LagReason.NOT_OBSERVED)]]


def test_a_group_that_stops_after_the_clock_is_set_back_is_found_as_soon() -> None:
    job = world()
    job.ahead = 3600.0
    job.play("3 +0 4 +1")
    job.ahead = 0.0
    job.play("+1 +601")
    assert stopped(job) == 1


def test_what_retention_keeps_is_worked_out_where_a_group_has_committed_and_once_in_a_round() -> None:
    job = world()
    looked: list[int] = []

    def rounds_look() -> None:
        view = job.rounds.view(job.now)

        def retention() -> RetentionResults:
            looked.append(len(view.observed.names))
            return view.retention()

        assert view.retention() is view.retention()
        job.rounds.take_groups(job.agents, job.now)
        job.tracker.begin(replace(view, retention=retention))
        job.tracker.ask()
        job.tracker.finish()

    rounds_look()
    assert looked == [], "nobody has committed"
    job.play("3")
    rounds_look()
    assert looked == [2]
