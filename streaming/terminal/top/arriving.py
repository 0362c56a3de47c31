"""What an answer, a failure or time makes of a state."""

from dataclasses import replace

from streaming.terminal.top.questions import Answer, ListQuestion, Question, Rows
from streaming.terminal.top.scrolling import scrolled
from streaming.terminal.top.top_state import ScreenState, key_of, question


def answered(state: ScreenState, answer: Answer, now: float) -> ScreenState:
    """The state with an answer, at ``now`` on the state's clock.

    An answer for a screen that was left still says how everything is; what else is in it counts only if it is wanted.
    """
    state = replace(state, status=answer.status, answered=now, now=max(now, state.now), error="")
    if not is_wanted(state, answer.content.question):
        return state
    return scrolled(_following(replace(state, content=answer.content)))


def failed(state: ScreenState, why: str, now: float) -> ScreenState:
    """The state after a question without an answer: what was known stays, as old."""
    return replace(state, error=why or "no answer", now=max(now, state.now))


def ticked(state: ScreenState, now: float) -> ScreenState:
    """The state at a later time."""
    return replace(state, now=max(now, state.now))


def is_wanted(state: ScreenState, other: Question) -> bool:
    """Whether an answer to this belongs on the screen: it may begin at another row and have another size, but nothing else."""
    wanted = question(state)
    if isinstance(wanted, ListQuestion) and isinstance(other, ListQuestion):
        return replace(other, offset=0, limit=0) == replace(wanted, offset=0, limit=0)
    return other == wanted


def _following(state: ScreenState) -> ScreenState:
    """Keep the cursor on the row that it was on, if that is still near."""
    rows, place = state.content, state.place
    if not isinstance(rows, Rows) or not place.held:
        return state
    index = next((number for number, row in enumerate(rows.rows) if key_of(row) == place.held), None)
    if index is not None:
        cursor = rows.offset + index
        return state.with_place(replace(place, cursor=cursor, first=max(0, place.first + cursor - place.cursor)))
    chosen = state.chosen
    return state.with_place(replace(place, held=key_of(chosen) if chosen else ""))
