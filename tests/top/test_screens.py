"""What a screen shows for an answer and a size."""

import re
from dataclasses import replace

import pytest
from rich.cells import cell_len
from rich.color import Color

from streaming.broker.protocol.listing_json import TransactionRow
from streaming.broker.protocol.status_json import Consequence, JobStart
from streaming.pages.listings.declared_lists import LISTS
from streaming.terminal.top.frame import drawn
from streaming.terminal.top.questions import VIEWS, DetailQuestion, ListName, ListQuestion
from streaming.terminal.top.screen_parts import WARNING_COLOUR, body_height, help_lines, resized
from streaming.terminal.top.top_state import Place, ScreenState, question
from streaming.terminal.top.watching import pressed, ticked
from tests.tables import each_row
from tests.top.fake_job import COMMAND, NOW_MS, FakeJob, partition, problem, status, troubled
from tests.top.screens import lines, lost, shown, text


def test_the_first_line_is_the_verdict_and_the_second_how_old_its_data_is() -> None:
    verdict, freshness, *_ = lines(shown(troubled()))
    assert verdict == "1 transaction hangs: orders-7 is held for 3 h 12 min"
    assert freshness == "the newest is 0.8 s old; 3 of 3 brokers"


def test_a_job_that_starts_says_how_far_it_is_in_no_severity_s_colour() -> None:
    start = JobStart(step="reading", what="Reading the disks: 41 %")
    verdict, freshness, *_ = drawn(shown(FakeJob(status(start=start, verdict="Reading the disks: 41 %", severity="critical")))).lines
    assert (verdict.plain.rstrip(), str(verdict.style), freshness.plain.rstrip()) == (
        "Reading the disks: 41 %",
        "bold",
        "the newest is 0.8 s old; 3 of 3 brokers",
    )


@each_row(("start", "line"), [(None, "No problems."), (JobStart(step="spark", what="Starting Spark"), "No problems known yet.")])
def test_no_problem_of_a_job_that_starts_is_not_no_problem(start: JobStart | None, line: str) -> None:
    assert line in lines(shown(FakeJob(status(start=start))))


def test_a_job_that_answers_and_knows_nothing_current_says_so() -> None:
    verdict, freshness, *_ = lines(shown(FakeJob(status(not_current="No agent answers: a1", verdict="Nothing is wrong"))))
    assert (verdict, freshness) == ("not current: No agent answers: a1", "last known: Nothing is wrong")


def test_a_long_verdict_is_wrapped_where_there_is_room_and_cut_where_there_is_none() -> None:
    state = shown(FakeJob(status(verdict="word " * 30)), width=40, height=24)
    assert [line for line in lines(state) if line.startswith("word")] == ["word " * 7 + "word"] * 2 + ["word " * 7 + "word…"]
    assert lines(resized(state, 40, 10))[:2] == ["word " * 7 + "word…", "the newest is 0.8 s old; 3 of 3 brokers"]


@each_row(("key", "view"), [*zip("123456", VIEWS, strict=True)])
def test_each_view_has_a_key_and_shows_its_rows(key: str, view: str) -> None:
    screen = text(shown(troubled(), key))
    assert f"[{key} {view}]" in screen
    assert ("billing" if view == "groups" else "orders-") in screen


def test_what_is_not_known_yet_is_stated() -> None:
    state = ScreenState(source="the job at h:1")
    assert lines(state)[:2] == ["asking the job at h:1 …", "no answer yet"]
    assert lines(lost(state, "h:1: 503 Service Unavailable: starting"))[0] == "not known yet: h:1: 503 Service Unavailable: starting"


def test_values_of_a_job_that_is_gone_are_marked_as_old_and_are_current_again_when_it_is_back() -> None:
    state = lost(shown(troubled(), "2", width=140))
    first, second, *_ = lines(state)
    assert first == "not current: h:1 cannot be asked: Connection refused"
    assert second == "old, of 2026-05-28T20:26:40Z (10s ago): 1 transaction hangs: orders-7 is held for 3 h 12 min"
    rows = [line for line in drawn(state).lines if "orders-" in line.plain and line is not drawn(state).lines[1]]
    assert "orders-299" in text(state)
    assert all("dim" in str(line.spans) for line in rows[1:])
    assert lines(shown(troubled(), start=state))[0].startswith("1 transaction hangs")


def test_a_job_that_does_not_answer_in_time_is_not_current_either() -> None:
    state = shown(troubled())
    assert lines(ticked(state, 10.0))[0].startswith("1 transaction hangs")
    assert lines(ticked(state, 12.0))[0] == "not current: no answer for 12s"


