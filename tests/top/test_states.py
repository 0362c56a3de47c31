"""Whatever keys, answers, failures and sizes come in whatever order: what holds of the state and of the screen."""

import itertools
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from streaming.broker.protocol.group_json import GroupSummary
from streaming.pages.listings.cells import MORE
from streaming.terminal.top.frame import drawn
from streaming.terminal.top.questions import Answer, ListQuestion
from streaming.terminal.top.screen_parts import body_height, resized
from streaming.terminal.top.top_state import ScreenState, question
from streaming.terminal.top.watching import answered, failed, pressed, ticked
from tests.top.fake_job import FakeJob, partition, problem, status, troubled
from tests.top.screens import ask, shown

NAMES = ["orders", "süß", "語" * 9, "a\x1b[31m", "\u202egpj", "e\u0301", "x" * 300, ""]
KEYS = [
    *"12345qjk ?/prtc+-BUTSGRox",
    "up",
    "down",
    "pageup",
    "pagedown",
    "home",
    "end",
    "enter",
    "esc",
    "tab",
    "backtab",
    "left",
    "backspace",
]
KEYS += ["clear", "語"]


@st.composite
def jobs(draw: st.DrawFn) -> FakeJob:
    """A job with any number of rows, whose names may be anything."""
    job = replace(troubled(), status=status(verdict=draw(st.sampled_from(NAMES)) or "v", severity=draw(st.sampled_from(["", "critical"]))))
    count = draw(st.integers(0, 200))
    name = draw(st.sampled_from(NAMES))
    job.partitions = [partition(number, name, bytes_rate=draw(st.sampled_from([-1.0, 0.5, 2e9]))) for number in range(count)]
    job.problems = [problem(topic=name, partition=number, what=f"{name} is held up") for number in range(draw(st.integers(0, 3)))]
    job.groups = [GroupSummary(group=f"{name}{number}") for number in range(draw(st.integers(0, 60)))]
    return job


@st.composite
def steps(draw: st.DrawFn) -> list[tuple[str, object]]:
    """What happens, one after the other."""
    keys = st.tuples(st.just("key"), st.sampled_from(KEYS))
    sizes = st.tuples(st.just("size"), st.tuples(st.integers(1, 130), st.integers(1, 50)))
    answers = st.tuples(st.just("answer"), jobs())
    others = st.tuples(st.sampled_from(["late", "failure", "tick"]), st.none())
    return draw(st.lists(st.one_of(keys, keys, keys, answers, sizes, others), max_size=25))


def after(state: ScreenState, step: tuple[str, object], waiting: list[Answer]) -> ScreenState:
    """One step; an answer may come late, when something else is wanted already."""
    kind, value = step
    if kind == "key":
        return pressed(state, str(value))
    if kind == "size":
        assert isinstance(value, tuple)
        return resized(state, *value)
    if kind == "answer":
        assert isinstance(value, FakeJob)
        waiting.append(ask(value, state))
        return answered(state, waiting[-1], state.now)
    if kind == "late" and waiting:
        return answered(state, waiting[0], state.now)
    return failed(state, "refused", state.now + 1) if kind == "failure" else ticked(state, state.now + 3)


def check(state: ScreenState) -> None:
    """What holds at any time."""
    frame = drawn(state)
    assert len(frame.lines) == state.height
    assert all(cell_len(line.plain) <= state.width for line in frame.lines)
    assert all(line.plain.isprintable() for line in frame.lines)
    assert 0 <= frame.row < state.height
    first = frame.lines[0].plain
    if state.error and not state.paused:
        warned = ("not current", "not known")[state.status is None]
        assert first.startswith(warned) or (state.width < len(warned) + 2 and warned.startswith(first.rstrip(MORE).rstrip()) and first)
    place, rows = state.place, state.rows
    assert place.first <= place.cursor < place.first + body_height(state) or rows is None
    if rows is not None:
        assert rows.question.view is state.view
        assert 0 <= place.cursor <= max(0, rows.matched - 1) or state.waits
    wanted = question(state)
    if isinstance(wanted, ListQuestion):
        assert wanted.limit <= 1000
        assert wanted.offset <= place.first < wanted.offset + wanted.limit


@given(steps())
def test_the_screen_fits_and_says_whether_it_is_current_whatever_happens(happening: list[tuple[str, object]]) -> None:
    state, waiting = ScreenState(source="the job"), list[Answer]()
    for step in happening:
        state = after(state, step, waiting)
        check(state)


@pytest.mark.parametrize("width", [1, 2, 3, 5, 7, 9, 12])
def test_no_line_is_wider_than_the_narrowest_of_terminals(width: int) -> None:
    for height, keys in itertools.product(
        (1, 6), ([], *([view] for view in "12345"), ["1", "enter"], ["2", "enter"], ["?"], ["2", "/", "x"])
    ):
        state, waiting = ScreenState(source="the job"), list[Answer]()
        for step in [
            ("failure", None),
            ("size", (width, height)),
            ("answer", troubled()),
            *(("key", key) for key in keys),
            ("answer", troubled()),
        ]:
            state = after(state, step, waiting)
            check(state)


@given(steps())
def test_from_anywhere_escapes_lead_back_to_a_whole_list_and_q_ends(happening: list[tuple[str, object]]) -> None:
    state, waiting = ScreenState(source="the job"), list[Answer]()
    for step in happening:
        state = after(state, step, waiting)
    for _ in range(5):
        state = pressed(state, "esc")
    assert (state.place.filter, state.opened, state.helping, state.typing) == ("", (), False, False)
    assert pressed(state, "q").over


@given(steps())
def test_an_answer_makes_current_again_what_is_shown(happening: list[tuple[str, object]]) -> None:
    state, waiting = ScreenState(source="the job"), list[Answer]()
    for step in happening:
        state = after(state, step, waiting)
    state = shown(troubled(), start=replace(state, paused=False, width=100, height=24))
    assert not state.is_old
    assert not state.waits
    assert drawn(state).lines[0].plain == "1 transaction hangs: orders-7 is held for 3 h 12 min"