def test_a_screen_of_log_dirs_does_not_grow_old_by_itself() -> None:
    assert lines(ticked(replace(shown(troubled()), every=0.0), 1000.0))[0].startswith("1 transaction hangs")


def test_paused_says_since_when() -> None:
    state = ticked(pressed(shown(troubled()), "p"), 30.0)
    assert lines(state)[0] == "paused: 1 transaction hangs: orders-7 is held for 3 h 12 min"
    assert lines(state)[1].startswith("as of 2026-05-28T20:26:40Z (30s ago): ")
    assert lines(pressed(state, "p"))[0].startswith("not current: ")


def test_a_letter_sorts_and_the_same_one_turns_the_order_over() -> None:
    job = troubled()
    for keys, heading, first in (("2", "Bytes/s▼", 299), ("2F", "End offset▼", 299), ("2FF", "End offset▲", 0), ("2B", "Bytes/s▲", 0)):
        state = shown(job, *keys, width=140)
        assert heading in text(state)
        assert lines(state)[4].startswith(f"orders-{first} ")


@each_row("view", VIEWS)
def test_each_letter_sorts_by_one_column_of_its_view_whose_heading_shows_it(view: str) -> None:
    columns = LISTS[view].text_columns
    letters = [each.key for each in columns if each.key]
    assert len(set(letters)) == len(letters)
    for each in columns:
        assert bool(each.key) == bool(each.sort)
        assert each.key.lower() in each.heading.lower()


def test_a_narrow_screen_keeps_what_shows_that_something_is_wrong() -> None:
    job = troubled()
    job.transactions = [replace(job.transactions[0], verdict="two_phase_commit", stuck=True, topic="a-topic-with-a-long-name")]
    job.retention = [replace(job.retention[0], topic="a-topic-with-a-long-name", kind="retention_blocked")]
    job.groups = [replace(job.groups[0], group="a-group-with-a-long-name")]
    for key, heading, reported in (("3", "Verdict", "two phase co…"), ("4", "Verdict", "retention bl…"), ("5", "Verdict", "held")):
        screen = text(shown(job, key, width=40))
        assert heading in screen
        assert reported in screen


def test_the_letter_that_sorts_is_underlined() -> None:
    headings = drawn(shown(troubled(), "2")).lines[3]
    marked = {headings.plain[span.start : span.end] for span in headings.spans if span.style == "underline"}
    assert {"P", "B", "e"} <= marked
    assert "Records/s" in headings.plain


def test_a_filter_stays_visible_and_is_asked_of_the_job_until_esc_clears_it() -> None:
    job = troubled()
    typing = shown(job, "2", "/", *"orders-2", "backspace", *"29")
    assert lines(typing)[3] == "filter: orders-29_"
    state = shown(replace(job, partitions=[partition(number, f"orders-{number % 7}") for number in range(70)]), *"2/orders-2", "enter")
    assert lines(state)[3] == "filter: orders-2 (10 of 70)"
    assert question(state) == ListQuestion(view=state.view, filter="orders-2", limit=174)
    assert "filter:" not in text(pressed(state, "esc"))
    none = shown(job, *"2/nothing", "enter")
    assert lines(none)[5] == "Nothing of 300 holds nothing: esc clears the filter."


def test_each_view_keeps_its_own_filter() -> None:
    assert "filter:" not in text(shown(troubled(), *"2/abc", "enter", "3"))
    assert "filter: abc" in text(shown(troubled(), *"2/abc", "enter", "3", "2"))


def test_the_cursor_stays_with_its_row_when_the_order_changes() -> None:
    job = troubled()
    state = shown(job, "2", "down", "down")
    assert state.chosen == partition(297)
    job.partitions = [partition(number, bytes_rate=1000.0 * (number % 298)) for number in range(300)]
    state = shown(job, start=state)
    assert state.chosen == job.partitions[297]
    assert state.place.cursor == 0


def test_scrolling_asks_for_the_part_of_the_list_that_is_seen() -> None:
    state = shown(troubled(), "2", "end")
    assert (state.place.cursor, lines(state)[-2].split()[0]) == (299, "orders-0")
    assert "300 of 300" in lines(state)[-1]
    assert question(state) == ListQuestion(view=state.view, offset=200, limit=174)
    assert shown(troubled(), "2", "end", "home", "pagedown").place.cursor == 19


def test_enter_opens_a_problem_then_what_it_is_about_and_esc_goes_back() -> None:
    job = troubled()
    state = shown(job, "enter", width=140)
    assert COMMAND in text(state)
    assert "1,204 offsets cannot be read" in text(state)
    assert "segtail runbook TransactionHanging" in text(state)
    opened = shown(job, "enter", "enter")
    assert question(opened) == DetailQuestion(topic="orders", partition=7)
    assert "open transaction of producer 4711, epoch 2: hanging" in text(opened)
    assert shown(job, "enter", "enter", "esc", "esc").opened == ()
    group = shown(job, "down", "enter", "enter")
    assert question(group) == DetailQuestion(group="billing")


def test_a_problem_that_is_gone_is_not_shown_as_if_it_were_there() -> None:
    job = troubled()
    state = shown(job, "enter")
    job.problems = []
    assert "not there any more" in text(shown(job, start=state))


def test_a_command_is_copied_and_shown() -> None:
    for keys in (["c"], ["enter", "c"], ["3", "c"], ["2", "/", *"orders", "enter", "3", "enter", "c"]):
        state = shown(troubled(), *keys[:-1], width=140)
        copied = pressed(state, keys[-1])
        assert copied.to_copy == COMMAND
        assert lines(copied)[-2] == "Sent to the clipboard, if the terminal takes it:"
        assert "Sent to the clipboard" not in text(pressed(copied, "x"))


def test_what_to_know_before_a_command_of_a_transaction_is_shown_with_it() -> None:
    row = replace(_open("orders"), command=COMMAND, advice="the abort discards its records")
    state = shown(FakeJob(status(), transactions=[row]), "3", width=140, height=40)
    assert "The abort discards its records." in text(state)
    copied = pressed(shown(FakeJob(status(), transactions=[row]), "3", width=140, height=12), "c")
    assert copied.to_copy == COMMAND
    assert lines(copied)[-2] == "The abort discards its records. Sent to the clipboard, if the terminal takes it:"


@pytest.mark.parametrize(
    ("values", "stated"),
    [
        ({"command": "", "no_command": "names are redacted here"}, "There is no command here: names are redacted here."),
        ({"command": "rm \x1b[2K"}, "There is no command here: it holds control characters."),
    ],
)
def test_what_is_no_command_is_not_copied(values: dict[str, str], stated: str) -> None:
    state = pressed(shown(FakeJob(status(), problems=[problem(**values)])), "c")
    assert (state.to_copy, lines(state)[-1]) == ("", stated)


def test_names_are_escaped_and_columns_are_in_line_whatever_is_in_them() -> None:
    names = ["plain", "a\x1b[31m", "\u202egpj", "語語", "e\u0301\u0301", "tab\there"]
    job = FakeJob(status(verdict="\x1b[2J\u202e"), transactions=[_open(name) for name in names])
    state = shown(job, "3", width=120)
    assert lines(state)[0] == "\\x1b[2J\\u202e"
    rows = lines(state)[4 : 4 + len(names)]
    assert {cell_len(row[: row.index("hanging")]) for row in rows} == {cell_len(rows[0][: rows[0].index("hanging")])}
    screen = text(state)
    assert '"a\\u001b[31m"-0' in screen
    assert '"\\u202egpj"-0' in screen
    assert "語語-0" in screen


def _open(topic: str) -> TransactionRow:
    return TransactionRow(broker=1, topic=topic, partition=0, producer_id=1, verdict="hanging", start_ms=NOW_MS - 1000)


@each_row(
    ("width", "headings"),
    [
        (100, ["Partition", "Verdict", "Bytes/s▼", "Records/s", "Held back", "Last append", "Size", "Last hour", "Open"]),
        (60, ["Partition", "Verdict", "Bytes/s▼", "Records/s", "Held back"]),
        (40, ["Partition", "Verdict", "Bytes/s▼"]),
        (30, ["Partition", "Verdict"]),
        (20, ["Partition", "Verdict"]),
    ],
)
def test_a_narrow_terminal_has_the_important_columns(width: int, headings: list[str]) -> None:
    state = shown(troubled(), "2", width=width)
    assert [re.split(r" {2,}", line) for line in lines(state) if line.startswith("Partition")] == [headings]
    assert any(line.startswith("orders-299") for line in lines(state))


def test_a_long_name_keeps_the_number_of_its_partition() -> None:
    job = FakeJob(status(), partitions=[partition(123, "a-very-long-name-of-a-topic" * 3)])
    assert any(line.startswith("a-very") and "…" in line and "-123 " in line for line in lines(shown(job, "2", width=40)))


def test_times_are_ages_or_in_utc() -> None:
    assert "3h 12m ago" in text(shown(troubled()))
    assert "2026-05-28T17:14:40Z" in text(shown(troubled(), "t"))


def test_the_pace_changes_and_is_shown() -> None:
    assert "every 5s" in text(shown(troubled(), "+"))
    assert "every 1s" in text(shown(troubled(), "-", "-"))
    assert shown(troubled(), *"++++++").every == 60.0
    assert pressed(shown(troubled()), "r").again


def test_the_help_names_every_key_that_does_something() -> None:
    screen = text(shown(troubled(), "?"))
    for key in ("enter", "esc", "/", "shift", "c ", "t ", "p ", "+, -", "r ", "q", "PgUp"):
        assert key in screen
    assert "[1 problems]" in text(shown(troubled(), "?", "?"))


def test_a_use_stays_visible_beside_a_filter_and_esc_clears_both() -> None:
    job = troubled()
    job.groups = [replace(job.groups[0], group=name, use=use) for name, use in (("g1", "in_use"), ("g2", "in_use"), ("h", "abandoned"))]
    start = ScreenState(source="the job", view=ListName.GROUPS, width=100).with_place(Place(use="in_use"))
    state = shown(job, start=start)
    assert "use: in_use (2 of 3)" in text(state)
    state = shown(job, "/", *"g2", "enter", start=state)
    assert "use: in_use  filter: g2 (1 of 3)" in text(state)
    state = shown(job, "esc", start=state)
    assert (state.place, "use:" in text(state), state.rows and state.rows.matched) == (Place(), False, 3)


@pytest.mark.parametrize(("key", "fact"), [("1", COMMAND), ("2", "broker"), ("3", COMMAND), ("4", "time limit"), ("5", "records left")])
def test_the_chosen_row_is_shown_below_a_list_where_there_is_room(key: str, fact: str) -> None:
    job = replace(troubled(), partitions=[partition(7)])
    state = resized(shown(job, key), 120, 40)
    rule = next(number for number, line in enumerate(lines(state)) if line == "─" * 120)
    assert fact in "\n".join(lines(state)[rule:])
    assert len(lines(state)) == 40
    assert "─" * 80 not in lines(resized(state, 80, 10))


def test_a_long_list_leaves_a_third_of_a_tall_screen_to_the_chosen_row_and_none_of_a_low_one() -> None:
    tall, low = (resized(shown(troubled(), "2", "down"), 80, height) for height in (40, 20))
    assert lines(tall).index("─" * 80) in range(20, 32)
    assert [body_height(each) for each in (tall, low)] == [23, 15]
    assert [line for line in lines(tall)[lines(tall).index("─" * 80) :] if line.startswith("orders-298")]
    assert "─" * 80 not in lines(low)


@pytest.mark.parametrize("count", [1, 5, 12, 40])
def test_a_usual_terminal_shows_what_follows_from_the_chosen_problem_and_its_command(count: int) -> None:
    what = "Stuck transactions in topic orders: " + "its story is long, as such stories are; " * 12
    follows = [Consequence(severity="critical", text="group billing in orders-7: held up, loses records in 6m")]
    problems = [problem(id=str(number), what=what, consequences=follows) for number in range(count)]
    screen = text(resized(shown(replace(troubled(), problems=problems)), 80, 24))
    below = screen[screen.index("─" * 80) :]
    assert "group billing in orders-7: held up" in below
    assert COMMAND in below.replace(" \\\n  ", " ")
    assert "its story is long" in below


def test_help_that_is_longer_than_the_screen_shows_that_there_is_more_and_hides_no_line() -> None:
    state = resized(shown(troubled(), "?"), 80, 16)
    seen = set(lines(state))
    assert any(line.startswith("… ") and line.endswith("more lines: PgDn, down") for line in lines(state))
    for _ in range(9):
        state = pressed(state, "pagedown")
        seen |= set(lines(state))
    assert {line.rstrip() for line in help_lines(80)} <= seen
    assert not any(line.endswith("PgDn, down") for line in lines(state))


def test_what_warns_can_be_read_on_black_and_on_white() -> None:
    red, green, blue = Color.parse(WARNING_COLOUR).get_truecolor()
    light = sum(
        share * (value / 255 / 12.92 if value <= 10 else ((value / 255 + 0.055) / 1.055) ** 2.4)
        for share, value in ((0.2126, red), (0.7152, green), (0.0722, blue))
    )
    assert min(1.05 / (light + 0.05), (light + 0.05) / 0.05) > 4.4  # the contrast of WCAG 2
